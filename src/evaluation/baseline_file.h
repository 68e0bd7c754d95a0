// Forecasts of the same windows by another program, scored next to ours.
#pragma once

#include <filesystem>
#include <span>

#include "tsdp/data/dataset.h"
#include "tsdp/data/windows.h"
#include "tsdp/evaluation/metrics.h"

namespace tsdp::evaluation {

/// Metrics of the forecasts in `file` (data/forecast_file.h), one per entry of `ranges`, in their order (window by
/// window, within a window series by series). Of other levels than 0.1 … 0.9, those of interval_levels() that every
/// entry has are used for intervals. Throws DataError as read_forecasts does, and for an entry of another series or
/// place than its window, too few or too many entries.
[[nodiscard]] Metrics score_baseline(const std::filesystem::path& file, const data::Dataset& dataset,
                                     std::span<const data::ForecastRange> ranges, std::int64_t prediction_length,
                                     std::int64_t season_length);

}  // namespace tsdp::evaluation
