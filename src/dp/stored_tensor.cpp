#include "dp/stored_tensor.h"

#include <cstring>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::dp {

StoredTensor stored(std::string name, const at::Tensor& tensor) {
  const auto flat = tensor.detach().to(at::kCPU).contiguous();
  StoredTensor out;
  out.name = std::move(name);
  switch (flat.scalar_type()) {
    case at::kFloat: out.type = "F32"; break;
    case at::kDouble: out.type = "F64"; break;
    case at::kLong: out.type = "I64"; break;
    default: throw Error(ExitCode::failure, cat("tensor '", out.name, "' is of a type that is not stored"));
  }
  out.shape = flat.sizes().vec();
  out.bytes.assign(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
  return out;
}

at::Tensor tensor_of(const StoredTensor& stored) {
  at::ScalarType type = at::kByte;
  if (stored.type == "F32") type = at::kFloat;
  if (stored.type == "F64") type = at::kDouble;
  if (stored.type == "I64") type = at::kLong;
  auto out = at::empty(stored.shape, type);
  if (out.nbytes() != stored.bytes.size())
    throw Error(ExitCode::failure, cat("tensor '", stored.name, "' has bytes that do not fit its type and shape"));
  if (!stored.bytes.empty()) std::memcpy(out.data_ptr(), stored.bytes.data(), stored.bytes.size());
  return out;
}

}  // namespace tsdp::dp
