// The bounds for noise on the data (docs/proofs/augmentation.md) against tiny mechanisms whose gradients look at the
// noised steps themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "privacy/theorems/noised_share.h"
#include "privacy/theorems/structured_pairs.h"
#include "support/tiny_mechanisms.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {
namespace {

using test::Law;

struct Tiny {
  std::int64_t length, context, forecast, w;
  double context_noise, forecast_noise;
  int series, chosen;
  Relation relation = Relation::event;
};

/// What the gradient of one window does: a step function, with values −1, 0, 1, of a linear form of the noised steps.
struct Gradient {
  std::vector<double> weights;  ///< of the steps of context and forecast
  double first, second;         ///< where it steps, in units of the linear form
  int below, between, above;
};

double normal_below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// Law of the gradient of the window that begins its forecast at step t, where the steps of `changed` are moved by
/// `moved` (the other values are 0: gradients of different windows are free anyway).
Law gradient_law(const Tiny& tiny, std::int64_t t, unsigned changed, double moved, const Gradient& g) {
  double mean = 0.0;
  double variance = 0.0;
  for (std::int64_t i = 0; i < tiny.context + tiny.forecast; ++i) {
    const auto step = t - tiny.context + i;
    if (step < 1) continue;  // padding: neither data nor noise
    const double weight = g.weights[static_cast<std::size_t>(i)];
    if ((changed >> (step - 1) & 1U) != 0) mean += weight * moved;
    const double noise = i < tiny.context ? tiny.context_noise : tiny.forecast_noise;
    variance += weight * weight * noise * noise;
  }
  const auto below = [&](double threshold) {
    return variance > 0.0 ? normal_below((threshold - mean) / std::sqrt(variance)) : mean < threshold ? 1.0 : 0.0;
  };
  Law law(3, 0.0);
  law[static_cast<std::size_t>(g.below + 1)] += below(g.first);
  law[static_cast<std::size_t>(g.between + 1)] += below(g.second) - below(g.first);
  law[static_cast<std::size_t>(g.above + 1)] += 1.0 - below(g.second);
  return law;
}

/// The most telling gradient of a window: which of the neighbours is likelier.
Gradient likelier(const Tiny& tiny, std::int64_t t, unsigned changed) {
  Gradient g{std::vector<double>(static_cast<std::size_t>(tiny.context + tiny.forecast), 0.0), 0.0, 0.0, -1, -1, 1};
  bool bare = false;  // a changed step without noise tells everything
  for (const bool noisy : {false, true})
    for (std::int64_t i = 0; i < tiny.context + tiny.forecast; ++i) {
      const auto step = t - tiny.context + i;
      if (step < 1 || (changed >> (step - 1) & 1U) == 0) continue;
      const double noise = i < tiny.context ? tiny.context_noise : tiny.forecast_noise;
      if (noisy != (noise > 0.0) || (noisy && bare)) continue;
      bare = bare || !noisy;
      g.weights[static_cast<std::size_t>(i)] = noisy ? 1.0 / (noise * noise) : 1.0;
    }
  double distance = 0.0;
  for (const double weight : g.weights) distance += weight;
  g.first = g.second = distance > 0.0 ? 0.5 * distance : 1.0;
  return g;
}

AppliedTheorem mechanism_for(const Tiny& tiny) {
  SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(static_cast<std::size_t>(tiny.series), tiny.length);
  p.context_length = tiny.context;
  p.forecast_length = tiny.forecast;
  p.batch_size = tiny.chosen;
  p.context_noise = tiny.context_noise;
  p.forecast_noise = tiny.forecast_noise;
  const bool all = tiny.chosen == tiny.series;  // the batch of deterministic iteration
  if (all) p.top_level = TopLevel::deterministic;
  return apply_theorem(SubsamplingScheme(p), {tiny.relation, tiny.w, 1.0}, 1.0, all ? "tsdp.2" : "tsdp.1");
}

/// The largest of H_α(M_x ‖ M_x′) less the profile that is claimed, over α, placements and gradients, and the largest
/// H_1 itself.
struct Findings {
  double excess = -1.0;
  double total_variation = 0.0;
};

Findings search(const Tiny& tiny, const privacy::DominatingPair& claimed, int trials) {
  std::mt19937 random(7);
  const auto choose = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  const auto uniform = [&](double from, double to) { return std::uniform_real_distribution(from, to)(random); };
  const auto windows = tiny.length - tiny.forecast + 1;
  Findings out;
  for (unsigned changed = 1; changed < (1U << tiny.length); ++changed) {
    const bool consecutive =
        (changed >> std::countr_zero(changed) & ((changed >> std::countr_zero(changed)) + 1U)) == 0;
    if (std::popcount(changed) > tiny.w || (tiny.relation == Relation::event && !consecutive)) continue;
    for (int trial = 0; trial < trials; ++trial) {
      Law here(3, 0.0);
      Law there(3, 0.0);
      for (std::int64_t t = 1; t <= windows; ++t) {
        auto g = likelier(tiny, t, changed);
        if (trial > 0 && choose(0, 2) > 0) {  // anything
          if (choose(0, 1) == 0)
            for (auto& weight : g.weights) weight = uniform(-1.0, 1.0);
          g.first += uniform(-1.0, 1.0);
          g.second = g.first + uniform(0.0, 2.0);
          g.below = choose(-1, 1);
          g.between = choose(-1, 1);
          g.above = choose(-1, 1);
        }
        const auto a = gradient_law(tiny, t, changed, 0.0, g);
        const auto b = gradient_law(tiny, t, changed, trial > 0 && choose(0, 4) == 0 ? -uniform(0.0, 1.0) : 1.0, g);
        for (std::size_t i = 0; i < 3; ++i) {
          here[i] += a[i] / static_cast<double>(windows);
          there[i] += b[i] / static_cast<double>(windows);
        }
      }
      std::vector<Law> first(static_cast<std::size_t>(tiny.series), Law(3, 0.0));
      for (auto& law : first) law[static_cast<std::size_t>(trial == 0 ? 0 : choose(0, 2))] = 1.0;
      auto second = first;
      first[0] = here;
      second[0] = there;
      const auto p = test::step_law(first, tiny.chosen);
      const auto q = test::step_law(second, tiny.chosen);
      for (const double alpha : {0.4, 0.9, 1.0, 1.1, 2.5}) {
        const double largest = std::max(test::hockey_stick(p, q, alpha, 1.0), test::hockey_stick(q, p, alpha, 1.0));
        out.excess = std::max(out.excess, largest - claimed.symmetrised_profile(std::log(alpha)));
        if (alpha == 1.0) out.total_variation = std::max(out.total_variation, largest);
      }
    }
  }
  return out;
}

const std::vector<Tiny> event_cases = {
    {3, 1, 1, 1, 1.0, 0.5, 2, 1}, {3, 1, 1, 1, 0.0, 1.0, 2, 1}, {4, 1, 2, 2, 1.0, 0.7, 2, 1},
    {4, 2, 1, 3, 0.5, 2.0, 3, 1}, {2, 2, 1, 1, 1.0, 0.0, 2, 1},  // T = 2 < L_C + L_F
    {3, 2, 2, 2, 0.8, 0.8, 2, 2}, {4, 1, 1, 1, 1.5, 1.0, 1, 1}, {3, 1, 2, 1, 0.0, 3.0, 3, 3}};

TEST(AugmentationBound, HoldsAndIsExactAtTotalVariation) {
  for (const auto& tiny : event_cases) {
    const auto mechanism = mechanism_for(tiny);
    const auto found = search(tiny, mechanism.pair, 60);
    EXPECT_LE(found.excess, 1e-9) << mechanism.theorem << " of L " << tiny.length << " w " << tiny.w;
    // At α = 1 the most telling gradients attain it, so a tenth less is no bound.
    EXPECT_NEAR(found.total_variation, mechanism.pair.symmetrised_profile(0.0), 1e-9);
    const auto less = privacy::one_window_pair(0.9 * mechanism.pair.components().back().weight, 1.0);
    EXPECT_GT(found.total_variation, less.symmetrised_profile(0.0) + 1e-4);
  }
}

TEST(AugmentationBound, HoldsForChangesAnywhere) {
  for (const auto& tiny :
       {Tiny{4, 1, 1, 2, 1.0, 0.5, 2, 1, Relation::user}, Tiny{5, 1, 1, 2, 2.0, 1.0, 2, 1, Relation::user},
        Tiny{4, 2, 2, 3, 0.0, 1.0, 2, 1, Relation::user}, Tiny{4, 1, 1, 2, 1.0, 2.0, 1, 1, Relation::user}}) {
    const auto mechanism = mechanism_for(tiny);
    EXPECT_LE(search(tiny, mechanism.pair, 30).excess, 1e-9) << "L " << tiny.length << " w " << tiny.w;
  }
}

// Two changed values far from each other touch windows of their own: the bound w · (one step's) is attained.
TEST(AugmentationBound, IsAttainedByChangesThatAreApart) {
  const Tiny tiny{5, 1, 1, 2, 2.0, 1.0, 2, 1, Relation::user};
  const auto mechanism = mechanism_for(tiny);
  EXPECT_NEAR(search(tiny, mechanism.pair, 1).total_variation, mechanism.pair.symmetrised_profile(0.0), 1e-9);
}

}  // namespace
}  // namespace tsdp::privacy
