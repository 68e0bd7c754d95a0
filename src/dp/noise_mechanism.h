// Noise on the sum of a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/ATen.h>

#include "dp/private_step.h"
#include "tsdp/random/random.h"

namespace tsdp::dp {

/// Purpose name of the stream of a step's noise.
inline constexpr const char* noise_purpose = "noise";

/// The noise added to the sum of the clipped gradients of step t = 0, 1, …; the noise of several steps may be
/// dependent. Steps are taken in their order. It depends only on (key, noise_purpose, steps up to this one) and on the
/// state.
class NoiseMechanism {
 public:
  explicit NoiseMechanism(double deviation) : deviation_(deviation) {}
  virtual ~NoiseMechanism() = default;

  /// gradient ← (Σ parts + noise of step `step`) · scale, as in finish_sum.
  void finish(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, const SecretKey& key,
              std::uint64_t step, double scale);
  /// noise ← the noise of step `step`, for finish_noised; `noise` is double precision on the CPU. A step is finished or
  /// its noise drawn, not both.
  void draw(const at::Tensor& noise, const SecretKey& key, std::uint64_t step);
  [[nodiscard]] double deviation() const noexcept { return deviation_; }

  /// What it must keep between steps, for checkpoints: views that are written to when a run is resumed.
  [[nodiscard]] virtual std::vector<at::Tensor> state() const { return {}; }

 protected:
  /// What turns independent normals into the noise of step `step`, which is the next one.
  virtual Correlate next(std::uint64_t step) = 0;

 private:
  double deviation_;
};

/// N(0, deviation²) in every coordinate, fresh in every step.
class IndependentNoise final : public NoiseMechanism {
 public:
  using NoiseMechanism::NoiseMechanism;

 protected:
  Correlate next(std::uint64_t) override { return {}; }
};

/// Noise that later steps take back in part: row t of C⁻¹Z, Z independent N(0, deviation²), C lower triangular and
/// Toeplitz.
///
/// The noise depends on Z alone, in double precision throughout: noise in single precision would lie on a lattice
/// coarser than the grid of releases, and its low digits would reveal the sum next to it.
///   banded: x_t = (z_t − Σ_{1 ≤ j < p} c_j x_{t−j}) / c_0. State: p − 1 past x.
///   banded_inverse: x_t = Σ_{j < p} q_j z_{t−j}. State: p − 1 past z.
///   buffered: x_t = z_t − Σ_j ω_j B_j, then B_j ← θ_j B_j + x_t. State: B.
class CorrelatedNoise final : public NoiseMechanism {
 public:
  enum class Form {
    banded,
    banded_inverse,
    buffered
  };
  struct Recursion {
    Form form;
    std::vector<double> coefficients;  ///< c_0 … c_{p−1} or q_0 … q_{p−1}
    std::vector<double> decays, weights;
  };
  /// For steps 0 … `steps` − 1 on this many coordinates.
  CorrelatedNoise(Recursion recursion, std::uint64_t steps, double deviation, std::int64_t coordinates);

  /// (rows, coordinates) in double precision, where row (t mod (p − 1)) of a band belongs to step t; and the number of
  /// the next step.
  [[nodiscard]] std::vector<at::Tensor> state() const override;

 protected:
  /// Throws Error for a step that was not planned, or is not the next one.
  Correlate next(std::uint64_t step) override;

 private:
  void correlate(std::uint64_t step, std::int64_t place, std::span<double> noise);

  Recursion recursion_;
  std::uint64_t steps_;
  at::Tensor kept_, next_;
};

}  // namespace tsdp::dp
