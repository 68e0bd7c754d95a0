// Composition of discretised losses by exponentially tilted Fourier transforms.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tilted_transform.h"

namespace tsdp::privacy {

/// The k-fold sum of grid losses, under the tilted law.
///
/// With t = (p^θ)^{*k}, p^{*k}_j = e^{kK − θ j h} t_j, so
///   δ(ε) = e^{kK − θε} S(ε),   S(ε) = Σ_{jh > ε} w(jh − ε) t_j,   w(u) = e^{−θu}(1 − e^{−u}) ≤ c(θ),
/// and an error η in ℓ₁ on t changes δ(ε) by at most e^{kK − θε} c(θ) η.
///
/// t_j = (1/N) Σ_m F_m^k y_m^j with y_m = e^{2πi m/N} and F the transform, and the sum over j is geometric in every
/// frequency: with j the first index beyond ε, u = jh − ε, z = e^{−θh} y_m, z′ = e^{−(θ+1)h} y_m,
///   Σ_{i ≥ 0} w(u + ih) y_m^i = e^{−θu} [(1 − e^{−u}) + z (e^{−u} − e^{−h})] / ((1 − z)(1 − z′)),
/// so S(ε) = e^{−θu} [(1 − e^{−u}) D_j + e^{−θh} (e^{−u} − e^{−h}) D_{j+1}] less the same from the window's end on,
/// with D_j = (1/N) Σ_m F_m^k y_m^j / ((1 − z)(1 − z′)). F^k vanishes except at a few hundred low frequencies when k is
/// large; then D_j is summed directly, otherwise one inverse transform gives all of them.
///
/// For a product of mechanisms, k K(θ) is Σ_i k_i K_i(θ) and F^k is Π_i F_i^{k_i}, with k_i draws of part i.
class Composition {
 public:
  /// One factor of F^k: a transform and how many times it is taken.
  struct Factor {
    const TiltedTransform* transform;
    std::uint64_t draws;
  };
  /// All transforms share one θ, size, step and rounding.
  Composition(const std::vector<Factor>& factors, std::int64_t first);
  Composition(const TiltedTransform& transform, std::uint64_t uses, std::int64_t first)
      : Composition(std::vector<Factor>{{&transform, uses}}, first) {}

  /// A bound on δ(ε), ε ≥ 0, on the side of the distribution's rounding, in [0, 1]; everything is charged.
  [[nodiscard]] double delta(double epsilon) const;
  /// The part of `delta(epsilon)` that is a charge for transforms and window. It shrinks when θ is tuned for this ε.
  [[nodiscard]] double charge(double epsilon) const;

 private:
  /// k K(θ), to nearest, and what single draws are off by, summed up over all of them, from above.
  void add_losses(const std::vector<Factor>& factors);
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
  double log_scale_ = 0.0;  // k K(θ)
  double sum_error_ = 0.0;  // of S, for window and coefficients
  double twice_error_ = 0.0;  // of every D_j
  double relative_error_ = 0.0;  // of all uses together
  double infinite_mass_ = 0.0;  // of all uses together
  double loss_error_ = 0.0;  // of all uses together
  double offset_ = 0.0;  // of all uses together
  std::vector<std::complex<double>> low_;  // F^k / ((1 − z)(1 − z′)) / N at the lowest frequencies, or
  std::vector<double> all_;  // every D_j
};

/// Composes one loss with itself. Keeps the last transforms, which a nearby count or ε shares.
class Composer {
 public:
  /// Largest circle.
  static constexpr std::int64_t max_circle = std::int64_t{1} << 28;

  /// On circles of at most `most_cells` where possible.
  explicit Composer(ProductLoss loss, std::int64_t most_cells = max_circle)
      : loss_(std::move(loss)), most_cells_(most_cells) {}
  Composer(const Composer&) = delete;
  Composer& operator=(const Composer&) = delete;

  [[nodiscard]] const ProductLoss& loss() const { return loss_; }
  /// Throws OutOfReach if no transform of allowed size holds the composition.
  [[nodiscard]] Composition compose(std::uint64_t uses, double theta);

 private:
  using Transforms = std::vector<std::unique_ptr<TiltedTransform>>;
  /// One per part, at a window's θ.
  [[nodiscard]] Transforms transforms(const Window& window, std::uint64_t uses) const;
  [[nodiscard]] Composition composed(const Transforms& transforms, std::uint64_t uses, std::int64_t first) const;

  ProductLoss loss_;
  std::int64_t most_cells_;
  Transforms kept_;
};

}  // namespace tsdp::privacy
