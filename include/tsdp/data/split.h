// Training part, validation windows and rolling test windows of a data set, as GluonTS and the paper cut them.
#pragma once

#include <cstdint>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// Where the test windows lie.
enum class SplitKind {
  lstnet,  ///< training is places 0 … ⌊0.8 T⌋ inclusive of each series, test windows follow right after
  last,    ///< test windows at the end, training is everything before them
};

struct SplitOptions {
  SplitKind kind = SplitKind::lstnet;
  std::int64_t prediction_length = 1;  ///< L_F ≥ 1
  std::int64_t test_windows = 1;       ///< ≥ 1, rolling without gap or overlap
  std::int64_t validation_length = 0;  ///< values held out at the end of the training part; ⌊·/L_F⌋ windows
};

/// A range to forecast: places forecast_start … forecast_start + L_F − 1 of one series, all before them known.
struct ForecastRange {
  std::int64_t series;
  std::int64_t forecast_start;
};

struct Split {
  std::vector<std::int64_t> training_length;  ///< of each series: places 0 … training_length − 1 are trained on
  std::vector<ForecastRange> validation;      ///< window by window, within a window series by series
  std::vector<ForecastRange> test;            ///< likewise
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

}  // namespace tsdp::data
