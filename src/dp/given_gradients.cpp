#include "dp/given_gradients.h"

namespace tsdp::dp {

void GivenGradients::add_squared_norms(at::Tensor& norms) { norms.add_(squared_norms(rows_)); }

void GivenGradients::discard(const at::Tensor& windows) { rows_ = rows_.masked_fill(windows.unsqueeze(1), 0.0); }

void GivenGradients::add_gradient(const at::Tensor& factors) {
  gradient_.add_(factors.defined() ? at::mv(rows_.t(), factors) : rows_.sum(0));
}

}  // namespace tsdp::dp
