#include "audit/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "privacy/theorems/structured_pairs.h"

namespace tsdp::audit {
namespace {

using privacy::BottomLevel;
using privacy::PrivacyUnit;
using privacy::Relation;
using privacy::SubsamplingScheme;
using privacy::TopLevel;

SubsamplingScheme::Parameters small() {
  SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(4, 8);
  p.context_length = 2;
  p.forecast_length = 1;
  p.batch_size = 2;
  return p;
}

// Whatever the lengths, the changed places touch as many windows as the accountant counts, and lie where the relation
// allows.
TEST(Neighbours, AreAsBadAsTheAccountantSays) {
  for (std::int64_t length = 3; length <= 20; ++length)
    for (std::int64_t context = 1; context <= 5; ++context)
      for (std::int64_t forecast = 1; forecast <= std::min<std::int64_t>(3, length); ++forecast)
        for (std::int64_t w = 1; w <= std::min<std::int64_t>(4, length); ++w)
          for (const auto relation : {Relation::event, Relation::user}) {
            auto p = small();
            p.lengths = privacy::SeriesLengths::equal(4, length);
            p.context_length = context;
            p.forecast_length = forecast;
            const SubsamplingScheme scheme(p);
            const PrivacyUnit unit{relation, w, {}};
            const auto n = worst_neighbours(scheme, unit);
            ASSERT_LE(static_cast<std::int64_t>(n.places.size()), w);
            ASSERT_TRUE(std::is_sorted(n.places.begin(), n.places.end()));
            ASSERT_GE(n.places.front(), 0);
            ASSERT_LT(n.places.back(), length);
            if (relation == Relation::event) { ASSERT_LE(n.places.back() - n.places.front(), w - 1); }
            // Counted over: window `start` reads places start − L_C … start + L_F − 1.
            std::int64_t touched = 0;
            for (std::int64_t start = 0; start + forecast <= length; ++start)
              touched +=
                  std::any_of(n.places.begin(), n.places.end(),
                              [&](std::int64_t place) { return start - context <= place && place < start + forecast; })
                      ? 1
                      : 0;
            EXPECT_EQ(touched, privacy::touched_windows(length, context, forecast, unit))
                << "L " << length << " L_C " << context << " L_F " << forecast << " w " << w;
            const auto windows = touched_windows_of(scheme, n);
            EXPECT_EQ(static_cast<std::int64_t>(windows.size()), touched);
            for (const auto& window : windows) {
              std::int64_t in_context = 0;
              for (const auto place : n.places)
                in_context += window.start - context <= place && place < window.start ? 1 : 0;
              EXPECT_EQ(window.context, in_context);
            }
          }
}

TEST(Neighbours, AreTakenFromTheSeriesThatCostsMostAndIsUsed) {
  auto p = small();
  p.lengths = {20, 9, 30, 12, 5};
  EXPECT_EQ(worst_neighbours(SubsamplingScheme(p), {}).series, 4);
  p.top_level = TopLevel::deterministic;  // batches {0, 1}, {2, 3}; series 4 is never used
  EXPECT_EQ(worst_neighbours(SubsamplingScheme(p), {}).series, 1);
}

// The best test of the canary's laws wins what the theorem allows, where the theorem is tight or attained by the
// canary.
TEST(CanaryShape, AttainsTheTightTheorems) {
  for (const auto top : {TopLevel::deterministic, TopLevel::without_replacement})
    for (const auto bottom : {BottomLevel::with_replacement, BottomLevel::poisson}) {
      auto p = small();
      p.top_level = top;
      p.bottom_level = bottom;
      if (bottom == BottomLevel::poisson) p.batch_size = 12, p.subsequences_per_sequence = 6;
      const SubsamplingScheme scheme(p);
      const auto mechanism = privacy::apply_theorem(scheme, {}, 1.0);
      SCOPED_TRACE(mechanism.theorem);
      const Attack attack(canary_shape(scheme, worst_neighbours(scheme, {})), 1.0);
      for (const double epsilon : {0.0, 0.3, 0.8}) {
        const auto up = attack.event(epsilon);
        const double won = attack.probability(up, true, 1.0) - std::exp(epsilon) * attack.probability(up, false, 1.0);
        const auto down = attack.event(-epsilon);
        const double lost = 1.0 - attack.probability(down, false, 1.0) -
                            std::exp(epsilon) * (1.0 - attack.probability(down, true, 1.0));
        const double allowed = mechanism.pair.symmetrised_profile(epsilon);
        EXPECT_LE(std::max(won, lost), allowed + 1e-9);
        // F.2 grants the attacker to know whether the series was drawn; a trace of about five windows shows it nearly.
        EXPECT_GE(std::max(won, lost), (mechanism.theorem == "F.2" ? 0.93 : 1.0) * allowed - 1e-9);
      }
    }
}

TEST(CanaryShape, AttainsTheVariationOfNoisedData) {
  auto p = small();
  p.context_noise = 1.0;
  p.forecast_noise = 0.5;
  const SubsamplingScheme scheme(p);
  const PrivacyUnit unit{Relation::event, 1, 2.0};
  const auto mechanism = privacy::apply_theorem(scheme, unit, 0.7);
  ASSERT_EQ(mechanism.theorem, "G.1");
  const Attack attack(canary_shape(scheme, worst_neighbours(scheme, unit)), 0.7);
  const auto event = attack.event(0.0);
  EXPECT_NEAR(attack.probability(event, true, 0.7) - attack.probability(event, false, 0.7),
              mechanism.pair.symmetrised_profile(0.0), 1e-9);
}

TEST(CanaryShape, DrawsTouchedWindowsAsTheSchemeDoes) {
  const SubsamplingScheme one(small());  // N = 4, N′ = 2, T = 8, m = 3
  EXPECT_NEAR(touched_share_of_batches(one, worst_neighbours(one, {})), 0.5 * 3.0 / 8.0, 1e-12);
  auto p = small();
  p.bottom_level = BottomLevel::poisson;
  p.batch_size = 4;
  p.subsequences_per_sequence = 2;
  const SubsamplingScheme coins(p);
  EXPECT_NEAR(touched_share_of_batches(coins, worst_neighbours(coins, {})), 0.5 * (1.0 - 0.75 * 0.75 * 0.75), 1e-12);
}

// A whole series, there or missing, attains what Poisson batches of whole series cost in either direction.
TEST(CanaryShape, AttainsThePairOfWholeSeries) {
  auto p = small();
  p.record = privacy::Record::series;
  for (const auto top : {TopLevel::poisson, TopLevel::cyclic_poisson, TopLevel::deterministic}) {
    p.top_level = top;
    const SubsamplingScheme scheme(p);
    const PrivacyUnit unit{Relation::series, 1, {}};
    const auto mechanism = privacy::apply_theorem(scheme, unit, 0.8);
    SCOPED_TRACE(mechanism.theorem);
    const Attack attack(canary_shape(scheme, worst_neighbours(scheme, unit)), 0.8);
    for (const double epsilon : {0.0, 0.3, 0.6}) {
      const auto up = attack.event(epsilon);
      EXPECT_NEAR(attack.probability(up, true, 0.8) - std::exp(epsilon) * attack.probability(up, false, 0.8),
                  mechanism.pair.profile(privacy::Direction::remove, epsilon), 1e-9);
      const auto down = attack.event(-epsilon);
      EXPECT_NEAR(
          1.0 - attack.probability(down, false, 0.8) - std::exp(epsilon) * (1.0 - attack.probability(down, true, 0.8)),
          mechanism.pair.profile(privacy::Direction::add, epsilon), 1e-9);
    }
  }
}

}  // namespace
}  // namespace tsdp::audit
