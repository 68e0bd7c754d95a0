// The worked example of models/README.md: linear autoregression with a Student-t head.
#pragma once

#include "models/forecaster.h"

namespace tsdp::models {

/// u = past / a by the mean scaler; h = W u + b reshaped to (H, 4) step-major; head 4 → 3.
class Autoregression final : public Forecaster {
 public:
  static constexpr std::int64_t width = 4;

  Autoregression(const ModelOptions& options, const at::TensorOptions& tensor_options);

  [[nodiscard]] std::string name() const override { return "autoregression"; }
  [[nodiscard]] std::int64_t bytes_per_window() const override;
  void initialise(RandomStream& stream) override;
  [[nodiscard]] std::string script() const override;

 private:
  Hidden forward(const WindowBatch& batch) override;

  std::unique_ptr<dp::Linear> map_;
};

}  // namespace tsdp::models
