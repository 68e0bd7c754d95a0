#include "tsdp/dp/layer.h"

#include <atomic>

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

at::Tensor squared_norms(const at::Tensor& rows) {
  // Single precision is summed over pieces of at most 64 (a sum of n squares is off by at most n units, in whatever
  // order) and in double precision over the pieces: three times as fast as converting every element.
  const auto length = rows.size(-1);
  if (rows.scalar_type() == at::kFloat && rows.is_contiguous()) {
    for (std::int64_t piece = 64; piece >= 16; --piece) {
      if (length % piece != 0) continue;
      auto shape = rows.sizes().vec();
      shape.back() = length / piece;
      shape.push_back(piece);
      return at::linalg_vector_norm(rows.view(shape), 2, at::IntArrayRef{-1}).to(at::kDouble).square_().sum(-1);
    }
  }
  return at::linalg_vector_norm(rows, 2, at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble).square_();
}

}  // namespace tsdp::dp
