// Forecasts that another program wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// The forecast of one window of a series.
struct FileForecast {
  std::string where;  ///< file and line
  std::string item_id;
  std::int64_t place = 0;  ///< of the first forecast value in the series, from 0
  std::vector<std::pair<double, std::vector<double>>> quantiles = {};  ///< H values of a level in (0, 1)
  std::vector<double> mean = {};  ///< H values

  /// The quantiles of a level; null if it has none.
  [[nodiscard]] const std::vector<double>* at(double level) const;
};

/// The forecasts in `file`: JSON Lines, one object a forecast:
///   {"item_id": id of the series, "forecast_start": place of the first forecast value in the series (from 0),
///    "quantiles": {"0.1": [H numbers], …, "0.9": […]}, "mean": [H numbers]}
/// The moment of the first forecast value, "start": "2015-01-31 13:00:00", may stand in place of "forecast_start", as
/// tsdp-forecast writes it. Levels 0.1 … 0.9 are required. Empty lines are skipped. Throws DataError naming file and
/// line for anything else: invalid JSON, a key that is missing or of another type, a number that is not finite, a
/// moment that is no step of the series; for another number of them than `expected`, if that is given.
[[nodiscard]] std::vector<FileForecast> read_forecasts(const std::filesystem::path& file, const Dataset& dataset,
                                                       std::int64_t prediction_length,
                                                       std::optional<std::size_t> expected = std::nullopt);

/// The forecasts in `file` of the series of `dataset`, for a mixture; those of other series are left out. Quantiles
/// that cross are sorted. Throws DataError as read_forecasts does, and for a window that is forecast twice, a value
/// that single precision does not hold, or no forecast of any of the series. An exported model (.pt) is only
/// named here, with no forecasts: add_forecasts_of_models (export/candidates.h) asks it.
[[nodiscard]] std::shared_ptr<const ExternalForecasts> read_external(const std::filesystem::path& file,
                                                                     const Dataset& dataset,
                                                                     std::int64_t prediction_length);

}  // namespace tsdp::data
