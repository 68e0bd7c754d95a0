// Attacks on the claims about correlated noise: a series that is there or not, the sampler and the noise that training
// uses, and the best test of one against the other. A claim fails if the attack wins more than its upper end.
//
// Error rate: shares are bracketed by Clopper–Pearson at 2.5e-7 a side, thresholds are fixed before the draws, keys are
// fixed. Draws of one bin are independent of each other, and as many are made for every bin: a sum of independent hits
// whose chances differ is less spread than a binomial one with their mean (Hoeffding 1956), so that the brackets hold
// for the mean over bins.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "privacy/matrix/correlated_noise.h"
#include "research/correlated_estimates.h"
#include "sampling/structured_sampler.h"
#include "support/binomial_share.h"
#include "support/correlated_noise.h"
#include "support/seeded_draws.h"
#include "tsdp/privacy/matrix/strategy_search.h"
#include "tsdp/random/random.h"

namespace tsdp::training {
namespace {

using namespace privacy;
using test::share;

constexpr std::int64_t bins = 5;
constexpr std::int64_t epochs = 4;
constexpr std::int64_t steps = bins * epochs;
constexpr std::int64_t draws = 30'000;  // for every bin

SubsamplingScheme five_bins() {
  SubsamplingScheme::Parameters p;
  p.record = Record::series;
  p.lengths = SeriesLengths::equal(8, 9);
  p.context_length = 3;
  p.forecast_length = 2;
  p.top_level = TopLevel::balls_in_bins;
  p.batches = bins;
  return SubsamplingScheme(p);
}

/// Scores log dP/dQ of what is released, which are C times the released sums, sorted; `there`: the series adds its clip
/// norm in its bin.
std::vector<double> scores(const Strategy& strategy, double sigma, bool there) {
  const auto column = strategy.column();
  // m_i, from C itself.
  std::vector<std::vector<double>> means(bins, std::vector<double>(steps, 0.0));
  for (std::int64_t i = 0; i < bins; ++i)
    for (std::int64_t from = i; from < steps; from += bins)
      for (std::int64_t n = from; n < steps; ++n)
        means[static_cast<std::size_t>(i)][static_cast<std::size_t>(n)] += column[static_cast<std::size_t>(n - from)];
  sampling::StructuredSampler sampler(five_bins());
  std::vector<bool> seen(bins, false);
  std::vector<double> out;
  for (std::uint64_t number = 0; std::count(seen.begin(), seen.end(), true) < bins; ++number) {
    const auto key = SecretKey::from_seed(2 * number + (there ? 1 : 0));
    // Where series 0 is drawn: a bin of its own in every key; each bin once.
    std::vector<bool> takes_part(steps, false);
    for (std::uint64_t step = 0; step < static_cast<std::uint64_t>(steps); ++step) {
      const auto drawn = sampler.draw(key, step);
      for (const auto& window : drawn.windows) takes_part[step] = takes_part[step] || window.series == 0;
    }
    const auto bin =
        static_cast<std::size_t>(std::find(takes_part.begin(), takes_part.end(), true) - takes_part.begin());
    if (bin >= static_cast<std::size_t>(bins) || seen[bin]) continue;
    seen[bin] = true;
    auto noise = test::noise_of(strategy, sigma, draws);
    std::vector<at::Tensor> released;
    for (std::uint64_t step = 0; step < static_cast<std::uint64_t>(steps); ++step) {
      auto gradient = at::zeros({draws}, at::kDouble);
      noise.finish(gradient, {at::full({draws}, there && takes_part[step] ? 1.0 : 0.0, at::kDouble)}, key, step, 1.0);
      released.push_back(gradient);
    }
    at::Tensor likelihood = at::zeros({draws}, at::kDouble);
    std::vector<at::Tensor> u;  // C times the releases
    for (std::size_t n = 0; n < static_cast<std::size_t>(steps); ++n) {
      auto row = at::zeros({draws}, at::kDouble);
      for (std::size_t s = 0; s <= n; ++s) row += released[s] * column[n - s];
      u.push_back(row);
    }
    for (const auto& mean : means) {
      auto exponent = at::zeros({draws}, at::kDouble);
      for (std::size_t n = 0; n < mean.size(); ++n)
        exponent += (u[n] * mean[n] - 0.5 * mean[n] * mean[n]) / (sigma * sigma);
      likelihood += exponent.exp() / static_cast<double>(bins);
    }
    const auto log_ratio = likelihood.log().contiguous();
    const auto* values = log_ratio.data_ptr<double>();
    out.insert(out.end(), values, values + draws);
  }
  std::sort(out.begin(), out.end());
  return out;
}

struct Outcome {
  std::vector<double> with, without;
  Outcome(const Strategy& strategy, double sigma)
      : with(scores(strategy, sigma, true)), without(scores(strategy, sigma, false)) {}

  static std::uint64_t up_to(const std::vector<double>& sorted, double threshold) {
    return static_cast<std::uint64_t>(std::upper_bound(sorted.begin(), sorted.end(), threshold) - sorted.begin());
  }
  /// Bracket of the advantage at ε of telling by log dP/dQ against ε (removal) or −ε (addition), the best test there
  /// is.
  [[nodiscard]] Interval advantage(Direction direction, double epsilon) const {
    const bool remove = direction == Direction::remove;
    const double threshold = remove ? epsilon : -epsilon;
    const auto hits = [&](const std::vector<double>& sorted) {
      return share(remove ? sorted.size() - up_to(sorted, threshold) : up_to(sorted, threshold), sorted.size());
    };
    const auto first = hits(remove ? with : without);
    const auto second = hits(remove ? without : with);
    return {first.lower - std::exp(epsilon) * second.upper, first.upper - std::exp(epsilon) * second.lower};
  }
};

const std::vector<double> epsilons = {0.0, 0.5, 1.5};

TEST(CorrelatedAttack, WinsNoMoreThanIsClaimedAndAsMuchAsIsDrawn) {
  for (const auto kind : {StrategyKind::bsr, StrategyKind::bisr, StrategyKind::band_mf, StrategyKind::blt}) {
    SCOPED_TRACE(name(kind));
    const auto strategy = std::make_shared<const Strategy>(planned_strategy({kind, 3, 2, {}}, bins, epochs));
    const double sigma = 3.0;
    const Outcome outcome(*strategy, sigma);
    for (const auto direction : {Direction::remove, Direction::add}) {
      CorrelatedNoiseCurve curve(strategy, TopLevel::balls_in_bins, bins, sigma, direction);
      test::SeededDraws seeded(9);
      const SampledProfile sampled(*strategy, bins, epochs, sigma, direction, 100'000, seeded.draws());
      for (const double epsilon : epsilons) {
        const auto won = outcome.advantage(direction, epsilon);
        const auto claim = curve.delta(epsilon, static_cast<std::uint64_t>(epochs));
        EXPECT_LE(won.lower, claim.upper) << epsilon;
        EXPECT_GE(won.upper, claim.lower) << epsilon;
        // By another way to the same: losses drawn by the Gram matrix, with no bins, no steps and no C⁻¹.
        const auto estimate = sampled.delta(epsilon);
        EXPECT_LE(won.lower, estimate.value + 5.4 * estimate.standard_error) << epsilon;
        EXPECT_GE(won.upper, estimate.value - 5.4 * estimate.standard_error) << epsilon;
      }
    }
  }
}

// Slips that the attack refutes: a claim with the same σ beside coefficients of norm 1; one of epochs that add up
// apart; one of the wrong noise.
TEST(CorrelatedAttack, RefutesClaimsThatAreTooSmall) {
  const double sigma = 3.0;
  const auto strategy = std::make_shared<const Strategy>(planned_strategy({StrategyKind::bsr, 4, 2, {}}, bins, epochs));
  const Outcome outcome(*strategy, sigma);
  const auto refuted = [&](const std::function<double(double)>& claim) {
    return std::any_of(epsilons.begin(), epsilons.end(),
                       [&](double e) { return outcome.advantage(Direction::remove, e).lower > claim(e); });
  };
  const auto of = [&](const Strategy& claimed, double multiplier, std::uint64_t uses) {
    auto curve = std::make_shared<CorrelatedNoiseCurve>(std::make_shared<const Strategy>(claimed),
                                                        TopLevel::balls_in_bins, bins, multiplier, Direction::remove);
    return [curve, uses](double e) { return curve->delta(e, uses).upper; };
  };
  EXPECT_FALSE(refuted(of(*strategy, sigma, 4)));
  auto normalised = strategy->recursion();
  double square = 0.0;
  for (const double c : normalised.coefficients) square += c * c;
  for (double& c : normalised.coefficients) c /= std::sqrt(square);
  EXPECT_TRUE(refuted(of(Strategy(StrategyKind::file, normalised, steps), sigma, 4)));
  EXPECT_TRUE(refuted(of(planned_strategy({StrategyKind::identity}, bins, epochs), sigma, 4)));
  EXPECT_TRUE(refuted(of(*strategy, sigma, 2)));
}

}  // namespace
}  // namespace tsdp::training
