// What the bits of a training step depend on besides configuration, data and key.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tsdp::training {

/// Version, device, thread count, processor, the loaded code (program and libraries, by their build IDs) and the
/// variables that steer the libraries; of a device other than the CPU also its chip and driver. Equal texts mean that a
/// step can be replayed to the same bits. `repeats`: whether the device gave the same bits each time it was tried; if
/// it did not, the text differs from process to process.
[[nodiscard]] std::string environment_of(const at::Device& device, bool repeats = true);

}  // namespace tsdp::training
