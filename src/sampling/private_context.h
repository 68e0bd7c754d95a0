// Inference-time privacy (Schuchardt et al. 2025, Appendix H): the values that a forecast is computed from are
// subsampled and noised first. One value gives both the mechanism that privacy/theorems/inference.h accounts for and
// the randomiser that runs.
#pragma once

#include <cstdint>
#include <span>

#include "privacy/theorems/inference.h"
#include "sampling/contraction.h"
#include "tsdp/random/random.h"

namespace tsdp::sampling {

/// Purpose names of the two streams of a use. They must differ: otherwise coins and normals would read the same bits.
inline constexpr const char* context_coins_purpose = "inference coins";
inline constexpr const char* context_noise_purpose = "inference noise";

/// The randomiser of one series' past, of any length n, and what it costs.
///
/// **Mechanism.** Input: values x ∈ ℝⁿ and marks o ∈ {0, 1}ⁿ; o_j = 0 is padding or a missing value. For every j with
/// o_j = 1 independently: kept (k_j = 1) with probability r, and then y_j = c(x_j) + s z_j, z_j ~ N(0, 1), where c(x_j)
/// is the double nearest to x_j, cut to |c(x_j)| ≤ 2³² v (contraction.h). Output: k and (y_j : k_j = 1). `release` does
/// that; whatever follows (`impute`, the model, seasonal naive, quantiles, sample paths) reads k, y and o alone.
///
/// **Neighbours.** x and x′ of one length with the same marks that differ in at most w observed places, anywhere, each
/// by at most v. Marks, length and calendar are public, and so is everything that depends on them alone (padding, time
/// features, ages). Values count as they stand in the file, as decimals.
///
/// **Claim.** For S any event, P[M(x) ∈ S] ≤ e^ε P[M(x′) ∈ S] + δ with
///   δ(ε) = Σ_{i ≤ w} Bin(i; w, r) δ_G(ε; √i v̄/s),   v̄ = (1 + 2⁻¹⁹) v                       (DropPattern::visible)
/// *Proof.* J: the changed places, |J| ≤ w. The law of k does not depend on the values, so δ(ε) is at most the mean
/// over k of H_{e^ε} between the laws of y given k. Given k, y is Gaussian with covariance s² I under both, and the
/// means c(x_j), c(x′_j) differ in the i = |{j ∈ J : k_j = 1}| kept changed places by at most v̄ each (contraction.h):
/// by at most √i v̄ in ℓ₂. The divergence of two such Gaussians is δ_G(ε; d/s), which grows with their distance d.
/// i ~ Bin(|J|, r); the sum grows with |J|, as i does stochastically. Equality where k is revealed and all of c changes
/// by ±v̄; for changes by ±v that c does not widen, 2⁻¹⁹ of the noise is given away. The relation is symmetric, so the
/// claim holds in both directions. ∎
///
/// **Dropped values.** They are imputed with the mean of the *noised* kept ones: a function of (k, y, o), so it costs
/// nothing. The mean of the raw kept ones would be another release of x, one without noise of its own: next to y, it
/// moves by up to v/|k| if one value changes, and no finite ε bounds that. Imputed values get no noise, so they reveal
/// k; that is why the visible pattern is accounted for and not `DropPattern::hidden`, which would need them to look
/// like kept ones.
///
/// **Calibration, rounded against us.** r is raised to a multiple of 2⁻⁵³, which is exactly the chance that a coin
/// `uniform() < r` then has. Pairs of normals (random/random.h) lie in the disk of radius √(2 · 105 log 2) = 12.07,
/// outside of which an ideal pair has mass exactly τ = 2⁻¹⁰⁵. Given k, at most w places differ in law, and at most w
/// pairs hold them; with G the ideal law of y there, T the law of G given that all these pairs lie in their disks, and
/// c ≤ w τ the mass cut off, T ≤ G/(1 − c) and G ≤ (1 − c) T + c on every event, so
/// T_x ≤ e^ε T_x′ + (δ′ + c e^ε)/(1 − c) if G keeps (ε, δ′). The noise is therefore calibrated for δ′ = (1 − w τ) δ − w
/// τ e^ε, not for δ. inference_noise is never below the least noise for δ′; s is v̄ times it, rounded up. c(x_j) + s
/// z_j is rounded to double precision, to the grid of the noise (noise_grid_offset), then to single precision: each a
/// function of the real sum alone, so post-processing. Apart from c, nothing of x is rounded before noise is added to
/// it.
///
/// **What is not proved.** As in training, normals are floating-point numbers made of finitely many bits, not reals.
/// Where an ideal pair has all but 2⁻⁴⁸ of its mass, they lie closer together than what is released (random/random.h),
/// so that the rounding hides them; elsewhere they do not, and an output there may reveal which value was read. So δ
/// below w 2⁻⁴⁶ is refused.
///
/// **Composition.** One use is one series' past, whatever is computed from it. Uses with fresh streams that read a
/// common value compose: k of them cost at most (k ε, k δ), and less by the composition of their profiles. Pasts of
/// different series, and pasts of one series without common values, do not add up for one changed value. Training is
/// accounted for elsewhere, for another relation.
class PrivateContext {
 public:
  struct Parameters {
    double epsilon = 0.0;  ///< in (0, 1e6]
    double delta = 0.0;  ///< in [w 2⁻⁴⁶, 1)
    double v = 0.0;  ///< at least 2⁻¹⁰²², in units of the data
    std::int64_t w = 1;  ///< 1 … 1e6
    double keep = 1.0;  ///< r in (0, 1]
  };

  /// Calibrates the noise. Throws UsageError for parameters out of range; PrivacyError if v is not finite, if δ is
  /// below w 2⁻⁴⁶ or too small compared to e^ε w τ, or if the noise is too large for a number.
  explicit PrivateContext(const Parameters& parameters);

  /// As given, with r raised to a multiple of 2⁻⁵³.
  [[nodiscard]] const Parameters& parameters() const noexcept { return parameters_; }
  /// What privacy/theorems/inference.h accounts for.
  [[nodiscard]] privacy::InferenceMechanism mechanism() const noexcept {
    return {parameters_.w, parameters_.keep, privacy::DropPattern::visible};
  }
  /// s/v̄; 0 if dropping alone is enough.
  [[nodiscard]] double noise_multiplier() const noexcept { return noise_multiplier_; }
  /// s, in units of the data.
  [[nodiscard]] double noise() const noexcept { return noise_; }

  /// The mechanism: `exact` (n) holds the double nearest to x where `marks` (n, 1 or 0) is 1, and anything elsewhere;
  /// `values` (n) become y where kept and 0 elsewhere, `marks` become k. Streams: (key, context_coins_purpose, use) and
  /// (key, context_noise_purpose, use) where the number of the use must never be repeated. The draws for a place depend
  /// only on its position in the span. Throws Error for spans of unequal lengths.
  void release(RandomStream& coins, const RandomStream& noise, std::span<const double> exact, std::span<float> values,
               std::span<float> marks) const;

 private:
  Parameters parameters_;
  Contraction contraction_;
  double noise_multiplier_ = 0.0;
  double noise_ = 0.0;
};

/// Post-processing of a release: values that were observed and dropped are set to the mean of those that were kept, and
/// marked as observed. If none were kept, they stay 0 and unobserved. All spans (n).
void impute(std::span<float> values, std::span<float> marks, std::span<const float> observed);

}  // namespace tsdp::sampling
