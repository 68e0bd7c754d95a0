// Forecast metrics, as GluonTS 0.15.1 aggregates them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tsdp::evaluation {

/// Levels that CRPS is averaged over: 0.1, 0.2, …, 0.9.
[[nodiscard]] const std::vector<double>& default_levels();

/// Further levels, used for intervals only: 0.025, 0.05, 0.25, 0.75, 0.95, 0.975. MSIS needs the outermost two.
[[nodiscard]] const std::vector<double>& interval_levels();

/// One window: its true values and the forecast of them. NaN and infinite targets are masked everywhere.
struct WindowForecast {
  std::span<const double> target;     ///< (H)
  std::span<const double> quantiles;  ///< (scored and further levels, H), row-major
  std::span<const double> mean;       ///< (H)
  double seasonal_error = 0.0;        ///< of everything before the window; NaN if there is none
};

/// Mean of |y_t − y_{t−m}| over `past`, except pairs with a missing member; m = 1 if the past is not longer than m.
[[nodiscard]] double seasonal_error(std::span<const double> past, std::int64_t season_length);

/// Aggregates windows: sums of quantile losses over grand totals, and means over windows. docs/forecasting.md has the
/// formulas.
class Metrics {
 public:
  /// `scored`: the levels of quantile losses and coverages, in (0, 1), including 0.5, the median that ND, MASE, sMAPE
  /// and MAPE use. `further`: levels that are forecast too, but used for intervals only. Two levels q < 0.5 and 1 − q
  /// of either kind form the central interval 1 − 2q. Throws UsageError if 0.5 is missing.
  explicit Metrics(std::vector<double> scored, const std::vector<double>& further = {});

  /// Throws Error (exit 1) if a quantile or a mean is NaN.
  void add(const WindowForecast& window);

  /// All sums and counts that the metrics follow from. `add` puts those of other windows to the own ones; it throws
  /// Error (exit 1), and adds nothing, if they are of other levels or a count is none.
  [[nodiscard]] std::vector<double> sums() const;
  void add(std::span<const double> sums);

  [[nodiscard]] std::int64_t windows() const noexcept { return windows_; }
  /// Whether there was any true value to score.
  [[nodiscard]] bool observed() const noexcept { return absolute_target_mean_.count > 0; }
  /// mean_weighted_quantile_loss (CRPS), ND, NRMSE, MASE, sMAPE, MAPE, MSIS, MSE, RMSE, coverage by level,
  /// MAE_coverage, weighted_quantile_loss and quantile_loss by level, and the totals they come from; intervals by their
  /// nominal coverage 1 − 2q, narrowest first:
  ///   coverage: mean over windows of the share of observed steps with x^q ≤ y ≤ x^(1−q);
  ///   mean_width: mean over windows of the mean of x^(1−q) − x^q over observed steps, in units of the data;
  ///   relative_width: Σ (x^(1−q) − x^q) / Σ |y| over the observed steps of all windows.
  /// A metric without any value is null.
  [[nodiscard]] nlohmann::ordered_json json() const;
  /// Σ quantile losses / Σ |y|, averaged over levels: the CRPS of the paper.
  [[nodiscard]] double mean_weighted_quantile_loss() const;

 private:
  struct Mean {
    double sum = 0.0;
    std::int64_t count = 0;
    void add(double value);
    [[nodiscard]] double value() const;
  };

  /// The central interval between rows `lower` and `upper` of the quantiles.
  struct Interval {
    double nominal = 0.0;  ///< 1 − 2q
    std::size_t lower = 0;
    std::size_t upper = 0;
    double total_width = 0.0;
    Mean coverage = {};
    Mean width = {};
  };

  /// Sums over the observed steps of one window.
  struct WindowSums {
    std::size_t observed = 0;
    double squared = 0.0;
    double absolute_target = 0.0;
    double absolute_error = 0.0;
    double interval_score = 0.0;
    Mean mape = {};
    Mean smape = {};
    std::vector<double> covered;  // by level
    std::vector<double> inside;  // by interval
    std::vector<double> width;  // by interval
  };

  /// Calls `visit` for every sum and count of `metrics`, always in the same order.
  template <class Self, class Visit>
  static void each_sum(Self& metrics, const Visit& visit);

  /// Adds one step of a window, or counts it as masked.
  void add_step(const WindowForecast& window, std::size_t step, WindowSums& sums);

  std::vector<double> levels_;  // the scored levels: the first rows of the quantiles
  std::size_t rows_;
  std::size_t median_;
  std::int64_t windows_ = 0;
  std::int64_t masked_ = 0;
  double absolute_target_ = 0.0;
  double absolute_error_ = 0.0;
  std::vector<double> quantile_loss_;
  std::vector<Mean> coverage_;
  std::vector<Interval> intervals_;
  std::size_t msis_place_;  // place of the interval of MSIS; intervals_.size() if there is none
  Mean mse_, absolute_target_mean_, mase_, mape_, smape_, msis_, seasonal_error_;
};

/// Says what training on data did to a score for which less is better: "your data took 21 % off the start's", "your
/// data made no difference" for a change below a thousandth of it, "training made it 3 % worse than its start"; empty
/// if a score is missing.
[[nodiscard]] std::string what_data_did(double score, double of_start);

/// Compares a score with the best that is free: "the model is 11 % better than what is free", "… 14 % worse than …",
/// "the model's CRPS is 78 times that of …" from 200 % worse on, "the model is as good as what is free" for less than
/// half a percent; empty if a score is missing.
[[nodiscard]] std::string beside_free(double score, double free);
/// Of Metrics::json(): the share of true values from the quantile 10 % to that of 90 %, both included; NaN where there
/// is none.
[[nodiscard]] double share_in_band(const nlohmann::ordered_json& metrics);
/// "too narrow" or "too wide", by that share; empty where it is within 3 points of 80 %, unknown, or of a band that has
/// no width (a forecaster without bands).
[[nodiscard]] std::string band_in_words(const nlohmann::ordered_json& metrics);

}  // namespace tsdp::evaluation
