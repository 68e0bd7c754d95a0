// What forecasts of a window are made from and scored against.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tsdp/data/dataset.h"
#include "tsdp/data/windows.h"

namespace tsdp::evaluation {

/// The values before a window.
[[nodiscard]] std::span<const float> past_of(const data::Dataset& dataset, const data::ForecastRange& range);

/// What a forecast of a window is scored against: the H true values, and the error of seasonal naive inside the past.
struct Truth {
  std::vector<double> target;
  double seasonal_error = 0.0;
};
[[nodiscard]] Truth truth_of(const data::Dataset& dataset, const data::ForecastRange& range,
                             std::int64_t prediction_length, std::int64_t season_length);

}  // namespace tsdp::evaluation
