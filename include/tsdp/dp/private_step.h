// From recorded layers to one update of the parameters (paper, Algorithm 2).
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

#include "tsdp/core/random.h"
#include "tsdp/dp/layer.h"
#include "tsdp/dp/parameters.h"

namespace tsdp::dp {

inline constexpr const char* noise_purpose = "noise";

/// How a window's factor follows from its gradient norm n and the clip norm C.
enum class ClipFactor {
  exact,   ///< min(1, C/n), less a few units of rounding of n, so that a clipped gradient's norm is at most C
  opacus,  ///< min(1, C/(n + 1e-6)), as Opacus has it: never above `exact`
};

/// Clip factors (B), of type `type`, from squared norms (B). A window whose norm is not finite gets 0.
[[nodiscard]] at::Tensor clip_factors(const at::Tensor& squared_norms, double clip_norm, ClipFactor kind,
                                      at::ScalarType type);

/// Writes the clipped sum Σ_i f_i g_i of everything the layers recorded into the gradient buffer.
/// Sensitivity: each window adds a vector of norm at most `clip_norm`, so replacing one moves the sum by 2·clip_norm.
/// Returns the norms (B) before clipping, for the private metrics.
at::Tensor write_clipped_sum(const std::vector<Layer*>& layers, std::int64_t windows, const ParameterBuffer& parameters,
                             double clip_norm, ClipFactor kind);

/// Adds N(0, deviation²) to every coordinate of `gradient` (flat): coordinate j gets normal j of `stream`.
/// Noise is drawn and added in double precision and rounded once. Same values on every device and thread count.
void add_noise(const at::Tensor& gradient, double deviation, const RandomStream& stream);

/// Adam with coupled weight decay (L2) on a flat buffer, in one fused pass.
class Adam {
 public:
  struct Options {
    double learning_rate = 1e-3;
    double weight_decay = 1e-8;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
  };
  Adam(Options options, const at::Tensor& values);

  void step(const at::Tensor& values, const at::Tensor& gradient);

  /// State for checkpoints: first moment, second moment (like the values), number of steps taken (1 element).
  [[nodiscard]] std::vector<at::Tensor> state() const { return {first_, second_, steps_}; }

 private:
  Options options_;
  at::Tensor first_, second_, steps_;
};

}  // namespace tsdp::dp
