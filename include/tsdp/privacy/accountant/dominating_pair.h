// Dominating pairs of univariate Gaussian mixtures with a monotone likelihood ratio.
//
// Units: clipping norm C = 1, σ = standard deviation of the noise added to the sum of clipped gradients.
#pragma once

#include <utility>
#include <vector>

#include "tsdp/base/names.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

/// Which of two neighbours comes first. Where a change and its undoing are both allowed (the substitution of a value)
/// one symmetrised profile covers both; where a record is present or absent (zero-out) they are two mechanisms,
/// composed separately.
enum class Direction {
  symmetrised,  ///< either: H_α(P‖Q) for α ≥ 1 and H_α(Q‖P) for α < 1
  remove,       ///< P first: the record is present and is taken away
  add,          ///< Q first
};
constexpr Names<Direction, 3> names_of(Direction) {
  return {{{Direction::symmetrised, "symmetrised"}, {Direction::remove, "remove"}, {Direction::add, "add"}}};
}

/// A pair (P, Q) of one-dimensional Gaussian mixtures of a common σ, and the probability ρ_out that it is used at all.
///
/// P = Σ_k w_k N(μ_k, σ²) with all μ_k ≥ 0 (at least one > 0), w_k > 0, Σ w_k = 1. Q is one of
///   Against::noise    N(0, σ²)                   Theorems 4.2–4.5, F.7, F.8 as printed, G.1, C.1, C.2
///   Against::mirror   Σ_k w_k N(−μ_k, σ²)        E.1, E.8, F.1, F.2, F.8 mirrored
/// (Schuchardt et al. 2025; the paper's pairs with P's means ≤ 0 are these, reflected: a hockey-stick divergence does
/// not change when both measures are reflected.)
///
/// The privacy loss L(x) = log dP/dQ(x) is strictly increasing: L′ = (E[μ | x under P] − E[μ | x under Q]) / σ², and
/// the first is positive, the second never. So every {dP/dQ > α} is a half line and divergences have closed forms.
class DominatingPair {
 public:
  struct Component {
    double mean;
    double weight;
  };
  enum class Against {
    noise,
    mirror
  };

  /// Throws PrivacyError if σ is not positive and finite, a mean is negative, no mean is positive, weights are not
  /// positive with sum 1 within 1e-12, or use_probability is not in (0, 1].
  DominatingPair(std::vector<Component> p, double sigma, Against against = Against::noise,
                 double use_probability = 1.0);

  [[nodiscard]] double sigma() const noexcept { return sigma_; }
  [[nodiscard]] double largest_mean() const noexcept { return p_.back().mean; }
  [[nodiscard]] Against against() const noexcept { return against_; }
  /// ρ_out: with probability 1 − ρ_out the output does not depend on the change at all.
  [[nodiscard]] double use_probability() const noexcept { return use_probability_; }
  /// The pair without components of the largest means whose weights sum to at most `negligible`. The rest is not
  /// renormalised: at the 1e-45 in use, that makes no difference to doubles.
  /// With d that sum and A the result: profile(A) ≤ profile ≤ (1 − d) profile(A) + d, the first since the hockey-stick
  /// divergence of these pairs grows with the means (Prop. E.14), the second by its joint convexity (Lemma F.4).
  struct Truncated;
  [[nodiscard]] Truncated truncated(double negligible) const;
  /// Components of P by increasing mean.
  [[nodiscard]] const std::vector<Component>& components() const noexcept { return p_; }

  /// L(x), with small relative error near L = 0. For Against::mirror, x ≥ 0 is expected.
  [[nodiscard]] double loss(double x) const;
  /// e^{L(x)} − 1; +∞ where it overflows.
  [[nodiscard]] double excess(double x) const;
  /// The x with L(x) = loss, for loss ≥ 0 (Against::noise: above log(weight at mean 0)); to a few units in the last
  /// place. `guess` may start the search.
  [[nodiscard]] double inverse_loss(double loss, double guess = 0.0) const;
  /// log P(X > x) and log Q(X > x).
  [[nodiscard]] double log_tail_p(double x) const;
  [[nodiscard]] double log_tail_q(double x) const;
  /// log P(X < x) and log Q(X < x).
  [[nodiscard]] double log_head_p(double x) const;
  [[nodiscard]] double log_head_q(double x) const;
  /// e^{log_scale} times the density of Q at x, without underflow on the way.
  [[nodiscard]] double scaled_density_q(double x, double log_scale) const;
  /// e^{log_scale} times the density of P.
  [[nodiscard]] double scaled_density_p(double x, double log_scale) const;

  /// The symmetrised profile at α = e^ε (both signs of ε), with H_α(A‖B) = ∫ max(dA − α dB, 0):
  ///   (1 − ρ_out) max(0, 1 − α) + ρ_out · H_sym(α),   H_sym(α) = H_α(P‖Q) for α ≥ 1, H_α(Q‖P) for α < 1.
  /// This is what the substitution relation needs (Schuchardt et al. 2025, Thm. 4.2/4.4 with Prop. D.10).
  /// Relative error of about 1e-15 z⁴ for values above 1e-250 at ε ≥ 0, with z the deviations at which the loss is ε
  /// (1e-11 at z = 10, 1e-9 at the 33 that belong to 1e-250); absolute 1e-15 at ε < 0.
  [[nodiscard]] double symmetrised_profile(double epsilon) const;
  /// The same as a bracket: widened outwards by a bound on these errors.
  [[nodiscard]] Interval profile_bracket(double epsilon) const {
    return profile_bracket(Direction::symmetrised, epsilon);
  }
  /// H_{e^ε} in one direction, ε ≥ 0 (symmetrised: of either sign), and as a bracket. A single direction is only for
  /// pairs with one moved component and ρ_out = 1: (1 − q) N(0, σ²) + q N(μ, σ²) against N(0, σ²). Throws Error for
  /// others.
  [[nodiscard]] double profile(Direction direction, double epsilon) const;
  [[nodiscard]] Interval profile_bracket(Direction direction, double epsilon) const;
  /// The largest loss that direction `add` has, −log(1 − q), rounded up; +∞ for q = 1.
  [[nodiscard]] double largest_add_loss() const;

 private:
  [[nodiscard]] double exponent(const Component& c, double x) const;
  [[nodiscard]] double log_mixture(double x, double sign) const;
  /// The x with L(x) = loss of one moved component against noise, in closed form, to nearest. Throws OutOfReach where
  /// there is none.
  [[nodiscard]] double inverse_loss_of_one_moved(double loss) const;
  /// E[μ | x] under Σ_k w_k N(±μ_k, σ²), `sign` being ±1; to nearest.
  [[nodiscard]] double mean_at(double x, double sign) const;
  /// L(x), and L′(x) σ² = E_P[μ | x] − E_Q[μ | x]; to nearest.
  [[nodiscard]] std::pair<double, double> loss_and_slope(double x) const;
  void require_one_moved() const;
  struct Value {
    double value, error;
  };
  /// H_{e^ε}(Q‖P), ε ≥ 0.
  [[nodiscard]] Value add_profile(double epsilon) const;

  std::vector<Component> p_;
  double sigma_;
  double inverse_variance_;
  Against against_;
  double use_probability_;
};

struct DominatingPair::Truncated {
  DominatingPair pair;
  double dropped;  ///< d
};

/// log Φ̄(z) = log P(N(0,1) > z); relative error of e^{·} below 1e-13 for z ≤ 25 and about 1e-16 z² beyond.
[[nodiscard]] double log_normal_tail(double z);
/// Φ̄(b − width) − Φ̄(b) for width ≥ 0, without cancellation where width is small.
[[nodiscard]] double normal_between(double b, double width);

}  // namespace tsdp::privacy
