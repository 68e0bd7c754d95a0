// Batches of at most B series.
#include "privacy/whole_series/bounded_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "privacy/theorems/series_law.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "tsdp/base/error.h"

namespace tsdp::privacy {
namespace {

/// P(X > B) by its terms.
long double exact_tail(std::int64_t n, long double p, std::int64_t largest) {
  long double sum = 0.0L;
  for (auto k = largest + 1; k <= n; ++k) {
    const auto heads = static_cast<long double>(k);
    const auto all = static_cast<long double>(n);
    sum += std::exp(std::lgamma(all + 1.0L) - std::lgamma(heads + 1.0L) - std::lgamma(all - heads + 1.0L) +
                    heads * std::log(p) + (p < 1.0L ? (all - heads) * std::log1p(-p) : 0.0L));
  }
  return sum;
}

TEST(BoundedBatches, TheTailIsBoundedFromAbove) {
  for (const std::int64_t n : {1, 2, 7, 60, 400})
    for (const double p : {1e-3, 0.1, 0.5, 0.9})
      for (std::int64_t largest = 0; largest <= n; largest += 1 + n / 23) {
        const double bound = chance_of_excess(n, p, largest);
        const auto exact = exact_tail(n, p, largest);
        EXPECT_GE(bound, static_cast<double>(exact) * (1.0 - 1e-12)) << n << ", " << p << ", " << largest;
        EXPECT_LE(bound, 1.0);
        // Chernoff's bound is off by the root of the deviation or so.
        if (exact > 1e-290L && bound < 1.0) {
          EXPECT_LE(bound, 10.0 * std::sqrt(static_cast<double>(n)) * static_cast<double>(exact)) << n << ", " << p;
        }
      }
  EXPECT_EQ(chance_of_excess(10, 1.0, 9), 1.0);
  EXPECT_EQ(chance_of_excess(10, 0.5, 10), 0.0);
  EXPECT_EQ(chance_of_excess(10, 1.0, 10), 0.0);
}

/// A step of Poisson batches of which the first `largest` of `series` stay, with one series' sum x among others that
/// give −1 each, and a ghost in its place that takes part in the draw: the mixture of N(x kept − others kept, σ²).
/// `place`: of the series in question. Gives δ(ε) in the worse direction by the trapezoid rule.
double exact_delta(std::int64_t series, std::int64_t place, double rate, std::int64_t largest, double sigma, double x,
                   bool ghost_is_drawn, double epsilon) {
  struct Part {
    double weight, mean;
  };
  std::vector<Part> with, without;
  for (std::uint64_t draw = 0; draw < (std::uint64_t{1} << series); ++draw) {
    const auto heads = std::popcount(draw);
    const double weight =
        std::pow(rate, heads) * std::pow(1.0 - rate, static_cast<double>(series) - static_cast<double>(heads));
    for (const bool there : {true, false}) {
      std::int64_t kept = 0;
      double sum = 0.0;
      for (std::int64_t s = 0; s < series; ++s) {
        const bool own = s == place;
        if ((draw >> s) % 2 == 0 || (own && !there && !ghost_is_drawn) || kept == largest) continue;
        ++kept;
        sum += own ? (there ? x : 0.0) : -1.0;
      }
      (there ? with : without).push_back({weight, sum});
    }
  }
  const auto density = [&](const std::vector<Part>& parts, double at) {
    double out = 0.0;
    for (const auto& part : parts) out += part.weight * std::exp(-0.5 * std::pow((at - part.mean) / sigma, 2.0));
    return out / (sigma * std::sqrt(2.0 * 3.14159265358979323846));
  };
  constexpr int points = 8000;
  const double low = -static_cast<double>(series) - 9.0 * sigma;
  const double step = (static_cast<double>(series) + 2.0 + 18.0 * sigma) / points;
  double remove = 0.0, add = 0.0;
  for (int i = 0; i < points; ++i) {
    const double at = low + (i + 0.5) * step;
    const double p = density(with, at), q = density(without, at);
    remove += std::max(0.0, p - std::exp(epsilon) * q) * step;
    add += std::max(0.0, q - std::exp(epsilon) * p) * step;
  }
  return std::max(remove, add);
}

SeriesLaw coins(double rate, std::int64_t series, std::int64_t largest) {
  SeriesLaw law{TopLevel::poisson, 4};
  law.rate = rate;
  law.bounded = {series, largest};
  return law;
}

TEST(BoundedBatches, ByBruteForceOverAllDraws) {
  bool was_needed = false;
  for (const std::int64_t series : {2, 4, 6})
    for (const double rate : {0.125, 0.5})
      for (const double sigma : {0.4, 1.0})
        for (std::int64_t largest = 1; largest <= series; ++largest) {
          const auto theorem = series_theorem(coins(rate, series, largest), sigma);
          const auto curve = theorem.curve();
          auto uncut = coins(rate, series, largest);
          uncut.bounded.reset();
          const auto without = series_theorem(uncut, sigma).curve();
          for (const double epsilon : {0.0, 0.5, 2.0, 6.0}) {
            const auto delta = curve->delta(epsilon, 1);
            for (const std::int64_t place : {std::int64_t{0}, series - 1})
              for (const double x : {1.0, -1.0})
                for (const bool ghost : {true, false}) {
                  const double exact = exact_delta(series, place, rate, largest, sigma, x, ghost, epsilon);
                  EXPECT_LE(exact, delta.upper + 1e-9) << series << ", " << rate << ", " << sigma << ", " << largest;
                  was_needed = was_needed || exact > without->delta(epsilon, 1).upper + 1e-3;
                }
          }
        }
  EXPECT_TRUE(was_needed);  // cuts do cost something
}

TEST(BoundedBatches, AddsWhatItsProofSays) {
  for (const auto sampler : {TopLevel::poisson, TopLevel::cyclic_poisson, TopLevel::balls_in_bins})
    for (const auto redraw : {Redraw::once, Redraw::every_epoch}) {
      if (redraw == Redraw::every_epoch && sampler != TopLevel::balls_in_bins) continue;
      SeriesLaw law{sampler, 10};
      law.redraw = redraw;
      if (sampler == TopLevel::cyclic_poisson) law.groups = 4;
      const auto without = series_theorem(law, 3.0);
      law.bounded = {1001, sampler == TopLevel::cyclic_poisson ? 150 : 172};
      const auto bounded = series_theorem(law, 3.0);
      EXPECT_EQ(bounded.bound, Bound::upper);
      const auto curve = bounded.curve();
      const auto of_all = without.curve();
      constexpr std::uint64_t uses = 7;
      // One in p of all series has its turn: ⌈1001/4⌉ of them, with coins of 4/10.
      const double one = sampler == TopLevel::cyclic_poisson ? chance_of_excess(251, 0.4, 150)
                                                             : chance_of_excess(1001, std::nextafter(0.1, 1.0), 172);
      const double batches = sampler == TopLevel::poisson          ? uses
                             : sampler == TopLevel::cyclic_poisson ? 4.0 * uses
                             : redraw == Redraw::every_epoch       ? 10.0 * uses
                                                                   : 10.0;
      EXPECT_NEAR(bounded.cut.chance(uses), batches * one, 1e-9 * batches * one);
      for (const double epsilon : {0.1, 1.0}) {
        const auto plain = of_all->delta(epsilon, uses);
        const auto more = curve->delta(epsilon, uses);
        const double cost = (1.0 + std::exp(epsilon)) * batches * one;
        // Where they cost more than a little, a smaller ε may have given the sum.
        const double sum = plain.upper + cost;
        EXPECT_LE(more.upper, sum * (1.0 + 1e-14));
        if (cost <= 0.02 * plain.upper) {
          EXPECT_GE(more.upper, sum * (1.0 - 1e-14));
        } else {
          EXPECT_GE(more.upper, plain.upper + 2.0 * batches * one);
        }
        EXPECT_LE(more.lower, std::max(0.0, plain.lower - cost * (1.0 - 1e-9)));
        EXPECT_NE(more.why.upper.find("of 1001 records"), std::string::npos);
        if (cost > 0.02 * plain.upper) continue;  // the least sum there is, so that no ε has less
        const double delta = more.upper;
        const auto back = curve->epsilon(delta, uses);
        EXPECT_GE(back.upper, epsilon * (1.0 - 5e-3));
        EXPECT_LE(back.upper, epsilon * (1.0 + 5e-3));
        EXPECT_LE(back.lower, back.upper);
        EXPECT_LE(curve->delta(back.upper, uses).upper, delta * (1.0 + 1e-2));
        EXPECT_EQ(curve->certifies(back.upper * 1.01, delta, uses), true);
        EXPECT_EQ(curve->certifies(0.9 * epsilon, delta, uses), false);
      }
      EXPECT_EQ(curve->delta(1.0, 0).upper, 0.0);
      // Rényi divergences bound nothing here.
      for (const double value : bounded.renyi(uses, std::vector<double>{2.0, 16.0})) EXPECT_TRUE(std::isinf(value));
      EXPECT_FALSE(bounded.composes_its_pair());
    }
}

TEST(BoundedBatches, TheMostUsesAreCertifiedAndNoMore) {
  // Cuts that cost little, and cuts that cost nearly all there is.
  for (const std::int64_t largest : {180, 160, 154}) {
    auto law = coins(0.1, 1000, largest);
    const auto curve = series_theorem(law, 4.0).curve();
    const auto uses = curve->max_uses(1.0, 1e-5, 100'000);
    ASSERT_GT(uses, 0U) << largest;
    EXPECT_TRUE(curve->stays_within(1.0, 1e-5, uses)) << largest;
    EXPECT_FALSE(curve->certifies(1.0, 1e-5, uses + uses / 20 + 2)) << largest;
    EXPECT_LE(curve->epsilon(1e-5, uses).upper, 1.0);
  }
  // Where cuts alone cost more than delta, no epsilon is found, and the error says what to do.
  const auto curve = series_theorem(coins(0.1, 1000, 110), 4.0).curve();
  EXPECT_EQ(curve->max_uses(1.0, 1e-5), 0U);
  try {
    static_cast<void>(curve->epsilon(1e-5, 10));
    FAIL();
  } catch (const PrivacyError& error) {
    EXPECT_NE(std::string(error.what()).find("expected a larger largest batch"), std::string::npos);
  }
}

// (1 + e^ε) η rises with ε; what is certified at one ε holds at every larger one.
TEST(BoundedBatches, DoNotCostMoreAtALargerEpsilon) {
  const auto curve = series_theorem(coins(0.1, 1000, 160), 4.0).curve();
  const double delta = 1e-4;
  const double enough = curve->epsilon(delta, 50).upper;
  ASSERT_LT(enough, 1.0);
  double before = curve->delta(enough, 50).upper;
  for (double epsilon = enough; epsilon < 20.0; epsilon *= 1.7) {
    EXPECT_TRUE(curve->certifies(epsilon, delta, 50)) << epsilon;
    const double now = curve->delta(epsilon, 50).upper;
    EXPECT_LE(now, before * (1.0 + 1e-2)) << epsilon;
    before = std::min(before, now);
  }
  EXPECT_GT(before, 0.0);
}

TEST(BoundedBatches, AutomaticSizesCostAHundredth) {
  for (const double share : {1e-3, 0.05, 0.5}) {
    const auto largest = least_largest_batch(20000, share, 1000.0, 1.0, 1e-5);
    const auto cost = [&](std::int64_t size) {
      return (1.0 + std::exp(1.0)) * 1000.0 * chance_of_excess(20000, share, size);
    };
    EXPECT_LE(cost(largest), 1e-7 * (1.0 + 1e-9));
    EXPECT_GT(cost(largest - 1), 1e-7);
    EXPECT_LT(static_cast<double>(largest), 20000.0 * share + 10.0 * std::sqrt(20000.0 * share) + 20.0);
  }
  EXPECT_EQ(least_largest_batch(5, 0.9, 1000.0, 1.0, 1e-5), 5);  // all of them may come
}

TEST(BoundedBatches, AReplacedSeriesPaysForCutsToo) {
  auto law = coins(0.1, 1000, 163);
  constexpr double delta = 1e-5;
  const double stated = series_theorem(law, 4.0).curve()->epsilon(delta, 50).upper;
  const auto bounded = substitution_of(law, 4.0, 50, stated, delta);
  EXPECT_EQ(bounded.delta, delta);
  const double left = delta - (1.0 + std::exp(bounded.epsilon)) * 50.0 * chance_of_excess(1000, 0.1, 163);
  ASSERT_GT(left, 0.0);
  ASSERT_LT(left, 0.95 * delta);  // they cost something
  law.bounded.reset();
  const auto without = substitution_of(law, 4.0, 50, stated, left);
  EXPECT_GE(bounded.epsilon, without.epsilon * (1.0 - 1e-6));
  EXPECT_LE(bounded.epsilon, without.epsilon * (1.0 + 5e-3));
  // Where cuts cost more than delta, what the series could do at most in its steps: cuts leave the same places.
  law.bounded = {1000, 130};
  const auto moved = substitution_of(law, 4.0, 50, stated, delta);
  EXPECT_EQ(moved.delta, delta);
  EXPECT_EQ(moved.epsilon, GaussianCurve(4.0, 2.0).epsilon(delta, 50).upper);
}

TEST(BoundedBatches, AreRefusedWhereBatchesHaveOneSizeAndWithSampledNoise) {
  for (const auto sampler : {TopLevel::deterministic, TopLevel::shuffled, TopLevel::without_replacement}) {
    SeriesLaw law{sampler, 10};
    law.bounded = {100, 20};
    EXPECT_THROW(static_cast<void>(series_theorem(law, 1.0)), UsageError);
  }
  SeriesLaw law{TopLevel::balls_in_bins, 10};
  law.bounded = {100, 20};
  const auto strategy = std::make_shared<const Strategy>(StrategyKind::bsr, square_root_bands(2), 20);
  EXPECT_NO_THROW(static_cast<void>(series_theorem(law, noise_by(strategy, 4.0))));
  EXPECT_THROW(
      static_cast<void>(series_theorem(law, noise_by(strategy, 4.0, SampledClaim{1.0, 1e-5, SecretKey::from_seed(1)}))),
      PrivacyError);
}

}  // namespace
}  // namespace tsdp::privacy
