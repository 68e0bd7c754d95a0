// The Student-t head that all forecasters share: from raw outputs to parameters, losses and gradients.
#pragma once

#include <ATen/ATen.h>

#include "forecaster.h"
#include "tsdp/dp/layer.h"

namespace tsdp::models {

/// Declares the three affine maps D → 1 of the head, `<prefix>.0`, `.1`, `.2` (df, loc, scale), in this order.
/// Returns the place of the first.
std::size_t declare_student_t_head(dp::ParameterBuffer& parameters, const std::string& prefix, std::int64_t width);

/// One layer D → 3 over strided views of the three maps.
[[nodiscard]] std::unique_ptr<dp::Linear> make_student_t_head(const dp::ParameterBuffer& parameters, std::size_t first,
                                                              std::int64_t width);

/// df = 2 + softplus(d), loc = m, scale = max(softplus(r), machine epsilon) from raw (…, 3).
[[nodiscard]] StudentT student_t_of(const at::Tensor& raw, const at::Tensor& affine_scale);

/// Weighted negative log-likelihood of each window and its gradient with respect to `raw`.
struct StudentTLoss {
  at::Tensor losses;        ///< (B): Σ_k weight_ik nll_ik
  at::Tensor raw_gradient;  ///< (B, K, 3), of Σ_i loss_i
};
/// raw (B, K, 3); target (B, K) in units of the data; affine_scale (B, 1); weights (B, K). Where a weight is 0 the term
/// and its gradient are exactly 0, finite or not.
[[nodiscard]] StudentTLoss student_t_loss(const at::Tensor& raw, const at::Tensor& target, const at::Tensor& affine_scale,
                                          const at::Tensor& weights);

/// TorchScript lines that turn a local `raw` (B, K, 3) into locals df, loc, scale.
[[nodiscard]] std::string student_t_script();

}  // namespace tsdp::models
