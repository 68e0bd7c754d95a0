#include "tsdp/data/split.h"

#include <algorithm>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::data {

Split split_dataset(const Dataset& dataset, const SplitOptions& options) {
  const auto horizon = options.prediction_length;
  Split split;
  std::vector<std::int64_t> before_validation;
  for (const auto& series : dataset.series) {
    const auto length = static_cast<std::int64_t>(series.values.size());
    // ⌊0.8 T⌋ in integers: GluonTS's int(0.8 * T) agrees for every T of practical size.
    const std::int64_t training = options.kind == SplitKind::lstnet ? length * 4 / 5 + 1
                                                                    : length - options.test_windows * horizon;
    if (training + options.test_windows * horizon > length || training - options.validation_length < horizon)
      throw DataError(cat("series '", series.id, "' of ", dataset.name, ": found ", length, " values; with ",
                          options.test_windows, " test windows of ", horizon, " and ", options.validation_length,
                          " values for validation, more are needed (at least ", horizon,
                          " must be left to train on)"));
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

}  // namespace tsdp::data
