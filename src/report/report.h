// report.html: one page that shows how a run turned out. It shows data, so it belongs under private/.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/data/dataset.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::exporting {

/// Quantile levels of a drawn forecast: the ends of the 90 % band, of the 50 % band, and the median.
inline constexpr std::array<double, 5> report_levels = {0.05, 0.25, 0.5, 0.75, 0.95};
/// The largest number of drawn forecasts.
inline constexpr std::size_t most_report_forecasts = 8;

/// One window: what came before, what came, and what was forecast. Missing values are NaN.
struct ReportForecast {
  std::string series;         ///< its name
  std::string why;            ///< why this one is shown: "best of 20", and its score
  std::string start;          ///< when the forecast begins, for people
  std::vector<double> past;   ///< right before the forecast, oldest first
  std::vector<double> truth;  ///< (H)
  std::vector<double> seasonal_naive = {};    ///< (H); none: not drawn
  std::vector<data::Moment> moments =
      {};     ///< of past and truth, ascending; none: steps are counted from the forecast's start
  std::array<std::vector<double>, report_levels.size()> quantiles;  ///< (H) each
};

/// Metrics of one forecaster over all windows, as in evaluation::Metrics::json; null and missing values are left out.
struct ReportScore {
  std::string name;
  nlohmann::ordered_json metrics;
};

/// What the page says. Empty parts are left out, and the page says why where a reader would look for them.
struct ReportContent {
  std::string dataset;
  std::string model;
  std::string program;             ///< name and version
  std::string made;                ///< when, for people
  std::string step = "step";       ///< the calendar step of the series, such as "1h"
  std::string windows = "test";    ///< which windows: "test" or "validation"
  std::int64_t steps_per_epoch = 1;
  nlohmann::ordered_json ledger;  ///< privacy.json
  std::vector<ReportForecast> forecasts;
  std::string how_chosen;                       ///< how the forecasts shown were chosen
  std::vector<ReportScore> scores;              ///< the model first, then what it is compared with
  std::vector<std::string> remarks = {};        ///< what the scores rest on (evaluation::BacktestResult)
  std::size_t best_free = 0;  ///< the best of these that is free (evaluation::best_free); 0: none is
  double start_crps = std::numeric_limits<double>::quiet_NaN();  ///< of the weights that training began with
  mechanism::StartOrigin start_origin = mechanism::StartOrigin::fresh;  ///< where they come from
  std::vector<nlohmann::ordered_json> metrics;  ///< lines of metrics.jsonl
  std::string loss = "Negative log-likelihood";  ///< what was trained on
  bool validates = false;                        ///< whether some values are held out from training
  /// The most that the best attacker achieves: true-positive rates by false-positive rate, both in [0, 1].
  std::vector<double> false_positive_rates;
  std::vector<double> true_positive_rates;
  std::vector<std::pair<std::string, std::string>> facts;  ///< about the run: what and how much
};

/// The page: one HTML document without scripts that loads nothing from elsewhere and forbids it, for screens from 320
/// pixels wide, light or dark, and for paper. All text is escaped.
[[nodiscard]] std::string report_html(const ReportContent& content);

}  // namespace tsdp::exporting
