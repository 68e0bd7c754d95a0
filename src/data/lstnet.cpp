#include <string>

#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data::detail {

Dataset read_lstnet(TextFile& file, const ReadOptions& options) {
  Dataset dataset;
  dataset.frequency = options.frequency;
  auto& series = dataset.series;
  std::int64_t empty_line = 0;  // first line of a run of empty ones: allowed at the end of the file only
  bool found_any = false;
  std::string_view line;
  while (file.next(line)) {
    const bool empty = trimmed(line).empty();
    found_any = found_any || !empty;
    if (empty && series.size() > 1) {
      if (empty_line == 0) empty_line = file.line();
      continue;
    }
    if (empty_line != 0)
      file.fail(empty_line, 1, cat("found an empty line; expected ", series.size(), " comma-separated values"));
    const bool first_row = series.empty();
    const std::size_t columns = for_each_value(
        line,
        [&](std::size_t column, double value) {
          if (first_row) series.emplace_back();
          if (column < series.size()) append(series[column], value, options.exact);
        },
        [&](std::size_t column, std::string_view field, const char* accepted) {
          file.fail(static_cast<std::int64_t>(column) + 1, cat("found ", in_quotes(field), "; expected ", accepted));
        });
    if (columns != series.size())
      file.fail(static_cast<std::int64_t>(std::min(columns, series.size())) + 1,
                cat("found ", columns, " columns; expected ", series.size(), ", as in line 1"));
  }
  if (!found_any) file.fail("found an empty file; expected rows of comma-separated values");
  for (std::size_t column = 0; column < series.size(); ++column) {
    series[column].id = std::to_string(column);
    series[column].start = *options.start;
    if (!cut_missing_ends(series[column], options.frequency))
      file.fail(cat("found no value in column ", column + 1, " (series '", series[column].id,
                    "'); expected at least one that is not missing"));
  }
  return dataset;
}

}  // namespace tsdp::data::detail
