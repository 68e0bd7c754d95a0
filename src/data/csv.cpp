#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "csv_fields.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data::detail {
namespace {

CsvRows rows_of(TextFile& file) {
  return {file, "a header, then rows of a time stamp and values", "a time stamp and a value for each series"};
}

std::size_t time_place(const CsvRows& rows, const ReadOptions& options) {
  if (options.columns.time.empty()) {
    if (parse_time_stamp(rows.names()[rows.first()]))
      rows.fail_header(", which begins with a time as rows of values do; expected a header with names in the first line");
    return rows.first();
  }
  const auto place = rows.place_of(options.columns.time);
  if (!place) rows.fail_header(cat(" without a column ", in_quotes(options.columns.time), "; expected the column with the time stamps"));
  return *place;
}

/// The rows of one time in the file, one after the other, become one row of values.
class RowMerger {
 public:
  RowMerger(std::size_t series, Duplicates duplicates) : duplicates_(duplicates), values_(series), counts_(series) {}

  /// Forgets the row.
  void clear() {
    std::fill(values_.begin(), values_.end(), std::numeric_limits<double>::quiet_NaN());
    std::fill(counts_.begin(), counts_.end(), 0);
  }
  /// A value that is missing leaves what is there.
  void put(std::size_t i, double value) {
    if (std::isnan(value)) return;
    const bool adds = duplicates_ == Duplicates::mean && counts_[i] > 0;
    values_[i] = adds ? values_[i] + value : value;
    counts_[i] += 1;
  }
  [[nodiscard]] double at(std::size_t i) const {
    return duplicates_ == Duplicates::mean && counts_[i] > 1 ? values_[i] / counts_[i] : values_[i];
  }

 private:
  Duplicates duplicates_;
  std::vector<double> values_;
  std::vector<int> counts_;
};

}  // namespace

Dataset read_csv(TextFile& file, const ReadOptions& options) {
  auto rows = rows_of(file);
  const auto& names = rows.names();
  const auto time = time_place(rows, options);
  Dataset dataset;
  dataset.frequency = options.frequency;
  auto& series = dataset.series;
  std::vector<std::size_t> place_of_series;
  std::map<std::string, std::size_t> column_of;
  for (std::size_t i = rows.first(); i < names.size(); ++i) {
    if (i == time) continue;
    if (names[i].empty())
      file.fail(rows.header_line(), static_cast<std::int64_t>(i) + 1, "found an empty column name; expected the name of a series");
    const auto [known, is_new] = column_of.emplace(names[i], i + 1);
    if (!is_new)
      file.fail(rows.header_line(), static_cast<std::int64_t>(i) + 1,
                cat("found the column ", in_quotes(names[i]), " again, first seen in column ", known->second, "; expected each name once"));
    series.emplace_back().id = to_utf8(names[i]);
    place_of_series.push_back(i);
  }
  if (series.empty()) rows.fail_header("; expected a time column and at least one series, separated by commas, semicolons or tabs");
  // Most files are plain: numbers behind a time stamp, separated by commas.
  const bool plain = rows.has_commas() && time == 0 && rows.first() == 0;

  RowMerger row(series.size(), options.duplicates);
  Moment start = 0;
  Moment before = 0;
  std::int64_t steps = 0;  // so far, the row at hand among them
  std::int64_t read = 0;
  const auto append_row = [&] {
    for (std::size_t i = 0; i < series.size(); ++i) append(series[i], row.at(i), options.exact);
  };
  const auto fail_time = [&](Moment moment, const char* hint) {
    file.fail(static_cast<std::int64_t>(time) + 1,
              cat("found the time ", moment_text(moment), "; expected ", moment_text(advance(start, options.frequency, steps)), ", one step of ",
                  options.frequency.text(), " after ", moment_text(before), rows.zone_hint(options.frequency), options.covariates ? "" : hint));
  };
  /// Makes room for the next row: `moment` is where it says it stands.
  const auto begin_row = [&](Moment moment) {
    const auto place = steps_between(start, options.frequency, moment);
    const bool again = place == steps - 1 && moment == before;
    if (again && options.duplicates != Duplicates::error) return;
    if (!place || *place < steps) fail_time(moment, again ? " (duplicates: last or mean, takes rows of one time)" : "");
    if (*place > steps && options.gaps != Gaps::missing) fail_time(moment, " (gaps: missing, takes steps without a row)");
    // A wrong year must not ask for all memory.
    const auto width = static_cast<std::int64_t>(series.size());
    if (*place >= std::min(most_steps(read), 10'000'000 / width + 100 * read)) fail_time(moment, "");
    if (steps > 0) append_row();
    row.clear();
    for (; steps < *place; ++steps) append_row();
    ++steps;
  };
  const auto moment_of = [&](std::string_view field) {
    if (options.covariates && rows.time_stamp(time, field).ahead)  // Series may be in UTC or not; covariates in UTC would be moved against those that are not.
      file.fail(static_cast<std::int64_t>(time) + 1,
                cat("found the time ", in_quotes(field), " with a zone; expected times without one, in the clock of the series (where theirs have a zone: UTC, and local time for steps of a day or longer)"));
    return rows.moment(time, field, options.frequency);
  };
  while (rows.next()) {
    ++read;
    if (plain && rows.line().find('"') == std::string_view::npos) {
      const auto line = rows.line();
      const std::size_t comma = std::min(line.find(','), line.size());
      const auto moment = moment_of(trimmed(line.substr(0, comma)));
      if (read == 1) start = moment;
      begin_row(moment);
      before = moment;
      std::size_t columns = 1;
      if (comma < line.size())
        columns += for_each_value(
            line.substr(comma + 1),
            [&](std::size_t i, double value) {
              if (i < series.size()) row.put(i, value);
            },
            [&](std::size_t i, std::string_view field, const char* accepted) {
              file.fail(static_cast<std::int64_t>(i) + 2, cat("found ", in_quotes(field), "; expected ", accepted));
            });
      if (columns != names.size()) rows.fail_count(columns);
      continue;
    }
    const auto& fields = rows.fields();
    const auto moment = moment_of(fields[time]);
    if (read == 1) start = moment;
    begin_row(moment);
    before = moment;
    for (std::size_t i = 0; i < series.size(); ++i) row.put(i, rows.value(place_of_series[i], fields[place_of_series[i]]));
  }
  if (steps == 0) file.fail("found no row after the header; expected rows of a time stamp and values");
  append_row();
  for (std::size_t i = 0; i < series.size(); ++i) {
    series[i].start = start;
    if (!cut_missing_ends(series[i], options.frequency))
      file.fail(cat("found no value in column ", place_of_series[i] + 1, " (series ", in_quotes(series[i].id),
                    "); expected at least one that is not missing"));
  }
  return dataset;
}

std::optional<Frequency> read_csv_frequency(TextFile& file, const ReadOptions& options) {
  auto rows = rows_of(file);
  const auto time = time_place(rows, options);
  FewTimeStamps stamps;
  while (!stamps.full() && rows.next()) stamps.add(rows.time_stamp(time, rows.fields()[time]));
  return stamps.frequency();
}

}  // namespace tsdp::data::detail
