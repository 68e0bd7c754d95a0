#include "evaluation/baseline_file.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "evaluation/truth.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp::evaluation {
namespace {

using Json = nlohmann::json;

/// One line of the file, and its error messages.
class Entry {
 public:
  Entry(std::string where, std::string_view text) : where_(std::move(where)) {
    object_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!object_.is_object()) fail("found no JSON object; expected one an entry, in one line");
  }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(cat(where_, ": ", what)); }

  [[nodiscard]] const Json& at(const char* key, bool (Json::*kind)() const noexcept, const char* expected) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail(cat("found no '", key, "'; expected ", expected));
    if (!((*found).*kind)()) fail(cat(key, ": found ", found->dump().substr(0, 40), "; expected ", expected));
    return *found;
  }

  /// `count` finite numbers.
  [[nodiscard]] std::vector<double> numbers(const Json& array, const std::string& key, std::size_t count) const {
    if (!array.is_array() || array.size() != count)
      fail(cat(key, ": found ", array.is_array() ? cat(array.size(), " values") : array.dump().substr(0, 40),
               "; expected ", count, ", the forecast length"));
    std::vector<double> out;
    for (const auto& value : array) {
      if (!value.is_number() || !std::isfinite(value.get<double>()))
        fail(cat(key, ": found ", value.dump().substr(0, 40), "; expected a finite number"));
      out.push_back(value.get<double>());
    }
    return out;
  }

 private:
  std::string where_;
  Json object_;
};

/// Place of the level that a quantile's key names; levels.size() if it is another.
std::size_t place_of(const std::string& key, const std::vector<double>& levels) {
  double value = 0.0;
  if (!parse_double(key, value)) return levels.size();
  const auto at = std::find_if(levels.begin(), levels.end(), [&](double q) { return std::abs(q - value) < 1e-9; });
  return static_cast<std::size_t>(at - levels.begin());
}

/// Non-empty lines, each with its number.
std::vector<std::pair<std::size_t, std::string>> entries_of(std::string_view text) {
  std::vector<std::pair<std::size_t, std::string>> out;
  const auto lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (!trimmed(lines[i]).empty()) out.emplace_back(i + 1, lines[i]);
  return out;
}

}  // namespace

Metrics score_baseline(const std::filesystem::path& file, const data::Dataset& dataset,
                       std::span<const data::ForecastRange> ranges, std::int64_t prediction_length,
                       std::int64_t season_length) {
  const auto lines = entries_of(read_file(file));
  if (lines.size() != ranges.size())
    throw DataError(cat(file.string(), ": found ", lines.size(), " entries; expected ", ranges.size(),
                        ", one a window of each series"));
  const auto horizon = static_cast<std::size_t>(prediction_length);

  struct Forecast {
    std::vector<std::vector<double>> scored, further;  // by level; further ones may be empty
    std::vector<double> mean;
  };
  std::vector<Forecast> forecasts;
  const auto& further = interval_levels();
  std::vector<bool> complete(further.size(), true);  // whether all entries have the level
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Entry entry(cat(file.string(), ":", lines[i].first), lines[i].second);
    const auto& series = dataset.series[static_cast<std::size_t>(ranges[i].series)];
    const auto id = entry.at("item_id", &Json::is_string, "the id of a series").get<std::string>();
    const auto place = entry.at("forecast_start", &Json::is_number_integer, "the place of the first forecast value")
                           .get<std::int64_t>();
    if (id != series.id || place != ranges[i].forecast_start)
      entry.fail(cat("found series '", id, "' forecast from place ", place, "; expected series '", series.id,
                     "' from place ", ranges[i].forecast_start, ", as the windows go in order"));
    auto& forecast = forecasts.emplace_back();
    forecast.scored.resize(default_levels().size());
    forecast.further.resize(further.size());
    const auto& quantiles = entry.at("quantiles", &Json::is_object, "lists of numbers by level");
    for (const auto& [key, values] : quantiles.items()) {
      if (const auto q = place_of(key, default_levels()); q < forecast.scored.size())
        forecast.scored[q] = entry.numbers(values, "quantile " + key, horizon);
      if (const auto q = place_of(key, further); q < forecast.further.size())
        forecast.further[q] = entry.numbers(values, "quantile " + key, horizon);
    }
    for (std::size_t q = 0; q < forecast.scored.size(); ++q)
      if (forecast.scored[q].empty())
        entry.fail(cat("found no quantile ", default_levels()[q], "; expected 0.1, 0.2, … 0.9"));
    for (std::size_t q = 0; q < further.size(); ++q) complete[q] = complete[q] && !forecast.further[q].empty();
    forecast.mean = entry.numbers(entry.at("mean", &Json::is_array, "a list of numbers"), "mean", horizon);
  }

  std::vector<double> used;
  for (std::size_t q = 0; q < further.size(); ++q)
    if (complete[q]) used.push_back(further[q]);
  Metrics metrics(default_levels(), used);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto truth = truth_of(dataset, ranges[i], prediction_length, season_length);
    std::vector<double> quantiles;
    for (const auto& level : forecasts[i].scored) quantiles.insert(quantiles.end(), level.begin(), level.end());
    for (std::size_t q = 0; q < further.size(); ++q)
      if (complete[q])
        quantiles.insert(quantiles.end(), forecasts[i].further[q].begin(), forecasts[i].further[q].end());
    metrics.add({truth.target, quantiles, forecasts[i].mean, truth.seasonal_error});
  }
  return metrics;
}

}  // namespace tsdp::evaluation
