#include "theorem_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "privacy/theorems/noised_share.h"
#include "privacy/theorems/structured_pairs.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

Row::Row(std::string id, Bound bound, TopLevel top, BottomLevel bottom, bool only_one_window, InputNoise input_noise,
         std::function<privacy::DominatingPair(const SubsamplingScheme&, const PrivacyUnit&, double)> make_pair,
         std::string proof)
    : one_window(only_one_window), noise(input_noise), pair(std::move(make_pair)) {
  summary.id = std::move(id);
  summary.bound = bound;
  // In an epoch that takes series in turn, in whatever order, a series is in one batch: the epoch is one use
  // (parallel composition, Props. E.2, E.3). A sample without replacement is fresh in every step.
  summary.unit =
      top == TopLevel::deterministic || top == TopLevel::shuffled ? CompositionUnit::epoch : CompositionUnit::step;
  summary.ours = !proof.empty();
  summary.only_if_named = bound == Bound::optimistic_lower || noise == InputNoise::any;
  summary.needs_every_length = noise == InputNoise::any;
  summary.proof = std::move(proof);
  summary.top_level = top;
  summary.bottom_level = bottom;
  // With λ = 1 window with replacement, a step moves by one window at most, whatever the top level. E.1, E.8 and
  // their kin are mixtures of several.
  summary.couples_steps = one_window && bottom == BottomLevel::with_replacement && bound != Bound::optimistic_lower;
  summary.covers =
      cat(top == TopLevel::without_replacement ? std::string("top level without replacement")
                                               : cat("top level ", name(top)),
          bottom == BottomLevel::poisson ? ", bottom level poisson" : ", bottom level with replacement",
          one_window ? ", 1 subsequence per sequence" : ", any number of subsequences per sequence",
          noise == InputNoise::none    ? ", no noise on data"
          : noise == InputNoise::equal ? ", equal noise on context and forecast"
          : noise == InputNoise::split ? ", noise on context and forecast, equal unless w = 1 and T >= L_C + L_F"
                                       : ", any noise on context and forecast");
}

std::vector<std::string> Row::objections(const SubsamplingScheme& scheme, const PrivacyUnit& unit) const {
  const auto& p = scheme.parameters();
  std::vector<std::string> out;
  if (p.top_level != *summary.top_level)
    out.emplace_back(p.top_level == TopLevel::without_replacement ? "top level without replacement"
                                                                  : cat("top level ", name(p.top_level)));
  if (p.bottom_level != *summary.bottom_level)
    out.emplace_back(p.bottom_level == BottomLevel::poisson ? "bottom level poisson" : "bottom level with replacement");
  if (one_window && p.subsequences_per_sequence != 1)
    out.push_back(cat(p.subsequences_per_sequence, " subsequences per sequence"));
  if (noise == InputNoise::none && (p.context_noise > 0.0 || p.forecast_noise > 0.0))
    out.emplace_back("noise on context or forecast");
  const bool unequal = p.context_noise != p.forecast_noise;
  const auto noises = cat("unequal noise on context (", p.context_noise, ") and forecast (", p.forecast_noise, ")");
  if (noise == InputNoise::equal && unequal) out.push_back(noises);
  if (noise == InputNoise::split && unequal) {
    const auto windows = p.lengths.shortest() - p.forecast_length + 1;
    if (unit.w > 1) out.push_back(cat(noises, " with w = ", unit.w));
    if (windows < p.context_length + p.forecast_length)
      out.push_back(cat(noises, " on a sequence of ", windows, " windows, fewer than context and forecast length ",
                        p.context_length + p.forecast_length, " (T < L_C + L_F)"));
  }
  return out;
}

std::string Row::refusal(const std::vector<std::string>& objections) const {
  return cat("Theorem ", summary.id, " does not cover ", join(objections, " and "), " (it covers: ", summary.covers,
             ")");
}

namespace {

PoissonReach poisson_reach_of(const SubsamplingScheme& scheme, const PrivacyUnit& unit, std::int64_t length) {
  const auto& p = scheme.parameters();
  return {touched_windows(length, p.context_length, p.forecast_length, unit),
          std::min(1.0, static_cast<double>(p.subsequences_per_sequence) /
                            static_cast<double>(length - p.forecast_length + 1))};
}

}  // namespace

PoissonReach largest_poisson_reach(const SubsamplingScheme& scheme, const PrivacyUnit& unit) {
  PoissonReach worst{1, 0.0};
  for (const auto length : scheme.parameters().lengths.distinct()) {
    const auto reach = poisson_reach_of(scheme, unit, length);
    const bool both = reach.touched >= worst.touched && reach.rate >= worst.rate;
    if (reach.touched > worst.touched || reach.rate > worst.rate) worst.of_one_series = both;
    else worst.of_one_series = worst.of_one_series || both;
    worst.touched = std::max(worst.touched, reach.touched);
    worst.rate = std::max(worst.rate, reach.rate);
  }
  return worst;
}

namespace {

/// m and rate of a single series, the one with the most expected touched windows: a lower bound must be about
/// neighbours that exist.
PoissonReach most_telling_poisson_reach(const SubsamplingScheme& scheme, const PrivacyUnit& unit) {
  PoissonReach worst{1, 0.0};
  for (const auto length : scheme.parameters().lengths.distinct()) {
    const auto reach = poisson_reach_of(scheme, unit, length);
    if (static_cast<double>(reach.touched) * reach.rate > static_cast<double>(worst.touched) * worst.rate)
      worst = reach;
  }
  return worst;
}

/// r · [φ τ(σ_F) + (1 − φ) τ(σ_C)] of the worst series, φ = L_F/(L_C + L_F), τ(s) = TVD(N(0, s), N(√w, s)), rounded up.
/// τ takes the place of r for windows that are told apart only through noise. With σ_C = σ_F it holds for every w and
/// T, being r τ(σ_F) (Thm. 4.5, App. I); otherwise for w = 1 and T ≥ L_C + L_F (Thm. G.1).
double noised_touched_share(const SubsamplingScheme& scheme, const PrivacyUnit& unit) {
  const auto& p = scheme.parameters();
  const auto shares = [&](std::int64_t of) {
    return static_cast<double>(of) / static_cast<double>(p.context_length + p.forecast_length);
  };
  const double variation =
      p.context_noise == p.forecast_noise
          ? noised_window_variation(unit.w, 0, p.context_noise, p.forecast_noise)
          : shares(p.context_length) * noised_window_variation(1, 0, p.context_noise, p.forecast_noise) +
                shares(p.forecast_length) * noised_window_variation(0, 1, p.context_noise, p.forecast_noise);
  return std::min(1.0, touched_share(scheme, unit) * variation * (1.0 + 1e-14));
}

/// `share` as a probability of a mixture: above 0, so that unlimited noise still has a pair.
double at_least_tiny(double share) { return std::max(share, 1e-100); }

}  // namespace

bool leaves_out_a_series(const SubsamplingScheme& scheme) {
  const auto& p = scheme.parameters();
  return p.top_level == TopLevel::deterministic && p.record == Record::window &&
         scheme.steps_per_epoch() * (p.batch_size / p.subsequences_per_sequence) < scheme.sequences();
}

const std::vector<Row>& table() {
  constexpr auto deterministic = TopLevel::deterministic;
  constexpr auto without_replacement = TopLevel::without_replacement;
  constexpr auto shuffled = TopLevel::shuffled;
  constexpr auto with_replacement = BottomLevel::with_replacement;
  constexpr auto poisson = BottomLevel::poisson;
  // Upper bounds first, the tighter of two that cover the same scheme before the other: the first that covers a scheme
  // is taken where no theorem is named.
  static const std::vector<Row> rows = {
      // Theorem 4.2 (E.7). One epoch of deterministic iteration, λ = 1 window with replacement. Exact for all α:
      //   P = (1 − r) N(0, σ) + r N(2, σ),  Q = N(0, σ),  symmetrised.
      {"4.2", Bound::tight, deterministic, with_replacement, true, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::one_window_pair(touched_share(scheme, unit), sigma);
       }},
      // Theorem 4.4 (F.5, F.6). One step with a fresh sample of N′ series without replacement, λ = 1 window each with
      // replacement: the changed series is drawn with ρ = N′/N, one of its touched windows with r. Exact for all α:
      //   P = (1 − ρ r) N(0, σ) + ρ r N(2, σ),  Q = N(0, σ),  symmetrised.
      {"4.4", Bound::tight, without_replacement, with_replacement, true, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::one_window_pair(scheme.drawn_share() * touched_share(scheme, unit), sigma);
       }},
      // Theorem E.8 (E.11, E.12). One epoch of deterministic iteration, Poisson windows at rate r_P = min(1, λ/T).
      // Exact for all α with series of one length, else an upper bound (largest_poisson_reach):
      //   P = Σ_{i ≤ m} Bin(i; m, r_P) N(i, σ),  Q its mirror image.
      {"E.8", Bound::tight, deterministic, poisson, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         const auto reach = largest_poisson_reach(scheme, unit);
         return privacy::poisson_upper(reach.touched, reach.rate, 1.0, sigma);
       }},
      // Theorem E.1. One epoch of deterministic iteration, λ windows with replacement. Upper bound, not tight, not even
      // at λ = 1; it grows with r (Props. E.13, E.14):
      //   P = Σ_{i ≤ λ} Bin(i; λ, r) N(2i, σ),  Q its mirror image.
      {"E.1", Bound::upper, deterministic, with_replacement, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::with_replacement_upper(scheme.parameters().subsequences_per_sequence,
                                                touched_share(scheme, unit), 1.0, sigma);
       }},
      // Theorem F.2. One step without replacement, Poisson windows. Upper bound by joint convexity (Lemma F.4):
      //   (1 − ρ) max(0, 1 − α) + ρ H_α of E.8's pair.
      {"F.2", Bound::upper, without_replacement, poisson, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         const auto reach = largest_poisson_reach(scheme, unit);
         return privacy::poisson_upper(reach.touched, reach.rate, scheme.drawn_share(), sigma);
       }},
      // Theorem F.1. One step without replacement, λ windows with replacement. Upper bound by joint convexity (Lemma
      // F.4; printed for λ = 1, proven for all λ; at λ = 1 Theorem 4.4 is exact):
      //   (1 − ρ) max(0, 1 − α) + ρ H_α of E.1's pair.
      {"F.1", Bound::upper, without_replacement, with_replacement, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::with_replacement_upper(scheme.parameters().subsequences_per_sequence,
                                                touched_share(scheme, unit), scheme.drawn_share(), sigma);
       }},
      // Theorem 4.5. As 4.4 with noise of one standard deviation on all inputs, changes of at most v. Upper bound:
      //   P = (1 − p₂) N(0, σ) + p₂ N(2, σ),  Q = N(0, σ),  symmetrised,  p₂ = ρ r τ(σ_F).
      // App. I for w > 1: τ(s) = TVD(N(0, s), N(√w, s)), since a window has at most w changed steps.
      {"4.5", Bound::upper, without_replacement, with_replacement, true, InputNoise::equal,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::one_window_pair(at_least_tiny(scheme.drawn_share() * noised_touched_share(scheme, unit)),
                                         sigma);
       }},
      // Theorem G.1. As 4.5 with separate noises on context and forecast. Upper bound with
      // p₂ = ρ r [φ τ(σ_F) + (1 − φ) τ(σ_C)]; φ, the share of the touched windows that are touched in the forecast,
      // needs w = 1 and room for all L_C + L_F of them.
      {"G.1", Bound::upper, without_replacement, with_replacement, true, InputNoise::split,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::one_window_pair(at_least_tiny(scheme.drawn_share() * noised_touched_share(scheme, unit)),
                                         sigma);
       }},
      // Theorem 4.3. As E.1. Optimistic lower bound of one epoch, equal to 4.2 at λ = 1:
      //   P = Σ_{i ≤ λ} Bin(i; λ, r) N(2i, σ),  Q = N(0, σ),  symmetrised.
      {"4.3", Bound::optimistic_lower, deterministic, with_replacement, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::with_replacement_optimistic(scheme.parameters().subsequences_per_sequence,
                                                     touched_share(scheme, unit), 1.0, sigma);
       }},
      // Theorem F.7. As F.1. Optimistic lower bound of one step, equal to 4.4 at λ = 1:
      //   P = (1 − ρ) N(0, σ) + ρ Σ Bin(i; λ, r) N(2i, σ),  Q = N(0, σ),  symmetrised.
      {"F.7", Bound::optimistic_lower, without_replacement, with_replacement, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::with_replacement_optimistic(scheme.parameters().subsequences_per_sequence,
                                                     touched_share(scheme, unit), scheme.drawn_share(), sigma);
       }},
      // Theorem F.8 as printed. As F.2. Optimistic lower bound of one step:
      //   P = (1 − ρ) N(0, σ) + ρ Σ Bin(i; m, r_P) N(i, σ),  Q = N(0, σ),  symmetrised.
      {"F.8a", Bound::optimistic_lower, without_replacement, poisson, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         const auto reach = most_telling_poisson_reach(scheme, unit);
         return privacy::poisson_optimistic_printed(reach.touched, reach.rate, scheme.drawn_share(), sigma);
       }},
      // Theorem F.8 as its proof constructs it: the same P against its mirror image. Optimistic lower bound of one
      // step.
      {"F.8b", Bound::optimistic_lower, without_replacement, poisson, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         const auto reach = most_telling_poisson_reach(scheme, unit);
         return privacy::poisson_optimistic_mirrored(reach.touched, reach.rate, scheme.drawn_share(), sigma);
       }},
      // Ours, docs/proofs/augmentation.md, Theorem 1. As G.1 for every w, both relations and every length, by
      // conditioning on the window. Upper bound with p₂ = (ρ/T) max Σ_t [2Φ(½ √(c_t/σ_C² + f_t/σ_F²)) − 1].
      {"tsdp.1", Bound::upper, without_replacement, with_replacement, true, InputNoise::any,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::one_window_pair(at_least_tiny(scheme.drawn_share() * noised_share(scheme, unit)), sigma);
       },
       "augmentation.md"},
      // Ours, docs/proofs/augmentation.md, Theorem 2. The same for one epoch of deterministic iteration: ρ = 1.
      {"tsdp.2", Bound::upper, deterministic, with_replacement, true, InputNoise::any,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::one_window_pair(at_least_tiny(noised_share(scheme, unit)), sigma);
       },
       "augmentation.md"},
      // Ours, docs/proofs/batches.md, Theorem tsdp.3. One step in which every series is drawn by its own coin, with
      // probability ρ: given the other series' coins and windows it is a mixture as in 4.4, F.1 and F.2, whose bounds
      // do not depend on the others. Upper bound.
      {"tsdp.3", Bound::upper, TopLevel::poisson, with_replacement, true, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::one_window_pair(scheme.drawn_share() * touched_share(scheme, unit), sigma);
       },
       "batches.md"},
      {"tsdp.3", Bound::upper, TopLevel::poisson, poisson, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         const auto reach = largest_poisson_reach(scheme, unit);
         return privacy::poisson_upper(reach.touched, reach.rate, scheme.drawn_share(), sigma);
       },
       "batches.md"},
      {"tsdp.3", Bound::upper, TopLevel::poisson, with_replacement, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::with_replacement_upper(scheme.parameters().subsequences_per_sequence,
                                                touched_share(scheme, unit), scheme.drawn_share(), sigma);
       },
       "batches.md"},
      // Ours, docs/proofs/batches.md, Theorem tsdp.4. One epoch in an order that does not depend on the data, published
      // or not: given the
      // order it is deterministic iteration, and H_α is jointly convex. Upper bound by the pairs of 4.2, E.1 and E.8.
      {"tsdp.4", Bound::upper, shuffled, with_replacement, true, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::one_window_pair(touched_share(scheme, unit), sigma);
       },
       "batches.md"},
      {"tsdp.4", Bound::upper, shuffled, poisson, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         const auto reach = largest_poisson_reach(scheme, unit);
         return privacy::poisson_upper(reach.touched, reach.rate, 1.0, sigma);
       },
       "batches.md"},
      {"tsdp.4", Bound::upper, shuffled, with_replacement, false, InputNoise::none,
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::with_replacement_upper(scheme.parameters().subsequences_per_sequence,
                                                touched_share(scheme, unit), 1.0, sigma);
       },
       "batches.md"},
  };
  return rows;
}

const std::vector<FlatRow>& flat_table() {
  static const std::vector<FlatRow> rows = {
      // C.1. What an accountant of ordinary DP-SGD states: exact for the substitution of one of n independent records,
      //   P = (1 − Λ/n) N(0, σ) + Λ/n N(2, σ),  Q = N(0, σ),  symmetrised;
      // no bound for series, where one value lies in many windows.
      {{"C.1", "a flat data set of windows as if they were independent records: not valid for time series",
        Bound::tight, CompositionUnit::step},
       false,
       [](const FlatSampling& s, double sigma) {
         return privacy::one_window_pair(static_cast<double>(s.batch_size) / static_cast<double>(s.records), sigma);
       }},
      // C.2. Optimistic lower bound of what such a step does to series, where a value lies in W windows:
      //   P = Σ_{i ≤ W} Hypergeom(i; n, W, Λ) N(2i, σ),  Q = N(0, σ),  symmetrised.
      {{"C.2", "a flat data set of windows of time series", Bound::optimistic_lower, CompositionUnit::step},
       true,
       [](const FlatSampling& s, double sigma) {
         return privacy::flat_optimistic(s.records, s.window_length, s.batch_size, sigma);
       }},
  };
  return rows;
}

}  // namespace tsdp::privacy
