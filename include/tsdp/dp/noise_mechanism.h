// Noise on the sum of a step.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

#include "tsdp/random/random.h"

namespace tsdp::dp {

/// Purpose name of the stream of a step's noise.
inline constexpr const char* noise_purpose = "noise";

/// What is added to the sum of the clipped gradients of step t = 0, 1, …; the noises of several steps may hang together. Steps are
/// taken in their order.
class NoiseMechanism {
 public:
  virtual ~NoiseMechanism() = default;

  /// gradient ← (Σ parts + noise of step `step`) · scale, as finish_sum has it; the noise follows from (key, noise_purpose,
  /// steps up to this one) alone, and from the state.
  virtual void finish(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, const SecretKey& key,
                      std::uint64_t step, double scale) = 0;

  /// What it must keep between steps, for checkpoints: views that are written to when a run is resumed.
  [[nodiscard]] virtual std::vector<at::Tensor> state() const { return {}; }
};

/// N(0, deviation²) in every coordinate, fresh in every step: finish_sum.
class IndependentNoise final : public NoiseMechanism {
 public:
  explicit IndependentNoise(double deviation) : deviation_(deviation) {}

  void finish(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, const SecretKey& key, std::uint64_t step,
              double scale) override;

 private:
  double deviation_;
};

}  // namespace tsdp::dp
