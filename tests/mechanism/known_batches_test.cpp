// What a run costs whoever knows its batches, against the closed form.
#include <gtest/gtest.h>

#include <cmath>

#include "mechanism/known_batches.h"

namespace tsdp::mechanism {
namespace {

using privacy::Relation;
using privacy::TopLevel;

constexpr double sigma = 40.0;
constexpr double delta = 1e-6;

PrivateMechanism mechanism_of(Relation relation, TopLevel top, std::int64_t windows = 1,
                              privacy::BottomLevel bottom = privacy::BottomLevel::with_replacement,
                              std::optional<std::int64_t> largest = std::nullopt) {
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(12, 100);
  p.context_length = 8;
  p.forecast_length = 4;
  p.top_level = top;
  p.bottom_level = bottom;
  p.subsequences_per_sequence = windows;
  p.batch_size = 4 * windows;
  p.largest_batch = largest;
  if (top == TopLevel::balls_in_bins) p.batches = 3;
  if (relation == Relation::series) p.record = privacy::Record::series;
  return {{relation, 1, {}}, privacy::SubsamplingScheme(p), {}, {privacy::NoiseKind::independent, sigma}};
}

/// ε of N(moved √times, σ²) against N(0, σ²) at `delta`, by bisection of the closed form (Balle and Wang 2018).
double gaussian(double moved, std::uint64_t times) {
  const double mu = moved * std::sqrt(static_cast<double>(times)) / sigma;
  const auto phi = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  double low = 0.0, high = 1000.0;
  for (int i = 0; i < 100; ++i) {
    const double e = 0.5 * (low + high);
    (phi(mu / 2 - e / mu) - std::exp(e) * phi(-mu / 2 - e / mu) > delta ? low : high) = e;
  }
  return high;
}

TEST(KnownBatches, CostWhatASeriesMayDoInEveryStep) {
  struct Case {
    const char* name;
    PrivateMechanism mechanism;
    double moved;                    ///< sums of a step, by one series
    std::uint64_t times_in_7_steps;  ///< that it takes part
  };
  const Case cases[] = {
      {"a value, samples", mechanism_of(Relation::event, TopLevel::without_replacement), 2.0, 7},
      {"a value, three windows a series", mechanism_of(Relation::event, TopLevel::without_replacement, 3), 6.0, 7},
      {"a value, coins", mechanism_of(Relation::user, TopLevel::poisson), 2.0, 7},
      {"a value, in turn", mechanism_of(Relation::event, TopLevel::deterministic), 2.0, 3},
      {"a value, shuffled", mechanism_of(Relation::event, TopLevel::shuffled, 2), 4.0, 3},
      {"a series, coins", mechanism_of(Relation::series, TopLevel::poisson, 3), 1.0, 7},
      {"a series, bins", mechanism_of(Relation::series, TopLevel::balls_in_bins), 1.0, 3},
      {"a series, shuffled", mechanism_of(Relation::series, TopLevel::shuffled), 1.0, 3},
      {"a series, coins, cut",
       mechanism_of(Relation::series, TopLevel::poisson, 1, privacy::BottomLevel::with_replacement, 12), 2.0, 7},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto found = epsilon_of_known_batches(c.mechanism, 7, delta);
    ASSERT_TRUE(found.has_value());
    const double expected = gaussian(c.moved, c.times_in_7_steps);
    EXPECT_GE(*found, expected * (1.0 - 1e-9));
    EXPECT_LE(*found, expected * 1.01);
    // Amplification is what is lost: the batches' own secrecy never costs more.
    const auto& theorem = c.mechanism.theorem();
    EXPECT_GE(*found * (1.0 + 1e-6), c.mechanism.curve()->epsilon(delta, theorem.uses_of_steps(7)).lower);
    EXPECT_EQ(epsilon_of_known_batches(c.mechanism, 0, delta), 0.0);
  }
}

TEST(KnownBatches, CostNothingThatIsKnownWhereNoBoundIs) {
  EXPECT_FALSE(epsilon_of_known_batches(
      mechanism_of(Relation::event, TopLevel::without_replacement, 2, privacy::BottomLevel::poisson), 7, delta));
}

}  // namespace
}  // namespace tsdp::mechanism
