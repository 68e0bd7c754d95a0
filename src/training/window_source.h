// Gathers windows into batches of tensors on the device of the model.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "models/forecaster.h"
#include "tsdp/data/feature_store.h"
#include "tsdp/data/windows.h"

namespace tsdp::training {

/// One gather per batch: on the CPU a copy of rows into buffers that are kept, elsewhere an index over a strided view
/// of the series, which lie on the device.
class WindowSource {
 public:
  /// `store` must outlive the source. Without `features`, batches carry no time features.
  WindowSource(const data::WindowStore& store, std::optional<data::FeatureStore> features,
               const at::TensorOptions& options);

  /// The batch of these windows; valid until the next call. `augmented`, if given, changes values before they are used
  /// (all row-major, on the CPU). `exact` holds the values in double precision, null if the store has none.
  using Augment = std::function<void(const double* exact, float* values, const float* observed)>;
  models::WindowBatch gather(std::span<const data::WindowIndex> indices, const Augment& augmented = nullptr);

  /// What the model loses on these windows, gathered some hundreds at a time.
  struct LossSum {
    double sum = 0.0;
    double windows = 0.0;  ///< of which something was observed
    /// NaN without such windows.
    [[nodiscard]] double mean() const { return sum / windows; }
  };
  [[nodiscard]] LossSum losses(models::Forecaster& model, std::span<const data::WindowIndex> indices);

  /// Off the CPU: where these windows begin, for `gather_at`, filled up to `rows` with the beginning of the data: (2,
  /// rows), in pinned memory.
  [[nodiscard]] at::Tensor places(std::span<const data::WindowIndex> indices, std::int64_t rows) const;
  /// Off the CPU: `rows` places all over the data, whatever lies there; on the device.
  [[nodiscard]] at::Tensor trial_places(std::int64_t rows) const;
  /// Off the CPU: the batch of the windows at `places`, which lie on the device. The host does not wait.
  [[nodiscard]] models::WindowBatch gather_at(const at::Tensor& places) const;

 private:
  [[nodiscard]] at::Tensor gather_features(std::span<const data::WindowIndex> indices);
  [[nodiscard]] models::WindowBatch parted(const at::Tensor& values, const at::Tensor& observed,
                                           const at::Tensor& flat_features) const;

  const data::WindowStore& store_;
  std::optional<data::FeatureStore> features_;
  at::TensorOptions options_;
  // Strided views (places, floats of a window), only off the CPU.
  at::Tensor device_values_, device_observed_, device_features_;
  at::Tensor values_, observed_, feature_rows_;  // (rows, floats of a window), on the CPU
  std::vector<double> exact_;  // likewise, only for batches that are augmented
};

}  // namespace tsdp::training
