#include "tsdp/sampling/mechanism.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tsdp/core/error.h"

namespace tsdp::sampling {
namespace {

SubsamplingScheme::Parameters traffic() {
  SubsamplingScheme::Parameters p;
  p.lengths.assign(862, 13916);
  p.context_length = 96;
  p.forecast_length = 24;
  p.batch_size = 256;
  return p;
}

std::string refusal(const SubsamplingScheme::Parameters& p, PrivacyUnit unit = {},
                    std::optional<std::string> theorem = std::nullopt, ExitCode expected = ExitCode::privacy) {
  try {
    const auto m = mechanism_of(SubsamplingScheme(p), unit, 4.0, theorem);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected);
    return error.what();
  }
  return "accepted";
}

TEST(TouchedWindows, FollowsTheFormulas) {
  const PrivacyUnit one;
  EXPECT_EQ(touched_windows(13916, 96, 24, one), 120);                             // L_C + L_F
  EXPECT_EQ(touched_windows(13916, 96, 24, {Relation::event, 8, {}}), 127);        // + w − 1
  EXPECT_EQ(touched_windows(13916, 96, 24, {Relation::user, 8, {}}), 960);         // w (L_C + L_F)
  EXPECT_EQ(touched_windows(100, 96, 24, one), 77);                                // T = 77 < 120
  EXPECT_EQ(touched_windows(24, 96, 24, one), 1);                                  // a single window
  EXPECT_EQ(touched_windows(1000000000, 500000000, 24, {Relation::user, 900000000, {}}), 999999977);  // no overflow
}

// A brute-force count: window t (1 … T) reads places t − L_C … t + L_F − 1 of the series (1-based), those below 1 being
// padding. The worst place of the changed range must touch exactly m windows.
TEST(TouchedWindows, IsTheWorstCaseOverAllPlaces) {
  for (std::int64_t length = 2; length <= 14; ++length)
    for (std::int64_t context = 1; context <= 5; ++context)
      for (std::int64_t forecast = 1; forecast <= std::min<std::int64_t>(3, length); ++forecast)
        for (std::int64_t w = 1; w <= std::min<std::int64_t>(3, length); ++w) {
          std::int64_t worst = 0;
          for (std::int64_t first = 1; first + w - 1 <= length; ++first) {
            std::int64_t touched = 0;
            for (std::int64_t t = 1; t <= length - forecast + 1; ++t)
              touched += t - context <= first + w - 1 && t + forecast - 1 >= first ? 1 : 0;
            worst = std::max(worst, touched);
          }
          const auto bound = touched_windows(length, context, forecast, {Relation::event, w, {}});
          EXPECT_GE(bound, worst) << length << " " << context << " " << forecast << " " << w;
          // Attained wherever the series has room for it.
          if (length - forecast + 1 >= context + forecast + w - 1) {
            EXPECT_EQ(bound, worst) << length << " " << context << " " << forecast << " " << w;
          }
        }
}

TEST(TouchedShare, TakesTheWorstSeries) {
  auto p = traffic();
  p.lengths = {13916, 500, 2000};
  EXPECT_DOUBLE_EQ(touched_share(SubsamplingScheme(p), {}), 120.0 / 477.0);
  p.lengths.push_back(30);  // T = 7 windows, all touched
  EXPECT_DOUBLE_EQ(touched_share(SubsamplingScheme(p), {}), 1.0);
}

TEST(Mechanism, PicksTheTheoremOfTheScheme) {
  auto p = traffic();
  const auto by_step = mechanism_of(SubsamplingScheme(p), {}, 4.0);
  EXPECT_EQ(by_step.theorem, "4.4");
  EXPECT_EQ(by_step.bound, Bound::tight);
  EXPECT_EQ(by_step.unit, CompositionUnit::step);
  EXPECT_EQ(by_step.steps_per_epoch, 3);
  EXPECT_EQ(by_step.uses_of_steps(10), 10U);
  p.top_level = TopLevel::deterministic;
  const auto by_epoch = mechanism_of(SubsamplingScheme(p), {}, 4.0);
  EXPECT_EQ(by_epoch.theorem, "4.2");
  EXPECT_EQ(by_epoch.unit, CompositionUnit::epoch);
  EXPECT_EQ(by_epoch.uses_of_steps(9), 3U);
  EXPECT_EQ(by_epoch.uses_of_steps(10), 4U);  // an epoch that has begun counts whole
  EXPECT_EQ(by_epoch.steps_of_uses(4), 12U);
  // H(0) = r (2Φ(1/σ) − 1) for the pair of 4.2 at ε = 0 (total variation).
  EXPECT_NEAR(by_epoch.pair.symmetrised_profile(0.0), 120.0 / 13893.0 * std::erf(0.25 / std::sqrt(2.0)), 1e-15);
}

TEST(Mechanism, RefusesWhatNoTheoremCovers) {
  auto p = traffic();
  p.bottom_level = BottomLevel::poisson;
  EXPECT_NE(refusal(p).find("no theorem covers this subsampling: Theorem 4.2 does not cover"), std::string::npos);
  p = traffic();
  p.subsequences_per_sequence = 2;
  EXPECT_NE(refusal(p).find("2 subsequences per sequence"), std::string::npos);
  p = traffic();
  p.forecast_noise = 1.0;
  EXPECT_NE(refusal(p).find("no finite v is given"), std::string::npos);
  EXPECT_NE(refusal(p, {Relation::event, 1, 0.1}).find("noise on context or forecast"), std::string::npos);
  EXPECT_NE(refusal(traffic(), {}, "4.2").find("Theorem 4.2 does not cover top level without replacement"),
            std::string::npos);
  EXPECT_NE(refusal(traffic(), {}, "9.9").find("available are 4.2, 4.4"), std::string::npos);
  EXPECT_NE(refusal(traffic(), {Relation::user, 20000, {}}).find("w <= L"), std::string::npos);
  EXPECT_NE(refusal(traffic(), {Relation::user, 0, {}}, {}, ExitCode::usage).find("w: found 0"), std::string::npos);
}

}  // namespace
}  // namespace tsdp::sampling
