// Forecasts of the same windows by another program, scored next to ours.
#pragma once

#include <filesystem>
#include <span>

#include "tsdp/data/dataset.h"
#include "tsdp/data/windows.h"
#include "tsdp/evaluation/metrics.h"

namespace tsdp::evaluation {

/// Metrics of the forecasts in `file`: JSON Lines, one object per entry of `ranges`, in their order (window by window,
/// within a window series by series):
///   {"item_id": id of the series, "forecast_start": place of the first forecast value in the series (from 0),
///    "quantiles": {"0.1": [H numbers], …, "0.9": […]}, "mean": [H numbers]}
/// Levels 0.1 … 0.9 are required; of the others, those of interval_levels() that every entry has are used for
/// intervals. Empty lines are skipped. Throws DataError naming file and line for anything else: invalid JSON, a key
/// that is missing or of another type, a number that is not finite, an entry for another series or place than its
/// window, too few or too many entries.
[[nodiscard]] Metrics score_baseline(const std::filesystem::path& file, const data::Dataset& dataset,
                                     std::span<const data::ForecastRange> ranges, std::int64_t prediction_length,
                                     std::int64_t season_length);

}  // namespace tsdp::evaluation
