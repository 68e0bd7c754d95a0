#include "evaluation/baseline_file.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "data/forecast_file.h"
#include "evaluation/truth.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::evaluation {

Metrics score_baseline(const std::filesystem::path& file, const data::Dataset& dataset,
                       std::span<const data::ForecastRange> ranges, std::int64_t prediction_length,
                       std::int64_t season_length) {
  const auto forecasts = data::read_forecasts(file, dataset, prediction_length, ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto& series = dataset.series[static_cast<std::size_t>(ranges[i].series)];
    if (forecasts[i].item_id != series.id || forecasts[i].place != ranges[i].forecast_start)
      throw DataError(cat(forecasts[i].where, ": found series '", forecasts[i].item_id, "' forecast from place ",
                          forecasts[i].place, "; expected series '", series.id, "' from place ",
                          ranges[i].forecast_start, ", as the windows go in order"));
  }
  std::vector<double> used;  // levels of intervals that all entries have
  for (const double level : interval_levels())
    if (std::all_of(forecasts.begin(), forecasts.end(), [&](const auto& one) { return one.at(level) != nullptr; }))
      used.push_back(level);
  Metrics metrics(default_levels(), used);
  auto levels = default_levels();
  levels.insert(levels.end(), used.begin(), used.end());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto truth = truth_of(dataset, ranges[i], prediction_length, season_length);
    std::vector<double> quantiles;
    for (const double level : levels) {
      const auto& values = *forecasts[i].at(level);
      quantiles.insert(quantiles.end(), values.begin(), values.end());
    }
    metrics.add({truth.target, quantiles, forecasts[i].mean, truth.seasonal_error});
  }
  return metrics;
}

}  // namespace tsdp::evaluation
