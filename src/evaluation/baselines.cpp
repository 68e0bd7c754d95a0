#include <algorithm>
#include <cmath>

#include "tsdp/evaluation/backtest.h"

namespace tsdp::evaluation {
namespace {

/// The observed ones of the values at `place`, `place` − m, …: at most `count` places, none before the first value.
std::vector<double> same_place(std::span<const float> past, std::int64_t place, const Seasons& seasons) {
  std::vector<double> out;
  for (std::int64_t s = 0; s < seasons.count && place >= 0; ++s, place -= seasons.length)
    if (const float value = past[static_cast<std::size_t>(place)]; !std::isnan(value)) out.push_back(value);
  return out;
}

/// The observed values of the last S seasons, or of the whole past if these have none.
std::vector<double> recent(std::span<const float> past, const Seasons& seasons) {
  const auto read = std::min(past.size(), static_cast<std::size_t>(seasons.length * seasons.count));
  std::vector<double> out;
  for (const auto part : {past.last(read), past.first(past.size() - read)}) {
    for (const float value : part)
      if (!std::isnan(value)) out.push_back(value);
    if (!out.empty()) break;
  }
  return out;
}

/// y[t] − y[t − apart] of the last S seasons, where both are observed.
std::vector<double> errors_of_naive(std::span<const float> past, std::int64_t apart, const Seasons& seasons) {
  const auto n = static_cast<std::int64_t>(past.size());
  std::vector<double> out;
  for (auto t = std::max(apart, n - seasons.length * seasons.count); t < n; ++t) {
    const auto error = static_cast<double>(past[static_cast<std::size_t>(t)]) -
                       static_cast<double>(past[static_cast<std::size_t>(t - apart)]);
    if (!std::isnan(error)) out.push_back(error);
  }
  return out;
}

/// The empirical quantile of sorted values, interpolated linearly between order statistics; 0 of none.
double quantile(const std::vector<double>& sorted, double level) {
  if (sorted.empty()) return 0.0;
  const double place = level * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

/// A forecast whose step k has a sample of its own, plus `point`[k] where points are given.
BaselineForecast of_samples(const std::vector<std::vector<double>>& samples, const std::vector<double>& points,
                            const std::vector<double>& levels) {
  const auto horizon = samples.size();
  BaselineForecast out{std::vector<double>(levels.size() * horizon), std::vector<double>(horizon)};
  for (std::size_t k = 0; k < horizon; ++k) {
    auto sorted = samples[k];
    std::sort(sorted.begin(), sorted.end());
    const double point = points.empty() ? 0.0 : points[k];
    for (std::size_t q = 0; q < levels.size(); ++q)
      out.quantiles[q * horizon + k] = point + quantile(sorted, levels[q]);
    out.mean[k] = point + mean_of(sorted);
  }
  return out;
}

}  // namespace

Seasons seasons_of(const data::Frequency& step, std::int64_t season_length) {
  return {season_length, season_length <= 86400 / data::shortest_step(step) ? 28 : 8};
}

std::vector<double> seasonal_naive(std::span<const float> past, std::int64_t season_length,
                                   std::int64_t prediction_length) {
  // GluonTS uses float32 here; so do we.
  std::vector<float> filled(past.begin(), past.end());
  float last = 0.0F;
  const auto first = std::find_if(filled.begin(), filled.end(), [](float v) { return !std::isnan(v); });
  if (first != filled.end()) last = *first;
  for (auto& value : filled) {
    if (std::isnan(value)) value = last;
    else last = value;
  }
  std::vector<double> out(static_cast<std::size_t>(prediction_length));
  const auto n = static_cast<std::int64_t>(filled.size());
  if (n < season_length) {
    float sum = 0.0F;
    for (const float value : filled) sum += value;
    std::fill(out.begin(), out.end(), n > 0 ? static_cast<double>(sum / static_cast<float>(n)) : 0.0);
    return out;
  }
  for (std::int64_t k = 0; k < prediction_length; ++k)
    out[static_cast<std::size_t>(k)] =
        static_cast<double>(filled[static_cast<std::size_t>(n - season_length + k % season_length)]);
  return out;
}

BaselineForecast baseline_forecast(Baseline baseline, std::span<const float> past, const Seasons& seasons,
                                   std::int64_t prediction_length, const std::vector<double>& levels) {
  const auto horizon = static_cast<std::size_t>(prediction_length);
  const auto n = static_cast<std::int64_t>(past.size());
  const auto seasons_ahead = [&](std::int64_t k) { return k / seasons.length + 1; };  // of step k + 1
  std::vector<std::vector<double>> samples(horizon);
  switch (baseline) {
    case Baseline::seasonal_naive: {
      auto points = seasonal_naive(past, seasons.length, prediction_length);
      std::vector<double> quantiles;
      for (std::size_t i = 0; i < levels.size(); ++i) quantiles.insert(quantiles.end(), points.begin(), points.end());
      return {std::move(quantiles), std::move(points)};
    }
    case Baseline::seasonal_naive_bands: {
      std::vector<double> errors;
      for (std::int64_t k = 0; k < prediction_length; ++k) {
        if (k % seasons.length == 0) errors = errors_of_naive(past, seasons_ahead(k) * seasons.length, seasons);
        samples[static_cast<std::size_t>(k)] = errors;
      }
      return of_samples(samples, seasonal_naive(past, seasons.length, prediction_length), levels);
    }
    case Baseline::seasonal_quantiles: {
      const auto all = recent(past, seasons);
      for (std::int64_t k = 0; k < prediction_length; ++k) {
        auto& sample = samples[static_cast<std::size_t>(k)];
        sample = same_place(past, n + k - seasons_ahead(k) * seasons.length, seasons);
        if (sample.empty()) sample = all;
      }
      return of_samples(samples, {}, levels);
    }
  }
  throw Error(ExitCode::failure, "a baseline without a forecast");
}

}  // namespace tsdp::evaluation
