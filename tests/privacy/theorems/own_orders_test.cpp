// Correlated noise where every epoch has an order, or bins, of its own (series.matrix).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "privacy/accountant/normal_tail.h"
#include "privacy/theorems/noise_choice.h"
#include "privacy/theorems/series_law.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/random/random.h"

namespace tsdp::privacy {
namespace {

std::shared_ptr<const Strategy> square_root(std::int64_t bands, std::int64_t steps) {
  return std::make_shared<const Strategy>(StrategyKind::bsr, square_root_bands(bands), steps);
}

std::vector<SeriesLaw> own_orders(std::int64_t batches) {
  SeriesLaw shuffled{TopLevel::shuffled, batches};
  SeriesLaw bins{TopLevel::balls_in_bins, batches};
  bins.redraw = Redraw::every_epoch;
  return {shuffled, bins};
}

/// What a series that gives (1, 0, …) in its steps adds to the releases, for every order of the epochs.
std::vector<std::vector<double>> means_of(const Strategy& strategy, std::int64_t batches, std::int64_t epochs) {
  const auto steps = static_cast<std::size_t>(batches * epochs);
  const auto c = strategy.column();
  std::vector<std::vector<double>> means;
  std::int64_t orders = 1;
  for (std::int64_t m = 0; m < epochs; ++m) orders *= batches;
  for (std::int64_t order = 0; order < orders; ++order) {
    means.emplace_back(steps, 0.0);
    auto rest = order;
    for (std::int64_t m = 0; m < epochs; ++m, rest /= batches)
      for (auto n = static_cast<std::size_t>(m * batches + rest % batches), t = std::size_t{0}; n < steps; ++n, ++t)
        means.back()[n] += c[t];
  }
  return means;
}

/// δ(ε) of the release itself, by draws: the series is there, its orders uniform, against none; in the worse direction,
/// with its standard error.
struct Drawn {
  double delta, error;
};
Drawn drawn_delta(const std::vector<std::vector<double>>& means, double sigma, double epsilon) {
  constexpr int draws = 200'000;
  const auto steps = means.front().size();
  const RandomStream normals(SecretKey::from_seed(11), "own orders", 0);
  RandomStream stream(SecretKey::from_seed(11), "own orders", 1);
  double remove = 0.0, add = 0.0, remove_2 = 0.0, add_2 = 0.0;
  std::vector<double> x(steps);
  for (int i = 0; i < draws; ++i) {
    normals.normals(static_cast<std::uint64_t>(i) * steps, x);
    const auto& own = means[static_cast<std::size_t>(stream.below(means.size()))];
    // dP/dQ of Q's draw, and of P's.
    const auto ratio = [&](bool present) {
      double sum = 0.0;
      for (const auto& mean : means) {
        double exponent = 0.0;
        for (std::size_t n = 0; n < steps; ++n)
          exponent += mean[n] * (x[n] * sigma + (present ? own[n] : 0.0) - 0.5 * mean[n]);
        sum += std::exp(exponent / (sigma * sigma));
      }
      return sum / static_cast<double>(means.size());
    };
    const double of_removal = std::max(0.0, 1.0 - std::exp(epsilon) / ratio(true));
    const double of_addition = std::max(0.0, 1.0 - std::exp(epsilon) * ratio(false));
    remove += of_removal, remove_2 += of_removal * of_removal;
    add += of_addition, add_2 += of_addition * of_addition;
  }
  const auto error = [&](double sum, double squares) {
    return std::sqrt(std::max(squares - sum * sum / draws, 1.0)) / draws;
  };
  return remove > add ? Drawn{remove / draws, error(remove, remove_2)} : Drawn{add / draws, error(add, add_2)};
}

/// The most that any event ⟨x, m⟩ > t says, m one of the means: P(S) − e^ε Q(S), from below.
double half_space(const std::vector<std::vector<double>>& means, double sigma, double epsilon) {
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  double most = 0.0;
  for (const auto& m : means) {
    const double norm = std::sqrt(product(m, m));
    for (double t = 0.0; t < 4.0 * norm + 20.0 * sigma; t += 0.02 * sigma) {
      double with = 0.0;
      for (const auto& other : means) with += normal_tail((t - product(other, m) / norm) / sigma);
      most = std::max(most, with / static_cast<double>(means.size()) - std::exp(epsilon) * normal_tail(t / sigma));
    }
  }
  return most;
}

TEST(OwnOrders, AreCoveredAsDrawsOfTheReleaseShow) {
  bool fixed_would_be_false = false;
  const auto ones = NoiseRecursion{NoiseRecursion::Form::banded, {1.0, 1.0}};
  for (const auto& [batches, epochs, recursion, sigma] :
       {std::tuple<std::int64_t, std::int64_t, NoiseRecursion, double>{2, 2, ones, 1.0},
        {3, 2, square_root_bands(4), 1.0},
        {2, 3, square_root_bands(2), 2.0}}) {
    const auto strategy = std::make_shared<const Strategy>(StrategyKind::file, recursion, batches * epochs);
    const auto means = means_of(*strategy, batches, epochs);
    const auto uses = static_cast<std::uint64_t>(epochs);
    for (const double epsilon : {0.5, 2.0, 5.0, 13.0}) {
      const auto drawn = drawn_delta(means, sigma, epsilon);
      const double event = half_space(means, sigma, epsilon);
      EXPECT_LE(event, drawn.delta + 5.0 * drawn.error);
      for (const auto& law : own_orders(batches)) {
        const auto theorem = series_theorem(law, noise_by(strategy, sigma));
        EXPECT_EQ(theorem.theorem, "series.matrix");
        const auto delta = theorem.curve()->delta(epsilon, uses);
        EXPECT_LE(drawn.delta, delta.upper + 5.0 * drawn.error) << batches << ", " << epochs << ", " << epsilon;
        EXPECT_LE(event, delta.upper) << batches << ", " << epochs << ", " << epsilon;
        EXPECT_EQ(delta.lower, 0.0);
        EXPECT_NE(delta.why.upper.find("Theorem 3"), std::string::npos);
      }
      const double mu = std::sqrt(squared_sensitivity(*strategy, batches, epochs)) / sigma;
      fixed_would_be_false = fixed_would_be_false || event > 2.0 * gaussian_delta(epsilon, mu).upper;
    }
  }
  EXPECT_TRUE(fixed_would_be_false);  // what orders drawn once cost would not do
}

TEST(OwnOrders, CostAsTheirSensitivitySays) {
  const auto strategy = square_root(4, 200);
  for (const auto& law : own_orders(20)) {
    const auto theorem = series_theorem(law, noise_by(strategy, 12.0));
    for (const std::uint64_t uses : {1U, 4U, 10U}) {
      const double mu =
          std::sqrt(squared_sensitivity_of_own_orders(*strategy, 20, static_cast<std::int64_t>(uses))) / 12.0;
      const auto delta = theorem.curve()->delta(1.0, uses);
      EXPECT_NEAR(delta.upper, gaussian_delta(1.0, mu).upper, 1e-9 * delta.upper);
      // The pair of an epoch, composed, and Rényi divergences are above.
      EXPECT_GE(Accountant(theorem.pair).delta(1.0, uses).upper, delta.upper);
      const double renyi = theorem.renyi(uses, std::vector<double>{4.0}).front();
      EXPECT_GE(renyi, 4.0 * mu * mu / 2.0 * (1.0 - 1e-9));
    }
    EXPECT_THROW(static_cast<void>(theorem.curve()->delta(1.0, 11)), PrivacyError);
    // A replaced series moves sums by up to twice as much, in steps that may be as near.
    const auto replaced = substitution_of(law, noise_by(strategy, 12.0), 10, 5.0, 1e-5);
    const double reach = std::sqrt(squared_sensitivity_of_own_orders(*strategy, 20, 10));
    EXPECT_NEAR(replaced.epsilon, GaussianCurve(12.0, 2.0 * reach).epsilon(1e-5, 1).upper, 1e-6 * replaced.epsilon);
  }
}

TEST(OwnOrders, TakeMatricesWithNegativeEntriesAndNoSampledNoise) {
  const auto mixed = std::make_shared<const Strategy>(StrategyKind::file,
                                                      NoiseRecursion{NoiseRecursion::Form::banded, {1.0, -0.5}}, 20);
  for (const auto& law : own_orders(5)) {
    EXPECT_NO_THROW(static_cast<void>(series_theorem(law, noise_by(mixed, 4.0))));
    EXPECT_THROW(static_cast<void>(series_theorem(
                     law, noise_by(square_root(2, 20), 4.0, SampledClaim{1.0, 1e-5, SecretKey::from_seed(1)}))),
                 PrivacyError);
  }
}

// `auto` finds correlated noise for shuffled batches; bins drawn anew keep independent noise, which is amplified.
TEST(OwnOrders, AreSearchedWhereNothingIsAmplified) {
  const auto laws = own_orders(10);
  const auto shuffled = least_total_error({laws[0], 3, 2.0, 1e-5}, WantedStrategy{});
  EXPECT_NE(shuffled.strategy->kind(), StrategyKind::identity);
  const auto identity = std::make_shared<const Strategy>(StrategyKind::identity, NoiseRecursion{}, 30);
  const double alone = least_noise({laws[0], 3, 2.0, 1e-5}, identity);
  EXPECT_LT(shuffled.total_error, alone * alone * identity->mean_error());
  EXPECT_EQ(least_total_error({laws[1], 3, 2.0, 1e-5}, WantedStrategy{}).strategy->kind(), StrategyKind::identity);
}

TEST(OwnOrders, OtherBatchesSayWhetherATheoremIsKnown) {
  const auto refusal = [](TopLevel sampler) -> std::string {
    try {
      static_cast<void>(series_theorem({sampler, 10}, noise_by(square_root(2, 20), 4.0)));
    } catch (const PrivacyError& error) { return error.what(); }
    return "accepted";
  };
  EXPECT_NE(refusal(TopLevel::poisson).find("not implemented"), std::string::npos);
  EXPECT_NE(refusal(TopLevel::without_replacement).find("no theorem is known"), std::string::npos);
}

}  // namespace
}  // namespace tsdp::privacy
