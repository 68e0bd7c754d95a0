// Noise found by sampling: its draws against exact profiles and plain draws in N dimensions, its plan, and what a claim
// is worth. Seeds are fixed; a check beside drawn numbers is off with a chance below 1e-9.
#include "privacy/matrix/sampled_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "privacy/matrix/correlated_noise.h"
#include "privacy/matrix/means.h"
#include "privacy/terms/out_of_reach.h"
#include "privacy/theorems/noise_choice.h"
#include "privacy/whole_series/random_allocation_curve.h"

namespace tsdp::privacy {
namespace {

std::shared_ptr<const Strategy> strategy_of(StrategyKind kind, NoiseRecursion recursion, std::int64_t steps) {
  return std::make_shared<const Strategy>(kind, std::move(recursion), steps);
}
std::shared_ptr<const Strategy> bisr(std::int64_t bands, std::int64_t steps) {
  return strategy_of(StrategyKind::bisr,
                     {NoiseRecursion::Form::banded_inverse, inverse_square_root_bands(bands).coefficients}, steps);
}
std::shared_ptr<const Strategy> bsr(std::int64_t bands, std::int64_t steps) {
  return strategy_of(StrategyKind::bsr, square_root_bands(bands), steps);
}

/// The mean of `draws` values in [0, 1] around `mean` lies this near, but for a chance below 1e-10 (Bernstein).
double reach(double mean, std::uint64_t draws) {
  constexpr double nats = 24.0;
  const auto n = static_cast<double>(draws);
  return std::sqrt(2.0 * nats * mean / n) + nats / n;
}

double divergence(double a, double b) { return a * std::log(a / b) + (1.0 - a) * (std::log1p(-a) - std::log1p(-b)); }

// The lemma of docs/proofs/sampled-noise.md, for every true δ.
TEST(SampledLoss, ItsPlanPaysForAThousandTests) {
  for (const double delta : {1e-2, 1e-3, 1e-5, 1e-7}) {
    const auto plan = sampling_plan(delta);
    const double fallback = fallback_share * delta;
    for (double d = fallback * (1.0 + 1e-6); d < 0.999; d *= 1.0005) {
      const double pass = std::exp(-static_cast<double>(plan.samples) * divergence(plan.most_mean, d));
      // A tenth is left for draws of normals that are far from exact ones.
      ASSERT_LE(1000.0 * pass * (d - fallback), 0.9 * (delta - fallback)) << delta << ", " << d;
    }
  }
}

// Independent noise in bins, whose profile is known exactly.
TEST(SampledLoss, HasTheMeansOfTheExactProfile) {
  constexpr std::uint64_t draws = 400'000;
  for (const auto& [bins, sigma, epsilon] :
       {std::tuple{10, 0.8, 0.5}, std::tuple{10, 1.5, 0.1}, std::tuple{70, 0.5, 1.0}, std::tuple{1, 1.0, 1.0}}) {
    const Strategy identity(StrategyKind::identity, {}, bins);
    const auto found =
        SampledLoss(Gram(identity, bins, 1, Gram::Side::upper), sigma).means(epsilon, draws, SecretKey::from_seed(7));
    RandomAllocationCurve curve(bins, sigma);
    const auto remove = curve.delta(Direction::remove, epsilon, 1);
    const auto add = curve.delta(Direction::add, epsilon, 1);
    EXPECT_GE(found.remove, remove.lower - reach(remove.upper, draws)) << bins << " bins";
    EXPECT_LE(found.remove, remove.upper + reach(remove.upper, draws)) << bins << " bins";
    EXPECT_GE(found.add, add.lower - reach(add.upper, draws)) << bins << " bins";
    EXPECT_LE(found.add, add.upper + reach(add.upper, draws)) << bins << " bins";
  }
}

// Correlated noise, several epochs: draws of the releases themselves, in N dimensions.
TEST(SampledLoss, HasTheMeansOfDrawnReleases) {
  constexpr std::int64_t bins = 12;
  constexpr std::int64_t epochs = 3;
  constexpr double sigma = 2.0;
  constexpr double epsilon = 0.3;
  constexpr std::uint64_t draws = 200'000;
  for (const auto& strategy : {bisr(4, bins * epochs), bsr(3, bins * epochs)}) {
    const auto found = SampledLoss(Gram(*strategy, bins, epochs, Gram::Side::upper), sigma)
                           .means(epsilon, draws, SecretKey::from_seed(3));
    const Means means(*strategy, bins, epochs);
    const RandomStream normals(SecretKey::from_seed(5), "releases", 0);
    RandomStream places(SecretKey::from_seed(5), "places", 0);
    std::vector<double> z(bins * epochs);
    double remove = 0.0;
    double add = 0.0;
    const auto ratio = [&](std::int64_t place) {  // dP/dQ at σz + m_place; no shift for place −1
      double sum = 0.0;
      for (std::int64_t i = 0; i < bins; ++i) {
        double exponent = 0.0;
        for (std::int64_t n = 0; n < bins * epochs; ++n) {
          const double y = sigma * z[static_cast<std::size_t>(n)] + (place < 0 ? 0.0 : means.at(place, n));
          exponent += (y - 0.5 * means.at(i, n)) * means.at(i, n) / (sigma * sigma);
        }
        sum += std::exp(exponent);
      }
      return sum / static_cast<double>(bins);
    };
    for (std::uint64_t k = 0; k < draws; ++k) {
      normals.normals(k * z.size(), z);
      add += std::max(0.0, 1.0 - std::exp(epsilon) * ratio(-1));
      remove += std::max(0.0, 1.0 - std::exp(epsilon) / ratio(static_cast<std::int64_t>(places.below(bins))));
    }
    remove /= static_cast<double>(draws);
    add /= static_cast<double>(draws);
    EXPECT_NEAR(found.remove, remove, 2.0 * reach(remove, draws)) << name(strategy->kind());
    EXPECT_NEAR(found.add, add, 2.0 * reach(add, draws)) << name(strategy->kind());
  }
}

TEST(SampledLoss, DependsOnItsKeyAlone) {
  const auto strategy = bsr(3, 40);
  const SampledLoss loss(Gram(*strategy, 20, 2, Gram::Side::upper), 1.0);
  const auto one = loss.means(0.5, 100'000, SecretKey::from_seed(1));
  const auto again = loss.means(0.5, 100'000, SecretKey::from_seed(1));
  const auto other = loss.means(0.5, 100'000, SecretKey::from_seed(2));
  EXPECT_EQ(one.remove, again.remove);
  EXPECT_EQ(one.add, again.add);
  EXPECT_NE(one.remove, other.remove);
  // Nothing of a banded matrix lies beyond its bands: fewer products than of a full one.
  const auto full = bisr(4, 800);
  const auto banded = bsr(4, 800);
  EXPECT_LT(SampledLoss(Gram(*banded, 400, 2, Gram::Side::upper), 1.0).work(),
            0.4 * SampledLoss(Gram(*full, 400, 2, Gram::Side::upper), 1.0).work());
}

TEST(SampledLoss, RefusesWhatItCannotDraw) {
  const auto strategy = bsr(3, 40);
  const Gram gram(*strategy, 20, 2, Gram::Side::upper);
  EXPECT_THROW(SampledLoss(gram, 0.05), OutOfReach);
  EXPECT_THROW(static_cast<void>(SampledLoss(gram, 1.0).means(1.0, 10'000'000'000'000U, SecretKey::from_seed(1))),
               OutOfReach);
  EXPECT_THROW(static_cast<void>(passes({1.0, 1e-13, SecretKey::from_seed(1)}, *strategy, 20, 2, 1.0)), OutOfReach);
}

// Independent noise, where δ(ε) is known: half of what is promised passes, and double does not.
TEST(SampledLoss, ATestTellsTooLittleNoise) {
  constexpr std::int64_t bins = 10;
  constexpr double sigma = 1.2;
  constexpr double epsilon = 1.0;
  const Strategy identity(StrategyKind::identity, {}, bins);
  const double exact = RandomAllocationCurve(bins, sigma).delta(epsilon, 1).upper;
  ASSERT_GT(exact, 1e-5);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    EXPECT_TRUE(passes({epsilon, 3.0 * exact, SecretKey::from_seed(seed)}, identity, bins, 1, sigma)) << seed;
    EXPECT_FALSE(passes({epsilon, exact, SecretKey::from_seed(seed)}, identity, bins, 1, sigma)) << seed;
    EXPECT_FALSE(passes({epsilon, 0.5 * exact, SecretKey::from_seed(seed)}, identity, bins, 1, sigma)) << seed;
  }
}

// A claim is one more upper end, where it is passed and nowhere else.
TEST(SampledLoss, AClaimIsWorthItsTest) {
  const auto strategy = bsr(2, 60);
  constexpr std::int64_t bins = 20;
  constexpr double delta = 1e-2;
  const NoiseTarget target{{TopLevel::balls_in_bins, bins}, 3, 2.0, delta};
  int tests = 0;
  const auto noise = least_sampled_noise(target, strategy, [&](int test) {
    ++tests;
    return SecretKey::from_seed(100 + static_cast<std::uint64_t>(test));
  });
  ASSERT_TRUE(noise.sampled);
  EXPECT_GE(tests, 1);
  EXPECT_LT(noise.multiplier, 0.96 * least_noise(target, strategy));
  const auto curve_of = [&](double sigma, std::optional<SampledClaim> claim,
                            CorrelatedMethod method = CorrelatedMethod::automatic) {
    return std::make_unique<CorrelatedNoiseCurve>(strategy, TopLevel::balls_in_bins, bins, sigma, std::nullopt, method,
                                                  claim);
  };
  const auto with = curve_of(noise.multiplier, noise.sampled);
  const auto without = curve_of(noise.multiplier, {});
  for (const std::uint64_t uses : {1U, 3U}) {
    EXPECT_LE(with->epsilon(delta, uses).upper, 2.0) << uses;
    EXPECT_TRUE(with->certifies(2.0, delta, uses));
    EXPECT_TRUE(with->stays_within(2.0, delta, uses));
    EXPECT_LE(with->delta(2.0, uses).upper, delta);
  }
  EXPECT_EQ(with->epsilon(delta, 3).upper, 2.0);
  EXPECT_NE(with->epsilon(delta, 3).why.upper.find("sampled-noise.md"), std::string::npos);
  EXPECT_EQ(with->max_uses(2.0, delta), 3U);
  EXPECT_GT(without->epsilon(delta, 3).upper, 2.1);
  // At a smaller δ, at a smaller ε, and by a method that is asked for, nothing follows from it.
  EXPECT_EQ(with->epsilon(0.9 * delta, 3).upper, without->epsilon(0.9 * delta, 3).upper);
  EXPECT_EQ(with->delta(1.9, 3).upper, without->delta(1.9, 3).upper);
  EXPECT_EQ(curve_of(noise.multiplier, noise.sampled, CorrelatedMethod::renyi)->epsilon(delta, 3).upper,
            curve_of(noise.multiplier, {}, CorrelatedMethod::renyi)->epsilon(delta, 3).upper);
  // A claim whose test fails is worth nothing.
  // (The lower end refutes the first one.)
  for (const double share : {0.8, 0.93}) {
    const double little = share * noise.multiplier;
    EXPECT_EQ(curve_of(little, noise.sampled)->epsilon(delta, 3).upper, curve_of(little, {})->epsilon(delta, 3).upper)
        << share;
  }
  // Other batches have none.
  EXPECT_THROW(CorrelatedNoiseCurve(strategy, TopLevel::deterministic, bins, 1.0, {}, CorrelatedMethod::automatic,
                                    noise.sampled),
               PrivacyError);
  EXPECT_THROW(
      static_cast<void>(series_theorem({TopLevel::balls_in_bins, bins}, noise_by(nullptr, 1.0, noise.sampled))),
      PrivacyError);
}

// Where no test is passed, noise is certified without, for a little less than δ.
TEST(SampledLoss, FallsBackToCertifiedNoise) {
  // Bins that are all alike are a Gaussian mechanism, of which fixed batches already say everything.
  const NoiseTarget target{{TopLevel::balls_in_bins, 1}, 4, 1.0, 1e-3};
  const auto noise =
      least_sampled_noise(target, strategy_of(StrategyKind::file, {NoiseRecursion::Form::banded, {1.0, 1e-3}}, 4),
                          [](int test) { return SecretKey::from_seed(static_cast<std::uint64_t>(test)); });
  EXPECT_FALSE(noise.sampled);
  NoiseTarget less = target;
  less.delta *= fallback_share;
  EXPECT_NEAR(noise.multiplier, least_noise(less, noise.strategy), 1e-3 * noise.multiplier);
}

}  // namespace
}  // namespace tsdp::privacy
