// The choice between a trained model and its start: scores, odds, draws.
#include "mechanism/private_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tsdp/base/error.h"
#include "tsdp/mechanism/training_method.h"

namespace tsdp::mechanism {
namespace {

TEST(PrivateChoice, ScoresAreClippedWholeNumbers) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(choice_score(1.0, 1.0), 0);
  EXPECT_EQ(choice_score(1.125, 1.0), choice_unit / 2);
  EXPECT_EQ(choice_score(1.0, 1.125), -choice_unit / 2);
  EXPECT_EQ(choice_score(100.0, 1.0), choice_unit);
  EXPECT_EQ(choice_score(-1e300, 1e300), -choice_unit);
  EXPECT_EQ(choice_score(1.7e308, -1.7e308), choice_unit);
  EXPECT_EQ(choice_score(nan, 1.0), choice_unit);
  EXPECT_EQ(choice_score(infinity, 1.0), choice_unit);
  EXPECT_EQ(choice_score(-infinity, 1.0), choice_unit);
  EXPECT_EQ(choice_score(1.0, nan), -choice_unit);
  EXPECT_EQ(choice_score(nan, infinity), 0);
}

/// What the draw keeps the trained model with: multiples of 2⁻⁵³ in [0, 1) below the program's probability.
double chance(std::int64_t sum, double epsilon) {
  return std::ceil(0x1p53 / (1.0 + std::exp(-log_odds_of_trained(sum, epsilon)))) * 0x1p-53;
}

// Lemma 1: of neighbours' sums, which differ by up to 2 · choice_unit.
TEST(PrivateChoice, NoOutcomeIsMoreThanEEpsilonTimesLikelier) {
  std::mt19937_64 random(1);
  double closest = 0.0;
  for (const double epsilon : {least_choice_epsilon, 0.01, 0.4, 3.0, 50.0}) {
    for (int i = 0; i < 20'000; ++i) {
      const std::int64_t sum =
          std::uniform_int_distribution<std::int64_t>(-500 * choice_unit, 500 * choice_unit)(random);
      const std::int64_t change =
          i % 3 == 0 ? 2 * choice_unit : std::uniform_int_distribution<std::int64_t>(0, 2 * choice_unit)(random);
      const double here = chance(sum, epsilon);
      const double there = chance(sum + change, epsilon);
      const double kept = std::log(here / there);
      const double left = std::log((1.0 - there) / (1.0 - here));
      EXPECT_LE(std::abs(kept), epsilon) << sum << " " << change;
      EXPECT_LE(std::abs(left), epsilon) << sum << " " << change;
      closest = std::max({closest, std::abs(kept) / epsilon, std::abs(left) / epsilon});
    }
  }
  EXPECT_GT(closest, 0.99);  // nearly all of it is used
}

TEST(PrivateChoice, MoreSeriesThatAreWorseMakeTheStartLikelier) {
  EXPECT_EQ(log_odds_of_trained(0, 0.4), 0.0);
  EXPECT_LT(log_odds_of_trained(10 * choice_unit, 0.4), -1.9);
  EXPECT_GT(log_odds_of_trained(-10 * choice_unit, 0.4), 1.9);
  EXPECT_EQ(log_odds_of_trained(1'000'000 * choice_unit, 0.4), -20.0);
}

// 20,000 keys each; 5.5 standard deviations, chance of a false alarm below 1e-7 a test.
TEST(PrivateChoice, TheDrawHasItsProbability) {
  constexpr int keys = 20'000;
  for (const std::int64_t sum : {std::int64_t{0}, 3 * choice_unit, -5 * choice_unit}) {
    int kept = 0;
    for (std::uint64_t seed = 0; seed < keys; ++seed)
      kept += keeps_trained(sum, 0.5, SecretKey::from_seed(seed)) ? 1 : 0;
    const double p = chance(sum, 0.5);
    EXPECT_NEAR(static_cast<double>(kept) / keys, p, 5.5 * std::sqrt(p * (1.0 - p) / keys)) << sum;
  }
  const auto key = SecretKey::from_seed(5);
  EXPECT_EQ(keeps_trained(0, 0.5, key), keeps_trained(0, 0.5, key));
}

PrivateMechanism mechanism_of(privacy::Relation relation, double choice) {
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(50, 1000);
  p.context_length = 8;
  p.forecast_length = 4;
  p.batch_size = 10;
  if (relation == privacy::Relation::series) p.record = privacy::Record::series;
  return {{relation, 1, {}},
          privacy::SubsamplingScheme(p),
          {},
          {privacy::NoiseKind::independent, 4.0},
          std::nullopt,
          choice};
}

TEST(PrivateChoice, IsPartOfWhatAMechanismCosts) {
  const auto with = mechanism_of(privacy::Relation::event, 0.25);
  const auto without = mechanism_of(privacy::Relation::event, 0.0);
  EXPECT_EQ(with.choice_epsilon(), 0.25);
  EXPECT_EQ(without.choice_epsilon(), 0.0);
  EXPECT_NEAR(with.curve()->epsilon(1e-6, 100).upper, without.curve()->epsilon(1e-6, 100).upper + 0.25, 1e-12);
  EXPECT_EQ(with.curve()->max_uses(1.0, 1e-6), without.curve()->max_uses(0.75, 1e-6));
  EXPECT_THROW(static_cast<void>(mechanism_of(privacy::Relation::series, 0.25)), PrivacyError);
  EXPECT_THROW(static_cast<void>(mechanism_of(privacy::Relation::event, 1e-6)), UsageError);
  EXPECT_NO_THROW(static_cast<void>(mechanism_of(privacy::Relation::user, least_choice_epsilon)));
}

}  // namespace
}  // namespace tsdp::mechanism
