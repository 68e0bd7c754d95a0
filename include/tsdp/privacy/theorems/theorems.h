// From a subsampling scheme to what the accountant composes: the table of theorems.
//
// Theorem numbers are those of Schuchardt et al., "Privacy Amplification by Structured Subsampling for Deep
// Differentially Private Time Series Forecasting" (ICML 2025).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/scheme.h"

namespace tsdp::privacy {

/// How a theorem's profile relates to the true one of a single use.
enum class Bound {
  tight,
  upper,
  optimistic_lower
};
constexpr Names<Bound, 3> names_of(Bound) {
  return {{{Bound::tight, "tight"}, {Bound::upper, "upper"}, {Bound::optimistic_lower, "optimistic_lower"}}};
}
/// What one use of the profile covers.
enum class CompositionUnit {
  step,
  epoch,
  round  ///< the steps in which each group of cyclic Poisson batches has its turn
};
constexpr Names<CompositionUnit, 3> names_of(CompositionUnit) {
  return {{{CompositionUnit::step, "step"}, {CompositionUnit::epoch, "epoch"}, {CompositionUnit::round, "round"}}};
}

/// A noisy training run as the accountant sees it: one use of a dominating pair per step or per epoch.
struct AppliedTheorem {
  std::string theorem;  ///< number in the paper, or tsdp.N, or a row about whole series (series_law.h)
  Bound bound = Bound::upper;
  CompositionUnit unit = CompositionUnit::step;
  std::int64_t steps_per_epoch = 1;
  double noise_multiplier = 0.0;
  privacy::DominatingPair pair;  ///< dominates one use, from above
  /// False for C.1, which treats windows as independent records.
  bool valid_for_time_series = true;
  /// The curve itself, where more is known of whole series than composing `pair` gives.
  std::function<std::unique_ptr<PrivacyCurve>()> own_curve = {};
  /// Rényi divergences as `renyi` gives them, where more is known of them than `pair` gives.
  std::function<std::vector<double>(std::uint64_t uses, std::span<const double> orders)> own_renyi = {};
  /// How its uses compose; if adaptively, as set by composed_adaptively, in blocks of this many.
  StepComposition composition = StepComposition::symmetrised;
  std::size_t adaptive_block = 0;
  /// ε₂ of a release of pure differential privacy after the last use; 0: none.
  double pure_release = 0.0;
  std::int64_t steps_per_round = 1;
  /// Cuts of batches that have more series than are allowed.
  struct Cuts {
    /// The chance that some batch of this many uses is cut, at most; empty: none ever is.
    std::function<double(std::uint64_t uses)> chance = {};
    std::string what = {};  ///< in the words of a certificate
  };
  /// What comes on top of the uses, before the pure release (bounded_batches.h).
  Cuts cut = {};

  /// Whether the composed profile relates to the composed mechanism as `bound` says for a single use. The optimistic
  /// bounds are suprema over neighbours, taken separately for α ≥ 1 and α < 1: composing them, as the paper's figures
  /// do, is not proven to give a lower bound of anything.
  [[nodiscard]] bool rigorous(std::uint64_t uses) const { return bound != Bound::optimistic_lower || uses <= 1; }
  [[nodiscard]] std::uint64_t steps_per_use() const;
  /// Uses that `steps` training steps cost. An epoch or round that has begun counts whole.
  [[nodiscard]] std::uint64_t uses_of_steps(std::uint64_t steps) const;
  /// The number of these uses that are complete: all of their steps were taken.
  [[nodiscard]] std::uint64_t complete_uses(std::uint64_t steps) const;
  /// The most steps that `uses` uses pay for.
  [[nodiscard]] std::uint64_t steps_of_uses(std::uint64_t uses) const;
  /// The cost of its uses, as the one chain of all that is known: the uses, composed as `composition` says; then cuts
  /// of large batches; then the pure release.
  [[nodiscard]] std::unique_ptr<PrivacyCurve> curve() const;
  /// Whether curve() is `pair` composed with itself and nothing more.
  [[nodiscard]] bool composes_its_pair() const {
    return !own_curve && composition == StepComposition::symmetrised && pure_release == 0.0 && !cut.chance;
  }
  /// Upper bounds on the Rényi divergences of `uses` uses together at each of `orders` (in (1, 1024]), in either
  /// direction, without `pure_release`; +∞ where no bound is of use, as with cuts, of which none is known.
  [[nodiscard]] std::vector<double> renyi(std::uint64_t uses, std::span<const double> orders) const;
};

/// The text that follows the theorem's number: ", its steps composed by tsdp.6", or nothing.
[[nodiscard]] std::string_view composition_cited(StepComposition composition);

/// Whether composed_adaptively accepts it.
[[nodiscard]] bool covers_adaptive_composition(const AppliedTheorem& theorem);

/// The same with its uses composed by Theorem tsdp.6, in blocks of at most `block` (AdaptiveCurve): for one window per
/// series with replacement, Theorems 4.2, 4.4, 4.5, G.1 and tsdp.1 to tsdp.4. Throws PrivacyError for other rows, and
/// if every step touches the changed value (q = 1), naming what is covered.
[[nodiscard]] AppliedTheorem composed_adaptively(AppliedTheorem theorem, std::size_t block);

/// The same with a release after its uses that is `epsilon`-differentially private whatever they released: Theorem
/// tsdp.7 (CurveWithPureRelease). A tight bound becomes an upper bound. Throws PrivacyError for a lower bound, or if
/// there is such a release already.
[[nodiscard]] AppliedTheorem followed_by_pure_release(AppliedTheorem theorem, double epsilon);

/// ε(δ) and δ(ε) of `curve`, which must be the theorem's, after `steps` steps: the upper end counts an epoch that has
/// begun, the lower end only complete ones, as nothing is known of the others from below.
[[nodiscard]] Certified epsilon_after(const AppliedTheorem& theorem, PrivacyCurve& curve, double delta,
                                      std::uint64_t steps, double precision = default_precision);
[[nodiscard]] Certified delta_after(const AppliedTheorem& theorem, PrivacyCurve& curve, double epsilon,
                                    std::uint64_t steps, double precision = default_precision);

/// The number of windows of one series of length `length` that a changed unit can touch, in the worst place:
///   event: m = min(L_C + L_F + w − 1, T),   user: m = min(w (L_C + L_F), T),   T = L − L_F + 1
/// (paper §3 and Appendix I). Throws PrivacyError if w > L or L < L_F.
[[nodiscard]] std::int64_t touched_windows(std::int64_t length, std::int64_t context_length,
                                           std::int64_t forecast_length, const PrivacyUnit& unit);

/// r = max over series of m/T: the chance that a uniformly drawn window of the worst series is touched.
[[nodiscard]] double touched_share(const SubsamplingScheme& scheme, const PrivacyUnit& unit);

/// The mechanism of training with `scheme` and noise multiplier σ under `unit`.
///
/// `theorem` picks a row of the table; without it the tightest upper bound that covers the scheme is taken, of the
/// paper's and of ours that are not `only_if_named`, never an optimistic one. With series of differing lengths the
/// worst counts. Throws PrivacyError (exit 4) that names what no theorem covers and the nearest combinations that are
/// covered.
[[nodiscard]] AppliedTheorem apply_theorem(const SubsamplingScheme& scheme, const PrivacyUnit& unit,
                                           double noise_multiplier, std::optional<std::string> theorem = std::nullopt);

/// The same for noise of either kind: correlated noise is covered where records are whole series (series_law.h), and
/// nowhere else.
[[nodiscard]] AppliedTheorem apply_theorem(const SubsamplingScheme& scheme, const PrivacyUnit& unit, const Noise& noise,
                                           std::optional<std::string> theorem = std::nullopt);

/// A flat data set of records, from which batches are drawn without replacement (paper, Appendix C.3). Not a scheme of
/// this project: for comparison only.
struct FlatSampling {
  std::int64_t records = 1;  ///< windows of all series
  std::int64_t batch_size = 1;  ///< Λ ≤ records
  std::int64_t window_length = 1;  ///< W = L_C + L_F ≤ records: windows that one value lies in; used only by C.2
};
/// C.1 or C.2. Throws UsageError for a count out of range, PrivacyError for another theorem.
[[nodiscard]] AppliedTheorem flat_baseline(const std::string& theorem, const FlatSampling& sampling,
                                           double noise_multiplier);

/// One row of the table of theorems, for help texts and documents.
struct TheoremSummary {
  std::string id;
  std::string covers;
  Bound bound;
  CompositionUnit unit;
  bool ours = false;  ///< proven in docs/proofs, not in the paper
  bool only_if_named = false;  ///< training does not take it unless asked
  /// Whether it needs the length of every series; others need the shortest and the longest.
  bool needs_every_length = false;
  /// The levels that the row is about; neither for C.1 and C.2, no bottom level for whole series (series_law.h).
  std::optional<TopLevel> top_level = {};
  std::optional<BottomLevel> bottom_level = {};
  std::string proof = {};  ///< for a row of ours: its file in docs/proofs
  std::string source = {};  ///< for a row that is neither ours nor the paper's

  bool couples_steps =
      false;  ///< adaptive composition is proven for it (Lemma 1 of docs/proofs/adaptive-composition.md)

  [[nodiscard]] bool flat() const { return !top_level; }
  [[nodiscard]] bool whole_series() const { return top_level && !bottom_level; }
};
/// Every row: for windows, whole series and flat data sets.
[[nodiscard]] const std::vector<TheoremSummary>& theorem_table();
/// The row `id`, or the first if several have this id. Throws PrivacyError naming the rows there are.
[[nodiscard]] const TheoremSummary& theorem_row(const std::string& id);

}  // namespace tsdp::privacy
