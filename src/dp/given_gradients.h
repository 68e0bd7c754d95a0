// A layer whose windows' gradients were not made by a backward pass.
#pragma once

#include <utility>

#include "tsdp/dp/layer.h"

namespace tsdp::dp {

/// One row per window, (B, P), over P parameters that lie side by side in the buffer.
class GivenGradients final : public Layer {
 public:
  explicit GivenGradients(at::Tensor gradient) : gradient_(std::move(gradient)) {}  ///< of the parameters: (P)
  void set(at::Tensor rows) { rows_ = std::move(rows); }
  void join(const Records& records) override { rows_ = records.sums(rows_); }
  void add_squared_norms(at::Tensor& norms) override;
  void discard(const at::Tensor& windows) override;
  void add_gradient(const at::Tensor& factors) override;

 private:
  at::Tensor gradient_, rows_;
};

}  // namespace tsdp::dp
