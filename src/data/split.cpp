#include "tsdp/data/windows.h"

#include <algorithm>
#include <limits>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::data {

std::int64_t least_length(const SplitOptions& options) {
  const auto test = options.test_windows * options.prediction_length;
  const auto training = options.validation_length + options.prediction_length;
  if (options.kind == SplitKind::last) return test + training;
  // The test windows fit into what is left, T − ⌊4T/5⌋ − 1 = ⌈T/5⌉ − 1, and the training part is ⌊4T/5⌋ + 1 long.
  return std::max(5 * test + 1, (5 * (training - 1) + 3) / 4);
}

std::int64_t first_test_place(std::int64_t length, const SplitOptions& options) {
  // ⌊0.8 T⌋ in integers: GluonTS's int(0.8 * T) agrees for every T of practical size.
  return options.kind == SplitKind::lstnet ? length * 4 / 5 + 1
                                           : length - options.test_windows * options.prediction_length;
}

void pad_front(Series& series, const Frequency& frequency, std::int64_t least) {
  const auto length = static_cast<std::int64_t>(series.values.size());
  if (length >= least) return;
  const auto steps = least - length;
  // It keeps its day of the month, whatever month is then the first.
  if (is_of_months(frequency) && series.month_day == 0) series.month_day = month_day_of(series.start);
  series.start = series.at(frequency, -steps);
  const auto count = static_cast<std::size_t>(steps);
  series.values.insert(series.values.begin(), count, std::numeric_limits<float>::quiet_NaN());
  if (!series.exact.empty()) series.exact.insert(series.exact.begin(), count, std::numeric_limits<double>::quiet_NaN());
}

Split split_dataset(const Dataset& dataset, const SplitOptions& options) {
  const auto horizon = options.prediction_length;
  Split split;
  std::vector<std::int64_t> before_validation;
  for (const auto& series : dataset.series) {
    const auto length = static_cast<std::int64_t>(series.values.size());
    const std::int64_t training = first_test_place(length, options);
    if (length < least_length(options))
      throw DataError(cat("series '", series.id, "' of ", dataset.name, ": found ", length, " values; with ",
                          options.test_windows, " test windows of ", horizon, " and ", options.validation_length,
                          " values for validation, more are needed: at least ", least_length(options), ", to leave ",
                          horizon, " to train on (dataset.short_series: drop or pad, takes such series)"));
    before_validation.push_back(training);
    split.training_length.push_back(training - options.validation_length);
  }
  const auto count = static_cast<std::int64_t>(dataset.series.size());
  const std::int64_t validation_windows = options.validation_length / horizon;
  for (std::int64_t window = validation_windows; window > 0; --window)
    for (std::int64_t s = 0; s < count; ++s)
      split.validation.push_back({s, before_validation[static_cast<std::size_t>(s)] - window * horizon});
  for (std::int64_t window = 0; window < options.test_windows; ++window)
    for (std::int64_t s = 0; s < count; ++s)
      split.test.push_back({s, before_validation[static_cast<std::size_t>(s)] + window * horizon});
  return split;
}

std::vector<WindowIndex> windows_of(std::span<const ForecastRange> ranges) {
  std::vector<WindowIndex> out;
  for (const auto& range : ranges) out.push_back({range.series, range.forecast_start});
  return out;
}

}  // namespace tsdp::data
