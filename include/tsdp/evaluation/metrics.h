// Forecast metrics, as GluonTS 0.15.1 aggregates them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

namespace tsdp::evaluation {

/// One window: its true values and the forecast of them. NaN and infinite targets are masked everywhere.
struct WindowForecast {
  std::span<const double> target;     ///< (H)
  std::span<const double> quantiles;  ///< (levels, H), row-major
  std::span<const double> mean;       ///< (H)
  double seasonal_error = 0.0;        ///< of everything before the window; NaN if there is none
};

/// Mean of |y_t − y_{t−m}| over `past`, pairs with a missing member left out; m = 1 if the past is not longer than m.
[[nodiscard]] double seasonal_error(std::span<const double> past, std::int64_t season_length);

/// Aggregates windows: sums of quantile losses over grand totals, and means over windows (evaluation of the paper, §4).
class Metrics {
 public:
  /// `levels` ascending in (0, 1); ND, MASE, sMAPE and MAPE need 0.5 among them.
  explicit Metrics(std::vector<double> levels);

  void add(const WindowForecast& window);

  [[nodiscard]] std::int64_t windows() const noexcept { return windows_; }
  /// mean_weighted_quantile_loss (CRPS), ND, NRMSE, MASE, sMAPE, MAPE, MSE, RMSE, coverage by level, MAE_coverage,
  /// weighted_quantile_loss by level, and the totals they come from. A metric without any value is null.
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

  std::vector<double> levels_;
  std::size_t median_;
  std::int64_t windows_ = 0;
  std::int64_t masked_ = 0;
  double absolute_target_ = 0.0;
  double absolute_error_ = 0.0;
  std::vector<double> quantile_loss_;
  std::vector<Mean> coverage_;
  Mean mse_, absolute_target_mean_, mase_, mape_, smape_, seasonal_error_;
};

}  // namespace tsdp::evaluation
