#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "csv_fields.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data::detail {
namespace {

/// A value and where it stands.
struct Row {
  Moment moment;
  std::int64_t line;
  double value;
};

struct Places {
  std::optional<std::size_t> item;  // none: there is one series
  std::size_t time;
  std::vector<std::size_t> values;  // of its variables

  [[nodiscard]] std::vector<std::size_t> all() const {
    std::vector<std::size_t> out;
    if (item) out.push_back(*item);
    out.push_back(time);
    out.insert(out.end(), values.begin(), values.end());
    return out;
  }
};

CsvRows rows_of(TextFile& file, const FormNames& names) {
  return {file, "a header with columns for names, time stamps and values, such as unique_id, ds and y",
          "a name, a time stamp and a value", names};
}

/// The column of a role: the one that is stated, or the one with a usual name.
std::optional<std::size_t> place_of(const CsvRows& rows, Role role, const std::string& stated, const char* key,
                                    const FormNames& names) {
  if (!stated.empty()) {
    const auto place = rows.place_of(stated);
    if (!place)
      rows.fail_header(cat(" without a column ", in_quotes(stated), ", which ", names.column(key),
                           " asks for; expected one of the header's"));
    return place;
  }
  std::optional<std::size_t> found;
  for (const auto& name : known_names(role)) {
    const auto place = rows.place_of(name);
    if (place && found)
      rows.fail_header(cat(" with the columns ", in_quotes(rows.names()[*found]), " and ", in_quotes(name),
                           "; expected ", names.column(key), " to say which one is read"));
    if (place) found = place;
  }
  return found;
}

Places places_of(const TextFile& file, const CsvRows& rows, const ReadOptions& options) {
  const auto& stated = options.columns;
  const auto needed = [&](Role role, const std::string& name, const char* key, const char* what) {
    const auto place = place_of(rows, role, name, key, options.names);
    if (!place)
      rows.fail_header(cat(" without a column of ", what, "; expected one named ", join(known_names(role), ", "),
                           ", or its name by ", options.names.column(key)));
    return *place;
  };
  const bool one_series = stated.item.empty() && !stated.values.empty();
  Places places{place_of(rows, Role::item, stated.item, "item", options.names),
                needed(Role::time, stated.time, "time", "time stamps"),
                {}};
  for (const auto& name : stated.values) places.values.push_back(needed(Role::value, name, "value", "values"));
  if (stated.values.empty()) places.values = {needed(Role::value, "", "value", "values")};
  if (!places.item && !one_series) places.item = needed(Role::item, "", "item", "the series' names");
  const auto used = places.all();
  std::vector<std::string> read, others;
  for (const auto place : used) read.push_back(rows.names()[place]);
  if (places.values.size() > 1)
    for (std::size_t i = 0; i < used.size(); ++i)
      if (std::count(used.begin(), used.end(), used[i]) > 1)
        rows.fail_header(cat(" where ", options.names.column("value"), " asks for ", in_quotes(read[i]),
                             ", which is read as another column, too; expected different columns"));
  for (std::size_t i = rows.names().front().empty() ? 1 : rows.first(); i < rows.names().size();
       ++i)  // pandas' index is skipped silently
    if (std::find(used.begin(), used.end(), i) == used.end() && rows.names()[i] != stated.owner)
      others.push_back(in_quotes(rows.names()[i]));
  if (!others.empty()) {
    const auto last = read.back();
    read.pop_back();
    log::warning(cat(file.name(), ":", rows.header_line(), ": ignored ",
                     others.size() == 1 ? "the column " : "the columns ", join(others, ", "), "; ", join(read, ", "),
                     " and ", last, " are read"));
  }
  return places;
}

/// Steps without a row become missing values, so a wrong year or too fine a frequency asks for any amount of memory.
/// Checks what all series ask for together before any of it is taken. Sorts the rows of every series. Those that ask
/// for too much by themselves are left to `fill`, which names the row.
void check_size(const TextFile& file, const Frequency& frequency, std::vector<std::vector<Row>>& rows,
                const std::vector<Series>& series) {
  std::size_t count = 0;
  std::int64_t places = 0;
  std::size_t longest = 0;
  std::int64_t most_of_one = -1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& own = rows[i];
    std::stable_sort(own.begin(), own.end(), [](const Row& a, const Row& b) { return a.moment < b.moment; });
    const std::array ends{own.front().moment, own.back().moment};
    const auto steps =
        1 +
        steps_between(ends[0], frequency, ends[1], is_of_months(frequency) ? common_month_day(ends) : 0).value_or(0);
    count += own.size();
    if (steps > most_steps(static_cast<std::int64_t>(own.size()))) continue;
    places += steps;
    if (steps > most_of_one) longest = i;
    most_of_one = std::max(most_of_one, steps);
  }
  const std::int64_t most = 10'000'000 + 100 * static_cast<std::int64_t>(count);
  if (places <= most) return;
  const auto& own = rows[longest];
  file.fail(cat("found ", count, " rows over ", places, " steps of ", frequency.text(), ", the longest of them series ",
                in_quotes(series[longest].id), " (", own.size(), " rows from ", moment_text(own.front().moment),
                " in line ", own.front().line, " to ", moment_text(own.back().moment), " in line ", own.back().line,
                "); expected at most ", most,
                " steps: no wrong dates, and a frequency that is not finer than the data's"));
}

/// Merges sorted rows of one time into one. Missing values do not count.
void merge(std::vector<Row>& rows, Duplicates duplicates) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size();) {
    Row merged = rows[i];
    double sum = 0.0;
    int count = 0;
    for (; i < rows.size() && rows[i].moment == merged.moment; ++i) {
      if (std::isnan(rows[i].value)) continue;
      merged.value = rows[i].value;
      sum += rows[i].value;
      ++count;
    }
    if (duplicates == Duplicates::mean && count > 1) merged.value = sum / count;
    rows[kept++] = merged;
  }
  rows.resize(kept);
}

/// The sorted rows of one series on its grid.
void fill(const TextFile& file, const ReadOptions& options, std::size_t time_column, const std::string& zone_hint,
          const std::vector<Row>& rows, const std::vector<Moment>& moments, Series& series) {
  const auto& frequency = options.frequency;
  const auto column = static_cast<std::int64_t>(time_column) + 1;
  series.start = rows.front().moment;
  if (is_of_months(frequency)) series.month_day = common_month_day(moments);
  const auto most = most_steps(static_cast<std::int64_t>(rows.size()));
  std::int64_t before = -1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto place = steps_between(series.start, frequency, row.moment, series.month_day);
    if (i > 0 && row.moment == rows[i - 1].moment)
      file.fail(row.line, column,
                cat("found the time ", moment_text(row.moment), " of series ", in_quotes(series.id),
                    " again, first seen in line ", rows[i - 1].line, "; expected each time once (",
                    options.names.duplicates, ": last or mean, takes rows of one time)", zone_hint));
    if (!place || *place <= before)
      file.fail(row.line, column,
                cat("found the time ", moment_text(row.moment), " of series ", in_quotes(series.id),
                    "; expected whole steps of ", frequency.text(), " after its first time, ",
                    moment_text(series.start), " in line ", rows.front().line, zone_hint, inferred_hint(options)));
    if (*place >= most)
      file.fail(row.line, column,
                cat("found the time ", moment_text(row.moment), " of series ", in_quotes(series.id), ", ", *place,
                    " steps after its first time, ", moment_text(series.start), " in line ", rows.front().line,
                    ", with ", rows.size(), " rows in all; expected fewer than ", most, " steps"));
    if (options.gaps == Gaps::error && *place > before + 1)
      file.fail(row.line, column,
                cat("found the time ", moment_text(row.moment), " of series ", in_quotes(series.id), "; expected ",
                    moment_text(series.at(frequency, before + 1)), ", as no step may be without a row (",
                    options.names.gaps, ": missing, takes them)", zone_hint));
    before = *place;
    const auto missing = static_cast<std::size_t>(*place) - series.values.size();
    for (std::size_t k = 0; k < missing; ++k) append(series, std::numeric_limits<double>::quiet_NaN(), options.exact);
    append(series, row.value, options.exact);
  }
}

}  // namespace

Dataset read_csv_long(TextFile& file, const ReadOptions& options) {
  auto table = rows_of(file, options.names);
  const auto places = places_of(file, table, options);

  Dataset dataset;
  dataset.frequency = options.frequency;
  std::vector<std::vector<Row>> rows;  // of each series
  std::map<std::string, std::size_t, std::less<>> number_of;
  const auto variables = places.values.size();
  if (variables > 1)
    for (const auto place : places.values) dataset.variables.push_back(to_utf8(table.names()[place]));
  std::string id = table.names()[places.values.front()];
  std::size_t number = 0;  // of the first variable of a series
  while (table.next()) {
    const auto& fields = table.fields();
    if (places.item && fields[*places.item].empty())
      file.fail(static_cast<std::int64_t>(*places.item) + 1,
                cat("found no ", table.names()[*places.item], "; expected the name of a series"));
    if (rows.empty() || (places.item && fields[*places.item] != id)) {
      if (places.item) id = fields[*places.item];
      const auto known = number_of.find(id);
      number = known != number_of.end() ? known->second : rows.size();
      if (known == number_of.end()) {
        number_of.emplace(id, number);
        for (std::size_t v = 0; v < variables; ++v) {
          rows.emplace_back();
          dataset.series.emplace_back().id = variables == 1 ? to_utf8(id)
                                             : places.item  ? cat(to_utf8(id), "/", dataset.variables[v])
                                                            : dataset.variables[v];
        }
      }
    }
    const auto moment = table.moment(places.time, fields[places.time], options.frequency);
    for (std::size_t v = 0; v < variables; ++v)
      rows[number + v].push_back({moment, file.line(), table.value(places.values[v], fields[places.values[v]])});
  }
  table.check_numbers();
  if (rows.empty())
    file.fail("found no row after the header; expected rows of a series' name, a time stamp and a value");
  check_size(file, options.frequency, rows, dataset.series);
  if (options.duplicates != Duplicates::error)
    for (auto& own : rows) merge(own, options.duplicates);
  std::vector<std::vector<Moment>> moments;  // of each series, each once
  for (const auto& own : rows) {
    auto& times = moments.emplace_back();
    for (const auto& row : own)
      if (times.empty() || row.moment != times.back()) times.push_back(row.moment);
  }
  check_stated_step(file, options, moments);
  const auto hint = cat(table.zone_hint(options.frequency),
                        places.item ? std::string()
                                    : cat("; if there are several series, ", options.names.column("item"),
                                          " says which column has their names"));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    fill(file, options, places.time, hint, rows[i], moments[i], dataset.series[i]);
    if ((i + 1) % variables != 0) continue;
    const auto of_one = std::span(dataset.series).subspan(i + 1 - variables, variables);
    const auto is_empty = [](const Series& series) {
      return std::all_of(series.values.begin(), series.values.end(), [](float value) { return std::isnan(value); });
    };
    if (!cut_missing_ends(of_one, options.frequency))
      file.fail_line(rows[i].front().line, cat("found no value of series ",
                                               in_quotes(std::find_if(of_one.begin(), of_one.end(), is_empty)->id),
                                               "; expected at least one that is not missing",
                                               variables > 1 ? ": leave out the series, or the variable" : ""));
    for (std::size_t v = 0; v < variables; ++v) rows[i - v] = {};
  }
  return dataset;
}

std::optional<Frequency> read_csv_long_frequency(TextFile& file, const ReadOptions& options) {
  auto table = rows_of(file, options.names);
  const auto item = place_of(table, Role::item, options.columns.item, "item", options.names);
  const auto time = place_of(table, Role::time, options.columns.time, "time", options.names);
  if (!time) return std::nullopt;
  FewTimeStamps stamps;
  std::map<std::string, std::size_t, std::less<>> number_of;
  std::size_t number = 0;
  std::string id;
  while (!stamps.full() && table.next()) {
    const auto& fields = table.fields();
    if (item && (number_of.empty() || fields[*item] != id)) {
      id = fields[*item];
      number = number_of.try_emplace(id, number_of.size()).first->second;
    }
    stamps.add(number, table.time_stamp(*time, fields[*time]));
  }
  return stamps.frequency();
}

}  // namespace tsdp::data::detail
