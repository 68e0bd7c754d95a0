// Attacks on inference-time privacy: two pasts that differ as much as they may, the randomiser that forecasting uses,
// and the best test of one against the other.
//
// Error rate: shares are bracketed by Clopper–Pearson at 2.5e-7 a side; a test makes four of them, so it errs with
// probability below 1e-6. Keys and thresholds are fixed before the draws.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "sampling/private_context.h"
#include "support/binomial_share.h"

namespace tsdp::sampling {
namespace {

using namespace privacy;

constexpr std::uint64_t trials = 400'000;
constexpr std::size_t length = 12;
constexpr std::uint64_t pasts_a_use = 64;  // noised in one go: places are independent

using Bracket = privacy::Interval;

Bracket share(std::uint64_t hits) { return test::share(hits, trials); }

/// What an attacker may look at: the release, and the past that a model would be given.
struct Seen {
  std::span<const float> values;
  std::span<const float> marks;
  std::span<const float> imputed;
};
using Guess = std::function<bool(const Seen&)>;  ///< whether the second of two pasts is more likely by more than e^ε

/// Bracket of P′(guess) − e^ε P(guess), the first past all `level` but for a missing value, the second with `change`
/// more in the first w observed places. `rounded_first`: a mistake, for comparison.
Bracket advantage(const PrivateContext& mechanism, double change, double epsilon, std::uint64_t seed,
                  const Guess& guess, double level = 0.0, bool rounded_first = false) {
  std::uint64_t hits[2] = {0, 0};
  for (const int second : {0, 1}) {
    const auto key = SecretKey::from_seed(2 * seed + static_cast<std::uint64_t>(second));
    std::vector<float> observed(length, 1.0F);
    observed[2] = 0.0F;
    std::vector<double> start(length, level);
    std::int64_t changed = 0;
    for (std::size_t j = 0; second == 1 && j < length && changed < mechanism.parameters().w; ++j)
      if (observed[j] != 0.0F) {
        start[j] += change;
        ++changed;
      }
    if (rounded_first)
      for (auto& value : start) value = static_cast<double>(static_cast<float>(value));
    for (std::uint64_t use = 0; use < trials / pasts_a_use; ++use) {
      std::vector<double> exact;
      std::vector<float> marks;
      for (std::uint64_t i = 0; i < pasts_a_use; ++i) {
        exact.insert(exact.end(), start.begin(), start.end());
        marks.insert(marks.end(), observed.begin(), observed.end());
      }
      RandomStream coins(key, context_coins_purpose, use);
      std::vector<float> values(exact.size());
      mechanism.release(coins, RandomStream(key, context_noise_purpose, use), exact, values, marks);
      for (std::uint64_t i = 0; i < pasts_a_use; ++i) {
        const std::span seen_values(values.data() + i * length, length);
        const std::span seen_marks(marks.data() + i * length, length);
        std::vector<float> imputed(seen_values.begin(), seen_values.end());
        std::vector<float> filled(seen_marks.begin(), seen_marks.end());
        impute(imputed, filled, observed);
        hits[second] += guess({seen_values, seen_marks, imputed}) ? 1 : 0;
      }
    }
  }
  const auto p = share(hits[0]);
  const auto p2 = share(hits[1]);
  return {p2.lower - std::exp(epsilon) * p.upper, p2.upper - std::exp(epsilon) * p.lower};
}

/// The likelihood-ratio test on the release: kept changed places are N(v, s²) against N(0, s²).
Guess best_guess(const PrivateContext& mechanism, double epsilon) {
  const double v = mechanism.parameters().v;
  const double s = mechanism.noise();
  const auto w = mechanism.parameters().w;
  return [=](const Seen& seen) {
    double ratio = 0.0;
    std::int64_t counted = 0;
    for (std::size_t j = 0; counted < w; ++j) {
      if (j == 2) continue;  // missing
      ++counted;
      if (seen.marks[j] != 0.0F) ratio += v * (static_cast<double>(seen.values[j]) - 0.5 * v) / (s * s);
    }
    return ratio > epsilon;
  };
}

void expect_attained(const PrivateContext::Parameters& p, std::uint64_t seed) {
  const PrivateContext mechanism(p);
  const auto won = advantage(mechanism, p.v, p.epsilon, seed, best_guess(mechanism, p.epsilon));
  EXPECT_LE(won.lower, p.delta);  // not broken
  EXPECT_GE(won.upper, 0.97 * p.delta);  // and nothing given away
  EXPECT_GE(won.lower, 0.85 * p.delta);
}

TEST(PrivateContextAttack, OneChangedValueIsHiddenAsClaimedAndNotBetter) {
  expect_attained({0.5, 0.1, 2.0, 1, 1.0}, 1);
  expect_attained({0.5, 0.1, 2.0, 1, 0.6}, 2);
}

TEST(PrivateContextAttack, SeveralChangedValuesAreHiddenAsClaimedAndNotBetter) {
  expect_attained({0.5, 0.1, 2.0, 3, 0.6}, 3);
}

TEST(PrivateContextAttack, SeesPlantedErrors) {
  const PrivateContext::Parameters p{0.5, 0.1, 2.0, 1, 0.6};
  // Noise for a seventh more of δ; values that change by a fifth more than v; kept more often than is accounted for.
  const PrivateContext less({p.epsilon, 1.15 * p.delta, p.v, p.w, p.keep});
  EXPECT_GT(advantage(less, 2.0, p.epsilon, 4, best_guess(less, p.epsilon)).lower, p.delta);
  const PrivateContext right(p);
  EXPECT_GT(advantage(right, 2.4, p.epsilon, 5, best_guess(right, p.epsilon)).lower, p.delta);
}

// Values far larger than v, on either side of where floats change and of where values are cut: what is seen is a float
// above or below a bound. With rounding before the noise, that bound would tell the two pasts apart.
TEST(PrivateContextAttack, LargeValuesAreHiddenAsSmallOnes) {
  const PrivateContext::Parameters p{0.5, 0.01, 2.0, 1, 1.0};
  const PrivateContext mechanism(p);
  const auto above = [](double bound) {
    return [=](const Seen& seen) { return static_cast<double>(seen.values[0]) > bound; };
  };
  const auto at_1e9 = advantage(mechanism, 2.0, p.epsilon, 7, above(1000000032.0), 1000000031.0);
  EXPECT_LE(at_1e9.lower, p.delta);
  EXPECT_GT(advantage(mechanism, 2.0, p.epsilon, 8, above(1000000032.0), 1000000031.0, true).lower, 0.5);
  // 2³² v = 2³³, where floats lie 512 apart below and 1024 above: the second past is cut.
  for (const double level : {0x1p33 - 257.0, 0x1p33 - 1.0, 0x1p33 + 511.0}) {
    SCOPED_TRACE(level);
    const auto won = advantage(mechanism, 2.0, p.epsilon, 9, above(level), level);
    EXPECT_LE(won.lower, p.delta);
  }
}

// The same where the change is large enough for floats to show the noise: the best test wins what it may, and not more.
TEST(PrivateContextAttack, LargeValuesAreHiddenAsClaimedAndNotBetter) {
  const PrivateContext::Parameters p{0.5, 0.1, 2.0e4, 1, 1.0};
  const PrivateContext mechanism(p);
  constexpr double level = 1000000031.0;
  const double s = mechanism.noise();
  const auto won = advantage(
      mechanism, p.v, p.epsilon, 10,
      [&](const Seen& seen) {
        const double x = static_cast<double>(seen.values[0]) - level;
        return p.v * (x - 0.5 * p.v) / (s * s) > p.epsilon;
      },
      level);
  EXPECT_LE(won.lower, p.delta);
  EXPECT_GE(won.upper, 0.97 * p.delta);
}

// The imputed past is a function of the release: a test on it alone wins no more.
TEST(PrivateContextAttack, ImputedValuesGiveNothingAway) {
  const PrivateContext::Parameters p{0.5, 0.1, 2.0, 3, 0.6};
  const PrivateContext mechanism(p);
  const double s = mechanism.noise();
  const auto won = advantage(mechanism, 2.0, p.epsilon, 6, [&](const Seen& seen) {
    double sum = 0.0;
    for (const std::size_t j : {0U, 1U, 3U}) sum += static_cast<double>(seen.imputed[j]);
    return 2.0 * (sum - 3.0) / (s * s) > p.epsilon;
  });
  EXPECT_LE(won.lower, p.delta);
  EXPECT_GT(won.lower, 0.3 * p.delta);  // it does see something
}

}  // namespace
}  // namespace tsdp::sampling
