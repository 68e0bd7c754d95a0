#include "research/correlated_estimates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "privacy/matrix/correlated_noise.h"
#include "privacy/matrix/hazards.h"
#include "privacy/whole_series/random_allocation_curve.h"
#include "support/seeded_draws.h"
#include "tsdp/base/error.h"
#include "tsdp/privacy/matrix/strategy_search.h"

namespace tsdp::privacy {
namespace {

using test::SeededDraws;

/// With a normal mean no test fails more often than 1e-7 (5.4 deviations, both sides); shares of few draws lie further
/// out, for which one draw is allowed.
double slack(const Estimate& e, std::int64_t samples) {
  return 5.4 * e.standard_error + 10.0 / static_cast<double>(samples);
}

TEST(SampledProfile, AgreesWithTheExactProfileOfIndependentNoise) {
  constexpr std::int64_t samples = 60'000;
  const auto identity = planned_strategy({StrategyKind::identity}, 20, 2);
  RandomAllocationCurve exact(20, 1.5);
  for (const auto direction : {Direction::remove, Direction::add}) {
    SeededDraws seeded(3);
    const SampledProfile sampled(identity, 20, 2, 1.5, direction, samples, seeded.draws());
    for (const double epsilon : {0.0, 0.2, 0.5}) {
      const auto found = sampled.delta(epsilon);
      const auto known = exact.delta(direction, epsilon, 2, 1e-3);
      EXPECT_NEAR(found.value, known.upper, slack(found, samples)) << epsilon;
      EXPECT_GT(found.value, 0.0);
    }
  }
}

TEST(SampledProfile, LiesBetweenTheEndsOfCorrelatedNoise) {
  constexpr std::int64_t samples = 60'000;
  for (const auto kind : {StrategyKind::bsr, StrategyKind::bisr, StrategyKind::band_mf, StrategyKind::blt}) {
    SCOPED_TRACE(name(kind));
    const auto strategy = std::make_shared<const Strategy>(planned_strategy({kind, 3, 2, {}}, 12, 3));
    for (const auto direction : {Direction::remove, Direction::add}) {
      CorrelatedNoiseCurve curve(strategy, TopLevel::balls_in_bins, 12, 4.0, direction);
      SeededDraws seeded(4);
      const SampledProfile sampled(*strategy, 12, 3, 4.0, direction, samples, seeded.draws());
      for (const double epsilon : {0.1, 0.5}) {
        const auto found = sampled.delta(epsilon);
        const auto known = curve.delta(epsilon, 3);
        EXPECT_LE(found.value, known.upper + slack(found, samples)) << epsilon;
        EXPECT_GE(found.value, known.lower - slack(found, samples)) << epsilon;
      }
    }
  }
}

TEST(SampledProfile, EpsilonIsWhereDeltaIs) {
  SeededDraws seeded(5);
  const SampledProfile sampled(planned_strategy({StrategyKind::bsr}, 10, 2), 10, 2, 2.0, Direction::remove, 20'000,
                               seeded.draws());
  const double epsilon = sampled.epsilon(0.01);
  EXPECT_GT(epsilon, 0.1);
  EXPECT_NEAR(sampled.delta(epsilon).value, 0.01, 1e-8);
  EXPECT_EQ(sampled.epsilon(0.9), 0.0);
  EXPECT_TRUE(std::is_sorted(sampled.losses().rbegin(), sampled.losses().rend()));
}

TEST(SampledProfile, RefusesWhatItIsNotAbout) {
  SeededDraws seeded(6);
  const auto draws = seeded.draws();
  const auto bsr = planned_strategy({StrategyKind::bsr}, 10, 1);
  EXPECT_THROW(SampledProfile(bsr, 10, 1, 1.0, Direction::remove, 1, draws), UsageError);
  EXPECT_THROW(SampledProfile(bsr, 0, 1, 1.0, Direction::remove, 100, draws), UsageError);
  for (const double sigma : {0.0, 1e-200, 1e7})
    EXPECT_THROW(SampledProfile(bsr, 10, 1, sigma, Direction::remove, 100, draws), UsageError);
  const Strategy negative(StrategyKind::file, {NoiseRecursion::Form::banded, {1.0, -0.5}, {}, {}}, 10);
  EXPECT_THROW(SampledProfile(negative, 10, 1, 1.0, Direction::remove, 100, draws), PrivacyError);
}

// The published rule spends the budget of one step on all of an epoch: its hazards are too small, and equal within an
// epoch.
TEST(Hazards, ThePublishedRuleHasSmallerOnes) {
  const auto strategy = planned_strategy({StrategyKind::bsr}, 20, 3);
  for (const auto direction : {Direction::remove, Direction::add}) {
    const auto whole = top_hazards(strategy, 20, 3, 4.0, 1e-5, direction, HazardRule::union_bound);
    const auto published = top_hazards(strategy, 20, 3, 4.0, 1e-5, direction, HazardRule::published);
    ASSERT_EQ(whole.size(), 60U);
    ASSERT_EQ(published.size(), 60U);
    EXPECT_NEAR(whole.front(), 1.0 / 20.0, 1e-12);
    for (std::size_t n = 20; n < 60; ++n) EXPECT_LT(published[n], whole[n]) << n;
    EXPECT_EQ(published[25], published[39]);
  }
}

TEST(Hazards, AllFamiliesTogetherAreNoWorseThanAnyOne) {
  const auto strategy = planned_strategy({StrategyKind::bisr}, 15, 2);
  const auto all = top_hazards(strategy, 15, 2, 3.0, 1e-5, Direction::remove, HazardRule::union_bound);
  double best = 0.0;
  ASSERT_EQ(hazard_temperatures().size(), 6U);
  EXPECT_TRUE(std::isinf(hazard_temperatures().front()));
  std::vector<double> least(all.size(), 1.0);
  for (std::size_t family = 0; family < hazard_temperatures().size(); ++family) {
    const auto one = top_hazards(strategy, 15, 2, 3.0, 1e-5, Direction::remove, HazardRule::union_bound, family);
    for (std::size_t n = 0; n < all.size(); ++n) {
      EXPECT_LE(all[n], one[n] * (1.0 + 1e-9)) << "step " << n << ", t = " << hazard_temperatures()[family];
      least[n] = std::min(least[n], one[n]);
      best = std::max(best, one[n] - all[n]);
    }
  }
  EXPECT_GT(best, 0.01);  // they differ
}

TEST(PublishedRule, EpsilonIsWhereDeltaIs) {
  const auto strategy = planned_strategy({StrategyKind::bsr}, 20, 2);
  const double epsilon = published_epsilon(strategy, 20, 2, 6.0, 1e-4);
  EXPECT_NEAR(published_delta(strategy, 20, 2, 6.0, epsilon, 5e-5), 1e-4, 2e-6);
  EXPECT_THROW(static_cast<void>(published_epsilon(strategy, 20, 2, 6.0, 0.0)), UsageError);
}

}  // namespace
}  // namespace tsdp::privacy
