// The Fourier transform of an exponentially tilted loss distribution.
#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "product_loss.h"

namespace tsdp::privacy {

/// The most low frequencies that are summed directly.
inline constexpr std::int64_t most_direct = 16384;

/// index modulo size, from −size/2 to size/2.
[[nodiscard]] std::int64_t centred(std::int64_t index, std::int64_t size);

/// The Fourier transform F of the tilted masses p^θ_i = p_i e^{θ i h − K(θ)} at the frequencies of a circle of N cells,
/// as far as it matters for a given count of uses: compositions of nearby counts share it.
///
/// F^k vanishes except at the lowest frequencies when k is large. On a circle of at most `small_circle` cells the fast
/// transform gives all coefficients. On a larger one the fast transform on a smaller circle samples F, which moves by
/// at most E|S| times the distance in between, S the tilted loss: that proves where |F|^k stays below
/// e^{log_vanishing}, and what is left is summed directly. Where too much is left, the fast transform runs on the large
/// circle.
class TiltedTransform {
 public:
  static constexpr std::int64_t small_circle = std::int64_t{1} << 15;
  static constexpr double log_vanishing = -60.0;  // 1e-26

  /// Largest circle on which the fast transform is run (32 MB).
  static constexpr std::int64_t max_transform = std::int64_t{1} << 22;

  /// For compositions of at least `uses` uses. `size` N: even, a good size for FFTW. Nothing is needed at frequencies
  /// from `wanted` on, as other factors vanish there. `distribution` must outlive the transform. Throws OutOfReach.
  TiltedTransform(const LossDistribution& distribution, double theta, std::int64_t size, std::uint64_t uses,
                  std::int64_t wanted = std::numeric_limits<std::int64_t>::max());

  [[nodiscard]] const LossDistribution& distribution() const { return *distribution_; }
  [[nodiscard]] double theta() const { return theta_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t least_uses() const { return least_uses_; }
  [[nodiscard]] const Cumulants& at_theta() const { return cumulants_; }
  /// F at frequencies m = 0, 1, …; those beyond, up to N/2, have |F|^k ≤ e^{log_vanishing} for all counts it serves, or
  /// were not wanted.
  [[nodiscard]] const std::vector<std::complex<double>>& coefficients() const { return coefficients_; }
  /// Bound on the rounding error of every coefficient.
  [[nodiscard]] double error() const { return error_; }
  /// Bound on ‖rounding errors of all coefficients‖₂ / √N.
  [[nodiscard]] double euclidean_error() const { return euclidean_error_; }

 private:
  /// Returns ‖p^θ‖₂ on the circle, without the mass at 0.
  double transform_fast(const std::vector<double>& plus, const std::vector<double>& minus, std::int64_t cells);
  void sum_directly(const std::vector<double>& plus, const std::vector<double>& minus, std::int64_t count);

  const LossDistribution* distribution_;
  double theta_;
  std::int64_t size_;
  std::uint64_t least_uses_;
  Cumulants cumulants_;
  double at_zero_ = 0.0;  // tilted mass at loss 0: a constant in frequency, kept out of the transform's rounding
  double error_ = 0.0;
  double euclidean_error_ = 0.0;
  std::vector<std::complex<double>> coefficients_;
};

}  // namespace tsdp::privacy
