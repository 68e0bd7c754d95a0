// DLinear of GluonTS 0.15.1: hidden dimension 20, moving average over 25 places, Student-t outputs.
#pragma once

#include "forecaster.h"

namespace tsdp::models {

/// u = past / a by the mean scaler; trend = moving average of u, its ends repeated; h = Ws (u − trend) + bs + Wt trend
/// + bt reshaped to (H, 20) step-major, head 20 → 3.
class DLinear final : public Forecaster {
 public:
  static constexpr std::int64_t standard_width = 20;
  static constexpr std::int64_t kernel = 25;

  DLinear(const ModelOptions& options, const at::TensorOptions& tensor_options);

  [[nodiscard]] std::string name() const override { return "dlinear"; }
  [[nodiscard]] std::int64_t bytes_per_window() const override;
  void initialise(RandomStream& stream) override;
  [[nodiscard]] std::string script() const override;

 private:
  Hidden forward(const WindowBatch& batch) override;
  [[nodiscard]] std::int64_t width() const { return width_or(standard_width); }

  std::unique_ptr<dp::Linear> seasonal_, trend_;
};

/// Moving average over `kernel` (odd) places of each row of (B, C), the first and last values repeated beyond the ends.
[[nodiscard]] at::Tensor moving_average(const at::Tensor& rows, std::int64_t kernel);

}  // namespace tsdp::models
