#include "tsdp/dp/layer.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#include "row_kernels.h"

namespace tsdp::dp {
namespace {

std::atomic<int> plain_only = 0;

}  // namespace

PlainOperations::PlainOperations() { ++plain_only; }
PlainOperations::~PlainOperations() { --plain_only; }

bool kernels_serve(const at::Tensor& tensor) {
  return plain_only.load(std::memory_order_relaxed) == 0 && tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat;
}

at::Tensor& fitted(at::Tensor& buffer, at::IntArrayRef shape, const at::TensorOptions& options) {
  if (!buffer.defined() || buffer.sizes() != shape || buffer.options().dtype() != options.dtype() ||
      buffer.device() != options.device())
    buffer = at::empty(shape, options);
  return buffer;
}

at::Tensor squared_norms(const at::Tensor& vectors) {
  return at::linalg_vector_norm(vectors, 2, at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble).square_();
}

}  // namespace tsdp::dp
