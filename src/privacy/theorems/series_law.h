// A whole series as the record: how series are drawn for the batches of an epoch, and what that is worth.
//
// Neighbours differ in one series, present or absent (zero-out: a ghost that contributes nothing takes its place; the
// number of series and the others' lengths stay public). A series contributes a vector of norm at most C to the sum of
// a step in which it is drawn. [C] is Chua et al., "How Private are DP-SGD Implementations?" (ICML 2024).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "privacy/matrix/correlated_noise.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {

/// Batches of at most `largest` of all series; larger ones are cut.
struct BoundedBatches {
  std::int64_t series = 1;
  std::int64_t largest = 1;  ///< ≥ 1
};

/// How whole series are drawn.
struct SeriesLaw {
  TopLevel sampler = TopLevel::deterministic;
  std::int64_t batches = 1;                        ///< T ≥ 1: steps of an epoch; for balls in bins, the bins
  std::optional<double> rate = {};  ///< Poisson (the coin) and without replacement, in (0, 1]; none: 1/T
  Reshuffle reshuffle = Reshuffle::every_epoch;  ///< shuffled
  Redraw redraw = Redraw::once;  ///< balls in bins
  std::int64_t groups = 1;  ///< p of cyclic Poisson, 1 ≤ p ≤ T; its rate: none is p/T
  std::optional<BoundedBatches> bounded = {};  ///< Poisson, cyclic Poisson and bins
};

/// Every way of making batches of whole series, `batches` an epoch; with Poisson's `rate`, if it is another than 1/T.
[[nodiscard]] std::vector<SeriesLaw> all_series_laws(std::int64_t batches, std::optional<double> rate = {});

/// `law`, which is of cyclic Poisson batches, with 1, 2, 4, … groups, as many as an epoch has steps and 64 at most. The
/// coin of each follows from that of one group.
[[nodiscard]] std::vector<SeriesLaw> cyclic_laws(const SeriesLaw& law);

/// Whether `auto` looks for correlated noise with this law.
[[nodiscard]] constexpr bool searches_correlated_noise(const SeriesLaw& law) {
  return law.sampler == TopLevel::cyclic_poisson || searches_correlated_noise(law.sampler, law.redraw);
}

/// How `scheme`, whose records are series, draws them.
[[nodiscard]] SeriesLaw series_law_of(const SubsamplingScheme& scheme);

/// The row that covers a law. Throws UsageError for numbers out of range, and for a rate or an order that the sampler
/// has no use for.
///
/// What one use is; what its upper end and its lower end are:
///   series.deterministic   an epoch; the Gaussian mechanism, exact ([C] §2.1); the same
///   series.shuffled        an epoch; that of deterministic ([C] Theorem 4.1); events E_C ([C] §2.3), composed
///   series.poisson         a step; composition of the exact pair, both directions apart ([C] §2.2); the same
///   series.wor             a step; Theorem 4.4 of Schuchardt et al. (2025) with r = 1, since another series takes the
///                          place of the absent one and the sum moves by up to 2; none
///   series.cyclic_poisson  a round of p steps; composition of the exact pair of the step in which the series has its
///                          turn, with independent noise or a p-banded C (docs/proofs/cyclic-poisson.md); the same
///   series.balls_in_bins   an epoch; the exact pair of random allocation (Choquette-Choo et al. 2025, Lemma 3.2); the
///                          same
///   series.bins_redrawn    an epoch; the same pair of one epoch, composed, both directions apart (RedrawnBinsCurve);
///                          the same
///   series.matrix          an epoch; correlated noise with bins, fixed or shuffled batches (CorrelatedNoiseCurve);
///                          the same
/// With `bounded`, what cuts of large batches cost is added to δ (AppliedTheorem::cut).
///
/// `direction` asks for one direction alone: `remove` (the series is there, and is taken away) or `add`.
[[nodiscard]] AppliedTheorem series_theorem(const SeriesLaw& law, double noise_multiplier,
                                            std::optional<Direction> direction = std::nullopt);
/// The same for noise of either kind. Correlated noise is covered with the samplers of series.matrix alone; otherwise
/// throws PrivacyError, naming the nearest. Composing its pair, a Gaussian mechanism with the share of an epoch in the
/// squared norm of all planned ones, is an upper bound for any number of epochs up to those: an epoch of a non-negative
/// matrix adds more the more epochs went before it.
[[nodiscard]] AppliedTheorem series_theorem(const SeriesLaw& law, const Noise& noise,
                                            std::optional<Direction> direction = std::nullopt,
                                            CorrelatedMethod method = CorrelatedMethod::automatic);

/// What is known about replacing a series by another, at the same δ, where (ε, δ) holds after `uses` uses for one that
/// is present or absent; rounded up. The least of what applies:
///   * Samples without replacement: (ε, δ), as Theorem 4.4 is about replaced series already.
///   * Deterministic, shuffled, bins and Poisson: the other series takes the first one's place, in its batches. Given
///     orders, bins or coins, whose law is the same for both data sets, every step in which it takes part moves by
///     g − g′ with |g|, |g′| ≤ 1, so by at most 2: k Gaussian mechanisms of distance 2, composed N(2√k, σ²) against
///     N(0, σ²). Divergences are jointly convex, so the mean over orders or bins is no more. With correlated noise,
///     Σ_j C_{:,i+jb} (g_j − g′_j) has norm at most 2‖m_i‖: twice the sensitivity (Denisov et al. 2022, Theorem 2.1,
///     for gradients that depend on earlier releases). Exact for deterministic batches and C ≥ 0.
///   * Any: two neighbours in a row, absent in between. From (ε′, δ(ε′)) for each, P ≤ e^ε′ (e^ε′ Q + δ(ε′)) + δ(ε′),
///     so that (2ε′, (1 + e^ε′) δ(ε′)) holds for every ε′: the least ε′ found for which that δ is at most the given
///     one. Not looked for where `epsilon` is above 20: it would be at least twice that, which protects nobody, and the
///     search takes long there, for every ledger that a run writes.
/// Where large batches are cut the first two hold as they are: given coins or bins the same places stay. The third pays
/// for cuts. Where nothing gives an answer, δ is 1. `precision` is relative, of the δ that is searched for.
struct Substitution {
  static constexpr double stated_precision = 1e-2;

  double epsilon;
  double delta;
};
[[nodiscard]] Substitution substitution_of(const SeriesLaw& law, const Noise& noise, std::uint64_t uses, double epsilon,
                                           double delta, double precision = Substitution::stated_precision);
[[nodiscard]] Substitution substitution_of(const SeriesLaw& law, double noise_multiplier, std::uint64_t uses,
                                           double epsilon, double delta);

/// What gives ε(δ) after `uses` uses, for a theorem that asks its curve for it, which may take seconds.
[[nodiscard]] Certificate asked_certificate(const AppliedTheorem& theorem, double delta, std::uint64_t uses);

/// The rows; theorem_table() holds them too.
[[nodiscard]] const std::vector<TheoremSummary>& series_table();

}  // namespace tsdp::privacy
