// What the bits of a training step depend on besides configuration, data and key.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tsdp::training {

/// Version, device, thread count, processor, the loaded code (program and libraries, by their build IDs) and the
/// variables that steer the libraries: equal texts mean that a step can be replayed to the same bits. Devices other
/// than the CPU never promise that: their text differs from process to process.
[[nodiscard]] std::string environment_of(const at::Device& device);

}  // namespace tsdp::training
