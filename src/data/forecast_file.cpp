#include "data/forecast_file.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

using Json = nlohmann::json;
using Places = std::unordered_map<std::string, std::int64_t>;  // of series in the data set, by id

/// One line of the file, and its error messages.
class Entry {
 public:
  Entry(std::string where, std::string_view text) : where_(std::move(where)) {
    object_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!object_.is_object()) fail("found no JSON object; expected one an entry, in one line");
  }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(cat(where_, ": ", what)); }

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

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

  /// Where the forecast begins in the series; −1 for a moment of a series that is not in the data set.
  [[nodiscard]] std::int64_t place(const std::string& id, const Dataset& dataset, const Places& series) const {
    if (!has("start") || has("forecast_start"))
      return at("forecast_start", &Json::is_number_integer, "the place of the first forecast value")
          .get<std::int64_t>();
    const auto text = at("start", &Json::is_string, "the moment of the first forecast value").get<std::string>();
    const auto stamp = parse_time_stamp(text);
    if (!stamp) fail(cat("start: found '", text, "'; expected a moment such as 2015-01-31 13:00:00"));
    const auto known = series.find(id);
    if (known == series.end()) return -1;
    const auto& one = dataset.series[static_cast<std::size_t>(known->second)];
    const auto steps = steps_between(one.start, dataset.frequency, stamp->at(dataset.frequency), one.month_day);
    if (!steps)
      fail(cat("start: found ", text, ", which is no step of series '", id,
               "'; expected a moment that is whole steps of ", dataset.frequency.text(), " after its start, ",
               moment_text(one.start)));
    return *steps;
  }

 private:
  std::string where_;
  Json object_;
};

Places places_of(const Dataset& dataset) {
  Places out;
  for (std::size_t i = 0; i < dataset.series.size(); ++i)
    out.emplace(dataset.series[i].id, static_cast<std::int64_t>(i));
  return out;
}

constexpr int scored_levels = 9;  // 0.1, …, 0.9
double scored_level(int i) { return (i + 1) / 10.0; }

}  // namespace

const std::vector<double>* FileForecast::at(double level) const {
  for (const auto& [found, values] : quantiles)
    if (std::abs(found - level) < 1e-9) return &values;
  return nullptr;
}

std::vector<FileForecast> read_forecasts(const std::filesystem::path& file, const Dataset& dataset,
                                         std::int64_t prediction_length, std::optional<std::size_t> expected) {
  const auto horizon = static_cast<std::size_t>(prediction_length);
  const auto series = places_of(dataset);
  const auto text = read_file(file);
  const auto lines = split(text, '\n');
  const auto entries = static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [](const auto& line) { return !trimmed(line).empty(); }));
  if (expected && entries != *expected)
    throw DataError(
        cat(file.string(), ": found ", entries, " entries; expected ", *expected, ", one a window of each series"));
  std::vector<FileForecast> out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (trimmed(lines[i]).empty()) continue;
    const auto where = cat(file.string(), ":", i + 1);
    const Entry entry(where, lines[i]);
    auto& one = out.emplace_back(
        FileForecast{where, entry.at("item_id", &Json::is_string, "the id of a series").get<std::string>()});
    one.place = entry.place(one.item_id, dataset, series);
    for (const auto& [key, values] : entry.at("quantiles", &Json::is_object, "lists of numbers by level").items())
      if (double level = 0.0; parse_double(key, level) && level > 0.0 && level < 1.0 && !one.at(level))
        one.quantiles.emplace_back(level, entry.numbers(values, "quantile " + key, horizon));
    for (int q = 0; q < scored_levels; ++q)
      if (!one.at(scored_level(q)))
        entry.fail(cat("found no quantile ", scored_level(q), "; expected 0.1, 0.2, … 0.9"));
    one.mean = entry.numbers(entry.at("mean", &Json::is_array, "a list of numbers"), "mean", horizon);
  }
  return out;
}

std::shared_ptr<const ExternalForecasts> read_external(const std::filesystem::path& file, const Dataset& dataset,
                                                       std::int64_t prediction_length) {
  auto out = std::make_shared<ExternalForecasts>();
  out->name = file.stem().string();
  out->file = file;
  if (out->is_model()) return out;
  const auto series = places_of(dataset);
  const auto horizon = static_cast<std::size_t>(prediction_length);
  for (const auto& one : read_forecasts(file, dataset, prediction_length)) {
    const auto known = series.find(one.item_id);
    if (known == series.end()) continue;
    std::vector<float> values;
    for (int q = 0; q < scored_levels; ++q)
      for (const double value : *one.at(scored_level(q))) values.push_back(static_cast<float>(value));
    for (const double value : one.mean) values.push_back(static_cast<float>(value));
    if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); }))
      throw DataError(
          cat(one.where, ": found a value that single precision does not hold; expected values below 3e38"));
    for (std::size_t k = 0; k < horizon; ++k) {
      std::vector<float> step;
      for (std::size_t q = 0; q < scored_levels; ++q) step.push_back(values[q * horizon + k]);
      std::sort(step.begin(), step.end());
      for (std::size_t q = 0; q < scored_levels; ++q) values[q * horizon + k] = step[q];
    }
    if (!out->windows.emplace(std::pair{known->second, one.place}, std::move(values)).second)
      throw DataError(cat(one.where, ": found a second forecast of series '", one.item_id, "' from place ", one.place,
                          "; expected one"));
  }
  if (out->windows.empty())
    throw DataError(cat(file.string(), ": found no forecast of a series of ", dataset.name,
                        "; expected entries whose item_id is that of a series, such as '",
                        dataset.series.empty() ? "" : dataset.series.front().id, "'"));
  return out;
}

}  // namespace tsdp::data
