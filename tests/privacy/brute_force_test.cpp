// Theorems 4.2 and 4.4 against tiny mechanisms, every assignment of gradients tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <set>
#include <utility>
#include <vector>

#include "tsdp/privacy/dominating_pair.h"
#include "tsdp/sampling/mechanism.h"

namespace tsdp::sampling {
namespace {

/// The law of the summed gradient before noise: probability of −R … R at [value + R].
using Law = std::vector<double>;

Law convolve(const Law& a, const Law& b) {
  Law out(a.size() + b.size() - 1, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) out[i + j] += a[i] * b[j];
  return out;
}

/// Gradient of one window drawn uniformly from a series with these gradients.
Law window_law(const std::vector<int>& gradients) {
  Law out(3, 0.0);
  for (const int g : gradients) out[static_cast<std::size_t>(g + 1)] += 1.0 / static_cast<double>(gradients.size());
  return out;
}

/// `chosen` of the series, uniformly without replacement, one window from each, summed.
Law step_law(const std::vector<std::vector<int>>& series, int chosen) {
  const int count = static_cast<int>(series.size());
  Law out(static_cast<std::size_t>(2 * chosen + 1), 0.0);
  int subsets = 0;
  for (unsigned subset = 0; subset < (1U << count); ++subset) {
    if (std::popcount(subset) != chosen) continue;
    ++subsets;
    Law sum = {1.0};
    for (int s = 0; s < count; ++s)
      if ((subset >> s & 1U) != 0) sum = convolve(sum, window_law(series[static_cast<std::size_t>(s)]));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += sum[i];
  }
  for (auto& p : out) p /= subsets;
  return out;
}

/// H_alpha between the two laws after noise N(0, sigma^2): pieces between the roots of p - alpha q, by normal tails.
double hockey_stick(const Law& a, const Law& b, double alpha, double sigma) {
  const double reach = static_cast<double>(a.size() / 2);
  const auto mean = [&](std::size_t i) { return static_cast<double>(i) - reach; };
  const auto excess = [&](double x) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double z = (x - mean(i)) / sigma;
      sum += (a[i] - alpha * b[i]) * std::exp(-0.5 * z * z);
    }
    return sum;
  };
  const auto left_mass = [&](double x) {  // integral of p − alpha q up to x
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum += (a[i] - alpha * b[i]) * 0.5 * std::erfc(-(x - mean(i)) / (sigma * std::numbers::sqrt2));
    return sum;
  };
  constexpr int places = 160;
  const double end = reach + 9.0 * sigma;
  double before = -end;
  double value_before = excess(before);
  double piece = -1e3;  // the beginning of the present piece of one sign
  double total = 0.0;
  for (int i = 1; i <= places; ++i) {
    const double x = end * (2.0 * i / places - 1.0);
    const double value = excess(x);
    if ((value > 0.0) != (value_before > 0.0)) {
      double low = before;
      double high = x;
      for (int j = 0; j < 40; ++j) {
        const double middle = 0.5 * (low + high);
        ((excess(middle) > 0.0) == (value_before > 0.0) ? low : high) = middle;
      }
      total += std::max(0.0, left_mass(low) - left_mass(piece));
      piece = low;
    }
    before = x;
    value_before = value;
  }
  return total + std::max(0.0, left_mass(1e3) - left_mass(piece));
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
Mechanism mechanism_for(const Tiny& tiny, TopLevel top_level, double sigma) {
  SubsamplingScheme::Parameters p;
  p.lengths.assign(static_cast<std::size_t>(tiny.series), tiny.windows);  // T = L − L_F + 1 = L
  p.batch_size = tiny.chosen;
  p.top_level = top_level;
  const PrivacyUnit unit{Relation::event, tiny.touched - 1, std::nullopt};
  EXPECT_EQ(touched_windows(tiny.windows, 1, 1, unit), tiny.touched);
  return mechanism_of(SubsamplingScheme(p), unit, sigma);
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
  expect_tight({2, 3, 1, 1}, privacy::DominatingPair::substitution(1.0 / 6.0, 1.0));
  expect_tight({2, 4, 1, 2}, privacy::DominatingPair::substitution(0.25, 1.0));
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

}  // namespace
}  // namespace tsdp::sampling
