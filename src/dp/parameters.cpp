#include "tsdp/dp/parameters.h"

namespace tsdp::dp {

std::size_t ParameterBuffer::declare(std::string name, std::vector<std::int64_t> shape, bool trained) {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  entries_.push_back({std::move(name), std::move(shape), 0, count, trained});
  count_ += count;
  if (trained) trained_count_ += count;
  return entries_.size() - 1;
}

void ParameterBuffer::allocate(const at::TensorOptions& options, const at::Tensor& shared) {
  TORCH_CHECK(!shared.defined() || shared.numel() == count_, "shared values: found ", shared.numel(), ", expected ",
              count_);
  std::int64_t trained = 0;
  std::int64_t others = trained_count_;
  for (auto& entry : entries_) {
    auto& end = entry.trained ? trained : others;
    entry.offset = end;
    end += entry.count;
  }
  values_ = shared.defined() ? shared : at::zeros({count_}, options);
  gradients_ = at::zeros({trained_count_}, options);
}

at::Tensor ParameterBuffer::view(const at::Tensor& flat, std::size_t entry) const {
  const auto& e = entries_.at(entry);
  return flat.narrow(0, e.offset, e.count).view(e.shape);
}

}  // namespace tsdp::dp
