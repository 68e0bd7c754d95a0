// SimpleFeedForward of GluonTS 0.15.1: hidden dimensions 64, 64, no batch norm, Student-t outputs.
#pragma once

#include <memory>

#include "forecaster.h"
#include "tsdp/dp/layer.h"

namespace tsdp::models {

/// u = past / a, h1 = relu(W0 u + b0), h2 = W2 h1 + b2 reshaped to (H, 64) step-major, head 64 → 3.
/// The scale a = max(mean |past|, 1e-5) is the window's own and ignores which values were observed.
class SimpleFeedForward final : public Forecaster {
 public:
  static constexpr std::int64_t width = 64;

  SimpleFeedForward(const ModelOptions& options, const at::TensorOptions& tensor_options);

  [[nodiscard]] std::string name() const override { return "simple_ff"; }
  [[nodiscard]] std::int64_t past_length() const override { return options_.context_length; }
  void initialise(RandomStream& stream) override;
  at::Tensor losses(const WindowBatch& batch) override;
  void backward(double seed) override;
  StudentT predict(const at::Tensor& past_target, const at::Tensor& past_observed) override;
  [[nodiscard]] std::string script() const override;

 private:
  /// Raw head outputs (B, H, 3).
  const at::Tensor& raw_outputs(const at::Tensor& past_target);

  std::unique_ptr<dp::Linear> first_, second_, head_;
  at::Tensor affine_scale_;  // (B, 1)
  at::Tensor scaled_;        // (B, C)
  at::Tensor hidden_;        // (B, 64), after the rectifier
  at::Tensor raw_gradient_;  // (B, H, 3)
};

}  // namespace tsdp::models
