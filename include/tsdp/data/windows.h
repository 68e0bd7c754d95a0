// Windows of series: how a data set is split into a training part and windows to forecast, as GluonTS and the paper cut
// them; and one flat buffer with zeros in front of every series, so that cropping and padding is one copy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// Where the test windows lie.
enum class SplitKind {
  lstnet,  ///< training is places 0 … ⌊0.8 T⌋ inclusive of each series, test windows follow right after
  last,  ///< test windows at the end, training is everything before them
};

struct SplitOptions {
  SplitKind kind = SplitKind::lstnet;
  std::int64_t prediction_length = 1;  ///< L_F ≥ 1
  std::int64_t test_windows = 1;  ///< ≥ 1, rolling without gap or overlap
  std::int64_t validation_length = 0;  ///< values held out at the end of the training part; ⌊·/L_F⌋ windows
};

/// A range to forecast: places forecast_start … forecast_start + L_F − 1 of one series, all before them known.
struct ForecastRange {
  std::int64_t series;
  std::int64_t forecast_start;
};

struct Split {
  std::vector<std::int64_t> training_length;  ///< of each series: places 0 … training_length − 1 are trained on
  std::vector<ForecastRange> validation;  ///< window by window, within a window series by series
  std::vector<ForecastRange> test;  ///< likewise
};

/// The fewest values with which a series can be split this way, leaving at least L_F values to train on.
[[nodiscard]] std::int64_t least_length(const SplitOptions& options);

/// Makes a series that is shorter than `least` begin earlier, with missing values, so that it is that long; steps
/// of months keep their day of the month. Throws DataError if no earlier start has the same
/// steps (business days from a weekend on).
void pad_front(Series& series, const Frequency& frequency, std::int64_t least);

/// The place at which the first test window of a series of `length` values starts, if it is long enough.
[[nodiscard]] std::int64_t first_test_place(std::int64_t length, const SplitOptions& options);

/// Throws DataError naming the first series that is too short, with its length and the least that would suffice.
[[nodiscard]] Split split_dataset(const Dataset& dataset, const SplitOptions& options);

/// The window of `series` whose forecast part starts at place `start` (0-based): past start − P … start − 1, places
/// before the series being zeros, future start … start + H − 1. It is window t = start + 1 of the paper's §1.
struct WindowIndex {
  std::int64_t series;
  std::int64_t start;
  bool operator==(const WindowIndex&) const = default;
};

/// The windows whose future parts are `ranges`.
[[nodiscard]] std::vector<WindowIndex> windows_of(std::span<const ForecastRange> ranges);

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
