// The layer interface of the private step: four operations, no autograd.
//
// For every parametric layer the gradient of one window is a contraction of what went in (activation) and what came
// back (output gradient). So a layer records both during one forward and one backward pass, and from them gives
// per-window squared norms and the sum of clipped per-window gradients, without a second backward pass and, where that
// is cheaper, without ever forming a window's gradient. Layers work on any device and floating-point type.
#pragma once

#include <cstdint>

#include <ATen/ATen.h>

#include "tsdp/dp/parameters.h"

namespace tsdp::dp {

/// B is the number of windows of a batch; it may change from call to call and be 0.
class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  /// Output for `input` (B, …); keeps what the other operations need. The result is valid until the next call.
  virtual const at::Tensor& forward(const at::Tensor& input) = 0;
  /// From the gradient of the summed loss with respect to the output to that with respect to the input. Returns an
  /// undefined tensor if the input's gradient is not wanted.
  virtual at::Tensor backward(const at::Tensor& output_gradient, bool want_input_gradient) = 0;
  /// Adds every window's squared gradient norm over this layer's parameters to `norms` (B, double precision): never
  /// less than that of what `write_gradient` adds for the window, up to a few units of rounding of the type.
  virtual void add_squared_norms(at::Tensor& norms) = 0;
  /// Forgets what was recorded of the windows marked in `windows` (B, bool): their gradients become 0, also where they
  /// were not finite (a factor of 0 alone would leave 0 · NaN).
  virtual void discard(const at::Tensor& windows) = 0;
  /// Writes Σ_i factors_i g_i into the gradient buffer; factors (B), or undefined for all 1.
  virtual void write_gradient(const at::Tensor& factors) = 0;
};

/// y = x Wᵀ + b for x (B, d) or, with T positions, (B, T, d). Weight (p, d) and bias (p) may be strided views.
class Linear final : public Layer {
 public:
  Linear(at::Tensor weight, at::Tensor bias, at::Tensor weight_gradient, at::Tensor bias_gradient);

  const at::Tensor& forward(const at::Tensor& input) override;
  at::Tensor backward(const at::Tensor& output_gradient, bool want_input_gradient) override;
  void add_squared_norms(at::Tensor& norms) override;
  void discard(const at::Tensor& windows) override;
  void write_gradient(const at::Tensor& factors) override;

 private:
  /// Whether the p × d gradient of each window costs less than the T × T Gram matrices.
  [[nodiscard]] bool materialise(std::int64_t positions) const;

  at::Tensor weight_, bias_, weight_gradient_, bias_gradient_;
  at::Tensor input_, output_, output_gradient_, input_gradient_;
  at::Tensor window_gradients_, window_bias_gradients_;  // (B, p, d), (B, p) of the last norms, where they were formed
};

}  // namespace tsdp::dp
