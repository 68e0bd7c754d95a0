// From a subsampling scheme to what the accountant composes: the table of theorems.
//
// Theorem numbers are those of Schuchardt et al., "Privacy Amplification by Structured Subsampling for Deep
// Differentially Private Time Series Forecasting" (ICML 2025).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tsdp/privacy/dominating_pair.h"
#include "tsdp/sampling/scheme.h"

namespace tsdp::sampling {

/// What a theorem's profile is to the true one of a single use.
enum class Bound { tight, upper, optimistic_lower };
/// What one use of the profile covers.
enum class CompositionUnit { step, epoch };

[[nodiscard]] const char* name(Bound value);            // "tight", "upper", "optimistic_lower"
[[nodiscard]] const char* name(CompositionUnit value);  // "step", "epoch"

/// What a noisy training run is to the accountant: one use of a dominating pair a step or an epoch.
struct Mechanism {
  std::string theorem;  ///< number in the paper
  Bound bound = Bound::upper;
  CompositionUnit unit = CompositionUnit::step;
  std::int64_t steps_per_epoch = 1;
  double noise_multiplier = 0.0;
  privacy::DominatingPair pair;

  /// Uses that `steps` training steps cost. An epoch that has begun counts whole.
  [[nodiscard]] std::uint64_t uses_of_steps(std::uint64_t steps) const;
  /// The most steps that `uses` uses pay for.
  [[nodiscard]] std::uint64_t steps_of_uses(std::uint64_t uses) const;
};

/// The number of windows of one series of length `length` that a changed unit can touch, in the worst place:
///   event: m = min(L_C + L_F + w − 1, T),   user: m = min(w (L_C + L_F), T),   T = L − L_F + 1
/// (paper §3 and Appendix I). Throws PrivacyError if w > L or L < L_F.
[[nodiscard]] std::int64_t touched_windows(std::int64_t length, std::int64_t context_length,
                                           std::int64_t forecast_length, const PrivacyUnit& unit);

/// r = max over series of m/T: the chance that a uniformly drawn window of the worst series is touched.
[[nodiscard]] double touched_share(const SubsamplingScheme& scheme, const PrivacyUnit& unit);

/// The mechanism of training with `scheme` and noise multiplier σ under `unit`.
///
/// `theorem` picks a row of the table; without it the tightest upper bound that covers the scheme is taken. Throws
/// PrivacyError (exit 4) that names what no theorem covers and the nearest combination that is covered.
[[nodiscard]] Mechanism mechanism_of(const SubsamplingScheme& scheme, const PrivacyUnit& unit, double noise_multiplier,
                                     std::optional<std::string> theorem = std::nullopt);

/// One row of the table of theorems, for help texts and documents.
struct TheoremSummary {
  std::string id;
  std::string covers;
  Bound bound;
  CompositionUnit unit;
};
[[nodiscard]] std::vector<TheoremSummary> theorem_table();

}  // namespace tsdp::sampling
