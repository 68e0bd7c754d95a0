#include "evaluation/series_forecast.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "tsdp/base/error.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::evaluation {
namespace {

constexpr std::int64_t batch_rows = 256;
constexpr std::int64_t batch_draws = 50'000'000;  // uniform numbers of the sample paths of a batch, 200 MB

std::vector<double> values_of(const double* from, std::size_t count) {
  if (!std::all_of(from, from + count, [](double x) { return std::isfinite(x); }))
    throw Error(
        ExitCode::failure,
        "a forecast is not finite; the model's weights are not finite or too large to compute with, or its input is");
  return {from, from + count};
}

std::int64_t rows_at_a_time(const ModelShape& shape, std::int64_t paths) {
  return shape.rows(std::clamp<std::int64_t>(
      batch_draws / std::max<std::int64_t>(1, 2 * paths * shape.prediction_length), 1, batch_rows));
}

/// Shortest text that reads back as the same float, the type models compute in.
std::string short_text(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), static_cast<float>(value)).ptr;
  return {buffer.data(), end};
}

}  // namespace

std::int64_t align_ends(data::Dataset& dataset) {
  const auto end_of = [&](const data::Series& series) {
    return series.at(dataset.frequency, static_cast<std::int64_t>(series.values.size()));
  };
  data::Moment latest = std::numeric_limits<data::Moment>::min();
  for (const auto& series : dataset.series) latest = std::max(latest, end_of(series));
  std::size_t values = 0;
  for (const auto& series : dataset.series) values += series.values.size();
  // Otherwise one series with a wrong date would make all others as long as memory allows.
  const auto most = 10'000'000 + 100 * values;
  std::size_t added = 0;
  std::int64_t extended = 0;
  for (auto& series : dataset.series) {
    if (end_of(series) >= latest) continue;
    ++extended;
    const auto end = end_of(series);
    const bool exact = !series.exact.empty();
    while (end_of(series) < latest) {
      if (++added > most)
        throw DataError(cat(dataset.name, ": series '", series.id, "' ends before ", data::moment_text(end),
                            " and another before ", data::moment_text(latest), ": in steps of ",
                            dataset.frequency.text(), " more than ", most,
                            " missing values lie between the ends of the series, for ", values,
                            " values; expected series that end together, or nearly so"));
      series.values.push_back(std::numeric_limits<float>::quiet_NaN());
      if (exact) series.exact.push_back(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return extended;
}

std::vector<SeriesForecast> forecast_series(torch::jit::Module& model, const data::Dataset& dataset,
                                            const ForecastRequest& request, const at::Device& device) {
  const auto shape = shape_of(model);
  const auto past_length = shape.past_length;
  const auto prediction_length = shape.prediction_length;
  const auto paths = request.samples > 0 ? request.samples : shape.from_samples ? sample_paths : 0;
  PastSource pasts(dataset, past_length, request.season_length, request.privacy);
  const KnownFeatures features(model, dataset);
  const ExternalWindows external(model, dataset, request.privacy);
  const auto horizon = static_cast<std::size_t>(prediction_length);
  const auto levels = request.levels.size();
  const auto asked = static_cast<std::size_t>(request.samples);
  const auto count = static_cast<std::int64_t>(dataset.series.size());
  const auto rows = rows_at_a_time(shape, paths);
  std::vector<SeriesForecast> out;
  for (std::int64_t begin = 0; begin < count; begin += rows) {
    std::vector<data::WindowIndex> indices;
    for (auto s = begin; s < std::min(count, begin + rows); ++s)
      indices.push_back({s, static_cast<std::int64_t>(dataset.series[static_cast<std::size_t>(s)].values.size())});
    shape.require_variables(dataset, indices);
    pasts.gather(indices, static_cast<std::uint64_t>(begin));
    RandomStream draws(request.draws, "forecast", static_cast<std::uint64_t>(begin));
    const auto result =
        forecast(model, pasts.target().to(device), pasts.observed().to(device), features.gather(indices, device),
                 request.levels, draws, paths, external.gather(indices, device));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto& series = dataset.series[static_cast<std::size_t>(indices[i].series)];
      auto& one = out.emplace_back();
      one.id = series.id;
      for (std::int64_t k = 0; k < prediction_length; ++k)
        one.times.push_back(series.at(dataset.frequency, indices[i].start + k));
      one.mean = values_of(result.mean.const_data_ptr<double>() + i * horizon, horizon);
      one.quantiles = values_of(result.quantiles.const_data_ptr<double>() + i * levels * horizon, levels * horizon);
      if (asked > 0)
        one.samples = values_of(result.samples.const_data_ptr<double>() + i * asked * horizon, asked * horizon);
      one.seasonal_naive = seasonal_naive(pasts.naive_past(i), request.season_length, prediction_length);
      for (auto& value : one.seasonal_naive) value = std::clamp(value, shape.lower_bound, shape.upper_bound);
    }
  }
  return out;
}

std::vector<std::vector<float>> window_forecasts(torch::jit::Module& model, const data::Dataset& dataset,
                                                 std::span<const data::WindowIndex> indices, const at::Device& device) {
  const auto shape = shape_of(model);
  const auto rows = static_cast<std::size_t>(rows_at_a_time(shape, shape.from_samples ? sample_paths : 0));
  shape.require_variables(dataset, indices);
  PastSource pasts(dataset, shape.past_length, 1, nullptr);
  const KnownFeatures features(model, dataset);
  const auto horizon = static_cast<std::size_t>(shape.prediction_length);
  const auto& levels = default_levels();
  std::vector<std::vector<float>> out;
  for (std::size_t begin = 0; begin < indices.size(); begin += rows) {
    const auto part = indices.subspan(begin, std::min(rows, indices.size() - begin));
    pasts.gather(part, begin);
    RandomStream draws(SecretKey::from_seed(0), "forecast", begin);
    const auto found = forecast(model, pasts.target().to(device), pasts.observed().to(device),
                                features.gather(part, device), levels, draws);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto quantiles =
          values_of(found.quantiles.const_data_ptr<double>() + i * levels.size() * horizon, levels.size() * horizon);
      const auto mean = values_of(found.mean.const_data_ptr<double>() + i * horizon, horizon);
      auto& one = out.emplace_back(quantiles.begin(), quantiles.end());
      one.insert(one.end(), mean.begin(), mean.end());
    }
  }
  return out;
}

std::string forecasts_as_csv(std::span<const SeriesForecast> forecasts, std::span<const double> levels) {
  std::string out = "item_id,timestamp,mean";
  for (const double level : levels) out.append(",").append(exact(level));
  out.push_back('\n');
  for (const auto& one : forecasts) {
    const auto horizon = one.mean.size();
    for (std::size_t k = 0; k < horizon; ++k) {
      out.append(csv_field(one.id)).append(",").append(data::moment_text(one.times[k]));
      out.append(",").append(short_text(one.mean[k]));
      for (std::size_t q = 0; q < levels.size(); ++q)
        out.append(",").append(short_text(one.quantiles[q * horizon + k]));
      out.push_back('\n');
    }
  }
  return out;
}

std::string forecasts_as_json_lines(std::span<const SeriesForecast> forecasts, std::span<const double> levels,
                                    const nlohmann::ordered_json& inference_privacy) {
  std::string out;
  for (const auto& one : forecasts) {
    const auto horizon = one.mean.size();
    const auto row = [&](const std::vector<double>& values, std::size_t i) {
      const auto from = values.begin() + static_cast<std::ptrdiff_t>(i * horizon);
      return std::vector<double>(from, from + static_cast<std::ptrdiff_t>(horizon));
    };
    nlohmann::ordered_json object;
    object["item_id"] = one.id;
    object["start"] = data::moment_text(one.times.front());
    object["mean"] = one.mean;
    for (std::size_t q = 0; q < levels.size(); ++q) object["quantiles"][exact(levels[q])] = row(one.quantiles, q);
    for (std::size_t i = 0; i * horizon < one.samples.size(); ++i) object["samples"].push_back(row(one.samples, i));
    if (!inference_privacy.is_null()) object["inference_privacy"] = inference_privacy;
    out.append(json_text(object)).push_back('\n');
  }
  return out;
}

std::vector<SeriesForecast> seasonal_naive_of(std::span<const SeriesForecast> forecasts, std::size_t levels) {
  std::vector<SeriesForecast> out;
  for (const auto& one : forecasts) {
    auto& naive = out.emplace_back();
    naive.id = one.id;
    naive.times = one.times;
    naive.mean = one.seasonal_naive;
    for (std::size_t q = 0; q < levels; ++q)
      naive.quantiles.insert(naive.quantiles.end(), one.seasonal_naive.begin(), one.seasonal_naive.end());
  }
  return out;
}

}  // namespace tsdp::evaluation
