// Scales of windows: each window's own, never a statistic of a batch or of the data set.
#pragma once

#include <ATen/ATen.h>

namespace tsdp::models {

inline constexpr double least_mean_scale = 1e-10;

/// max(Σ |y o| / Σ o, 1e-10) over the last axis, (B, 1); windows without an observed value get max(default_scale,
/// 1e-10). GluonTS's MeanScaler except for that constant, where GluonTS takes the mean of the whole batch.
[[nodiscard]] at::Tensor mean_scale(const at::Tensor& target, const at::Tensor& observed, double default_scale);

/// TorchScript: method `mean_scale(self, target, observed) -> Tensor`, with attribute `default_scale`.
[[nodiscard]] const char* mean_scale_script();

/// Mean of the observed ones among the last `context` values, (B, 1); 0 if none is. past, observed (B, P), P ≥ context.
[[nodiscard]] at::Tensor context_mean(const at::Tensor& past, const at::Tensor& observed, std::int64_t context);

/// TorchScript: method `context_mean(self, past, observed, context: int) -> Tensor`.
[[nodiscard]] const char* context_mean_script();

}  // namespace tsdp::models
