#include "data/covariates.h"

#include <algorithm>
#include <cmath>

#include "data/oddities.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/data/readers.h"

namespace tsdp::data {

Covariates read_covariates(const std::filesystem::path& file, const Frequency& frequency,
                           const std::vector<std::string>& columns, const std::string& key) {
  ReadOptions options;
  options.format = Format::csv;
  options.frequency = frequency;
  options.covariates = true;
  const auto table = read_dataset(file, options);
  std::vector<const Series*> wanted;
  std::vector<std::string> there;
  for (const auto& column : table.series) there.push_back(column.id);
  for (const auto& name : columns) {
    const auto found = std::find(there.begin(), there.end(), name);
    if (found == there.end())
      throw UsageError(cat(key, ": found '", name, "', which is no column of ", file.string(),
                           "; expected of: ", join(there, ", ")));
    wanted.push_back(&table.series[static_cast<std::size_t>(found - there.begin())]);
  }
  if (columns.empty())
    for (const auto& column : table.series) wanted.push_back(&column);
  if (wanted.size() > most_covariates)
    throw UsageError(cat(key, ": found ", wanted.size(), " columns in ", file.string(), "; expected at most ",
                         most_covariates, ": name those that the model is to be told of"));

  Covariates out{file.string(), {}, wanted.front()->start, {}, wanted.front()->month_day};
  for (const auto* column : wanted) {
    const auto missing =
        std::find_if(column->values.begin(), column->values.end(), [](float value) { return std::isnan(value); });
    if (column->cut > 0 || missing != column->values.end())  // readers cut off missing values at the ends
      throw DataError(cat(file.string(), ": column ", column->id, ": found a missing value ",
                          column->cut > 0
                              ? std::string("at an end")
                              : cat("at ", moment_text(column->at(frequency, missing - column->values.begin()))),
                          "; expected a number in every row, since covariates are known of every step"));
    if (std::any_of(column->values.begin(), column->values.end(),
                    [](float value) { return std::abs(value) >= least_excessive; }))
      throw DataError(cat(file.string(), ": column ", column->id, ": found a value of magnitude ",
                          rounded(static_cast<double>(least_excessive), 6),
                          " or more; expected smaller ones, best from -1 to 1"));
    out.names.push_back(column->id);
  }
  const auto rows = wanted.front()->values.size();
  out.values.reserve(rows * wanted.size());
  for (std::size_t row = 0; row < rows; ++row)
    for (const auto* column : wanted) out.values.push_back(column->values[row]);
  return out;
}

std::optional<std::int64_t> first_row_of(const Series& series, const Dataset& dataset) {
  return steps_between(dataset.covariates.start, dataset.frequency, series.start, dataset.covariates.month_day);
}

std::optional<std::pair<std::string, std::string>> covariate_that_is_a_series(const Dataset& dataset) {
  const auto& known = dataset.covariates;
  const auto width = known.names.size();
  for (const auto& series : dataset.series) {
    const auto first = first_row_of(series, dataset);
    if (!first || std::all_of(series.values.begin(), series.values.end(),
                              [&](float x) { return std::isnan(x) || x == series.values.front(); }))
      continue;
    for (std::size_t column = 0; column < width; ++column) {
      bool same = true;
      for (std::size_t i = 0; same && i < series.values.size(); ++i) {
        const auto row = *first + static_cast<std::int64_t>(i);
        same = std::isnan(series.values[i]) || row < 0 || row >= known.rows() ||
               known.values[static_cast<std::size_t>(row) * width + column] == series.values[i];
      }
      if (same) return std::pair{known.names[column], series.id};
    }
  }
  return std::nullopt;
}

void require_covariates(const Dataset& dataset, std::int64_t beyond) {
  const auto& known = dataset.covariates;
  if (known.names.empty()) return;
  const auto at = [&](std::int64_t row) { return advance(known.start, dataset.frequency, row, known.month_day); };
  for (const auto& series : dataset.series) {
    const auto first = first_row_of(series, dataset);
    if (!first)
      throw DataError(cat(known.file, ": its rows begin at ", moment_text(known.start), ", and series ", series.id,
                          " at ", moment_text(series.start), ", which is no whole number of steps of ",
                          dataset.frequency.text(), " apart; expected rows at the times of the series"));
    const auto last = *first + static_cast<std::int64_t>(series.values.size()) + beyond - 1;
    if (*first >= 0 && last < known.rows()) continue;
    const auto lacking = *first < 0 ? series.start : at(std::max(*first, known.rows()));
    throw DataError(
        cat(known.file, ": found rows from ", moment_text(known.start), " to ", moment_text(at(known.rows() - 1)),
            ", and none for ", moment_text(lacking), " of series ", series.id, "; expected one for every step from ",
            moment_text(series.start), " to ",
            moment_text(series.at(dataset.frequency, static_cast<std::int64_t>(series.values.size()) + beyond - 1))));
  }
}

}  // namespace tsdp::data
