#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "csv_fields.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data::detail {

Dataset read_csv(TextFile& file, const ReadOptions& options) {
  Dataset dataset;
  dataset.frequency = options.frequency;
  auto& series = dataset.series;
  std::string_view line;
  if (!file.next(line)) file.fail("found an empty file; expected a header, then rows of a time stamp and values");
  const auto names = csv_fields(file, line, "a column name");
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
    const Moment moment = time_stamp(file, 1, stamp);
    if (rows == 0) start = moment;
    if (steps_between(start, options.frequency, moment) != rows)
      file.fail(1, cat("found the time ", moment_text(moment), "; expected ",
                       moment_text(advance(start, options.frequency, rows)), ", one step of ", options.frequency.text(),
                       " after ", moment_text(before)));
    before = moment;
    ++rows;
    std::size_t columns = 1;
    if (comma < line.size())
      columns += for_each_value(
          line.substr(comma + 1),
          [&](std::size_t i, double value) {
            if (i < series.size()) append(series[i], value, options.exact);
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
