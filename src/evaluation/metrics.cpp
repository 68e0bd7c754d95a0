#include "tsdp/evaluation/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::evaluation {
namespace {

constexpr double msis_alpha = 0.05;  // of the 95 % interval, as in the M4 competition
constexpr double same_level = 1e-9;

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

const std::vector<double>& default_levels() {
  static const std::vector<double> levels = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  return levels;
}

const std::vector<double>& interval_levels() {
  static const std::vector<double> levels = {0.025, 0.05, 0.25, 0.75, 0.95, 0.975};
  return levels;
}

double seasonal_error(std::span<const double> past, std::int64_t season_length) {
  const auto length = static_cast<std::int64_t>(past.size());
  const auto m = static_cast<std::size_t>(length > season_length ? season_length : 1);
  double sum = 0.0;
  std::int64_t count = 0;
  for (std::size_t t = m; t < past.size(); ++t) {
    const double difference = past[t] - past[t - m];
    if (!std::isfinite(difference)) continue;
    sum += std::abs(difference);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

void Metrics::Mean::add(double value) {
  if (!std::isfinite(value)) return;
  sum += value;
  ++count;
}

double Metrics::Mean::value() const {
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

Metrics::Metrics(std::vector<double> scored, const std::vector<double>& further)
    : levels_(std::move(scored)),
      rows_(levels_.size() + further.size()),
      median_(levels_.size()),
      quantile_loss_(levels_.size()),
      coverage_(levels_.size()) {
  for (std::size_t i = 0; i < levels_.size(); ++i)
    if (std::abs(levels_[i] - 0.5) < same_level) median_ = i;
  if (median_ == levels_.size()) throw UsageError("quantile levels: expected 0.5 among them");
  auto all = levels_;
  all.insert(all.end(), further.begin(), further.end());
  for (std::size_t i = 0; i < rows_; ++i)
    for (std::size_t j = 0; j < rows_; ++j)
      if (all[i] < 0.5 - same_level && std::abs(all[i] + all[j] - 1.0) < same_level)
        // Rounded, so that 1 − 2 · 0.1 is called 0.8.
        intervals_.push_back({std::round((1.0 - 2.0 * all[i]) * 1e9) / 1e9, i, j});
  std::sort(intervals_.begin(), intervals_.end(),
            [](const Interval& a, const Interval& b) { return a.nominal < b.nominal; });
  msis_place_ = intervals_.size();
  for (std::size_t i = 0; i < intervals_.size(); ++i)
    if (std::abs(intervals_[i].nominal - (1.0 - msis_alpha)) < same_level) msis_place_ = i;
}

namespace {

void check(const WindowForecast& w, std::size_t rows) {
  const auto horizon = w.target.size();
  const auto is_nan = [](double x) { return std::isnan(x); };
  if (std::any_of(w.quantiles.begin(), w.quantiles.end(), is_nan) || std::any_of(w.mean.begin(), w.mean.end(), is_nan))
    throw Error(ExitCode::failure,
                "a forecast holds NaN; the model's weights are not finite, or too large to compute with");
  if (w.quantiles.size() != rows * horizon || w.mean.size() != horizon)
    throw Error(ExitCode::failure, "a forecast has another shape than its metrics");
}

}  // namespace

void Metrics::add_step(const WindowForecast& w, std::size_t k, WindowSums& sums) {
  const auto horizon = w.target.size();
  const double y = w.target[k];
  if (!std::isfinite(y)) {
    ++masked_;
    return;
  }
  ++sums.observed;
  const double median = w.quantiles[median_ * horizon + k];
  sums.squared += (y - w.mean[k]) * (y - w.mean[k]);
  sums.absolute_target += std::abs(y);
  sums.absolute_error += std::abs(y - median);
  sums.mape.add(std::abs(y - median) / std::abs(y));  // not finite where y = 0: masked
  sums.smape.add(2.0 * std::abs(y - median) / (std::abs(y) + std::abs(median)));
  for (std::size_t q = 0; q < levels_.size(); ++q) {
    const double x = w.quantiles[q * horizon + k];
    const double below = y <= x ? 1.0 : 0.0;
    quantile_loss_[q] += 2.0 * std::abs((x - y) * (below - levels_[q]));
    sums.covered[q] += below;
  }
  for (std::size_t i = 0; i < intervals_.size(); ++i) {
    const double lower = w.quantiles[intervals_[i].lower * horizon + k];
    const double upper = w.quantiles[intervals_[i].upper * horizon + k];
    sums.inside[i] += lower <= y && y <= upper ? 1.0 : 0.0;
    sums.width[i] += upper - lower;
    if (i == msis_place_)
      sums.interval_score += upper - lower + 2.0 / msis_alpha * (std::max(lower - y, 0.0) + std::max(y - upper, 0.0));
  }
}

void Metrics::add(const WindowForecast& w) {
  ++windows_;
  check(w, rows_);
  WindowSums sums;
  sums.covered.resize(levels_.size());
  sums.inside.resize(intervals_.size());
  sums.width.resize(intervals_.size());
  for (std::size_t k = 0; k < w.target.size(); ++k) add_step(w, k, sums);
  seasonal_error_.add(w.seasonal_error);
  // A window with nothing observed adds to no sum and is left out of every mean of errors.
  if (sums.observed == 0) return;
  const auto n = static_cast<double>(sums.observed);
  absolute_target_ += sums.absolute_target;
  absolute_error_ += sums.absolute_error;
  mse_.add(sums.squared / n);
  absolute_target_mean_.add(sums.absolute_target / n);
  mase_.add(sums.absolute_error / n / w.seasonal_error);
  mape_.add(sums.mape.value());
  smape_.add(sums.smape.value());
  if (msis_place_ < intervals_.size()) msis_.add(sums.interval_score / n / w.seasonal_error);
  for (std::size_t q = 0; q < levels_.size(); ++q) coverage_[q].add(sums.covered[q] / n);
  for (std::size_t i = 0; i < intervals_.size(); ++i) {
    intervals_[i].coverage.add(sums.inside[i] / n);
    intervals_[i].width.add(sums.width[i] / n);
    intervals_[i].total_width += sums.width[i];
  }
}

template <class Self, class Visit>
void Metrics::each_sum(Self& metrics, const Visit& visit) {
  const auto visit_mean = [&](auto& mean) {
    visit(mean.sum);
    visit(mean.count);
  };
  visit(metrics.windows_);
  visit(metrics.masked_);
  visit(metrics.absolute_target_);
  visit(metrics.absolute_error_);
  for (auto& loss : metrics.quantile_loss_) visit(loss);
  for (auto& coverage : metrics.coverage_) visit_mean(coverage);
  for (auto& interval : metrics.intervals_) {
    visit(interval.total_width);
    visit_mean(interval.coverage);
    visit_mean(interval.width);
  }
  for (auto* mean : {&metrics.mse_, &metrics.absolute_target_mean_, &metrics.mase_, &metrics.mape_, &metrics.smape_,
                     &metrics.msis_, &metrics.seasonal_error_})
    visit_mean(*mean);
}

std::vector<double> Metrics::sums() const {
  std::vector<double> out;
  each_sum(*this, [&](const auto& sum) { out.push_back(static_cast<double>(sum)); });
  return out;
}

void Metrics::add(std::span<const double> sums) {
  constexpr double most = 1e15;  // of anything that is counted
  if (sums.size() != this->sums().size())
    throw Error(ExitCode::failure, "scores: found sums of other levels than these metrics have");
  const auto* next = sums.data();
  each_sum(*this, [&]<class Sum>(const Sum&) {
    if (const double found = *next++; std::is_integral_v<Sum> && !(found >= 0.0 && found <= most))
      throw Error(ExitCode::failure, "scores: found a count that is none");
  });
  next = sums.data();
  each_sum(*this, [&]<class Sum>(Sum& sum) { sum += static_cast<Sum>(*next++); });
}

double Metrics::mean_weighted_quantile_loss() const {
  double sum = 0.0;
  for (const double loss : quantile_loss_) sum += loss / absolute_target_;
  return sum / static_cast<double>(levels_.size());
}

namespace {

constexpr double told_as_factor = 200.0;  // percent worse, from where on a factor is easier to read

}  // namespace

std::string what_data_did(double score, double of_start) {
  constexpr double shows = 0.1;
  const double percent = 100.0 * (1.0 - score / of_start);
  if (!std::isfinite(percent)) return "";
  if (std::abs(percent) < shows) return "your data made no difference";
  if (-percent >= told_as_factor)
    return cat("training made its CRPS ", rounded(score / of_start, 2), " times its start's");
  return percent > 0.0 ? cat("your data took ", rounded(percent, 3), " % off the start's")
                       : cat("training made it ", rounded(-percent, 3), " % worse than its start");
}

std::string beside_free(double score, double free) {
  const double percent = 100.0 * (score / free - 1.0);
  if (!std::isfinite(percent)) return "";
  if (std::abs(percent) < 0.5) return "the model is as good as what is free";
  if (percent >= told_as_factor)
    return cat("the model's CRPS is ", rounded(score / free, 2), " times that of what is free");
  return cat("the model is ", rounded(std::abs(percent), 2), percent < 0.0 ? " % better" : " % worse",
             " than what is free");
}

namespace {

/// A number of the 80 % interval in Metrics::json(); NaN where there is none.
double of_band(const nlohmann::ordered_json& metrics, const char* what) {
  const auto intervals = metrics.is_object() ? metrics.value("intervals", nlohmann::ordered_json::object())
                                             : nlohmann::ordered_json::object();
  const auto band = intervals.value("0.8", nlohmann::ordered_json::object());
  const auto found = band.value(what, nlohmann::ordered_json());
  return found.is_number() ? found.get<double>() : std::nan("");
}

}  // namespace

double share_in_band(const nlohmann::ordered_json& metrics) { return of_band(metrics, "coverage"); }

std::string band_in_words(const nlohmann::ordered_json& metrics) {
  const double share = share_in_band(metrics);
  if (!(of_band(metrics, "mean_width") > 0.0)) return "";
  if (share < 0.77) return "too narrow";
  return share > 0.83 ? "too wide" : "";
}

nlohmann::ordered_json Metrics::json() const {
  nlohmann::ordered_json out;
  const double rmse = std::sqrt(mse_.value());
  out["mean_weighted_quantile_loss"] = number(mean_weighted_quantile_loss());
  out["ND"] = number(absolute_error_ / absolute_target_);
  out["NRMSE"] = number(rmse / absolute_target_mean_.value());
  out["MASE"] = number(mase_.value());
  out["sMAPE"] = number(smape_.value());
  out["MAPE"] = number(mape_.value());
  out["MSIS"] = number(msis_.value());
  out["MSE"] = number(mse_.value());
  out["RMSE"] = number(rmse);
  double distance = 0.0;
  nlohmann::ordered_json coverage;
  nlohmann::ordered_json weighted;
  nlohmann::ordered_json unweighted;
  double total = 0.0;
  for (std::size_t q = 0; q < levels_.size(); ++q) {
    coverage[exact(levels_[q])] = number(coverage_[q].value());
    weighted[exact(levels_[q])] = number(quantile_loss_[q] / absolute_target_);
    unweighted[exact(levels_[q])] = number(quantile_loss_[q]);
    total += quantile_loss_[q];
    distance += std::abs(coverage_[q].value() - levels_[q]);
  }
  out["coverage"] = std::move(coverage);
  out["MAE_coverage"] = number(distance / static_cast<double>(levels_.size()));
  out["weighted_quantile_loss"] = std::move(weighted);
  out["quantile_loss"] = std::move(unweighted);
  out["mean_absolute_quantile_loss"] = number(total / static_cast<double>(levels_.size()));
  nlohmann::ordered_json intervals = nlohmann::ordered_json::object();
  for (const auto& i : intervals_)
    intervals[exact(i.nominal)] = {{"coverage", number(i.coverage.value())},
                                   {"mean_width", number(i.width.value())},
                                   {"relative_width", number(i.total_width / absolute_target_)}};
  out["intervals"] = std::move(intervals);
  out["abs_error"] = number(absolute_error_);
  out["abs_target_sum"] = number(absolute_target_);
  out["abs_target_mean"] = number(absolute_target_mean_.value());
  out["seasonal_error"] = number(seasonal_error_.value());
  out["num_masked_target_values"] = masked_;
  return out;
}

}  // namespace tsdp::evaluation
