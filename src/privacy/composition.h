// k-fold self-composition of a discretised loss distribution by an exponentially tilted Fourier transform.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
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
/// The same where the least bound equals log δ.
[[nodiscard]] double best_tilt_for_delta(const LossDistribution& distribution, std::uint64_t uses, double delta);

/// The Fourier transform F of the tilted masses p^θ_i = p_i e^{θ i h − K(θ)} at the frequencies of a circle of N cells,
/// as far as it matters to a given count of uses: compositions of near counts share it.
///
/// F^k vanishes but for the lowest frequencies when k is large. On a circle of at most `small_circle` cells the fast
/// transform gives all coefficients. On a larger one the fast transform on a smaller circle samples F, which moves by at
/// most E|S| times the distance in between, S the tilted loss: that proves where |F|^k stays below e^{log_vanishing},
/// and what is left is summed directly. Where too much is left, the fast transform runs on the large circle.
class TiltedTransform {
 public:
  static constexpr std::int64_t small_circle = std::int64_t{1} << 15;
  static constexpr double log_vanishing = -60.0;  // 1e-26

  /// For compositions of at least `uses` uses. `size` N: even, a good size for FFTW.
  TiltedTransform(const LossDistribution& distribution, double theta, std::int64_t size, std::uint64_t uses);

  [[nodiscard]] const LossDistribution& distribution() const { return *distribution_; }
  [[nodiscard]] double theta() const { return theta_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t least_uses() const { return least_uses_; }
  [[nodiscard]] const Cumulants& at_theta() const { return cumulants_; }
  /// F at frequencies m = 0, 1, …; those beyond, up to N/2, have |F|^k ≤ e^{log_vanishing} for all counts it serves.
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

/// Whether so many uses leave next to nothing of the high frequencies, at which F is little more than the mass at 0; then
/// wide windows cost nothing. A guess that chooses grids and windows: what is left is always proven.
[[nodiscard]] bool high_frequencies_vanish(const LossDistribution& distribution, std::uint64_t uses);

/// The window of cells that holds the tilted k-fold sum: indices first … first + cells − 1.
struct Window {
  double theta;
  std::int64_t first;
  std::int64_t cells;
};
/// (`distribution` may be a coarser one when only the width of the window is wanted.)
/// All but 2e-20 of the tilted sum's mass lies in the answer, by Chernoff's bound. Where the wanted θ gives no window of
/// at most `most` cells a smaller one is taken. Throws PrivacyError if none does.
[[nodiscard]] Window window_of(const LossDistribution& distribution, std::uint64_t uses, double theta, double most);

/// The k-fold sum of grid losses, under the tilted law.
///
/// With t = (p^θ)^{*k}, p^{*k}_j = e^{kK − θ j h} t_j, so
///   δ(ε) = e^{kK − θε} S(ε),   S(ε) = Σ_{jh > ε} w(jh − ε) t_j,   w(u) = e^{−θu}(1 − e^{−u}) ≤ c(θ),
/// and an error η in ℓ₁ on t changes δ(ε) by at most e^{kK − θε} c(θ) η.
///
/// t_j = (1/N) Σ_m F_m^k y_m^j with y_m = e^{2πi m/N} and F the transform, and the sum over j is geometric in every
/// frequency: with j the first index beyond ε, u = jh − ε, z = e^{−θh} y_m, z′ = e^{−(θ+1)h} y_m,
///   Σ_{i ≥ 0} w(u + ih) y_m^i = e^{−θu} [(1 − e^{−u}) + z (e^{−u} − e^{−h})] / ((1 − z)(1 − z′)),
/// so S(ε) = e^{−θu} [(1 − e^{−u}) D_j + e^{−θh} (e^{−u} − e^{−h}) D_{j+1}] less the same from the window's end on, with
/// D_j = (1/N) Σ_m F_m^k y_m^j / ((1 − z)(1 − z′)). F^k vanishes but for a few hundred low frequencies when k is
/// large; then D_j is summed directly, else one inverse transform gives all of them.
class Composition {
 public:
  Composition(const TiltedTransform& transform, std::uint64_t uses, std::int64_t first);

  /// A bound on δ(ε), ε ≥ 0, on the side of the distribution's rounding, in [0, 1]; everything charged.
  [[nodiscard]] double delta(double epsilon) const;
  /// What of `delta(epsilon)` is charge for transforms and window: shrinks when θ is tuned for this ε.
  [[nodiscard]] double charge(double epsilon) const;

 private:
  /// D_j.
  [[nodiscard]] double twice_summed(std::int64_t j) const;
  struct Part {
    double value;
    double error;
  };
  /// Σ_{i ≥ 0} w(u + ih) t_{j+i} over the periodic continuation of t, with its rounding.
  [[nodiscard]] Part suffix(std::int64_t j, double u) const;
  [[nodiscard]] Part sum_beyond(double epsilon) const;

  Rounding rounding_;
  double step_;
  double theta_;
  std::int64_t size_;
  std::int64_t first_;
  double log_scale_ = 0.0;       // k K(θ)
  double sum_error_ = 0.0;       // of S, for window and coefficients
  double twice_error_ = 0.0;     // of every D_j
  double relative_error_ = 0.0;  // of all uses together
  double infinite_mass_ = 0.0;   // of all uses together
  double loss_error_ = 0.0;      // of all uses together
  std::vector<std::complex<double>> low_;  // F^k / ((1 − z)(1 − z′)) / N at the lowest frequencies, or
  std::vector<double> all_;                // every D_j
};

/// Composes one distribution with itself, keeping the last transform: another count or ε near by shares it.
class Composer {
 public:
  /// Largest circle, and the largest on which the fast transform is run (32 MB).
  static constexpr std::int64_t max_circle = std::int64_t{1} << 28;
  static constexpr std::int64_t max_transform = std::int64_t{1} << 22;

  /// On circles of at most `most_cells` where possible.
  explicit Composer(LossDistribution distribution, std::int64_t most_cells = max_circle)
      : distribution_(std::move(distribution)), most_cells_(most_cells) {}
  Composer(const Composer&) = delete;
  Composer& operator=(const Composer&) = delete;

  [[nodiscard]] const LossDistribution& distribution() const { return distribution_; }
  /// Throws PrivacyError if no transform of allowed size holds the composition.
  [[nodiscard]] Composition compose(std::uint64_t uses, double theta);

 private:
  LossDistribution distribution_;
  std::int64_t most_cells_;
  std::unique_ptr<TiltedTransform> transform_;
};

}  // namespace tsdp::privacy
