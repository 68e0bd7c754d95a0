// Rolling-window evaluation of an exported model, with the seasonal-naive baseline.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <torch/csrc/jit/api/module.h>

#include "tsdp/data/dataset.h"
#include "tsdp/data/feature_store.h"
#include "tsdp/data/split.h"
#include "tsdp/evaluation/metrics.h"
#include "tsdp/random/random.h"

namespace tsdp::evaluation {

struct PrivateInference;

/// The forecast of seasonal naive with season m: forecast_k = y[n − m + (k mod m)], k from 0. Missing values are filled
/// with the last observed one (leading ones with the first observed one). With fewer than m values every forecast is
/// their mean, 0 of none.
[[nodiscard]] std::vector<double> seasonal_naive(std::span<const float> past, std::int64_t season_length,
                                                 std::int64_t prediction_length);

/// Sample paths per window for models that forecast by sampling, as in GluonTS.
inline constexpr std::int64_t sample_paths = 100;

/// The shape that an exported model states.
struct ModelShape {
  std::int64_t past_length, prediction_length;  ///< P, H ≥ 1
  std::int64_t time_features;  ///< F; 0: it reads none
  bool from_samples;  ///< whether its quantiles come from sample paths
};
/// Throws DataError if an attribute is missing, of another type or out of range.
[[nodiscard]] ModelShape shape_of(const torch::jit::Module& model);

/// Forecasts of windows: quantiles (B, levels, H), means (B, H) and sample paths (B, paths, H), double, on the CPU.
struct BatchForecast {
  at::Tensor quantiles;
  at::Tensor mean;
  at::Tensor samples;
};

/// Runs an exported model (see export/torchscript.h) on past values (B, P), observed marks (B, P) and, where it reads
/// them, time features (B, P + H, F). Sample paths come from `draws`: `paths` per window or, if that is not given, as
/// many as the model needs for its quantiles (sample_paths or none). Throws DataError if the model's code fails or
/// returns anything of another shape.
[[nodiscard]] BatchForecast forecast(torch::jit::Module& model, const at::Tensor& past_target,
                                     const at::Tensor& past_observed, const at::Tensor& time_features,
                                     const std::vector<double>& levels, RandomStream& draws,
                                     std::optional<std::int64_t> paths = std::nullopt);

/// The known features (calendar, age) that a model reads with its windows; none for a model that reads none.
class KnownFeatures {
 public:
  KnownFeatures(const torch::jit::Module& model, const data::Dataset& dataset);

  /// (B, P + H, F) around the places `indices`, on `device`; undefined for a model without features.
  [[nodiscard]] at::Tensor gather(std::span<const data::WindowIndex> indices, const at::Device& device) const;

 private:
  std::optional<data::FeatureStore> store_;
};

/// Metrics of `model` over `ranges` of `dataset`, and of seasonal naive over the same. Sampled forecasts draw from one
/// fixed public stream, so that a score can be repeated. With `privacy`, both forecast from privatised pasts, with
/// window i of `ranges` as use i; the scores themselves compare with true values and are not private.
struct BacktestResult {
  Metrics model;
  Metrics seasonal_naive;
  std::vector<Metrics> by_series;  ///< of the model, for each series of the data set
  std::vector<Metrics> naive_by_series;  ///< of seasonal naive
};
[[nodiscard]] BacktestResult backtest(torch::jit::Module& model, const data::Dataset& dataset,
                                      std::span<const data::ForecastRange> ranges, std::int64_t season_length,
                                      const at::Device& device, const PrivateInference* privacy = nullptr);

/// Metrics of seasonal naive alone.
[[nodiscard]] Metrics backtest_seasonal_naive(const data::Dataset& dataset, std::span<const data::ForecastRange> ranges,
                                              std::int64_t prediction_length, std::int64_t season_length);

}  // namespace tsdp::evaluation
