#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tsdp/core/text.h"
#include "values.h"

namespace tsdp::data::detail {
namespace {

/// The names of a header line. A name may stand in quotes, a quote within them is doubled, and commas are then part of
/// the name; a line break is not.
std::vector<std::string> header_fields(const TextFile& file, std::string_view line) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  while (true) {
    std::string field;
    std::size_t begin = line.find_first_not_of(" \t", at);
    if (begin != std::string_view::npos && line[begin] == '"') {
      for (at = begin + 1;; ++at) {
        if (at >= line.size())
          file.fail(static_cast<std::int64_t>(fields.size()) + 1,
                    cat("found ", in_quotes(line.substr(begin)), " without a closing quote; expected a column name"));
        if (line[at] == '"') {
          if (at + 1 >= line.size() || line[at + 1] != '"') break;
          ++at;
        }
        field += line[at];
      }
      const std::size_t comma = std::min(line.find(',', at), line.size());
      if (!trimmed(line.substr(at + 1, comma - at - 1)).empty())
        file.fail(
            static_cast<std::int64_t>(fields.size()) + 1,
            cat("found ", in_quotes(line.substr(begin, comma - begin)), "; expected a comma after the closing quote"));
      at = comma;
    } else {
      const std::size_t comma = std::min(line.find(',', at), line.size());
      field = trimmed(line.substr(at, comma - at));
      at = comma;
    }
    fields.push_back(std::move(field));
    if (at >= line.size()) return fields;
    ++at;
  }
}

bool is_month_end(Moment moment) {
  using namespace std::chrono;
  const year_month_day next(sys_days(floor<days>(sys_seconds(seconds(moment))) + days(1)));
  return next.day() == day(1);
}

/// Whether `found` is the row `row` of a table that starts at `start`. Tables of months often name their last days, of
/// which `advance` knows nothing when it starts in a short month.
bool is_row_time(Moment found, Moment start, const Frequency& frequency, std::int64_t row) {
  const Moment expected = advance(start, frequency, row);
  if (found == expected) return true;
  using Unit = Frequency::Unit;
  const bool months = frequency.unit == Unit::month || frequency.unit == Unit::quarter || frequency.unit == Unit::year;
  constexpr Moment four_days = 345600;
  return months && is_month_end(start) && is_month_end(found) && found > expected && found < expected + four_days;
}

}  // namespace

Dataset read_csv(TextFile& file, const ReadOptions& options) {
  Dataset dataset;
  dataset.frequency = options.frequency;
  auto& series = dataset.series;
  std::string_view line;
  if (!file.next(line)) file.fail("found an empty file; expected a header, then rows of a time stamp and values");
  const auto names = header_fields(file, line);
  if (names.size() < 2)
    file.fail(1, cat("found the header ", in_quotes(line),
                     "; expected a time column and at least one series, separated by commas"));
  std::map<std::string, std::size_t> column_of;
  for (std::size_t i = 1; i < names.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i) + 1;
    if (names[i].empty()) file.fail(column, "found an empty column name; expected the name of a series");
    const auto [known, is_new] = column_of.emplace(names[i], i + 1);
    if (!is_new)
      file.fail(column, cat("found the column ", in_quotes(names[i]), " again, first seen in column ", known->second,
                            "; expected each name once"));
    series.emplace_back().id = to_utf8(names[i]);
  }

  Moment start = 0;
  Moment before = 0;
  std::int64_t rows = 0;
  std::int64_t empty_line = 0;
  while (file.next(line)) {
    if (trimmed(line).empty()) {
      if (empty_line == 0) empty_line = file.line();
      continue;
    }
    if (empty_line != 0)
      file.fail(empty_line, 1, cat("found an empty line; expected a time stamp and ", series.size(), " values"));
    const std::size_t comma = std::min(line.find(','), line.size());
    std::string_view stamp = trimmed(line.substr(0, comma));
    if (stamp.size() >= 2 && stamp.front() == '"' && stamp.back() == '"') stamp = stamp.substr(1, stamp.size() - 2);
    Moment moment = 0;
    if (!parse_moment(stamp, moment))
      file.fail(1,
                cat("found ", in_quotes(stamp), "; expected a time stamp such as 2015-01-31 or 2015-01-31 13:00:00"));
    if (rows == 0) start = moment;
    if (!is_row_time(moment, start, options.frequency, rows))
      file.fail(1, cat("found the time ", moment_text(moment), "; expected ",
                       moment_text(advance(start, options.frequency, rows)), ", one step of ", options.frequency.text(),
                       " after ", moment_text(before)));
    before = moment;
    ++rows;
    std::size_t columns = 1;
    if (comma < line.size())
      columns += for_each_value(
          line.substr(comma + 1),
          [&](std::size_t i, float value) {
            if (i < series.size()) series[i].values.push_back(value);
          },
          [&](std::size_t i, std::string_view field, const char* accepted) {
            file.fail(static_cast<std::int64_t>(i) + 2, cat("found ", in_quotes(field), "; expected ", accepted));
          });
    if (columns != names.size())
      file.fail(static_cast<std::int64_t>(std::min(columns, names.size())) + 1,
                cat("found ", columns, " columns; expected ", names.size(), ", as in the header"));
  }
  if (rows == 0) file.fail("found no row after the header; expected rows of a time stamp and values");
  for (std::size_t i = 0; i < series.size(); ++i) {
    series[i].start = start;
    if (!cut_missing_ends(series[i], options.frequency))
      file.fail(cat("found no value in column ", i + 2, " (series ", in_quotes(series[i].id),
                    "); expected at least one that is not missing"));
  }
  return dataset;
}

}  // namespace tsdp::data::detail
