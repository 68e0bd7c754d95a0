// Dominating pairs of univariate Gaussian mixtures with a monotone likelihood ratio.
//
// Units: clipping norm C = 1, σ = standard deviation of the noise added to the sum of clipped gradients.
#pragma once

#include <vector>

namespace tsdp::privacy {

/// The pair P = Σ_k w_k N(μ_k, σ²), Q = N(0, σ²) with all μ_k ≥ 0 (at least one > 0), w_k > 0, Σ w_k = 1 (normalised).
///
/// Its privacy loss L(x) = log dP/dQ(x) = log Σ_k w_k exp((μ_k x − μ_k²/2)/σ²) is strictly increasing, as each term
/// with μ_k > 0 is. So every {dP/dQ > α} is a half line and hockey-stick divergences have closed forms.
class DominatingPair {
 public:
  struct Component {
    double mean;
    double weight;
  };

  /// Throws PrivacyError if σ is not positive and finite, a mean is negative, no mean is positive, or weights are not
  /// positive with sum 1 within 1e-12.
  DominatingPair(std::vector<Component> p, double sigma);

  /// (1 − q) N(0, σ²) + q N(2, σ²) against N(0, σ²), 0 < q ≤ 1: the pair of Theorems 4.2 (q = r) and 4.4 (q = ρ r).
  [[nodiscard]] static DominatingPair substitution(double q, double sigma);

  [[nodiscard]] double sigma() const noexcept { return sigma_; }
  [[nodiscard]] double largest_mean() const noexcept { return largest_mean_; }

  /// L(x), with small relative error near L = 0.
  [[nodiscard]] double loss(double x) const;
  /// e^{L(x)} − 1; +∞ where it overflows.
  [[nodiscard]] double excess(double x) const;
  /// The x with L(x) = loss, for loss above log(weight at mean 0); to a few units in the last place.
  [[nodiscard]] double inverse_loss(double loss) const;
  /// log P(X > x) and log Q(X > x).
  [[nodiscard]] double log_tail_p(double x) const;
  [[nodiscard]] double log_tail_q(double x) const;
  /// Density of Q at x.
  [[nodiscard]] double density_q(double x) const { return scaled_density_q(x, 0.0); }
  /// e^{log_scale} times it, without underflow on the way.
  [[nodiscard]] double scaled_density_q(double x, double log_scale) const;

  /// The symmetrised profile at α = e^ε (both signs of ε):
  ///   H_sym(α) = H_α(P‖Q) for α ≥ 1,  H_α(Q‖P) for α < 1,  H_α(A‖B) = ∫ max(dA − α dB, 0).
  /// This is what the substitution relation needs (Schuchardt et al. 2025, Thm. 4.2/4.4 with Prop. D.10).
  /// Relative error below 1e-9 for values above 1e-250 at ε ≥ 0 and moved weight of at least 1e-6; absolute 1e-15 at ε < 0.
  [[nodiscard]] double symmetrised_profile(double epsilon) const;

 private:
  std::vector<Component> p_;
  double sigma_;
  double largest_mean_ = 0.0;
};

/// log Φ̄(z) = log P(N(0,1) > z); relative error of e^{·} below 1e-13 for |z| ≤ 1e4.
[[nodiscard]] double log_normal_tail(double z);

}  // namespace tsdp::privacy
