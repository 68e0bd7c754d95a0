// Gathers windows into batches of tensors on the device of the model.
#pragma once

#include <span>
#include <vector>

#include "models/forecaster.h"
#include "tsdp/data/windows.h"

namespace tsdp::training {

/// One gather a batch: on the CPU a copy of rows into buffers that are kept, elsewhere an index over a strided view of
/// the series, which lie on the device.
class WindowSource {
 public:
  WindowSource(const data::WindowStore& store, const at::TensorOptions& options);

  /// The batch of these windows; valid until the next call. `augmented`, if given, changes values before they are used
  /// (values and observed, row-major, on the CPU).
  using Augment = std::function<void(float* values, const float* observed)>;
  models::WindowBatch gather(std::span<const data::WindowIndex> indices, const Augment& augmented = nullptr);

 private:
  const data::WindowStore& store_;
  at::TensorOptions options_;
  at::Tensor device_values_, device_observed_;  // strided views (places, window length), off the CPU only
  at::Tensor values_, observed_;                // (rows, window length), on the CPU
};

}  // namespace tsdp::training
