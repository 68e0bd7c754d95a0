#include "tsdp/privacy/theorems/theorems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tsdp/base/error.h"

namespace tsdp::privacy {
namespace {

SubsamplingScheme::Parameters traffic() {
  SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(862, 13916);
  p.context_length = 96;
  p.forecast_length = 24;
  p.batch_size = 256;
  return p;
}

std::string refusal(const SubsamplingScheme::Parameters& p, PrivacyUnit unit = {},
                    std::optional<std::string> theorem = std::nullopt, ExitCode expected = ExitCode::privacy) {
  try {
    const auto m = apply_theorem(SubsamplingScheme(p), unit, 4.0, theorem);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected);
    return error.what();
  }
  return "accepted";
}

TEST(TouchedWindows, FollowsTheFormulas) {
  const PrivacyUnit one;
  EXPECT_EQ(touched_windows(13916, 96, 24, one), 120);                                                // L_C + L_F
  EXPECT_EQ(touched_windows(13916, 96, 24, {Relation::event, 8, {}}), 127);                           // + w − 1
  EXPECT_EQ(touched_windows(13916, 96, 24, {Relation::user, 8, {}}), 960);  // w (L_C + L_F)
  EXPECT_EQ(touched_windows(100, 96, 24, one), 77);  // T = 77 < 120
  EXPECT_EQ(touched_windows(24, 96, 24, one), 1);  // a single window
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
  p.lengths = {13916, 500, 2000, 30};  // T = 7 windows, all touched
  EXPECT_DOUBLE_EQ(touched_share(SubsamplingScheme(p), {}), 1.0);
}

TEST(Theorems, PicksTheTheoremOfTheScheme) {
  auto p = traffic();
  const auto by_step = apply_theorem(SubsamplingScheme(p), {}, 4.0);
  EXPECT_EQ(by_step.theorem, "4.4");
  EXPECT_EQ(by_step.bound, Bound::tight);
  EXPECT_EQ(by_step.unit, CompositionUnit::step);
  EXPECT_EQ(by_step.steps_per_epoch, 3);
  EXPECT_EQ(by_step.uses_of_steps(10), 10U);
  p.top_level = TopLevel::deterministic;
  const auto by_epoch = apply_theorem(SubsamplingScheme(p), {}, 4.0);
  EXPECT_EQ(by_epoch.theorem, "4.2");
  EXPECT_EQ(by_epoch.unit, CompositionUnit::epoch);
  EXPECT_EQ(by_epoch.uses_of_steps(9), 3U);
  EXPECT_EQ(by_epoch.uses_of_steps(10), 4U);  // an epoch that has begun counts whole
  EXPECT_EQ(by_epoch.steps_of_uses(4), 12U);
  // From below it counts only when it is complete.
  EXPECT_EQ(by_epoch.complete_uses(10), 3U);
  EXPECT_EQ(by_step.complete_uses(10), 10U);
  const auto curve = by_epoch.curve();
  const auto after_ten = epsilon_after(by_epoch, *curve, 1e-5, 10);
  EXPECT_EQ(after_ten.lower, curve->epsilon(1e-5, 3).lower);
  EXPECT_EQ(after_ten.upper, curve->epsilon(1e-5, 4).upper);
  EXPECT_EQ(epsilon_after(by_epoch, *curve, 1e-5, 12).lower, curve->epsilon(1e-5, 4).lower);
  EXPECT_EQ(delta_after(by_epoch, *curve, 0.0, 2).lower, 0.0);
  // H(0) = r (2Φ(1/σ) − 1) for the pair of 4.2 at ε = 0 (total variation).
  EXPECT_NEAR(by_epoch.pair.symmetrised_profile(0.0), 120.0 / 13893.0 * std::erf(0.25 / std::sqrt(2.0)), 1e-15);
}

constexpr PrivacyUnit bounded_change{Relation::event, 1, 0.1};

SubsamplingScheme::Parameters noisy(double context_noise, double forecast_noise) {
  auto p = traffic();
  p.context_noise = context_noise;
  p.forecast_noise = forecast_noise;
  return p;
}

TEST(Theorems, PicksTheTightestUpperBoundThatCovers) {
  const auto picked = [](SubsamplingScheme::Parameters p, TopLevel top, BottomLevel bottom, std::int64_t lambda) {
    p.top_level = top;
    p.bottom_level = bottom;
    p.subsequences_per_sequence = lambda;
    return apply_theorem(SubsamplingScheme(p), bounded_change, 4.0).theorem;
  };
  constexpr auto deterministic = TopLevel::deterministic;
  constexpr auto without_replacement = TopLevel::without_replacement;
  using enum BottomLevel;
  EXPECT_EQ(picked(traffic(), deterministic, with_replacement, 1), "4.2");
  EXPECT_EQ(picked(traffic(), deterministic, with_replacement, 2), "E.1");
  EXPECT_EQ(picked(traffic(), deterministic, poisson, 1), "E.8");
  EXPECT_EQ(picked(traffic(), TopLevel::shuffled, with_replacement, 1), "tsdp.4");
  EXPECT_EQ(picked(traffic(), deterministic, poisson, 4), "E.8");
  EXPECT_EQ(picked(traffic(), without_replacement, with_replacement, 1), "4.4");
  EXPECT_EQ(picked(traffic(), without_replacement, with_replacement, 4), "F.1");
  EXPECT_EQ(picked(traffic(), without_replacement, poisson, 1), "F.2");
  EXPECT_EQ(picked(noisy(2.0, 2.0), without_replacement, with_replacement, 1), "4.5");
  EXPECT_EQ(picked(noisy(0.0, 2.0), without_replacement, with_replacement, 1), "G.1");
  EXPECT_EQ(picked(noisy(2.0, 0.0), without_replacement, with_replacement, 1), "G.1");
}

// Training names no theorem, so this is what keeps it from bounds that guarantee nothing.
TEST(Theorems, UnaskedIsNeverOptimisticNorFlatNorOurs) {
  for (const auto top : {TopLevel::deterministic, TopLevel::without_replacement})
    for (const auto bottom : {BottomLevel::with_replacement, BottomLevel::poisson})
      for (const std::int64_t lambda : {1, 3})
        for (const double context_noise : {0.0, 1.0})
          for (const double forecast_noise : {0.0, 1.0, 2.0})
            for (const std::int64_t w : {1, 3})
              for (const std::int64_t length : {13916, 60}) {
                auto p = noisy(context_noise, forecast_noise);
                p.lengths = privacy::SeriesLengths::equal(862, length);
                p.top_level = top;
                p.bottom_level = bottom;
                p.subsequences_per_sequence = lambda;
                try {
                  const auto m = apply_theorem(SubsamplingScheme(p), {Relation::event, w, 0.1}, 4.0);
                  const auto row = theorem_row(m.theorem);
                  EXPECT_TRUE(m.bound == Bound::tight || m.bound == Bound::upper) << m.theorem;
                  EXPECT_TRUE(m.valid_for_time_series) << m.theorem;
                  EXPECT_TRUE(m.rigorous(1000)) << m.theorem;
                  EXPECT_FALSE(row.flat() || row.only_if_named) << m.theorem;
                  EXPECT_EQ(*row.top_level, top);
                  EXPECT_TRUE(row.id == "tsdp.4" || *row.bottom_level == bottom);  // tsdp.4 is three rows of one id
                } catch (const Error& error) {
                  EXPECT_EQ(error.code(), ExitCode::privacy) << error.what();
                  EXPECT_TRUE(context_noise > 0.0 || forecast_noise > 0.0) << error.what();
                }
              }
}

TEST(Theorems, RowsThatAgreeWhereTheyMeet) {
  const auto at = [](const SubsamplingScheme::Parameters& p, const char* theorem,
                     const PrivacyUnit& unit = bounded_change) {
    return apply_theorem(SubsamplingScheme(p), unit, 1.0, theorem).pair.symmetrised_profile(0.05);
  };
  const double exact = at(traffic(), "4.4");
  EXPECT_DOUBLE_EQ(at(traffic(), "F.7"), exact);  // λ = 1
  EXPECT_NEAR(at(traffic(), "G.1") / exact, 1.0, 1e-12);  // no noise on data
  EXPECT_NEAR(at(traffic(), "4.5") / exact, 1.0, 1e-12);
  EXPECT_NEAR(at(traffic(), "tsdp.1") / exact, 1.0, 1e-12);
  EXPECT_GT(at(traffic(), "F.1"), exact);  // loose at λ = 1
  EXPECT_DOUBLE_EQ(at(noisy(2.0, 2.0), "G.1"), at(noisy(2.0, 2.0), "4.5"));
  EXPECT_NEAR(at(noisy(1.0, 3.0), "tsdp.1") / at(noisy(1.0, 3.0), "G.1"), 1.0, 1e-11);  // w = 1, room for all windows
  // App. I has √w and the widest m at once; conditioning on the window is never worse.
  const PrivacyUnit four{Relation::event, 4, 0.1};
  EXPECT_LT(at(noisy(2.0, 2.0), "tsdp.1", four), at(noisy(2.0, 2.0), "4.5", four));
  const PrivacyUnit four_anywhere{Relation::user, 4, 0.1};
  EXPECT_LE(at(noisy(2.0, 2.0), "tsdp.1", four_anywhere), at(noisy(2.0, 2.0), "4.5", four_anywhere) * (1.0 + 1e-12));
  auto p = traffic();
  p.top_level = TopLevel::deterministic;
  EXPECT_DOUBLE_EQ(at(p, "4.3"), at(p, "4.2"));  // λ = 1
  EXPECT_NEAR(at(p, "tsdp.2") / at(p, "4.2"), 1.0, 1e-12);
  EXPECT_EQ(apply_theorem(SubsamplingScheme(p), {}, 1.0, "tsdp.2").unit, CompositionUnit::epoch);
}

TEST(Theorems, OnlyOptimisticRowsAreNotRigorousWhenComposed) {
  auto p = traffic();
  p.bottom_level = BottomLevel::poisson;
  for (const auto* theorem : {"F.8a", "F.8b"}) {
    const auto m = apply_theorem(SubsamplingScheme(p), {}, 4.0, theorem);
    EXPECT_EQ(m.bound, Bound::optimistic_lower);
    EXPECT_TRUE(m.rigorous(1));
    EXPECT_FALSE(m.rigorous(2));
  }
}

// Of Poisson windows the short series has the larger rate and the long one the larger m: neither is the worst.
TEST(Theorems, PoissonTakesTheWorstOfEverySeries) {
  auto p = traffic();
  p.context_length = 8;
  p.forecast_length = 2;
  p.bottom_level = BottomLevel::poisson;
  p.subsequences_per_sequence = 2;
  const auto at = [&](std::vector<std::int64_t> lengths, const char* theorem) {
    lengths.resize(100, lengths.back());
    p.lengths = std::move(lengths);
    p.top_level = *theorem_row(theorem).top_level;
    return apply_theorem(SubsamplingScheme(p), {}, 1.0, theorem);
  };
  for (const auto* theorem : {"E.8", "F.2"}) {
    const auto short_one = at({7}, theorem);  // T = 6, m = 6
    const auto long_one = at({101}, theorem);  // T = 100, m = 10
    const auto both = at({7, 101}, theorem);
    EXPECT_EQ(both.bound, Bound::upper) << theorem;
    for (const double epsilon : {0.0, 0.1, 1.0, 4.0}) {
      EXPECT_GT(both.pair.symmetrised_profile(epsilon), short_one.pair.symmetrised_profile(epsilon));
      EXPECT_GT(both.pair.symmetrised_profile(epsilon), long_one.pair.symmetrised_profile(epsilon));
    }
  }
  EXPECT_EQ(at({7}, "E.8").bound, Bound::tight);
  // A series of 10 windows has the largest m and, of these two, the largest rate.
  EXPECT_EQ(at({11, 101}, "E.8").bound, Bound::tight);
  EXPECT_EQ(at({101, 11, 50}, "E.8").bound, Bound::tight);
  // A lower bound is that of a series that exists.
  EXPECT_DOUBLE_EQ(at({7, 101}, "F.8a").pair.symmetrised_profile(0.1), at({7}, "F.8a").pair.symmetrised_profile(0.1));
}

// Of 3 series in batches of 2 the third is never read in turn: where that may be the worst one, its cost is attained by
// none.
TEST(Theorems, OrdersThatLeaveAWorseSeriesOutAreNotTight) {
  auto p = traffic();
  p.context_length = 8;
  p.forecast_length = 2;
  p.top_level = TopLevel::deterministic;
  p.batch_size = 2;
  const auto bound_of = [&](std::vector<std::int64_t> lengths) {
    p.lengths = std::move(lengths);
    return apply_theorem(SubsamplingScheme(p), {}, 1.0, "4.2").bound;
  };
  EXPECT_EQ(bound_of({2080, 2080, 280}), Bound::upper);
  EXPECT_EQ(bound_of({280, 280, 280}), Bound::tight);
  EXPECT_EQ(bound_of({2080, 2080, 280, 280}), Bound::tight);
}

TEST(Theorems, FlatBaselines) {
  const auto c1 = flat_baseline("C.1", {10000, 1000, 1}, 1.0);
  EXPECT_EQ(c1.bound, Bound::tight);
  EXPECT_FALSE(c1.valid_for_time_series);
  EXPECT_EQ(c1.steps_per_epoch, 10);
  EXPECT_NEAR(c1.pair.symmetrised_profile(0.0), 0.1 * std::erf(1.0 / std::sqrt(2.0)), 1e-15);
  const auto c2 = flat_baseline("C.2", {10000, 1000, 1}, 1.0);  // W = 1: one record
  EXPECT_EQ(c2.bound, Bound::optimistic_lower);
  EXPECT_NEAR(c2.pair.symmetrised_profile(0.5), c1.pair.symmetrised_profile(0.5), 1e-15);
  EXPECT_THROW(static_cast<void>(flat_baseline("C.1", {10, 11, 1}, 1.0)), UsageError);
  EXPECT_THROW(static_cast<void>(flat_baseline("C.2", {10, 5, 11}, 1.0)), UsageError);
  EXPECT_THROW(static_cast<void>(flat_baseline("4.4", {10, 5, 1}, 1.0)), PrivacyError);
  EXPECT_NE(refusal(traffic(), {}, "C.1").find("one flat data set"), std::string::npos);
}

TEST(TheoremTable, IsWhatTheDocumentsSay) {
  for (const auto* document : {"docs/accounting.md", "README.md"}) {
    std::ifstream in(std::filesystem::path(TSDP_SOURCE_DIR) / document);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("|")) lines.push_back(line);
    for (const auto& row : theorem_table()) {
      if (row.whole_series() && document == std::string("README.md")) continue;  // which has one row for them all
      // The id as a word of its own.
      const auto names = [&](const std::string& line) {
        for (auto at = line.find(row.id); at != std::string::npos; at = line.find(row.id, at + 1)) {
          const auto after = at + row.id.size();
          if ((at == 0 || line[at - 1] == ' ' || line[at - 1] == ',') &&
              (after == line.size() || line[after] == ' ' || line[after] == ',' || line[after] == '*'))
            return true;
        }
        return false;
      };
      const auto found = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return names(line) && (row.whole_series() || line.find(name(row.bound)) != std::string::npos) &&
               line.find(row.unit == CompositionUnit::step    ? "a step"
                         : row.unit == CompositionUnit::epoch ? "an epoch"
                                                              : "a round") != std::string::npos;
      });
      EXPECT_TRUE(found) << document << ": " << row.id;
    }
  }
}

TEST(Theorems, NoiseWithoutEndStillHasAPair) {
  EXPECT_GT(apply_theorem(SubsamplingScheme(noisy(1e300, 1e300)), bounded_change, 1.0).pair.components().back().weight,
            0.0);
}

TEST(Theorems, RefusesWhatNoTheoremCovers) {
  const auto refused = [](const std::string& text, std::initializer_list<const char*> parts) {
    for (const auto* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  };
  refused(refusal(noisy(0.0, 1.0)), {"no finite v is given"});
  auto p = noisy(1.0, 1.0);
  p.subsequences_per_sequence = 2;
  refused(refusal(p, bounded_change), {"no theorem covers", "Theorem 4.5 does not cover 2 subsequences per sequence",
                                       "Theorem F.1 does not cover noise on context or forecast", "it covers: "});
  p = noisy(1.0, 1.0);
  p.bottom_level = BottomLevel::poisson;
  refused(refusal(p, bounded_change), {"Theorem 4.5 does not cover bottom level poisson",
                                       "Theorem F.2 does not cover noise on context or forecast"});
  p = noisy(1.0, 1.0);
  p.top_level = TopLevel::deterministic;
  refused(refusal(p, bounded_change), {"Theorem 4.5 does not cover top level deterministic", "Theorem 4.2", "tsdp.2"});
  p = noisy(1.0, 1.0);
  p.top_level = TopLevel::shuffled;
  refused(refusal(p, bounded_change),
          {"no theorem covers", "Theorem tsdp.4 does not cover noise on context or forecast"});
  refused(
      refusal(noisy(0.0, 1.0), {Relation::user, 2, 0.1}),
      {"Theorem G.1 does not cover unequal noise on context (0) and forecast (1) with w = 2", "Theorem 4.5", "tsdp.1"});
  p = noisy(0.0, 1.0);
  p.lengths = privacy::SeriesLengths::equal(
      862, 100);  // 77 windows, of which all are touched, but not in the share that G.1 counts on
  refused(refusal(p, bounded_change), {"Theorem G.1", "77 windows", "T < L_C + L_F", "tsdp.1"});
  refused(refusal(traffic(), {}, "4.2"), {"Theorem 4.2 does not cover top level without replacement"});
  refused(refusal(traffic(), {}, "9.9"), {"'9.9'", "available are 4.2, 4.4", "C.2"});
  refused(refusal(traffic(), {Relation::user, 20000, {}}), {"w <= L"});
  refused(refusal(traffic(), {Relation::user, 0, {}}, {}, ExitCode::usage), {"w: found 0"});
}

}  // namespace
}  // namespace tsdp::privacy
