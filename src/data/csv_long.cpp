#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "csv_fields.h"
#include "tsdp/base/log.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data::detail {
namespace {

constexpr std::array<const char*, 3> needed{"unique_id", "ds", "y"};

/// A value and where it stands.
struct Row {
  Moment moment;
  std::int64_t line;
  double value;
};

/// Places of the needed columns, in the order of `needed`. Warns of others.
std::array<std::size_t, 3> columns_of(const TextFile& file, std::string_view line,
                                      const std::vector<std::string>& names) {
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::array<std::size_t, 3> places{none, none, none};
  std::vector<std::string> others;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto known = static_cast<std::size_t>(std::find(needed.begin(), needed.end(), names[i]) - needed.begin());
    if (known == needed.size()) {
      others.push_back(in_quotes(names[i]));
      continue;
    }
    if (places[known] != none)
      file.fail(static_cast<std::int64_t>(i) + 1,
                cat("found the column ", in_quotes(names[i]), " again, first seen in column ", places[known] + 1,
                    "; expected each name once"));
    places[known] = i;
  }
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (places[i] == none)
      file.fail(1, cat("found the header ", in_quotes(line), " without a column ", needed[i],
                       "; expected the columns unique_id, ds (time stamp) and y (value)"));
  if (!others.empty())
    log::warning(cat(file.name(), ":1: ignored ", others.size() == 1 ? "the column " : "the columns ",
                     join(others, ", "), "; unique_id, ds and y are read"));
  return places;
}

/// The fields of rows. Lines without quotes, most of all, are not copied.
class RowFields {
 public:
  const std::vector<std::string_view>& of(const TextFile& file, std::string_view line) {
    views_.clear();
    if (line.find('"') != std::string_view::npos) {
      decoded_ = csv_fields(file, line, "a field");
      views_.assign(decoded_.begin(), decoded_.end());
      return views_;
    }
    for (std::size_t at = 0;;) {
      const std::size_t comma = std::min(line.find(',', at), line.size());
      views_.push_back(trimmed(line.substr(at, comma - at)));
      if (comma == line.size()) return views_;
      at = comma + 1;
    }
  }

 private:
  std::vector<std::string> decoded_;
  std::vector<std::string_view> views_;
};

/// Of a series with these rows.
std::int64_t most_steps(const std::vector<Row>& rows) { return 1'000'000 + 1'000 * static_cast<std::int64_t>(rows.size()); }

/// Steps without a row become missing values, so a wrong year or too fine a frequency asks for any amount of memory: what
/// all series ask for together is looked at before any of it is taken. Sorts the rows of every series. Those that alone ask
/// for too much are left to `fill`, which names the row.
void check_size(const TextFile& file, const Frequency& frequency, std::vector<std::vector<Row>>& rows,
                const std::vector<Series>& series) {
  std::size_t count = 0;
  std::int64_t places = 0;
  std::size_t longest = 0;
  std::int64_t most_of_one = -1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& own = rows[i];
    std::stable_sort(own.begin(), own.end(), [](const Row& a, const Row& b) { return a.moment < b.moment; });
    const auto steps = 1 + steps_between(own.front().moment, frequency, own.back().moment).value_or(0);
    count += own.size();
    if (steps > most_steps(own)) continue;
    places += steps;
    if (steps > most_of_one) longest = i;
    most_of_one = std::max(most_of_one, steps);
  }
  const std::int64_t most = 10'000'000 + 100 * static_cast<std::int64_t>(count);
  if (places <= most) return;
  const auto& own = rows[longest];
  file.fail(cat("found ", count, " rows over ", places, " steps of ", frequency.text(), ", the longest of them series ",
                in_quotes(series[longest].id), " (", own.size(), " rows from ", moment_text(own.front().moment), " in line ",
                own.front().line, " to ", moment_text(own.back().moment), " in line ", own.back().line,
                "); expected at most ", most, " steps: no wrong dates, and a frequency that is not finer than the data's"));
}

/// The sorted rows of one series on its grid.
void fill(const TextFile& file, const ReadOptions& options, std::size_t time_column, const std::vector<Row>& rows,
          Series& series) {
  const auto& frequency = options.frequency;
  const auto column = static_cast<std::int64_t>(time_column) + 1;
  series.start = rows.front().moment;
  const auto most = most_steps(rows);
  std::int64_t before = -1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto place = steps_between(series.start, frequency, row.moment);
    if (i > 0 && row.moment == rows[i - 1].moment)
      file.fail(row.line, column,
                cat("found the time ", moment_text(row.moment), " of series ", in_quotes(series.id),
                    " again, first seen in line ", rows[i - 1].line, "; expected each time once"));
    if (!place || *place <= before)
      file.fail(row.line, column,
                cat("found the time ", moment_text(row.moment), " of series ", in_quotes(series.id),
                    "; expected whole steps of ", frequency.text(), " after its first time, ",
                    moment_text(series.start), " in line ", rows.front().line));
    if (*place >= most)
      file.fail(row.line, column,
                cat("found the time ", moment_text(row.moment), " of series ", in_quotes(series.id), ", ", *place,
                    " steps after its first time, ", moment_text(series.start), " in line ", rows.front().line,
                    ", with ", rows.size(), " rows in all; expected fewer than ", most, " steps"));
    before = *place;
    const auto missing = static_cast<std::size_t>(*place) - series.values.size();
    for (std::size_t k = 0; k < missing; ++k) append(series, std::numeric_limits<double>::quiet_NaN(), options.exact);
    append(series, row.value, options.exact);
  }
}

}  // namespace

Dataset read_csv_long(TextFile& file, const ReadOptions& options) {
  std::string_view line;
  if (!file.next(line)) file.fail("found an empty file; expected a header with the columns unique_id, ds and y");
  const auto names = csv_fields(file, line, "a column name");
  const auto [id_column, time_column, value_column] = columns_of(file, line, names);

  Dataset dataset;
  dataset.frequency = options.frequency;
  std::vector<std::vector<Row>> rows;  // of each series
  std::map<std::string, std::size_t, std::less<>> number_of;
  RowFields row_fields;
  std::string id;
  std::size_t number = 0;
  std::int64_t empty_line = 0;
  while (file.next(line)) {
    if (trimmed(line).empty()) {
      if (empty_line == 0) empty_line = file.line();
      continue;
    }
    if (empty_line != 0) file.fail(empty_line, 1, cat("found an empty line; expected ", names.size(), " fields"));
    const auto& fields = row_fields.of(file, line);
    if (fields.size() != names.size())
      file.fail(static_cast<std::int64_t>(std::min(fields.size(), names.size())) + 1,
                cat("found ", fields.size(), " columns; expected ", names.size(), ", as in the header"));
    const auto column = [](std::size_t place) { return static_cast<std::int64_t>(place) + 1; };
    if (fields[id_column].empty()) file.fail(column(id_column), "found no unique_id; expected the name of a series");
    if (rows.empty() || fields[id_column] != id) {
      id = fields[id_column];
      const auto known = number_of.find(id);
      number = known != number_of.end() ? known->second : rows.size();
      if (known == number_of.end()) {
        number_of.emplace(id, number);
        rows.emplace_back();
        dataset.series.emplace_back().id = to_utf8(id);
      }
    }
    Row row{time_stamp(file, column(time_column), fields[time_column]), file.line(), 0.0};
    if (const char* const accepted = parse_field(fields[value_column], row.value))
      file.fail(column(value_column), cat("found ", in_quotes(fields[value_column]), "; expected ", accepted));
    rows[number].push_back(row);
  }
  if (rows.empty())
    file.fail("found no row after the header; expected rows of a series' name, a time stamp and a value");
  check_size(file, options.frequency, rows, dataset.series);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& series = dataset.series[i];
    fill(file, options, time_column, rows[i], series);
    if (!cut_missing_ends(series, options.frequency))
      file.fail_line(rows[i].front().line, cat("found no value of series ", in_quotes(series.id),
                                               "; expected at least one that is not missing"));
    rows[i] = {};
  }
  return dataset;
}

}  // namespace tsdp::data::detail
