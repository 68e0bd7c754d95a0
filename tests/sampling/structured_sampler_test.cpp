// The inclusion laws that the theorems rely on, by chi-square tests with fixed keys.
//
// Error rate: a right sampler fails a test with probability below 1e-7 (each statistic is compared with the 1 − 1e-8
// quantile of its law, fewer than ten statistics a test); with fixed keys a pass stays a pass.
#include "sampling/structured_sampler.h"
#include "sampling/augmentation.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <map>
#include <set>

#include "tsdp/base/error.h"

namespace tsdp::sampling {
namespace {

using namespace privacy;

SubsamplingScheme::Parameters base(std::int64_t series, std::int64_t length) {
  SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(series, length);
  p.context_length = 3;
  p.forecast_length = 2;
  p.batch_size = 1;
  return p;
}

const SecretKey key = SecretKey::from_seed(20260101);

std::vector<data::WindowIndex> draw(StructuredSampler& sampler, std::uint64_t step) {
  return sampler.draw(key, step).windows;
}

/// Fails if `counts` are unlikely for independent draws with these expected counts (all above 20).
void expect_law(const std::vector<double>& counts, const std::vector<double>& expected, int constraints = 1) {
  double statistic = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    ASSERT_GT(expected[i], 20.0);
    statistic += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  }
  const boost::math::chi_squared law(static_cast<double>(counts.size()) - constraints);
  EXPECT_LT(statistic, boost::math::quantile(boost::math::complement(law, 1e-8)));
}

/// Fails if the share of `hits` among `trials` is unlikely under probability `p` (normal limit, two-sided 1e-8).
void expect_share(double hits, double trials, double p) {
  EXPECT_LT(std::abs(hits - trials * p) / std::sqrt(trials * p * (1.0 - p)), 5.75)
      << hits << " of " << trials << ", p " << p;
}

TEST(Sampler, WithoutReplacementIsAFreshUniformSubsetEachStep) {
  auto p = base(7, 10);
  p.batch_size = 3;
  StructuredSampler sampler{SubsamplingScheme(p)};
  const int trials = 40000;
  std::map<std::set<std::int64_t>, double> subsets;
  double repeated = 0.0;  // series 0 in two steps in a row: independent if 9/49
  bool before = false;
  for (int step = 0; step < trials; ++step) {
    std::set<std::int64_t> chosen;
    for (const auto& window : draw(sampler, static_cast<std::uint64_t>(step))) chosen.insert(window.series);
    ASSERT_EQ(chosen.size(), 3U);  // no series twice
    ++subsets[chosen];
    const bool now = chosen.contains(0);
    repeated += before && now ? 1.0 : 0.0;
    before = now;
  }
  // 7 choose 3 = 35 subsets, all alike: single, pairwise and triple inclusion at once.
  std::vector<double> counts;
  for (const auto& [unused, count] : subsets) counts.push_back(count);
  ASSERT_EQ(counts.size(), 35U);
  expect_law(counts, std::vector<double>(35, trials / 35.0));
  // Disjoint pairs of steps would be needed for exactness; overlapping ones widen the law by less than 1.6.
  EXPECT_LT(std::abs(repeated - trials * 9.0 / 49.0) / std::sqrt(trials * 9.0 / 49.0), 5.75 * 1.6);
}

TEST(Sampler, WithReplacementWindowsAreUniformAndIndependent) {
  auto p = base(2, 7);  // T = 6 windows, starts 0 … 5
  p.batch_size = 4;
  p.subsequences_per_sequence = 2;
  StructuredSampler sampler{SubsamplingScheme(p)};
  const int trials = 40000;
  std::vector<double> pairs(36, 0.0);
  std::vector<double> across(36, 0.0);
  for (int step = 0; step < trials; ++step) {
    const auto windows = draw(sampler, static_cast<std::uint64_t>(step));
    ASSERT_EQ(windows.size(), 4U);
    std::map<std::int64_t, std::vector<std::int64_t>> starts;
    for (const auto& w : windows) {
      ASSERT_GE(w.start, 0);
      ASSERT_LE(w.start, 5);
      starts[w.series].push_back(w.start);
    }
    ASSERT_EQ(starts[0].size(), 2U);
    ASSERT_EQ(starts[1].size(), 2U);
    ++pairs[static_cast<std::size_t>(starts[0][0] * 6 + starts[0][1])];
    ++across[static_cast<std::size_t>(starts[0][0] * 6 + starts[1][0])];
  }
  expect_law(pairs, std::vector<double>(36, trials / 36.0));
  expect_law(across, std::vector<double>(36, trials / 36.0));
}

TEST(Sampler, EverySeriesHasItsOwnRangeOfStarts) {
  auto p = base(2, 6);
  p.lengths = {6, 12};  // T = 5 and 11
  p.batch_size = 2;
  StructuredSampler sampler{SubsamplingScheme(p)};
  std::vector<double> short_counts(5, 0.0);
  std::vector<double> long_counts(11, 0.0);
  for (int step = 0; step < 22000; ++step)
    for (const auto& w : draw(sampler, static_cast<std::uint64_t>(step)))
      ++(w.series == 0 ? short_counts : long_counts).at(static_cast<std::size_t>(w.start));
  expect_law(short_counts, std::vector<double>(5, 22000 / 5.0));
  expect_law(long_counts, std::vector<double>(11, 22000 / 11.0));
}

// Owner 0 has series 0 and 2, owner 1 has series 1: 9, 29 and 4 windows. All of an owner's have one place.
TEST(Sampler, OwnersDrawFromAllTheirSeriesIntoOnePlace) {
  auto p = base(1, 10);
  p.lengths = privacy::SeriesLengths({10, 5, 30}, Owners{{0, 1, 0}, "grouping"});
  p.record = Record::series;
  p.subsequences_per_sequence = 2;
  p.batch_size = 2;
  const SubsamplingScheme scheme(p);
  ASSERT_EQ(scheme.sequences(), 2);
  EXPECT_EQ(scheme.windows_of(0), 9 + 29);
  EXPECT_EQ(scheme.windows_of(1), 4);
  for (const auto level : {TopLevel::without_replacement, TopLevel::poisson, TopLevel::balls_in_bins}) {
    auto with = p;
    with.top_level = level;
    with.batches = level == TopLevel::balls_in_bins ? std::optional<std::int64_t>(2) : std::nullopt;
    with.redraw = level == TopLevel::balls_in_bins ? Redraw::every_epoch : Redraw::once;
    StructuredSampler sampler{SubsamplingScheme(with)};
    std::vector<double> counts(38 + 4, 0.0);
    double of_first = 0.0, of_second = 0.0;
    for (std::uint64_t step = 0; step < 40000; ++step) {
      const auto [windows, places] = sampler.draw(key, step);
      std::map<std::int64_t, std::set<std::int64_t>> owners_of_place;
      std::map<std::int64_t, int> windows_of_owner;
      for (std::size_t i = 0; i < windows.size(); ++i) {
        const auto [series, start] = windows[i];
        const auto owner = series == 1 ? 1 : 0;
        owners_of_place[places[i]].insert(owner);
        ++windows_of_owner[owner];
        ++counts[static_cast<std::size_t>(series == 0 ? start : series == 2 ? 9 + start : 38 + start)];
        (owner == 0 ? of_first : of_second) += 1.0;
      }
      ASSERT_EQ(owners_of_place.size(), windows_of_owner.size());  // no owner has two places
      for (const auto& [place, owners] : owners_of_place) ASSERT_EQ(owners.size(), 1U) << place;
      for (const auto& [owner, drawn] : windows_of_owner) ASSERT_EQ(drawn, 2) << owner;
    }
    std::vector<double> expected(38, of_first / 38.0);
    expected.resize(42, of_second / 4.0);
    expect_law(counts, expected, 2);
  }
}

TEST(Sampler, OwnersAreNumberedAsTheyAppearAndAreForWholeSeries) {
  EXPECT_THROW(privacy::SeriesLengths({9, 9}, Owners{{0}, ""}), UsageError);
  EXPECT_THROW(privacy::SeriesLengths({9, 9}, Owners{{1, 0}, ""}), UsageError);
  EXPECT_THROW(privacy::SeriesLengths({9, 9}, Owners{{0, 2}, ""}), UsageError);
  EXPECT_THROW(privacy::SeriesLengths({9, 9}, Owners{{0, -1}, ""}), UsageError);
  auto p = base(2, 9);
  p.lengths = privacy::SeriesLengths({9, 9}, Owners{{0, 0}, "grouping"});
  EXPECT_THROW(SubsamplingScheme{p}, UsageError);
}

TEST(Sampler, PoissonCoinsAreIndependent) {
  auto p = base(2, 6);  // T = 5, r_P = 2/5
  p.batch_size = 4;
  p.subsequences_per_sequence = 2;
  p.bottom_level = BottomLevel::poisson;
  StructuredSampler sampler{SubsamplingScheme(p)};
  const int trials = 40000;
  std::vector<double> patterns(32, 0.0);
  double across = 0.0;  // window 0 of both series
  for (int step = 0; step < trials; ++step) {
    std::size_t pattern = 0;
    int zeros = 0;
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (const auto& w : draw(sampler, static_cast<std::uint64_t>(step))) {
      ASSERT_TRUE(seen.insert({w.series, w.start}).second);  // a window at most once
      if (w.series == 0) pattern |= std::size_t{1} << w.start;
      zeros += w.start == 0 ? 1 : 0;
    }
    ++patterns[pattern];
    across += zeros == 2 ? 1.0 : 0.0;
  }
  // All 2^5 patterns: every joint inclusion law at once.
  std::vector<double> expected;
  for (std::size_t pattern = 0; pattern < 32; ++pattern) {
    const int heads = __builtin_popcountll(pattern);
    expected.push_back(trials * std::pow(0.4, heads) * std::pow(0.6, 5 - heads));
  }
  expect_law(patterns, expected);
  expect_share(across, trials, 0.16);
}

TEST(Sampler, PoissonTakesEveryWindowOfAShortSeries) {
  auto p = base(1, 4);  // T = 3 ≤ λ: r_P = 1
  p.batch_size = 8;
  p.subsequences_per_sequence = 8;
  p.bottom_level = BottomLevel::poisson;
  StructuredSampler sampler{SubsamplingScheme(p)};
  EXPECT_EQ(draw(sampler, 0), (std::vector<data::WindowIndex>{{0, 0}, {0, 1}, {0, 2}}));
}

TEST(Sampler, PoissonMayDrawNothing) {
  auto p = base(1, 41);  // T = 40, r_P = 1/40: empty with probability (39/40)^40 = 0.363
  p.bottom_level = BottomLevel::poisson;
  StructuredSampler sampler{SubsamplingScheme(p)};
  double empty = 0.0;
  for (int step = 0; step < 20000; ++step) empty += draw(sampler, static_cast<std::uint64_t>(step)).empty() ? 1.0 : 0.0;
  expect_share(empty, 20000, std::pow(39.0 / 40.0, 40));
}

TEST(Sampler, DeterministicUsesEverySeriesAtMostOnceAnEpoch) {
  auto p = base(10, 9);
  p.batch_size = 7;
  p.subsequences_per_sequence = 2;  // N′ = ⌊7/2⌋ = 3 series a batch, ⌊10·2/7⌋ = 2 steps an epoch: series 6 … 9 rest
  p.top_level = TopLevel::deterministic;
  StructuredSampler sampler{SubsamplingScheme(p)};
  EXPECT_EQ(sampler.scheme().sequences_per_batch(), 3);
  EXPECT_EQ(sampler.scheme().steps_per_epoch(), 2);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::int64_t> order;
    for (std::uint64_t b = 0; b < 2; ++b)
      for (const auto& w : draw(sampler, 2 * epoch + b)) order.push_back(w.series);
    EXPECT_EQ(order, (std::vector<std::int64_t>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  }
}

TEST(Sampler, ShuffledUsesEverySeriesAtMostOnceAnEpochInANewOrder) {
  auto p = base(10, 9);
  p.batch_size = 3;
  p.top_level = TopLevel::shuffled;
  StructuredSampler sampler{SubsamplingScheme(p)};
  ASSERT_EQ(sampler.scheme().steps_per_epoch(), 3);
  std::set<std::vector<std::int64_t>> orders;
  std::vector<double> first(10);
  constexpr std::uint64_t epochs = 4000;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    std::vector<std::int64_t> order;
    for (std::uint64_t step = 3 * epoch; step < 3 * epoch + 3; ++step)
      for (const auto& w : draw(sampler, step)) order.push_back(w.series);
    ASSERT_EQ(order.size(), 9U);
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 9U);
    first[static_cast<std::size_t>(order.front())] += 1.0;
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), epochs - 20);  // of 3,628,800: two of 4000 equal 2.2 times on average
  for (const double count : first) expect_share(count, static_cast<double>(epochs), 0.1);
}

/// The series of a step, each once, in the order of their places.
std::vector<std::int64_t> series_of(StructuredSampler& sampler, std::uint64_t step) {
  std::vector<std::int64_t> out;
  const auto [windows, places] = sampler.draw(key, step);
  for (std::size_t i = 0; i < windows.size(); ++i)
    if (i == 0 || places[i] != places[i - 1]) out.push_back(windows[i].series);
  return out;
}

TEST(Sampler, WholeSeriesInTurnFillTheLastBatchWithGhosts) {
  auto p = base(10, 9);
  p.record = Record::series;
  p.batch_size = 8;
  p.subsequences_per_sequence = 2;  // N′ = 4: batches of 4, 4 and 2 with two ghosts
  p.top_level = TopLevel::deterministic;
  StructuredSampler in_turn{SubsamplingScheme(p)};
  EXPECT_EQ(in_turn.scheme().steps_per_epoch(), 3);
  EXPECT_EQ(in_turn.scheme().divisor(), 4.0);
  EXPECT_EQ(series_of(in_turn, 3), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(series_of(in_turn, 5), (std::vector<std::int64_t>{8, 9}));
  EXPECT_EQ(in_turn.draw(key, 5).places, (std::vector<std::int64_t>{0, 0, 1, 1}));
  p.top_level = TopLevel::shuffled;
  for (const auto reshuffle : {Reshuffle::every_epoch, Reshuffle::once}) {
    p.reshuffle = reshuffle;
    StructuredSampler shuffled{SubsamplingScheme(p)};
    std::vector<double> last(10);
    std::set<std::vector<std::int64_t>> orders;
    constexpr std::uint64_t epochs = 3000;
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      std::vector<std::int64_t> order;
      for (std::uint64_t b = 0; b < 3; ++b) {
        const auto batch = series_of(shuffled, 3 * epoch + b);
        ASSERT_EQ(batch.size(), b == 2 ? 2U : 4U);  // ghosts stay where they are
        order.insert(order.end(), batch.begin(), batch.end());
      }
      EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 10U);
      last[static_cast<std::size_t>(order.back())] += 1.0;
      orders.insert(order);
    }
    if (reshuffle == Reshuffle::once) {
      EXPECT_EQ(orders.size(), 1U);
      continue;
    }
    EXPECT_GT(orders.size(), epochs - 20);
    for (const double count : last) expect_share(count, static_cast<double>(epochs), 0.1);
  }
}

TEST(Sampler, PoissonTossesACoinForEverySeries) {
  for (const double rate : {0.015, 0.5, 0.9}) {
    auto p = base(6, 9);
    p.record = Record::series;
    p.top_level = TopLevel::poisson;
    p.rate = rate;
    StructuredSampler sampler{SubsamplingScheme(p)};
    EXPECT_GE(sampler.scheme().drawn_share(), rate);
    EXPECT_LE(sampler.scheme().drawn_share(), rate * (1.0 + 1e-13));
    EXPECT_EQ(sampler.scheme().drawn_share() * 0x1p53, std::floor(sampler.scheme().drawn_share() * 0x1p53));
    constexpr int steps = 40000;
    std::vector<double> drawn(6), both(36), sizes(7);
    for (int step = 0; step < steps; ++step) {
      const auto [windows, places] = sampler.draw(key, static_cast<std::uint64_t>(step));
      for (std::size_t i = 0; i < windows.size(); ++i) EXPECT_EQ(places[i], windows[i].series);
      for (const auto& a : windows) {
        drawn[static_cast<std::size_t>(a.series)] += 1.0;
        for (const auto& b : windows) both[static_cast<std::size_t>(6 * a.series + b.series)] += 1.0;
      }
      sizes[windows.size()] += 1.0;
    }
    for (std::size_t a = 0; a < 6; ++a) {
      expect_share(drawn[a], steps, rate);
      for (std::size_t b = 0; b < a; ++b) expect_share(both[6 * a + b], steps, rate * rate);
    }
    expect_share(sizes[0], steps, std::pow(1.0 - rate, 6));
  }
}

TEST(Sampler, PoissonRatesFollowFromTheBatchSize) {
  auto p = base(40, 9);
  p.record = Record::series;
  p.top_level = TopLevel::poisson;
  p.batch_size = 16;
  p.subsequences_per_sequence = 2;
  const SubsamplingScheme by_size(p);
  EXPECT_NEAR(by_size.drawn_share(), 0.2, 1e-15);
  EXPECT_GE(by_size.drawn_share(), 0.2);
  EXPECT_EQ(by_size.steps_per_epoch(), 5);
  EXPECT_NEAR(by_size.divisor(), 8.0, 1e-12);
  EXPECT_EQ(by_size.record_scale(), 0.5);
  p.batches = 5;
  EXPECT_EQ(SubsamplingScheme(p).drawn_share(), by_size.drawn_share());
  EXPECT_EQ(SubsamplingScheme(p).parameters().batch_size, 16);
  p.batches.reset();
  p.batch_size = 200;  // more than there are: everyone, always
  EXPECT_EQ(SubsamplingScheme(p).drawn_share(), 1.0);
  StructuredSampler all{SubsamplingScheme(p)};
  EXPECT_EQ(series_of(all, 3).size(), 40U);
}

TEST(Sampler, CyclicPoissonTossesTheCoinsOfOneGroupAStep) {
  auto p = base(11, 9);
  p.record = Record::series;
  p.top_level = TopLevel::cyclic_poisson;
  p.batches = 8;
  p.groups = 3;
  StructuredSampler sampler{SubsamplingScheme(p)};
  const auto& scheme = sampler.scheme();
  EXPECT_EQ(scheme.new_key(), NewKey::at_any_step);
  EXPECT_GE(scheme.coin(), 3.0 / 8.0);
  EXPECT_LE(scheme.coin(), 3.0 / 8.0 * (1.0 + 1e-14));
  EXPECT_EQ(scheme.coin() * 0x1p53, std::floor(scheme.coin() * 0x1p53));
  EXPECT_NEAR(scheme.divisor(), 11.0 / 8.0, 1e-12);
  constexpr std::uint64_t rounds = 20000;
  std::vector<double> drawn(11), both(11);
  for (std::uint64_t step = 0; step < 3 * rounds; ++step) {
    const auto [windows, places] = sampler.draw(key, step);
    bool seven = false;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      ASSERT_EQ(windows[i].series % 3, static_cast<std::int64_t>(step % 3));
      EXPECT_EQ(places[i], windows[i].series);
      drawn[static_cast<std::size_t>(windows[i].series)] += 1.0;
      seven = seven || windows[i].series == 7;
    }
    for (const auto& window : windows)
      if (seven) both[static_cast<std::size_t>(window.series)] += 1.0;
  }
  for (const double count : drawn) expect_share(count, rounds, 3.0 / 8.0);
  expect_share(both[1], rounds, 9.0 / 64.0);  // coins of one step are independent
  expect_share(both[10], rounds, 9.0 / 64.0);
}

TEST(Sampler, BatchesAreCutToTheirLargestSize) {
  for (const auto level : {TopLevel::poisson, TopLevel::cyclic_poisson, TopLevel::balls_in_bins}) {
    SCOPED_TRACE(name(level));
    auto p = base(40, 9);
    p.record = Record::series;
    p.top_level = level;
    p.batches = 8;
    p.groups = level == TopLevel::cyclic_poisson ? 2 : 1;
    p.subsequences_per_sequence = 3;
    EXPECT_EQ(SubsamplingScheme(p).most_windows(), std::nullopt);
    StructuredSampler all{SubsamplingScheme(p)};
    p.largest_batch = 6;
    EXPECT_EQ(SubsamplingScheme(p).most_windows(), 18);
    EXPECT_EQ(SubsamplingScheme(p).divisor(), all.scheme().divisor());
    StructuredSampler cut{SubsamplingScheme(p)};
    int smaller = 0, larger = 0;
    for (std::uint64_t step = 0; step < 400; ++step) {
      const auto whole = all.draw(key, step);
      const auto kept = cut.draw(key, step);
      const auto most = std::min<std::size_t>(whole.windows.size(), 18);
      EXPECT_EQ(kept.windows, std::vector(whole.windows.begin(), whole.windows.begin() + static_cast<long>(most)));
      EXPECT_EQ(kept.places, std::vector(whole.places.begin(), whole.places.begin() + static_cast<long>(most)));
      ++(whole.windows.size() > 18 ? larger : smaller);
    }
    EXPECT_GT(smaller, 40);
    EXPECT_GT(larger, 40);
    p.bottom_level = BottomLevel::poisson;
    EXPECT_EQ(SubsamplingScheme(p).most_windows(), std::nullopt);  // only chance limits a series' windows
  }
}

// What is drawn of series with several variables is what is drawn of series with one, a window for each variable.
TEST(Sampler, DrawsAWindowOfEachVariable) {
  for (const auto record : {Record::window, Record::series})
    for (const auto top : {TopLevel::deterministic, TopLevel::shuffled, TopLevel::without_replacement,
                           TopLevel::poisson, TopLevel::balls_in_bins})
      for (const auto bottom : {BottomLevel::with_replacement, BottomLevel::poisson})
        for (const std::int64_t lambda : {1, 5, 70}) {
          if (record == Record::window && top == TopLevel::balls_in_bins) continue;
          auto p = base(6, 200);
          p.record = record;
          p.top_level = top;
          p.bottom_level = bottom;
          p.subsequences_per_sequence = lambda;
          p.batch_size = 3 * lambda;
          const SubsamplingScheme alone(p);
          p.lengths = p.lengths.of_variables(4);
          const SubsamplingScheme joined(p);
          EXPECT_EQ(joined.sequences(), alone.sequences());
          EXPECT_EQ(joined.divisor(), alone.divisor());
          EXPECT_EQ(joined.steps_per_epoch(), alone.steps_per_epoch());
          EXPECT_EQ(joined.expected_windows(), 4 * alone.expected_windows());
          EXPECT_EQ(joined.record_scale(), alone.record_scale() / 4.0);
          EXPECT_TRUE(joined.joins_windows());
          StructuredSampler of_one(alone), of_all(joined);
          for (std::uint64_t step = 0; step < 20; ++step) {
            const auto one = of_one.draw(key, step);
            const auto all = of_all.draw(key, step);
            ASSERT_EQ(all.windows.size(), 4 * one.windows.size());
            ASSERT_EQ(all.places.size(), all.windows.size());
            for (std::size_t w = 0; w < all.windows.size(); ++w) {
              EXPECT_EQ(all.windows[w].series / 4, one.windows[w / 4].series);
              EXPECT_EQ(all.windows[w].series % 4, static_cast<std::int64_t>(w % 4));
              EXPECT_EQ(all.windows[w].start, one.windows[w / 4].start);
              EXPECT_EQ(all.places[w], all.places[w / 4 * 4]);
              EXPECT_LT(all.places[w], joined.places());
              EXPECT_TRUE(w == 0 || all.places[w] >= all.places[w - 1]);
            }
          }
        }
  auto p = base(6, 200);
  p.lengths = p.lengths.of_variables(2);
  p.context_noise = 1.0;
  EXPECT_THROW(SubsamplingScheme{p}, PrivacyError);
  EXPECT_THROW(static_cast<void>(p.lengths.of_variables(0)), UsageError);
}

TEST(Sampler, BinsAreDrawnOnceAndComeBackInEveryEpoch) {
  auto p = base(12, 9);
  p.record = Record::series;
  p.top_level = TopLevel::balls_in_bins;
  p.batches = 4;
  StructuredSampler sampler{SubsamplingScheme(p)};
  EXPECT_EQ(sampler.scheme().divisor(), 3.0);
  std::vector<double> bins(4), same(2);
  constexpr std::uint64_t runs = 3000;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const auto own = SecretKey::from_seed(run);
    std::vector<int> bin_of(12, -1);
    for (std::uint64_t step = 0; step < 8; ++step) {
      const auto [windows, places] = sampler.draw(own, step);
      for (std::size_t i = 0; i < windows.size(); ++i) {
        EXPECT_EQ(places[i], windows[i].series);
        auto& bin = bin_of[static_cast<std::size_t>(windows[i].series)];
        EXPECT_EQ(bin, step < 4 ? -1 : static_cast<int>(step - 4));
        bin = static_cast<int>(step % 4);
      }
    }
    EXPECT_EQ(std::count(bin_of.begin(), bin_of.end(), -1), 0);
    bins[static_cast<std::size_t>(bin_of[5])] += 1.0;
    same[bin_of[0] == bin_of[11] ? 1 : 0] += 1.0;
  }
  expect_law(bins, std::vector<double>(4, runs / 4.0));
  expect_share(same[1], runs, 0.25);
  // A step alone, and after another key's, is the same.
  StructuredSampler fresh{SubsamplingScheme(p)};
  static_cast<void>(fresh.draw(SecretKey::from_seed(1), 2));
  EXPECT_EQ(fresh.draw(key, 6).windows, sampler.draw(key, 6).windows);
}

TEST(Sampler, BinsAreDrawnAnewInEveryEpochIfAskedTo) {
  auto p = base(12, 9);
  p.record = Record::series;
  p.top_level = TopLevel::balls_in_bins;
  p.batches = 4;
  p.redraw = Redraw::every_epoch;
  StructuredSampler sampler{SubsamplingScheme(p)};
  EXPECT_EQ(sampler.scheme().new_key(), NewKey::at_next_epoch);
  constexpr std::uint64_t epochs = 6000;
  std::vector<std::vector<std::size_t>> bin_of(epochs, std::vector<std::size_t>(12));
  std::vector<double> bins(4), pairs(16), between(16);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    std::size_t seen = 0;
    for (std::uint64_t b = 0; b < 4; ++b)
      for (const auto& window : sampler.draw(key, 4 * epoch + b).windows) {
        bin_of[epoch][static_cast<std::size_t>(window.series)] = static_cast<std::size_t>(b);
        ++seen;
      }
    ASSERT_EQ(seen, 12U);  // every series once an epoch
    bins[bin_of[epoch][5]] += 1.0;
    between[4 * bin_of[epoch][0] + bin_of[epoch][11]] += 1.0;
    if (epoch > 0) pairs[4 * bin_of[epoch - 1][5] + bin_of[epoch][5]] += 1.0;
  }
  expect_law(bins, std::vector<double>(4, epochs / 4.0));
  expect_law(between, std::vector<double>(16, epochs / 16.0));
  expect_law(pairs, std::vector<double>(16, (epochs - 1) / 16.0));
  // The first epoch is that of bins drawn once; a step alone is the same as in turn.
  p.redraw = Redraw::once;
  StructuredSampler once{SubsamplingScheme(p)};
  EXPECT_EQ(once.draw(key, 2).windows, sampler.draw(key, 2).windows);
  p.redraw = Redraw::every_epoch;
  StructuredSampler fresh{SubsamplingScheme(p)};
  EXPECT_EQ(fresh.draw(key, 4 * 77 + 1).windows, sampler.draw(key, 4 * 77 + 1).windows);
}

TEST(Sampler, SmallDataSetsAreSampledWhole) {
  auto p = base(3, 9);
  p.batch_size = 8;  // ⌊Λ/λ⌋ = 8 > N: all three series, one step an epoch
  for (const auto top : {TopLevel::deterministic, TopLevel::without_replacement}) {
    p.top_level = top;
    StructuredSampler sampler{SubsamplingScheme(p)};
    EXPECT_EQ(sampler.scheme().steps_per_epoch(), 1);
    std::set<std::int64_t> series;
    for (const auto& w : draw(sampler, 5)) series.insert(w.series);
    EXPECT_EQ(series.size(), 3U);
  }
}

TEST(Sampler, ABatchIsAFunctionOfKeyAndStepAlone) {
  auto p = base(50, 100);
  p.batch_size = 20;
  StructuredSampler one{SubsamplingScheme(p)};
  StructuredSampler other{SubsamplingScheme(p)};
  for (std::uint64_t step = 0; step < 10; ++step) draw(other, step);  // history must not matter
  EXPECT_EQ(draw(one, 7), draw(other, 7));
  EXPECT_NE(draw(one, 7), draw(one, 8));
}

TEST(Augment, GivesEveryValueOfABatchANormalOfItsOwn) {
  auto p = base(1, 100);
  p.context_noise = 0.5;
  p.forecast_noise = 2.0;
  const SubsamplingScheme scheme(p);
  const RandomStream stream(key, augmentation_purpose, 8);
  constexpr std::int64_t windows = 157;
  constexpr double v = 3.0;
  const auto past = p.context_length + 4;  // lags included
  const auto width = past + p.forecast_length;
  const auto count = static_cast<std::size_t>(windows * width);
  ASSERT_GT(count, 1024U);  // more than the stream gives at a time
  std::vector<double> normals(count);
  stream.normals(0, normals);
  std::vector<float> values(count, 1.0F);
  std::vector<float> observed(count, 1.0F);
  for (std::size_t i = 0; i < count; i += 7) values[i] = observed[i] = 0.0F;
  augment(scheme, v, stream, windows, past, values.data(), observed.data());
  for (std::size_t i = 0; i < count; ++i) {
    const bool in_past = static_cast<std::int64_t>(i) % width < past;
    const float expected = i % 7 == 0 ? 0.0F : static_cast<float>(1.0 + v * (in_past ? 0.5 : 2.0) * normals[i]);
    ASSERT_EQ(values[i], expected) << i;
  }
}

TEST(Augment, AddsNoiseOfTheStatedSizeToObservedValuesOnly) {
  auto p = base(1, 100);
  p.context_noise = 0.5;
  p.forecast_noise = 2.0;
  const SubsamplingScheme scheme(p);
  const std::int64_t windows = 4000;
  const std::size_t width = 5;
  std::vector<float> values(windows * width, 1.0F);
  std::vector<float> observed(windows * width, 1.0F);
  for (std::size_t i = 0; i < values.size(); i += width) values[i] = observed[i] = 0.0F;  // padding in front
  augment(scheme, 3.0, RandomStream(key, augmentation_purpose, 9), windows, 3, values.data(), observed.data());
  double context = 0.0;
  double forecast = 0.0;
  for (std::size_t i = 0; i < values.size(); i += width) {
    EXPECT_EQ(values[i], 0.0F);
    for (const std::size_t j : {1, 2}) context += std::pow(static_cast<double>(values[i + j]) - 1.0, 2);
    for (const std::size_t j : {3, 4}) forecast += std::pow(static_cast<double>(values[i + j]) - 1.0, 2);
  }
  // Variances (0.5·3)² and (2·3)²; 8000 squares have relative deviation sqrt(2/8000) = 0.0158, times 5.75.
  EXPECT_NEAR(context / 8000 / 2.25, 1.0, 0.091);
  EXPECT_NEAR(forecast / 8000 / 36.0, 1.0, 0.091);
}

TEST(Augment, PutsNoiseOnDoublesBeforeTheyBecomeFloats) {
  auto p = base(1, 100);
  p.context_noise = 1.0;
  p.forecast_noise = 4.0;
  const SubsamplingScheme scheme(p);
  const RandomStream stream(key, augmentation_purpose, 10);
  constexpr std::int64_t windows = 400;
  constexpr double v = 20.0;
  const auto past = p.context_length;
  const auto width = past + p.forecast_length;
  const auto count = static_cast<std::size_t>(windows * width);
  std::vector<double> normals(count);
  stream.normals(0, normals);
  // Counts at 1e9, where floats lie 64 apart; values beyond 2³² v; missing ones.
  std::vector<double> exact(count, 1000000031.0);
  std::vector<float> observed(count, 1.0F);
  for (std::size_t i = 0; i < count; i += 5) exact[i] = i % 2 == 0 ? 1e30 : -1e12;
  for (std::size_t i = 0; i < count; i += 7) observed[i] = 0.0F;
  std::vector<float> values(count, -1.0F);
  augment(scheme, v, stream, windows, past, exact.data(), values.data(), observed.data());
  std::size_t others = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool in_past = static_cast<std::int64_t>(i) % width < past;
    const double noise = v * (1.0 + 0x1p-19) * (in_past ? 1.0 : 4.0) * normals[i];
    const double read = i % 5 != 0 ? 1000000031.0 : i % 2 == 0 ? v * 0x1p32 : -v * 0x1p32;
    const float expected = i % 7 == 0 ? 0.0F : static_cast<float>(read + noise);
    ASSERT_EQ(values[i], expected) << i;
    others += expected != 0.0F && expected != static_cast<float>(static_cast<double>(static_cast<float>(read)) + noise)
                  ? 1
                  : 0;
  }
  EXPECT_GT(others, count / 10);  // rounding first would give other windows
  // The largest float, where there is no larger one.
  std::fill(exact.begin(), exact.end(), 3.4e38);
  augment(scheme, 1e38, stream, windows, past, exact.data(), values.data(), observed.data());
  for (const float value : values) ASSERT_TRUE(std::isfinite(value));
  EXPECT_THROW(augment(scheme, 1e-320, stream, windows, past, exact.data(), values.data(), observed.data()),
               UsageError);
}

TEST(Scheme, RefusesWhatMakesNoSense) {
  const auto message = [](SubsamplingScheme::Parameters p) -> std::string {
    try {
      const SubsamplingScheme scheme(p);
    } catch (const Error& error) { return error.what(); }
    return "accepted";
  };
  auto p = base(3, 10);
  p.subsequences_per_sequence = 2;
  EXPECT_NE(message(p).find("lambda <= Lambda"), std::string::npos);
  for (const auto top : {TopLevel::deterministic, TopLevel::shuffled}) {  // whose batches are divided by
    p.record = Record::series;
    p.top_level = top;
    EXPECT_NE(message(p).find("lambda <= Lambda"), std::string::npos);
  }
  p = base(3, 1);
  EXPECT_NE(message(p).find("L >= L_F"), std::string::npos);
  p = base(3, 10);
  p.batch_size = 0;
  EXPECT_NE(message(p).find("batch size: found 0"), std::string::npos);
  p = base(3, 10);
  p.context_noise = -1.0;
  EXPECT_NE(message(p).find("augmentation noise"), std::string::npos);
  // Of whole series.
  p = base(10, 10);
  p.batches = 5;
  EXPECT_NE(message(p).find("found one of them with windows as records"), std::string::npos);
  p.record = Record::series;
  EXPECT_EQ(message(p), "accepted");
  p.batches = 11;
  EXPECT_NE(message(p).find("batches: found 11 of 10 series"), std::string::npos);
  p.top_level = TopLevel::shuffled;
  p.batches = 4;  // of three series each there are four; of 7 batches none of one size
  EXPECT_EQ(message(p), "accepted");
  p.batches = 7;
  EXPECT_NE(message(p).find("5 (of 2 series) or 10 (of 1)"), std::string::npos) << message(p);
  p.batches.reset();
  p.rate = 0.5;
  EXPECT_NE(message(p).find("only poisson and cyclic_poisson have one"), std::string::npos);
  p.top_level = TopLevel::poisson;
  for (const double rate : {0.0, -0.5, 1.5}) {
    p.rate = rate;
    EXPECT_NE(message(p).find("above 0 and at most 1"), std::string::npos);
  }
  p.rate = 1.0;
  EXPECT_EQ(message(p), "accepted");
  p.reshuffle = Reshuffle::once;
  EXPECT_NE(message(p).find("reshuffle: found once with top level poisson"), std::string::npos);
  p.reshuffle = Reshuffle::every_epoch;
  p.redraw = Redraw::every_epoch;
  EXPECT_NE(message(p).find("redraw: found every_epoch with top level poisson"), std::string::npos);
  p.redraw = Redraw::once;
  p.groups = 2;
  EXPECT_NE(message(p).find("groups: found 2 with top level poisson"), std::string::npos);
  p.top_level = TopLevel::cyclic_poisson;
  p.rate = 0.25;
  p.groups = 4;
  EXPECT_EQ(message(p), "accepted");
  p.groups = 5;
  EXPECT_NE(message(p).find("bands: found 5 with 4 steps of an epoch"), std::string::npos) << message(p);
  p.groups = 4;
  for (const std::int64_t largest : {2, 11}) {
    p.largest_batch = largest;
    EXPECT_NE(message(p).find(cat("largest batch: found ", largest, " where 2.5 of 10 series are expected")),
              std::string::npos)
        << message(p);
  }
  p.largest_batch = 3;
  EXPECT_EQ(message(p), "accepted");
  p.groups = 1;
  p.rate.reset();
  p.top_level = TopLevel::shuffled;
  EXPECT_NE(message(p).find("other batches have one size"), std::string::npos) << message(p);
}

}  // namespace
}  // namespace tsdp::sampling
