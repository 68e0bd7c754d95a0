// Rolling-window evaluation of an exported model, beside forecasts that are free.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/csrc/jit/api/module.h>
#include <nlohmann/json.hpp>

#include "tsdp/base/names.h"
#include "tsdp/data/dataset.h"
#include "tsdp/data/feature_store.h"
#include "tsdp/data/windows.h"
#include "tsdp/evaluation/metrics.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/random/random.h"

namespace tsdp::evaluation {

struct PrivateInference;

/// Forecasts that anybody can make of the past of one series, without training and without other series: what a model
/// must beat to be worth releasing. With season m, and ⌈k/m⌉ = j for step k = 1, …, H of the forecast:
///   seasonal_naive: y[n + k − jm], the last season again. All quantiles are in one place.
///   seasonal_naive_bands: the same, and as quantiles those of its own errors y[t] − y[t − jm] in the last S seasons.
///   seasonal_quantiles: the empirical quantiles of y[n + k − jm], y[n + k − (j + 1)m], …: the same place of the last S
///   seasons.
/// S is 28 where a season is a day or less, and 8 where it is longer; fewer where the past is shorter. Empirical
/// quantiles are interpolated linearly between order statistics. Missing values are left out. Where nothing is left,
/// all values of the last S seasons count, then all of the past; with none at all, 0. seasonal_naive alone fills
/// missing values with the last observed one (leading ones with the first observed one), as GluonTS does, and with
/// fewer than m values forecasts their mean.
enum class Baseline {
  seasonal_naive,
  seasonal_naive_bands,
  seasonal_quantiles
};
constexpr Names<Baseline, 3> names_of(Baseline) {
  return {{{Baseline::seasonal_naive, "seasonal_naive"},
           {Baseline::seasonal_naive_bands, "seasonal_naive_bands"},
           {Baseline::seasonal_quantiles, "seasonal_quantiles"}}};
}

/// Whether a baseline has this name.
[[nodiscard]] inline bool is_baseline(const std::string& name) {
  Baseline found{};
  return parse_name(name, found);
}

/// The season that baselines read, m ≥ 1 steps, and how many of them, S ≥ 1. Both follow from public facts.
struct Seasons {
  std::int64_t length = 1;
  std::int64_t count = 1;
};
[[nodiscard]] Seasons seasons_of(const data::Frequency& step, std::int64_t season_length);

/// A forecast of one window: (levels, H), row-major, and (H).
struct BaselineForecast {
  std::vector<double> quantiles;
  std::vector<double> mean;
};
/// Past values, oldest first, NaN if missing; H ≥ 1; levels in (0, 1).
[[nodiscard]] BaselineForecast baseline_forecast(Baseline baseline, std::span<const float> past, const Seasons& seasons,
                                                 std::int64_t prediction_length, const std::vector<double>& levels);

/// The point forecast of seasonal naive (H).
[[nodiscard]] std::vector<double> seasonal_naive(std::span<const float> past, std::int64_t season_length,
                                                 std::int64_t prediction_length);

/// Sample paths per window for models that forecast by sampling, as in GluonTS.
inline constexpr std::int64_t sample_paths = 100;

/// The shape that an exported model states.
struct ModelShape {
  std::int64_t past_length = 1, prediction_length = 1;  ///< P, H ≥ 1
  std::int64_t time_features = 0;  ///< F; 0: it reads none
  bool from_samples = false;  ///< whether its quantiles come from sample paths
  double lower_bound = -std::numeric_limits<double>::infinity();  ///< what no forecast is below
  double upper_bound = std::numeric_limits<double>::infinity();  ///< or above
  std::int64_t variables = 1;  ///< of a series, that it forecasts together: rows that must be side by side

  /// The most rows, at most `most` where that is possible, that have whole series.
  [[nodiscard]] std::int64_t rows(std::int64_t most) const;
  /// Throws UsageError unless series have the variables that it forecasts together, and Error unless `indices` has them
  /// side by side.
  void require_variables(const data::Dataset& dataset, std::span<const data::WindowIndex> indices) const;
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
/// them, time features (B, P + H, F) and forecasts of other programs (ExternalWindows). Sample paths come from `draws`:
/// `paths` per window or, if that is not given, as many as the model needs for its quantiles (sample_paths or none).
/// Throws DataError if the model's code fails or returns anything of another shape.
[[nodiscard]] BatchForecast forecast(torch::jit::Module& model, const at::Tensor& past_target,
                                     const at::Tensor& past_observed, const at::Tensor& time_features,
                                     const std::vector<double>& levels, RandomStream& draws,
                                     std::optional<std::int64_t> paths = std::nullopt, const at::Tensor& external = {});

/// The known features (calendar, age) that a model reads with its windows; none for a model that reads none.
class KnownFeatures {
 public:
  KnownFeatures(const torch::jit::Module& model, const data::Dataset& dataset);

  /// (B, P + H, F) around the places `indices`, on `device`; undefined for a model without features.
  [[nodiscard]] at::Tensor gather(std::span<const data::WindowIndex> indices, const at::Device& device) const;

 private:
  std::optional<data::FeatureStore> store_;
};

/// What other programs forecast of the windows of a data set, for a model that is mixed with them.
class ExternalWindows {
 public:
  /// With `privacy` there is nothing: other programs read the series themselves. Throws UsageError if the data set has
  /// forecasts that the model is not mixed with. The data set must outlive it.
  ExternalWindows(const torch::jit::Module& model, const data::Dataset& dataset, const PrivateInference* privacy);

  /// (B, J + 1, E, 10, H) of forecasts from the places `indices`, on `device`, as `mixture` takes it
  /// (models/mixture.h); undefined if nothing is known.
  [[nodiscard]] at::Tensor gather(std::span<const data::WindowIndex> indices, const at::Device& device) const;

  /// What `gather` looks for: the windows from the places `indices`; then those one stride earlier, and so on, J + 1
  /// lists in all, without windows that have nothing before them.
  [[nodiscard]] std::vector<std::vector<data::WindowIndex>> judged(std::span<const data::WindowIndex> indices) const;

  /// "chronos takes part in 96 of 140 forecasts", of those from the places `indices`; empty for a model that is mixed
  /// with none.
  [[nodiscard]] std::string taking_part(std::span<const data::WindowIndex> indices) const;

 private:
  const data::Dataset& dataset_;
  std::vector<std::string> names_;
  std::vector<const data::ExternalForecasts*> forecasts_;  // null: not known
  bool privately_;
  std::int64_t windows_ = 0, stride_ = 1, horizon_, reach_ = 1;
};

/// Metrics of one baseline.
struct BaselineScores {
  Baseline baseline;
  Metrics all;
  std::vector<Metrics> by_series;  ///< for each series of the data set
};

/// Metrics of `model` over `ranges` of `dataset`, and of all baselines over the same, cut at the same bounds. Sampled
/// forecasts draw from one fixed public stream, so that a score can be repeated. With `privacy`, all forecast from
/// privatised pasts, with window i of `ranges` as use i; the scores themselves compare with true values and are not
/// private.
struct BacktestResult {
  Metrics model;
  std::vector<Metrics> by_series;  ///< of the model, for each series of the data set
  std::vector<BaselineScores> baselines;  ///< all, in the order of their enumeration
  std::int64_t series = 0;  ///< how many series were scored; more than the data set has where ranks add up their sums
  /// Of the weights that training began with, and where these come from. Left to whoever knows them.
  std::optional<Metrics> start = std::nullopt;
  mechanism::StartOrigin start_origin = mechanism::StartOrigin::fresh;
  /// Of forecasts by other programs, by name: those that the model is mixed with, where they have all windows. Others
  /// (score_baseline) are left to whoever has them.
  nlohmann::ordered_json others = nlohmann::ordered_json::object();
  /// What the scores rest on, in words: in how many windows forecasts of other programs took part, and how many true
  /// values lie far from all others.
  std::vector<std::string> remarks = {};
};
[[nodiscard]] BacktestResult backtest(torch::jit::Module& model, const data::Dataset& dataset,
                                      std::span<const data::ForecastRange> ranges, std::int64_t season_length,
                                      const at::Device& device, const PrivateInference* privacy = nullptr);

/// Metrics by name of all that the model is scored beside: the baselines, "start" if it is known, the others.
[[nodiscard]] nlohmann::ordered_json scored_beside(const BacktestResult& result);

/// What can be had for nothing: the one of the least CRPS of forecasts that no private data went into.
struct BestFree {
  std::string name;
  double crps;
};
/// `scores`: metrics by name. The one named "start", which has this origin, is free unless it rests on data. None where
/// no CRPS is a number.
[[nodiscard]] std::optional<BestFree> best_free(const nlohmann::ordered_json& scores, mechanism::StartOrigin origin);
[[nodiscard]] inline std::optional<BestFree> best_free(const BacktestResult& result) {
  return best_free(scored_beside(result), result.start_origin);
}

/// Metrics of one baseline alone, without bounds.
[[nodiscard]] Metrics backtest_baseline(Baseline baseline, const data::Dataset& dataset,
                                        std::span<const data::ForecastRange> ranges, std::int64_t prediction_length,
                                        std::int64_t season_length);

}  // namespace tsdp::evaluation
