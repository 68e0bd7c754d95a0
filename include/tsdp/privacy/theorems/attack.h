// What a differential-privacy guarantee says about the best possible attacker.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

/// μ of Gaussian differential privacy (Dong, Roth & Su 2022, Def. 2.6), up to a remainder δ₀: no test tells more than
/// the best one between N(0, 1) and N(μ, 1) does, plus δ₀. At every false-positive rate α the true-positive rate is at
/// most Φ(Φ⁻¹(α) + μ) + δ₀.
struct GaussianBound {
  double mu;         ///< from above
  double remainder;  ///< δ₀
  /// How much of what is certified is lost by saying μ alone, in [0, 1]: the least κ by which the certified trade-off
  /// curve has to be moved down and to the left to lie nowhere above that of μ (the Δ-divergence of Gomez et al. 2025,
  /// "Gaussian DP for Reporting Differential Privacy Guarantees in Machine Learning"). Of the curve that the asked ε
  /// certify; within 0.0011, from above.
  double regret;
};

/// Bounds on every test that guesses from all releases which of two neighbouring data sets was used, whatever it knows
/// and computes. With δ(ε) the composed profile and α the false-positive rate, a test's true-positive rate is at most
/// e^ε α + δ(ε) for every ε, by the definition of (ε, δ)-differential privacy (Wasserman & Zhou 2010, Thm. 2.4; Dong,
/// Roth & Su 2022, Prop. 2.12). So upper bounds on δ give upper bounds here, at any ε that is tried.
struct AttackBound {
  double advantage;  ///< true- minus false-positive rate, at most δ(0), in [0, 1]
  double false_positive_rate;  ///< α
  double true_positive_rate;  ///< at most, in [α, 1]
  std::optional<GaussianBound> gaussian = std::nullopt;  ///< at all rates together; attack_bound leaves it out
};

/// The bounds after `uses` uses, 0 < false_positive_rate < 1. `precision` as for PrivacyCurve::delta.
[[nodiscard]] AttackBound attack_bound(PrivacyCurve& curve, std::uint64_t uses, double false_positive_rate = 1e-3,
                                       double precision = 1e-2);

/// The least μ found, where δ(epsilon) ≤ delta is certified after `uses` uses; δ₀ is delta, or 0 after none. `curve`
/// has to bound both directions. None if no μ up to 1024 serves, or beyond ε = 600. `precision` as for
/// PrivacyCurve::delta, and five times that by which places between the ε that are asked may raise μ, as long as they
/// are no more than 64 (1024 below 1e-2).
///
/// Proof. δ_μ(ε) is the profile of N(μ, 1) against N(0, 1). If δ(ε) ≤ δ_μ(ε) + δ₀ for all ε ≥ 0 in both directions,
/// then the same holds for all real ε, as the profile in one direction at −ε is 1 − e^−ε + e^−ε times that in the other
/// at ε; and a true-positive rate of at most e^ε α + δ(ε) for all ε is at most Φ(Φ⁻¹(α) + μ) + δ₀, the least of e^ε α +
/// δ_μ(ε) over all ε. Beyond `epsilon` it holds, as δ does not grow. Below it δ is convex in t = e^ε and so between two
/// ε that are asked at most the chord between upper bounds there; δ_μ is convex in t and so at least its tangents
/// there. The greater of two tangents less a chord is convex and linear but for one kink: it is least there or at an
/// end, where it is compared. All roundings are away from what is stated, but for some 1e-16 of δ₀ itself. What was
/// certified by a test of drawn noise (docs/proofs/sampled-noise.md) is no profile of the noise that is used: nothing
/// follows from it here.
[[nodiscard]] std::optional<GaussianBound> gaussian_bound(PrivacyCurve& curve, std::uint64_t uses, double epsilon,
                                                          double delta, double precision = 1e-2);

/// A bound as a statement gives it: larger by a millionth (and at most 1), so that computing it again on a machine that
/// rounds differently gives no more than is stated.
[[nodiscard]] AttackBound stated(const AttackBound& bound);
/// Both bounds after `uses` uses as a statement gives them, where δ(epsilon) ≤ delta is certified.
[[nodiscard]] AttackBound stated_attack(PrivacyCurve& curve, std::uint64_t uses, double epsilon, double delta);

/// Upper bounds on the true-positive rate of every test at each of the false-positive rates α in [0, 1] after `uses`
/// uses: the least, over a grid of ε, of e^ε α + δ(ε) and of 1 − e^(−ε) (1 − α − δ(ε)); the latter is the former with
/// the data sets exchanged and the test's answers reversed. Never below α nor above 1. A curve for plotting, a little
/// less tight than attack_bound.
[[nodiscard]] std::vector<double> trade_off(PrivacyCurve& curve, std::uint64_t uses, std::span<const double> rates,
                                            double precision = 1e-2);

}  // namespace tsdp::privacy
