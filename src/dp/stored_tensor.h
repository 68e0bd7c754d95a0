// LibTorch's tensors as stored in a tensor file.
#pragma once

#include <string>

#include <ATen/ATen.h>

#include "tsdp/base/tensor_file.h"

namespace tsdp::dp {

/// A copy of `tensor` (float, double or int64, on any device).
[[nodiscard]] StoredTensor stored(std::string name, const at::Tensor& tensor);

/// A new tensor on the CPU. Requires what read_tensor_file checks: bytes that fit type and shape.
[[nodiscard]] at::Tensor tensor_of(const StoredTensor& stored);

}  // namespace tsdp::dp
