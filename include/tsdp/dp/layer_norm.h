// Layer normalisation over the last axis.
#pragma once

#include "tsdp/dp/layer.h"

namespace tsdp::dp {

/// y = γ (x − mean)/√(variance + 1e-5) + β for x (B, d) or (B, T, d), biased variance over the last axis; γ, β (d).
/// Window i's gradients are Σ_t g_it ∘ x̂_it and Σ_t g_it, formed directly.
class LayerNorm final : public Map {
 public:
  LayerNorm(at::Tensor weight, at::Tensor bias, at::Tensor weight_gradient, at::Tensor bias_gradient);

  const at::Tensor& forward(const at::Tensor& input) override;
  at::Tensor backward(const Gradient& output_gradient, bool want_input_gradient) override;
  void join(const Records& records) override;
  void add_squared_norms(at::Tensor& norms) override;
  void discard(const at::Tensor& windows) override;
  void add_gradient(const at::Tensor& factors) override;

 private:
  [[nodiscard]] bool by_kernel() const { return kernel_input_.defined(); }

  at::Tensor weight_, bias_, weight_gradient_, bias_gradient_;
  at::Tensor output_, normalised_, inverse_deviation_;
  at::Tensor device_input_;  // off the CPU, for LibTorch's own backward pass, with mean_ and inverse_
  at::Tensor by_weight_, by_bias_;  // (B, d): the windows' or the records' gradients
  bool joined_by_kernel_ = false;
  // For the CPU kernel, with one position per window: what it recorded, and the windows' squared norms.
  at::Tensor kernel_input_, mean_, inverse_, output_gradient_, input_gradient_, squared_norms_;
};

}  // namespace tsdp::dp
