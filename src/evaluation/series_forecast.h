// Forecasts past the end of series, and the files they are written to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <torch/csrc/jit/api/module.h>

#include "evaluation/private_inference.h"
#include "tsdp/evaluation/backtest.h"

namespace tsdp::evaluation {

/// What is asked for.
struct ForecastRequest {
  std::vector<double> levels = default_levels();  ///< in (0, 1), each once
  std::int64_t samples = 0;                       ///< sample paths to return for each series
  std::int64_t season_length = 1;                 ///< of seasonal naive
  SecretKey draws = SecretKey::from_seed(0);      ///< of the sample paths: (draws, "forecast", batch)
  const PrivateInference* privacy = nullptr;      ///< if given, series i of the data set is use i
};

/// The forecast of one series for the H steps after its end.
struct SeriesForecast {
  std::string id;
  std::vector<data::Moment> times;     ///< (H), when each step begins
  std::vector<double> mean;            ///< (H)
  std::vector<double> quantiles;       ///< (levels, H), row-major
  std::vector<double> samples;         ///< (samples, H), row-major
  std::vector<double> seasonal_naive;  ///< (H), from the same past
};

/// Series of one table share a calendar: those that end before the last one are continued with missing values to its
/// end, so that all are forecast for the same steps. Returns how many were.
std::int64_t align_ends(data::Dataset& dataset);

/// Forecasts of all series, in order. Pasts are cut to what the model reads; shorter ones are zero padded and
/// unobserved, as in training. Missing values read 0 and are unobserved, also at the end of a series. Works in batches
/// on `device`. Throws Error if a forecast is not finite.
[[nodiscard]] std::vector<SeriesForecast> forecast_series(torch::jit::Module& model, const data::Dataset& dataset,
                                                          const ForecastRequest& request, const at::Device& device);

/// Forecasts of the windows from the places `indices`, as data::ExternalForecasts has them: quantiles 0.1, …, 0.9 and
/// the mean (10, H). The paths of batch i come from (key of seed 0, "forecast", first window of the batch). Throws as
/// forecast_series does.
[[nodiscard]] std::vector<std::vector<float>> window_forecasts(torch::jit::Module& model, const data::Dataset& dataset,
                                                               std::span<const data::WindowIndex> indices,
                                                               const at::Device& device);

/// A header `item_id,timestamp,mean,<levels>`, then one row per series and step. Numbers read back as the same floats.
[[nodiscard]] std::string forecasts_as_csv(std::span<const SeriesForecast> forecasts, std::span<const double> levels);

/// One object per line and series: item_id, start, mean, quantiles by level, samples if there are any, and
/// `inference_privacy` if it is not null.
[[nodiscard]] std::string forecasts_as_json_lines(std::span<const SeriesForecast> forecasts,
                                                  std::span<const double> levels,
                                                  const nlohmann::ordered_json& inference_privacy);

/// The seasonal-naive forecasts of `forecasts` as forecasts in their own right: mean and every quantile, cut at the
/// model's bounds as the model's own are.
[[nodiscard]] std::vector<SeriesForecast> seasonal_naive_of(std::span<const SeriesForecast> forecasts,
                                                            std::size_t levels);

}  // namespace tsdp::evaluation
