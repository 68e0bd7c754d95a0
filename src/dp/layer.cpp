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
  // Single precision is summed over pieces of at most 64 (a sum of n squares is off by at most n units, in whatever
  // order) and in double precision over the pieces: three times as fast as converting every element.
  const auto length = vectors.size(-1);
  if (kernels_serve(vectors) && vectors.is_contiguous()) {
    auto shape = vectors.sizes().vec();
    shape.pop_back();
    auto out = at::empty(shape, vectors.options().dtype(at::kDouble));
    at::parallel_for(0, out.numel(), std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, length)),
                     [&](std::int64_t begin, std::int64_t end) {
                       rows::squared_norms(vectors.const_data_ptr<float>() + begin * length, end - begin, length, length,
                                           out.data_ptr<double>() + begin);
                     });
    return out;
  }
  if (vectors.scalar_type() == at::kFloat && vectors.is_contiguous()) {
    for (std::int64_t piece = 64; piece >= 16; --piece) {
      if (length % piece != 0) continue;
      auto shape = vectors.sizes().vec();
      shape.back() = length / piece;
      shape.push_back(piece);
      return at::linalg_vector_norm(vectors.view(shape), 2, at::IntArrayRef{-1}).to(at::kDouble).square_().sum(-1);
    }
  }
  return at::linalg_vector_norm(vectors, 2, at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble).square_();
}

}  // namespace tsdp::dp
