// Calendar features and age of every place of a data set, laid out so that those of a window are one block.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tsdp/data/dataset.h"
#include "tsdp/data/windows.h"

namespace tsdp::data {

/// Names of the F features of a place of a window, in order: those of the calendar, then the covariates, then "age".
[[nodiscard]] std::vector<std::string> window_feature_names(const Frequency& frequency,
                                                            const std::vector<std::string>& covariates = {});

/// What is known of a window besides its values, for the same windows as a WindowStore of equal lengths has.
///
/// A window has `window_length()` rows of `feature_count()` = F features: the calendar features of the place, the data
/// set's covariates, then its age, rounded to float32. Places before the start of the series are padding: all their
/// features are 0, the age included. Places beyond the end are not: the calendar goes on, and covariates that end are
/// 0. Features never depend on values: series that start at one moment and have the same covariates share their rows.
class FeatureStore {
 public:
  /// Requires past_length, future_length ≥ 0.
  FeatureStore(const Dataset& dataset, std::int64_t past_length, std::int64_t future_length);

  [[nodiscard]] std::int64_t past_length() const noexcept { return past_length_; }
  [[nodiscard]] std::int64_t future_length() const noexcept { return future_length_; }
  [[nodiscard]] std::int64_t window_length() const noexcept { return past_length_ + future_length_; }
  [[nodiscard]] std::int64_t series_count() const noexcept { return static_cast<std::int64_t>(first_.size()); }
  /// F, at least 1.
  [[nodiscard]] std::int64_t feature_count() const noexcept { return static_cast<std::int64_t>(names_.size()); }
  /// Names of the F features; the last is "age".
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

  /// Offset of a window in `values()`, in floats: the window is the window_length() · F floats from there on, place by
  /// place. Requires 0 ≤ start ≤ length of the series; with start = length all rows of the future are valid.
  [[nodiscard]] std::int64_t offset(const WindowIndex& index) const {
    return first_[static_cast<std::size_t>(index.series)] + index.start * feature_count();
  }
  [[nodiscard]] std::span<const float> values() const noexcept { return values_; }

  /// Copies windows: out is (indices.size(), window_length(), F), row-major.
  void gather(std::span<const WindowIndex> indices, float* out) const;

 private:
  std::int64_t past_length_;
  std::int64_t future_length_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> first_;
  std::vector<float> values_;
};

}  // namespace tsdp::data
