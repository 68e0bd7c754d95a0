#include "tsdp/dp/parameters.h"

namespace tsdp::dp {

std::size_t ParameterBuffer::declare(std::string name, std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  entries_.push_back({std::move(name), std::move(shape), count_, count});
  count_ += count;
  return entries_.size() - 1;
}

void ParameterBuffer::allocate(const at::TensorOptions& options, const at::Tensor& shared) {
  TORCH_CHECK(!shared.defined() || shared.numel() == count_, "shared values: found ", shared.numel(), ", expected ",
              count_);
  values_ = shared.defined() ? shared : at::zeros({count_}, options);
  gradients_ = at::zeros({count_}, options);
}

at::Tensor ParameterBuffer::view(const at::Tensor& flat, std::size_t entry) const {
  const auto& e = entries_.at(entry);
  return flat.narrow(0, e.offset, e.count).view(e.shape);
}

}  // namespace tsdp::dp
