// k-fold self-composition of a discretised loss distribution by an exponentially tilted Fourier transform.
#pragma once

#include <cstdint>
#include <vector>

#include "tsdp/privacy/loss_distribution.h"

namespace tsdp::privacy {

/// Value and first two derivatives of K(θ) = log Σ_i p_i e^{θ i h}.
struct Cumulants {
  double value;
  double mean;
  double variance;
};
[[nodiscard]] Cumulants cumulants(const LossDistribution& distribution, double theta);

/// The θ > 0 at which the Chernoff bound k K(θ) − θ ε + log c(θ) on log δ(ε) is least,
/// c(θ) = max_u e^{−θu}(1 − e^{−u}) = θ^θ (1+θ)^{−(1+θ)}.
[[nodiscard]] double best_tilt_for_epsilon(const LossDistribution& distribution, std::uint64_t uses, double epsilon);
/// The same where the least bound equals log δ, and the ε at which it does.
struct TiltAndEpsilon {
  double theta;
  double epsilon;
};
[[nodiscard]] TiltAndEpsilon best_tilt_for_delta(const LossDistribution& distribution, std::uint64_t uses, double delta);

/// The k-fold sum of grid losses, under the tilted law.
///
/// With p^θ_i = p_i e^{θ i h − K}: p^{*k}_j = e^{kK − θ j h} (p^θ)^{*k}_j, so
///   δ(ε) = e^{kK − θε} Σ_{jh > ε} w(jh − ε) (p^θ)^{*k}_j,   w(u) = e^{−θu}(1 − e^{−u}) ≤ c(θ),
/// and an error η in ℓ₁ on the tilted masses changes δ(ε) by at most e^{kK − θε} c(θ) η.
class Composition {
 public:
  Composition(const LossDistribution& distribution, std::uint64_t uses, double theta);

  /// A bound on δ(ε), ε ≥ 0, on the side of the distribution's rounding, in [0, 1]; everything charged.
  [[nodiscard]] double delta(double epsilon) const;
  /// What of `delta(epsilon)` is charge for transforms and window: shrinks when θ is tuned for this ε.
  [[nodiscard]] double charge(double epsilon) const;

 private:
  Rounding rounding_;
  double step_;
  double uses_;
  double theta_;
  double log_scale_ = 0.0;  // k K(θ)
  double first_loss_ = 0.0;
  double l1_error_ = 0.0;  // charged on the tilted masses: rounding, and twice the mass outside the window
  double relative_error_ = 0.0;  // of all uses together
  double infinite_mass_ = 0.0;   // of all uses together
  double loss_error_ = 0.0;      // of all uses together
  std::vector<double> tilted_;   // (p^θ)^{*k} at first_loss_ + j·step_
};

}  // namespace tsdp::privacy
