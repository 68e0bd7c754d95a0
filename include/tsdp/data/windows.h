// Windows of series: one flat buffer with zeros in front of every series, so that cropping and padding is one copy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// The window of `series` whose forecast part starts at place `start` (0-based): past start − P … start − 1, places
/// before the series being zeros, future start … start + H − 1. It is window t = start + 1 of the paper's §1.
struct WindowIndex {
  std::int64_t series;
  std::int64_t start;
  bool operator==(const WindowIndex&) const = default;
};

/// All series of a data set, laid out for gathering windows of `past_length` + `future_length` values. Missing values
/// read 0 and are marked unobserved; padding reads 0 and is unobserved. Double precision is available too, if all
/// series have it.
class WindowStore {
 public:
  /// Throws Error if Series::exact of a series is neither empty nor as long as its values.
  WindowStore(const Dataset& dataset, std::int64_t past_length, std::int64_t future_length);

  [[nodiscard]] std::int64_t past_length() const noexcept { return past_length_; }
  [[nodiscard]] std::int64_t future_length() const noexcept { return future_length_; }
  [[nodiscard]] std::int64_t window_length() const noexcept { return past_length_ + future_length_; }
  [[nodiscard]] std::int64_t series_count() const noexcept { return static_cast<std::int64_t>(lengths_.size()); }
  [[nodiscard]] std::int64_t series_length(std::int64_t series) const {
    return lengths_[static_cast<std::size_t>(series)];
  }
  /// Whether windows are available in double precision.
  [[nodiscard]] bool has_exact() const noexcept { return has_exact_; }

  /// Offset of a window in the flat buffers. Requires 0 ≤ start ≤ length of the series − future_length, or
  /// start = length when only the past is read (forecasting beyond the end; the buffers have room for it).
  [[nodiscard]] std::int64_t offset(const WindowIndex& index) const {
    return first_[static_cast<std::size_t>(index.series)] + index.start;
  }
  [[nodiscard]] std::span<const float> values() const noexcept { return values_; }
  [[nodiscard]] std::span<const float> observed() const noexcept { return observed_; }

  /// Copies windows row by row: values and observed are (indices.size(), window_length()), row-major.
  void gather(std::span<const WindowIndex> indices, float* values, float* observed) const;
  /// The same in double precision. Throws Error unless `has_exact`.
  void gather(std::span<const WindowIndex> indices, double* values, float* observed) const;

 private:
  template <class Number>
  void gather_from(const Number* all, std::span<const WindowIndex> indices, Number* values, float* observed) const;
  template <class Number>
  void prefetch(const Number* all, const WindowIndex& index) const;

  std::int64_t past_length_;
  std::int64_t future_length_;
  bool has_exact_ = false;
  std::vector<std::int64_t> first_;
  std::vector<std::int64_t> lengths_;
  std::vector<char> complete_;  // 1: no value of the series is missing
  std::vector<float> values_;
  std::vector<float> observed_;
  std::vector<double> exact_;  // empty if not available
};

}  // namespace tsdp::data
