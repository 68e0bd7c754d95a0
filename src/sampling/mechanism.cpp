#include "tsdp/sampling/mechanism.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::sampling {
namespace {

struct Row {
  TheoremSummary summary;
  /// What of the scheme the theorem does not cover; empty if it covers it.
  std::function<std::string(const SubsamplingScheme&)> objection;
  std::function<privacy::DominatingPair(const SubsamplingScheme&, const PrivacyUnit&, double)> pair;
};

/// Conditions that Theorems 4.2 and 4.4 share: one window a series, drawn with replacement, no noise on data.
std::string single_window_objection(const SubsamplingScheme& scheme) {
  const auto& p = scheme.parameters();
  if (p.bottom_level != BottomLevel::with_replacement) return "bottom level poisson";
  if (p.subsequences_per_sequence != 1) return cat(p.subsequences_per_sequence, " subsequences per sequence");
  if (p.context_noise > 0.0 || p.forecast_noise > 0.0) return "noise on context or forecast";
  return {};
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      // Theorem 4.2. One epoch of deterministic top-level iteration, λ = 1 window with replacement: each series is in
      // one batch of an epoch, so the epoch is one use (parallel composition, Props. E.2, E.3) of
      //   P = (1 − r) N(0, σ) + r N(2, σ),  Q = N(0, σ),  symmetrised; exact for all α.
      {{"4.2", "top level deterministic, bottom level with replacement, 1 subsequence per sequence", Bound::tight,
        CompositionUnit::epoch},
       [](const SubsamplingScheme& scheme) -> std::string {
         if (scheme.parameters().top_level != TopLevel::deterministic) return "top level without replacement";
         return single_window_objection(scheme);
       },
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         return privacy::DominatingPair::substitution(touched_share(scheme, unit), sigma);
       }},
      // Theorem 4.4. One step with a fresh sample of N′ series without replacement, λ = 1 window each with
      // replacement: the changed series is drawn with probability ρ = N′/N, and one of its touched windows with r:
      //   P = (1 − ρ r) N(0, σ) + ρ r N(2, σ),  Q = N(0, σ),  symmetrised; exact for all α.
      {{"4.4", "top level without replacement, bottom level with replacement, 1 subsequence per sequence",
        Bound::tight, CompositionUnit::step},
       [](const SubsamplingScheme& scheme) -> std::string {
         if (scheme.parameters().top_level != TopLevel::without_replacement) return "top level deterministic";
         return single_window_objection(scheme);
       },
       [](const SubsamplingScheme& scheme, const PrivacyUnit& unit, double sigma) {
         const double rho =
             static_cast<double>(scheme.sequences_per_batch()) / static_cast<double>(scheme.sequences());
         return privacy::DominatingPair::substitution(rho * touched_share(scheme, unit), sigma);
       }},
  };
  return rows;
}

}  // namespace

const char* name(Bound value) {
  return value == Bound::tight ? "tight" : value == Bound::upper ? "upper" : "optimistic_lower";
}
const char* name(CompositionUnit value) { return value == CompositionUnit::step ? "step" : "epoch"; }

std::uint64_t Mechanism::uses_of_steps(std::uint64_t steps) const {
  if (unit == CompositionUnit::step) return steps;
  const auto per_epoch = static_cast<std::uint64_t>(steps_per_epoch);
  return steps / per_epoch + (steps % per_epoch != 0 ? 1 : 0);
}

std::uint64_t Mechanism::steps_of_uses(std::uint64_t uses) const {
  return unit == CompositionUnit::step ? uses : uses * static_cast<std::uint64_t>(steps_per_epoch);
}

std::int64_t touched_windows(std::int64_t length, std::int64_t context_length, std::int64_t forecast_length,
                             const PrivacyUnit& unit) {
  if (unit.w < 1 || unit.w > largest_count)
    throw UsageError(cat("w: found ", unit.w, "; an integer from 1 to ", largest_count, " is expected"));
  if (length < forecast_length)
    throw PrivacyError(cat("sequence length: found ", length, " with forecast length ", forecast_length,
                           "; at least the forecast length is expected (L >= L_F)"));
  if (unit.w > length)
    throw PrivacyError(cat("w: found ", unit.w, " with a sequence of length ", length,
                           "; at most the length of the shortest sequence is expected (w <= L)"));
  const std::int64_t windows = length - forecast_length + 1;
  const std::int64_t reach = context_length + forecast_length;
  if (unit.relation == Relation::event) return std::min(reach + unit.w - 1, windows);
  // w · reach could overflow; once it passes T only T matters.
  return unit.w > windows / reach ? windows : std::min(unit.w * reach, windows);
}

double touched_share(const SubsamplingScheme& scheme, const PrivacyUnit& unit) {
  const auto& p = scheme.parameters();
  double largest = 0.0;
  for (const auto length : p.lengths) {
    const auto touched = touched_windows(length, p.context_length, p.forecast_length, unit);
    largest = std::max(largest, static_cast<double>(touched) / static_cast<double>(length - p.forecast_length + 1));
  }
  return largest;
}

std::vector<TheoremSummary> theorem_table() {
  std::vector<TheoremSummary> out;
  for (const auto& row : table()) out.push_back(row.summary);
  return out;
}

Mechanism mechanism_of(const SubsamplingScheme& scheme, const PrivacyUnit& unit, double noise_multiplier,
                       std::optional<std::string> theorem) {
  // Below 0.01 a single step has a loss in the ten thousands and no budget anyone states survives it.
  if (!(noise_multiplier >= 0.01) || !(noise_multiplier <= 1e6))
    throw UsageError(cat("noise multiplier: found ", noise_multiplier, "; a number from 0.01 to 1e6 is expected"));
  if (unit.v && (!(*unit.v > 0.0) || !std::isfinite(*unit.v)))
    throw UsageError(cat("v: found ", *unit.v, "; a positive finite number is expected"));
  const auto& p = scheme.parameters();
  if ((p.context_noise > 0.0 || p.forecast_noise > 0.0) && !unit.v)
    throw PrivacyError(
        "noise on context or forecast amplifies privacy only if a value changes by at most v: no finite v is given; "
        "set privacy.v (--v), or both noises to 0");
  std::vector<std::string> objections;
  std::vector<std::string> known;
  for (const auto& row : table()) {
    known.push_back(row.summary.id);
    if (theorem && *theorem != row.summary.id) continue;
    const auto objection = row.objection(scheme);
    if (!objection.empty()) {
      objections.push_back(cat("Theorem ", row.summary.id, " does not cover ", objection, " (it covers: ",
                               row.summary.covers, ", no noise on data)"));
      continue;
    }
    return {row.summary.id,   row.summary.bound, row.summary.unit, scheme.steps_per_epoch(), noise_multiplier,
            row.pair(scheme, unit, noise_multiplier)};
  }
  if (objections.empty())
    throw PrivacyError(cat("theorem: found '", *theorem, "'; available are ", join(known, ", ")));
  throw PrivacyError(cat("no theorem covers this subsampling: ", join(objections, "; ")));
}

}  // namespace tsdp::sampling
