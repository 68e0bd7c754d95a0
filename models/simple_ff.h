// SimpleFeedForward of GluonTS 0.15.1: hidden dimensions 64, 64, no batch norm, Student-t outputs.
#pragma once

#include "forecaster.h"

namespace tsdp::models {

/// u = past / a, h1 = relu(W0 u + b0), h2 = W2 h1 + b2 reshaped to (H, 64) step-major, head 64 → 3.
/// The scale a = max(mean |past|, 1e-5) is the window's own and ignores which values were observed.
class SimpleFeedForward final : public Forecaster {
 public:
  static constexpr std::int64_t standard_width = 64;

  SimpleFeedForward(const ModelOptions& options, const at::TensorOptions& tensor_options);

  [[nodiscard]] std::string name() const override { return "simple_ff"; }
  [[nodiscard]] std::int64_t bytes_per_window() const override;
  void initialise(RandomStream& stream) override;
  [[nodiscard]] std::string script() const override;

 private:
  Hidden forward(const WindowBatch& batch) override;
  [[nodiscard]] std::int64_t width() const { return width_or(standard_width); }

  std::unique_ptr<dp::Linear> first_, second_;
};

}  // namespace tsdp::models
