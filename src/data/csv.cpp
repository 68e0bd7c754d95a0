#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csv_fields.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data::detail {
namespace {

CsvRows rows_of(TextFile& file, const FormNames& names) {
  return {file, "a header, then rows of a time stamp and values", "a time stamp and a value for each series", names,
          true};
}

std::size_t time_place(const CsvRows& rows, const ReadOptions& options) {
  if (options.columns.time.empty()) {
    if (parse_time_stamp(rows.names()[rows.first()]))
      rows.fail_header(
          ", which begins with a time as rows of values do; expected a header with names in the first line");
    return rows.first();
  }
  const auto place = rows.place_of(options.columns.time);
  if (!place)
    rows.fail_header(cat(" without a column ", in_quotes(options.columns.time), ", which ",
                         options.names.column("time"), " asks for; expected the column with the time stamps"));
  return *place;
}

/// Merges consecutive rows of one time in the file into one row of values.
class RowMerger {
 public:
  RowMerger(std::size_t series, Duplicates duplicates) : duplicates_(duplicates), values_(series), counts_(series) {}

  /// Forgets the row.
  void clear() {
    std::fill(values_.begin(), values_.end(), std::numeric_limits<double>::quiet_NaN());
    std::fill(counts_.begin(), counts_.end(), 0);
  }
  /// A missing value leaves what is there.
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

/// The series that the columns of a header name, and the rows below it.
class Table {
 public:
  Table(TextFile& file, const ReadOptions& options)
      : file_(file), options_(options), rows_(rows_of(file, options.names)), time_(time_place(rows_, options)) {
    const auto& names = rows_.names();
    std::map<std::string, std::size_t> column_of;
    for (std::size_t i = rows_.first(); i < names.size(); ++i) {
      if (i == time_) continue;
      if (names[i].empty())
        file.fail(rows_.header_line(), static_cast<std::int64_t>(i) + 1,
                  "found an empty column name; expected the name of a series");
      const auto [known, is_new] = column_of.emplace(names[i], i + 1);
      if (!is_new)
        file.fail(rows_.header_line(), static_cast<std::int64_t>(i) + 1,
                  cat("found the column ", in_quotes(names[i]), " again, first seen in column ", known->second,
                      "; expected each name once"));
      places_.push_back(i);
    }
    if (places_.empty())
      rows_.fail_header("; expected a time column and at least one series, separated by commas, semicolons or tabs");
    plain_ = rows_.has_commas() && time_ == 0 && rows_.first() == 0;
    values_.resize(places_.size());
  }

  [[nodiscard]] std::size_t width() const { return places_.size(); }
  [[nodiscard]] const std::string& name(std::size_t i) const { return rows_.names()[places_[i]]; }
  [[nodiscard]] std::size_t place(std::size_t i) const { return places_[i]; }
  [[nodiscard]] std::int64_t time_column() const { return static_cast<std::int64_t>(time_) + 1; }
  [[nodiscard]] std::string zone_hint() const { return rows_.zone_hint(options_.frequency); }

  /// Goes to the next row; false at the end.
  bool next() {
    if (!rows_.next()) {
      rows_.check_numbers();
      return false;
    }
    // Most files are plain: numbers after a time stamp, separated by commas.
    if (plain_ && rows_.line().find('"') == std::string_view::npos) {
      const auto line = rows_.line();
      const std::size_t comma = std::min(line.find(','), line.size());
      moment_ = moment_of(trimmed(line.substr(0, comma)));
      std::size_t columns = 1;
      if (comma < line.size())
        columns += for_each_value(
            line.substr(comma + 1),
            [&](std::size_t i, double value) {
              if (i < values_.size()) values_[i] = value;
            },
            [&](std::size_t i, std::string_view field, const char* accepted) {
              rows_.fail_value(i + 1, field, accepted);
            });
      if (columns != rows_.names().size()) rows_.fail_count(columns);
      return true;
    }
    const auto& fields = rows_.fields();
    moment_ = moment_of(fields[time_]);
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = rows_.value(places_[i], fields[places_[i]]);
    return true;
  }
  [[nodiscard]] Moment moment() const { return moment_; }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  Moment moment_of(std::string_view field) {
    if (options_.covariates && rows_.time_stamp(time_, field).ahead)
      file_.fail(time_column(), cat("found the time ", in_quotes(field), " with a zone; ", clock_of_covariates));
    return rows_.moment(time_, field, options_.frequency);
  }

  TextFile& file_;
  const ReadOptions& options_;
  CsvRows rows_;
  std::size_t time_;
  std::vector<std::size_t> places_;  // of the series' columns
  bool plain_ = false;
  Moment moment_ = 0;
  std::vector<double> values_;
};

/// Turns rows in the order of their times into series.
class Grid {
 public:
  /// `month_day` is that of all rows, if their steps are of months.
  Grid(const TextFile& file, const ReadOptions& options, const Table& table, int month_day)
      : file_(file), options_(options), table_(table), month_day_(month_day), row_(table.width(), options.duplicates) {
    dataset_.frequency = options.frequency;
    for (std::size_t i = 0; i < table.width(); ++i) {
      dataset_.series.emplace_back().id = to_utf8(table.name(i));
      dataset_.series.back().month_day = month_day;
    }
  }

  void add(Moment moment, std::int64_t line, std::span<const double> values) {
    begin_row(moment, line);
    before_ = moment;
    before_line_ = line;
    for (std::size_t i = 0; i < values.size(); ++i) row_.put(i, values[i]);
  }

  [[nodiscard]] Dataset finish() {
    if (steps_ == 0) file_.fail("found no row after the header; expected rows of a time stamp and values");
    append_row();
    check_stated_step(file_, options_, {moments_});
    for (std::size_t i = 0; i < dataset_.series.size(); ++i) {
      auto& series = dataset_.series[i];
      series.start = moments_.front();
      if (!cut_missing_ends(series, options_.frequency))
        file_.fail(cat("found no value in column ", table_.place(i) + 1, " (series ", in_quotes(series.id),
                       "); expected at least one that is not missing"));
    }
    return std::move(dataset_);
  }

 private:
  void append_row() {
    for (std::size_t i = 0; i < dataset_.series.size(); ++i) append(dataset_.series[i], row_.at(i), options_.exact);
  }
  [[noreturn]] void fail_time(Moment moment, std::int64_t line, const std::string& hint) const {
    const auto& frequency = options_.frequency;
    file_.fail(
        line, table_.time_column(),
        cat("found the time ", moment_text(moment), "; expected ",
            moment_text(advance(moments_.front(), frequency, steps_, month_day_)), ", one step of ", frequency.text(),
            " after ", moment_text(before_), table_.zone_hint(), options_.covariates ? std::string() : hint));
  }
  /// Makes room for the next row; `moment` is the time that it states.
  void begin_row(Moment moment, std::int64_t line) {
    if (moments_.empty()) moments_.push_back(moment);
    const auto place = steps_between(moments_.front(), options_.frequency, moment, month_day_);
    const bool again = place == steps_ - 1 && moment == before_;
    ++read_;
    if (again && options_.duplicates != Duplicates::error) return;
    const auto& names = options_.names;
    if (again)
      fail_time(moment, line,
                cat(" (", before_line_ + 1 == line ? std::string() : cat("the time of line ", before_line_, ", too; "),
                    names.duplicates, ": last or mean, takes rows of one time",
                    table_.width() > 1
                        ? cat("; ", names.column("item"), " and ", names.column("value"), " read a row a value")
                        : std::string(),
                    ")"));
    if (!place || *place < steps_) fail_time(moment, line, inferred_hint(options_));
    if (*place > steps_ && options_.gaps != Gaps::missing)
      fail_time(moment, line, cat(" (", names.gaps, ": missing, takes steps without a row)"));
    // A wrong year must not ask for all memory.
    const auto width = static_cast<std::int64_t>(table_.width());
    if (*place >= std::min(most_steps(read_), 10'000'000 / width + 100 * read_)) fail_time(moment, line, "");
    if (steps_ > 0) {
      append_row();
      moments_.push_back(moment);
    }
    row_.clear();
    for (; steps_ < *place; ++steps_) append_row();
    ++steps_;
  }

  const TextFile& file_;
  const ReadOptions& options_;
  const Table& table_;
  int month_day_;
  RowMerger row_;
  Dataset dataset_;
  std::vector<Moment> moments_;  // of rows, each once
  Moment before_ = 0;
  std::int64_t before_line_ = 0;
  std::int64_t steps_ = 0;  // so far, including the current row
  std::int64_t read_ = 0;
};

/// The series, if the rows are in the order of their times.
std::optional<Dataset> read_in_order(TextFile& file, const ReadOptions& options) {
  Table table(file, options);
  Grid grid(file, options, table, 0);
  std::optional<Moment> before;
  // What looks like a gap is none where a later row fills it.
  std::optional<DataError> refused;
  const auto next = [&] {
    try {
      return table.next();
    } catch (const DataError&) {
      if (refused) throw DataError(*refused);
      throw;
    }
  };
  while (next()) {
    if (before && table.moment() < *before) return std::nullopt;
    before = table.moment();
    if (refused) continue;
    try {
      grid.add(table.moment(), file.line(), table.values());
    } catch (const DataError& error) { refused = error; }
  }
  if (refused) throw DataError(*refused);
  return grid.finish();
}

/// The series, from rows in any order, such as the newest first or the hour of autumn twice. Rows of one time stay in
/// the order of the file.
Dataset read_in_any_order(TextFile& file, const ReadOptions& options) {
  Table table(file, options);
  std::vector<Moment> moments;
  std::vector<std::int64_t> lines;
  std::vector<double> values;
  while (table.next()) {
    moments.push_back(table.moment());
    lines.push_back(file.line());
    values.insert(values.end(), table.values().begin(), table.values().end());
  }
  std::vector<std::size_t> order(moments.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return moments[a] < moments[b]; });
  Grid grid(file, options, table, is_of_months(options.frequency) ? common_month_day(moments) : 0);
  for (const auto i : order)
    grid.add(moments[i], lines[i], std::span(values).subspan(i * table.width(), table.width()));
  return grid.finish();
}

}  // namespace

Dataset read_csv(TextFile& file, const ReadOptions& options) {
  // It takes all rows together to tell the day of the month.
  if (is_of_months(options.frequency)) return read_in_any_order(file, options);
  if (auto found = read_in_order(file, options)) return std::move(*found);
  TextFile again(file.name());
  return read_in_any_order(again, options);
}

std::optional<Frequency> read_csv_frequency(TextFile& file, const ReadOptions& options) {
  auto rows = rows_of(file, options.names);
  const auto time = time_place(rows, options);
  FewTimeStamps stamps;
  for (std::size_t row = 0; row < 10'000 && rows.next(); ++row)
    stamps.add(0, rows.time_stamp(time, rows.fields()[time]));
  return stamps.frequency();
}

}  // namespace tsdp::data::detail
