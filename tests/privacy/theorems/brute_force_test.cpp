// Theorems 4.2 and 4.4 against tiny mechanisms, every assignment of gradients tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <set>
#include <utility>
#include <vector>

#include "privacy/theorems/structured_pairs.h"
#include "support/tiny_mechanisms.h"
#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {
namespace {

using test::hockey_stick;
using test::Law;

/// Gradient of one window drawn uniformly from a series with these gradients.
Law window_law(const std::vector<int>& gradients) {
  Law out(3, 0.0);
  for (const int g : gradients) out[static_cast<std::size_t>(g + 1)] += 1.0 / static_cast<double>(gradients.size());
  return out;
}

/// `chosen` of the series, uniformly without replacement, one window from each, summed.
Law step_law(const std::vector<std::vector<int>>& series, int chosen) {
  std::vector<Law> laws;
  for (const auto& gradients : series) laws.push_back(window_law(gradients));
  return test::step_law(laws, chosen);
}

struct Tiny {
  int series;
  int windows;
  int touched;  ///< windows of the first series whose gradients may differ between neighbours
  int chosen;   ///< series of a batch
};

/// Every pair of output laws that two neighbours can have with gradients in {−1, 0, 1}, each once.
std::set<std::pair<Law, Law>> all_pairs(const Tiny& tiny) {
  const int kept = tiny.series * tiny.windows;
  const int digits = kept + tiny.touched;
  std::uint64_t count = 1;
  for (int i = 0; i < digits; ++i) count *= 3;
  std::set<std::pair<Law, Law>> out;
  std::set<std::vector<std::vector<int>>> seen;
  for (std::uint64_t code = 0; code < count; ++code) {
    std::vector<int> g;
    for (std::uint64_t rest = code; static_cast<int>(g.size()) < digits; rest /= 3)
      g.push_back(static_cast<int>(rest % 3) - 1);
    std::vector<std::vector<int>> first;
    for (int s = 0; s < tiny.series; ++s)
      first.emplace_back(g.begin() + s * tiny.windows, g.begin() + (s + 1) * tiny.windows);
    auto second = first;
    std::copy(g.begin() + kept, g.end(), second[0].begin());
    // The law only sees how often each gradient occurs: the same counts need no second look.
    auto signature = first;
    signature.push_back(second[0]);
    for (auto& s : signature) std::sort(s.begin(), s.end());
    std::sort(signature.begin() + 1, signature.begin() + tiny.series);
    if (seen.insert(signature).second) out.emplace(step_law(first, tiny.chosen), step_law(second, tiny.chosen));
  }
  return out;
}

/// The largest divergence over all neighbours never exceeds the profile of the pair, and attains it.
void expect_tight(const Tiny& tiny, const privacy::DominatingPair& pair) {
  const auto pairs = all_pairs(tiny);
  for (const double alpha : {0.4, 0.8, 0.97, 1.0, 1.03, 1.3, 2.5}) {
    double largest = 0.0;
    for (const auto& [a, b] : pairs) largest = std::max(largest, hockey_stick(a, b, alpha, pair.sigma()));
    const double bound = pair.symmetrised_profile(std::log(alpha));
    EXPECT_LE(largest, bound + 1e-9) << "N " << tiny.series << " T " << tiny.windows << " m " << tiny.touched
                                     << " sample " << tiny.chosen << " alpha " << alpha << " of " << pairs.size();
    EXPECT_GE(largest, bound - 1e-6) << "N " << tiny.series << " T " << tiny.windows << " m " << tiny.touched
                                     << " sample " << tiny.chosen << " alpha " << alpha << " of " << pairs.size();
  }
}

/// A scheme with `windows` windows a series of which one changed value touches 2, w of them w + 1: L_C = L_F = 1.
AppliedTheorem mechanism_for(const Tiny& tiny, TopLevel top_level, double sigma) {
  SubsamplingScheme::Parameters p;
  p.lengths =
      privacy::SeriesLengths::equal(static_cast<std::size_t>(tiny.series), tiny.windows);  // T = L − L_F + 1 = L
  p.batch_size = tiny.chosen;
  p.top_level = top_level;
  const PrivacyUnit unit{Relation::event, tiny.touched - 1, std::nullopt};
  EXPECT_EQ(touched_windows(tiny.windows, 1, 1, unit), tiny.touched);
  return apply_theorem(SubsamplingScheme(p), unit, sigma);
}

TEST(BruteForce, Theorem44IsExactForSamplesWithoutReplacement) {
  for (const Tiny tiny : {Tiny{2, 2, 2, 1}, Tiny{2, 3, 2, 1}, Tiny{2, 4, 2, 1}, Tiny{2, 4, 3, 1}, Tiny{2, 3, 2, 2},
                          Tiny{3, 2, 2, 1}, Tiny{3, 2, 2, 2}}) {
    const auto mechanism = mechanism_for(tiny, TopLevel::without_replacement, 1.0);
    EXPECT_EQ(mechanism.theorem, "4.4");
    EXPECT_EQ(mechanism.unit, CompositionUnit::step);
    expect_tight(tiny, mechanism.pair);
  }
}

TEST(BruteForce, Theorem44HoldsAtOtherNoise) {
  for (const double sigma : {0.5, 2.0})
    expect_tight({2, 3, 2, 1}, mechanism_for({2, 3, 2, 1}, TopLevel::without_replacement, sigma).pair);
}

TEST(BruteForce, Theorem44IsExactForOneTouchedWindow) {
  // m = 1 (a model without context): rho r = 1/2 · 1/3 and 1 · 1/4.
  expect_tight({2, 3, 1, 1}, privacy::one_window_pair(1.0 / 6.0, 1.0));
  expect_tight({2, 4, 1, 2}, privacy::one_window_pair(0.25, 1.0));
}

TEST(BruteForce, Theorem42IsExactForTheBatchThatHoldsTheChangedSeries) {
  // In an epoch of deterministic iteration one batch holds the changed series, and all its series are used: rho = 1.
  for (const Tiny tiny : {Tiny{1, 3, 2, 1}, Tiny{1, 4, 2, 1}, Tiny{1, 4, 3, 1}, Tiny{2, 3, 2, 2}, Tiny{3, 2, 2, 3}}) {
    const auto mechanism = mechanism_for(tiny, TopLevel::deterministic, 1.0);
    EXPECT_EQ(mechanism.theorem, "4.2");
    EXPECT_EQ(mechanism.unit, CompositionUnit::epoch);
    expect_tight(tiny, mechanism.pair);
  }
}

TEST(BruteForce, ASampleOfHalfTheSeriesIsNotCoveredByLess) {
  // A bound that forgot the factor 2 of a substitution (means 0 and 1) would be exceeded: it is not loose by chance.
  const auto pairs = all_pairs({2, 3, 2, 1});
  double largest = 0.0;
  for (const auto& [a, b] : pairs) largest = std::max(largest, hockey_stick(a, b, 1.3, 1.0));
  const privacy::DominatingPair half({{0.0, 2.0 / 3.0}, {1.0, 1.0 / 3.0}}, 1.0);
  EXPECT_GT(largest, half.symmetrised_profile(std::log(1.3)) + 0.01);
}

/// Law of the releases of a whole epoch, of one or two steps: weight and mean of every component.
struct Component2 {
  double first, second, weight;
};
using EpochLaw = std::vector<Component2>;

/// H_α between two such laws after N(0, σ²) in each step, by a grid.
double epoch_hockey_stick(const EpochLaw& a, const EpochLaw& b, double alpha, double sigma) {
  const double reach = 2.0 + 7.0 * sigma;
  const double step = 0.06 * sigma;
  const auto density = [&](const EpochLaw& law, double x, double y) {
    double sum = 0.0;
    for (const auto& c : law) {
      const double u = (x - c.first) / sigma;
      const double v = (y - c.second) / sigma;
      sum += c.weight * std::exp(-0.5 * (u * u + v * v));
    }
    return sum;
  };
  double sum = 0.0;
  for (double x = -reach; x <= reach; x += step)
    for (double y = -reach; y <= reach; y += step) sum += std::max(0.0, density(a, x, y) - alpha * density(b, x, y));
  return sum * step * step / (2.0 * std::numbers::pi * sigma * sigma);
}

/// docs/proofs/batches.md, Theorem tsdp.3: N = 2 series of two windows, each drawn by a coin; all gradients of norm at
/// most 1, 0 included.
TEST(BruteForce, PoissonAtTheTopLevelIsWithinItsBound) {
  const double sigma = 1.0;
  for (const std::int64_t lambda : {1, 2})
    for (const auto bottom : {BottomLevel::with_replacement, BottomLevel::poisson}) {
      SubsamplingScheme::Parameters p;
      p.lengths = privacy::SeriesLengths::equal(2, 2);  // L_C = L_F = 1: both windows are touched
      p.batch_size = lambda;                            // ρ = 1/2
      p.subsequences_per_sequence = lambda;
      p.top_level = TopLevel::poisson;
      p.bottom_level = bottom;
      const SubsamplingScheme scheme(p);
      const auto theorem = apply_theorem(scheme, {}, sigma);
      EXPECT_EQ(theorem.theorem, "tsdp.3");
      EXPECT_EQ(theorem.unit, CompositionUnit::step);
      const double rho = scheme.drawn_share();
      EXPECT_NEAR(rho, 0.5, 1e-15);
      // Law of the sum of one drawn series' windows with these gradients.
      const auto of_series = [&](int a, int b) {
        std::map<int, double> out;
        const double rate = lambda == 1 ? 0.5 : 1.0;
        if (bottom == BottomLevel::poisson)
          for (int coins = 0; coins < 4; ++coins)
            out[(coins & 1) * a + (coins >> 1) * b] +=
                ((coins & 1) != 0 ? rate : 1.0 - rate) * ((coins >> 1) != 0 ? rate : 1.0 - rate);
        else if (lambda == 1) out[a] += 0.5, out[b] += 0.5;
        else out[2 * a] += 0.25, out[a + b] += 0.5, out[2 * b] += 0.25;
        return out;
      };
      const auto step = [&](int a, int b, int c, int d) {
        const auto tossed = [&](const std::map<int, double>& drawn) {
          std::map<int, double> out{{0, 1.0 - rho}};
          for (const auto& [sum, weight] : drawn) out[sum] += rho * weight;
          return out;
        };
        std::map<int, double> sums;
        for (const auto& [own, weight] : tossed(of_series(a, b)))
          for (const auto& [other, more] : tossed(of_series(c, d))) sums[own + other] += weight * more;
        return sums;
      };
      const auto divergence = [&](const std::map<int, double>& from, const std::map<int, double>& to, double alpha) {
        const auto density = [&](const std::map<int, double>& law, double x) {
          double sum = 0.0;
          for (const auto& [mean, weight] : law)
            sum += weight * std::exp(-0.5 * (x - mean) * (x - mean) / (sigma * sigma));
          return sum / (sigma * std::sqrt(2.0 * std::numbers::pi));
        };
        double sum = 0.0;
        for (double x = -13.0; x <= 13.0; x += 0.02)
          sum += 0.02 * std::max(0.0, density(from, x) - alpha * density(to, x));
        return sum;
      };
      double nearest = 1.0;
      for (int code = 0; code < 729; ++code) {
        const auto gradient = [&](int i) { return code / static_cast<int>(std::pow(3, i) + 0.5) % 3 - 1; };
        const auto with = step(gradient(0), gradient(1), gradient(4), gradient(5));
        const auto without = step(gradient(2), gradient(3), gradient(4), gradient(5));
        for (const double alpha : {0.6, 1.0, 1.7}) {
          const double bound = theorem.pair.symmetrised_profile(std::log(alpha));
          const double found = divergence(with, without, alpha);
          EXPECT_LE(found, bound + 1e-7) << code << ", alpha " << alpha;
          nearest = std::min(nearest, (bound - found) / bound);
        }
      }
      EXPECT_LT(nearest, 0.45);  // not so loose that an error by a factor of two could hide
    }
}

/// docs/proofs/batches.md, Theorem tsdp.4: N = 2 series of two windows with one each a batch, and N = 3 with two a
/// batch, one left out.
TEST(BruteForce, ShuffledEpochsAreWithinDeterministicOnes) {
  const double sigma = 1.0;
  const auto theorem_for = [&](std::int64_t series, std::int64_t batch) {
    SubsamplingScheme::Parameters p;
    p.lengths = privacy::SeriesLengths::equal(series, 2);
    p.batch_size = batch;
    p.top_level = TopLevel::shuffled;
    return apply_theorem(SubsamplingScheme(p), {}, sigma);  // L_C = L_F = 1: both windows are touched
  };
  const auto two = theorem_for(2, 1);
  EXPECT_EQ(two.theorem, "tsdp.4");
  EXPECT_EQ(two.unit, CompositionUnit::epoch);
  EXPECT_EQ(two.steps_per_epoch, 2);
  double nearest = 1.0;  // how near published orders come to the bound
  double farthest = 0.0; // and secret ones
  for (int code = 0; code < 64; ++code) {
    const auto gradient = [&](int i) { return (code >> i & 1) != 0 ? 1 : -1; };
    const std::vector<int> changed = {gradient(0), gradient(1)};
    const std::vector<int> after = {gradient(2), gradient(3)};
    const std::vector<int> other = {gradient(4), gradient(5)};
    const auto epoch = [&](const std::vector<int>& own) {
      EpochLaw out;
      for (const int a : own)
        for (const int b : other) {
          out.push_back({static_cast<double>(a), static_cast<double>(b), 1.0 / 8.0});
          out.push_back({static_cast<double>(b), static_cast<double>(a), 1.0 / 8.0});
        }
      return out;
    };
    for (const double alpha : {0.7, 1.0, 1.6}) {
      const double bound = two.pair.symmetrised_profile(std::log(alpha));
      // Published: both orders have the one-step divergence of the changed series' batch.
      const double published = hockey_stick(window_law(changed), window_law(after), alpha, sigma);
      EXPECT_LE(published, bound + 1e-9);
      nearest = std::min(nearest, std::abs(bound - published));
      const double secret = epoch_hockey_stick(epoch(changed), epoch(after), alpha, sigma);
      EXPECT_LE(secret, published + 2e-4) << "code " << code << ", alpha " << alpha;
      if (published > 0.1) farthest = std::max(farthest, published - secret);
    }
  }
  EXPECT_LT(nearest, 1e-9);  // the bound is that of published orders
  EXPECT_GT(farthest, 1e-2); // and secret ones are better
  // One of three series is left out of the epoch's single step: a sample without replacement, far within.
  const auto three = theorem_for(3, 2);
  EXPECT_EQ(three.steps_per_epoch, 1);
  for (const auto& [a, b] : all_pairs({3, 2, 2, 2}))
    for (const double alpha : {0.7, 1.0, 1.6})
      EXPECT_LE(hockey_stick(a, b, alpha, sigma), three.pair.symmetrised_profile(std::log(alpha)) + 1e-9);
}

}  // namespace
}  // namespace tsdp::privacy
