// The Student-t head that all forecasters share: from hidden rows to parameters, losses and gradients.
#pragma once

#include <memory>
#include <string>

#include <ATen/ATen.h>

#include "tsdp/dp/layers.h"
#include "tsdp/dp/parameters.h"

namespace tsdp::models {

/// Parameters of Y = affine_scale · T, T ~ t(df, loc, scale), at each of K steps of each window.
struct StudentT {
  at::Tensor df, loc, scale;  ///< (B, K)
  at::Tensor affine_scale;    ///< (B, 1)
};

/// df = 2 + softplus(d), loc = m, scale = max(softplus(r), machine epsilon) from raw (…, 3).
[[nodiscard]] StudentT student_t_of(const at::Tensor& raw, const at::Tensor& affine_scale);

/// Weighted negative log-likelihood of each window and its gradient with respect to `raw`.
struct StudentTLoss {
  at::Tensor losses;        ///< (B): Σ_k weight_ik nll_ik
  at::Tensor raw_gradient;  ///< (B, K, 3), of Σ_i loss_i
};
/// raw (B, K, 3); target (B, K) in units of the data; affine_scale (B, 1); weights (B, K). Where a weight is 0 the term
/// and its gradient are exactly 0, finite or not.
[[nodiscard]] StudentTLoss student_t_loss(const at::Tensor& raw, const at::Tensor& target,
                                          const at::Tensor& affine_scale, const at::Tensor& weights);

/// Three affine maps D → 1 (df, loc, scale) over the rows of (B, K, D), and the loss.
class StudentTHead final : public dp::Layer {
 public:
  /// Declares `<prefix>.0`, `.1`, `.2`, weight and bias each. Returns the place of the first.
  static std::size_t declare(dp::ParameterBuffer& parameters, const std::string& prefix, std::int64_t width);
  StudentTHead(const dp::ParameterBuffer& parameters, std::size_t first, std::int64_t width);

  /// Raw outputs (B, K, 3).
  const at::Tensor& raw(const at::Tensor& hidden) { return maps_->forward(hidden); }
  /// Losses (B), as `student_t_loss`; records.
  at::Tensor losses(const at::Tensor& hidden, const at::Tensor& target, const at::Tensor& affine_scale,
                    const at::Tensor& weights);
  /// The gradient of Σ_i loss_i with respect to the hidden rows (B, K, D). Also records what the head's own gradients
  /// are made of: it is to be called even where nothing below the head is trained.
  dp::Gradient hidden_gradient();

  void join(const dp::Records& records) override;
  void add_squared_norms(at::Tensor& norms) override;
  void discard(const at::Tensor& windows) override;
  void add_gradient(const at::Tensor& factors) override;

 private:
  at::Tensor losses_by_kernel(const at::Tensor& hidden, const at::Tensor& target, const at::Tensor& affine_scale,
                              const at::Tensor& weights);

  std::unique_ptr<dp::Linear> maps_;  // D → 3, over strided views of the three maps
  at::Tensor values_, gradients_;  // the three maps, flat: 3 (D + 1)
  at::Tensor raw_gradient_, hidden_gradient_;
  // Of the CPU's kernel: the windows' gradients (B, 3 (D + 1)) and their squared norms (B, double precision).
  at::Tensor window_gradients_, squared_norms_, hidden_norms_;
  bool by_kernel_ = false;  // whether the last losses were the kernel's
};

/// TorchScript lines that turn a local `steps` (…, D) into locals df, loc and scale by the maps whose weights are
/// PREFIX_0_weight and so on.
[[nodiscard]] std::string student_t_script(const std::string& prefix);

}  // namespace tsdp::models
