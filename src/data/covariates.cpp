#include "data/covariates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/digest.h"
#include "base/log.h"
#include "csv_fields.h"
#include "data/oddities.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data {
namespace {

void require_number(const std::string& where, double value) {
  if (std::abs(value) >= static_cast<double>(least_excessive))
    throw DataError(cat(where, ": found a value of magnitude ", rounded(static_cast<double>(least_excessive), 6),
                        " or more; expected smaller ones, best from -1 to 1"));
}

void require_few(std::size_t count, const std::filesystem::path& file, const std::string& key,
                 const std::string& hint = {}) {
  if (count > most_covariates)
    throw UsageError(
        cat(key, ": found more than ", most_covariates, " covariates in ", file.string(),
            ", of text one for each category; expected at most as many: name those that the model is to be "
            "told of",
            hint));
}

[[noreturn]] void refuse_name(const std::string& name, const std::vector<std::string>& there,
                              const std::filesystem::path& file, const std::string& key) {
  throw UsageError(
      cat(key, ": found '", name, "', which is no column of ", file.string(), "; expected of: ", join(there, ", ")));
}

/// The same for all series.
Covariates read_shared(const std::filesystem::path& file, const Frequency& frequency,
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
    if (found == there.end()) refuse_name(name, there, file, key);
    wanted.push_back(&table.series[static_cast<std::size_t>(found - there.begin())]);
  }
  if (columns.empty())
    for (const auto& column : table.series) wanted.push_back(&column);
  require_few(wanted.size(), file, key);

  Covariates out{file.string(), {}, {{wanted.front()->start, {}, wanted.front()->month_day}}};
  for (const auto* column : wanted) {
    const auto missing =
        std::find_if(column->values.begin(), column->values.end(), [](float value) { return std::isnan(value); });
    if (column->cut > 0 || missing != column->values.end())  // readers cut off missing values at the ends
      throw DataError(cat(file.string(), ": column ", column->id, ": found a missing value ",
                          column->cut > 0
                              ? std::string("at an end")
                              : cat("at ", moment_text(column->at(frequency, missing - column->values.begin()))),
                          "; expected a number in every row, since covariates are known of every step"));
    for (const float value : column->values)
      require_number(cat(file.string(), ": column ", column->id), static_cast<double>(value));
    out.names.push_back(column->id);
  }
  const auto rows = wanted.front()->values.size();
  auto& values = out.tables.front().values;
  values.reserve(rows * wanted.size());
  for (std::size_t row = 0; row < rows; ++row)
    for (const auto* column : wanted) values.push_back(column->values[row]);
  return out;
}

constexpr const char* columns_of_series =
    "a header with a column of series' names and columns of what is known of them";
constexpr const char* row_of_series = "a series' name and what is known of it";

/// The column of a role: the one that is stated, if the file has it, or the one of a usual name.
std::optional<std::size_t> place_of(const detail::CsvRows& rows, detail::Role role, const std::string& stated) {
  if (!stated.empty())
    if (const auto place = rows.place_of(stated)) return place;
  std::optional<std::size_t> out;
  for (const auto& name : detail::known_names(role)) {
    const auto place = rows.place_of(name);
    if (place && out)
      rows.fail_header(cat(" with the columns ", detail::in_quotes(rows.names()[*out]), " and ",
                           detail::in_quotes(name), "; expected one of them"));
    if (place) out = place;
  }
  return out;
}

/// Reads a file with a column of series' names.
class FileOfSeries {
 public:
  FileOfSeries(std::filesystem::path file, const Dataset& dataset, const ColumnNames& stated, std::size_t item,
               std::string key)
      : file_(std::move(file)), dataset_(dataset), stated_(stated), item_(item), key_(std::move(key)) {}

  Covariates read(const std::vector<std::string>& columns) {
    for (const auto& series : dataset_.series) rows_of_.try_emplace(series.id);
    find_columns(columns);
    require_few(columns_.size(), file_, key_,
                time_ ? std::string()
                      : cat("; no column is one of times: they are named one of ",
                            join(detail::known_names(detail::Role::time), ", ")));
    require_different_names();
    read_rows();
    Covariates out{file_.string(), {}};
    out.found_categories = found_categories_;
    for (const auto& column : columns_) out.names.push_back(column.name);
    std::map<std::string, std::size_t> number_of;  // of tables, by what they hold: many series have the same
    for (const auto& series : dataset_.series) {
      auto table = table_of(series.id);
      Digest digest;
      digest.add(std::as_bytes(std::span(table.values)));
      const std::array about{table.start, static_cast<Moment>(table.month_day)};
      digest.add(std::as_bytes(std::span(about)));
      const auto [place, added] = number_of.try_emplace(digest.hex(), out.tables.size());
      if (added) out.tables.push_back(std::move(table));
      out.table_of.push_back(place->second);
    }
    return out;
  }

 private:
  struct Column {
    std::string name;
    std::size_t place;
    std::optional<std::string> category = std::nullopt;  // none: numbers
    std::optional<double> number = std::nullopt;         // that the category is, however a field writes it
  };
  /// Of one series, in the order of the file.
  struct Rows {
    std::vector<Moment> moments;
    std::vector<std::int64_t> lines;
    std::vector<float> values;  // (rows, K)
  };

  /// What the file has: names, numbers or text. Finds the columns that are wanted.
  void find_columns(const std::vector<std::string>& wanted) {
    detail::TextFile text(file_);
    detail::CsvRows rows(text, columns_of_series, row_of_series);
    time_ = place_of(rows, detail::Role::time, stated_.time);
    const auto& names = rows.names();
    struct Kind {
      bool has_numbers = false;
      std::set<std::string> categories;
    };
    std::map<std::size_t, Kind> kinds;
    for (auto i = rows.first(); i < names.size(); ++i)
      if (i != item_ && i != time_ && !names[i].empty()) kinds[i];
    if (kinds.empty()) rows.fail_header(" without a column beside them; expected one for each covariate");
    while (rows.next()) {
      const auto& fields = rows.fields();
      if (!rows_of_.contains(detail::to_utf8(fields[item_]))) continue;
      for (auto& [place, kind] : kinds) {
        double value = 0.0;
        if (detail::says_nothing(fields[place])) continue;
        if (rows.parse(fields[place], value) == nullptr) kind.has_numbers = true;
        else if (kind.categories.size() <= most_covariates) kind.categories.insert(detail::to_utf8(fields[place]));
      }
    }
    const auto add = [&](std::size_t place) {
      const auto name = detail::to_utf8(names[place]);
      const auto& kind = kinds.at(place);
      if (kind.has_numbers || kind.categories.empty()) {
        columns_.push_back({name, place});
        return;
      }
      found_categories_ = true;
      for (const auto& category : kind.categories) columns_.push_back({cat(name, "=", category), place, category});
    };
    std::vector<std::string> there;
    for (const auto& [place, kind] : kinds) there.push_back(detail::to_utf8(names[place]));
    const auto is_there = [&](const std::string& name) {
      const auto place = rows.place_of(name);
      return place && kinds.contains(*place) ? place : std::nullopt;
    };
    for (const auto& name : wanted) {
      if (const auto place = is_there(name)) {
        add(*place);
        continue;
      }
      std::optional<std::size_t> place;
      for (auto at = name.find('='); !place && at != std::string::npos; at = name.find('=', at + 1)) {
        place = is_there(name.substr(0, at));
        if (!place) continue;
        columns_.push_back({name, *place, name.substr(at + 1)});
        if (double number = 0.0; rows.parse(*columns_.back().category, number) == nullptr)
          columns_.back().number = number;
      }
      if (!place) refuse_name(name, there, file_, key_);
    }
    if (wanted.empty())
      for (const auto& [place, kind] : kinds) add(place);
  }

  void require_different_names() const {
    for (auto one = columns_.begin(); one != columns_.end(); ++one)
      if (const auto first = std::find_if(columns_.begin(), one, [&](const Column& c) { return same(c, *one); });
          first != one)
        throw UsageError(cat(key_, ": found the covariate '", first->name, "' twice in ", file_.string(),
                             ", as a column or as a category of one; expected different names"));
  }
  /// Whether two are of one name, or of one number: code=1 and code=1.0.
  static bool same(const Column& a, const Column& b) {
    return a.name == b.name || (a.place == b.place && a.number && a.number == b.number);
  }

  void read_rows() {
    detail::TextFile text(file_);
    detail::CsvRows rows(text, columns_of_series, row_of_series);
    std::map<std::size_t, std::set<std::string>> others;  // of columns of text: categories that are not asked for
    std::vector<bool> occurs(columns_.size());
    while (rows.next()) {
      const auto& fields = rows.fields();
      const auto own = rows_of_.find(detail::to_utf8(fields[item_]));
      if (own == rows_of_.end()) continue;
      auto& here = own->second;
      here.lines.push_back(text.line());
      if (time_) {
        if (rows.time_stamp(*time_, fields[*time_]).ahead)
          text.fail(static_cast<std::int64_t>(*time_) + 1, cat("found the time ", detail::in_quotes(fields[*time_]),
                                                               " with a zone; ", detail::clock_of_covariates));
        here.moments.push_back(rows.moment(*time_, fields[*time_], dataset_.frequency));
      }
      std::set<std::size_t> met;  // columns of text that have one of the categories
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        const auto& column = columns_[c];
        const auto field = fields[column.place];
        if (detail::says_nothing(field))
          text.fail(static_cast<std::int64_t>(column.place) + 1,
                    cat("found nothing of series ", detail::in_quotes(own->first),
                        "; expected a value in every row, since covariates are known of every step"));
        double value = 0.0;
        const bool is_number = rows.parse(field, value) == nullptr;
        if (!column.category) {
          if (!is_number)
            text.fail(static_cast<std::int64_t>(column.place) + 1,
                      cat("found ", detail::in_quotes(field),
                          " among numbers; expected a finite number in every row, or the categories in ", key_, ", as ",
                          column.name, "=", detail::to_utf8(field)));
          rows.note_mark(column.place, field, value);
          require_number(cat(file_.string(), ":", text.line(), ": column ", column.name), value);
        } else if (detail::to_utf8(field) == *column.category || (is_number && column.number == value)) {
          value = 1.0;
          met.insert(column.place);
          occurs[c] = true;
        } else {
          value = 0.0;
        }
        here.values.push_back(static_cast<float>(value));
      }
      for (const auto& column : columns_)
        if (column.category && !met.contains(column.place) && others[column.place].size() < 2)
          others[column.place].insert(detail::to_utf8(fields[column.place]));
    }
    rows.check_numbers();
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].category && !occurs[c])
        log::warning(cat(file_.string(), ": found no row with ", columns_[c].name, ": this covariate is 0 everywhere"));
    for (const auto& [place, found] : others)
      if (!found.empty())
        log::warning(cat(file_.string(), ": column ", rows.names()[place], ": found ",
                         detail::in_quotes(*found.begin()), found.size() > 1 ? " and others" : "",
                         ", which the model is not told of: its covariates of this column are 0 there"));
  }

  Covariates::Table table_of(const std::string& id) const {
    const auto& rows = rows_of_.at(id);
    const auto count = rows.lines.size();
    if (count == 0)
      throw DataError(cat(file_.string(), ": found no row of series ", detail::in_quotes(id),
                          "; expected rows of each series, by names as ", dataset_.name, " has them"));
    if (!time_) {
      if (count > 1)
        throw DataError(cat(file_.string(), ":", rows.lines[1], ": found series ", detail::in_quotes(id),
                            " again, first seen in line ", rows.lines[0],
                            "; expected one row a series, or a column of times, named one of ",
                            join(detail::known_names(detail::Role::time), ", ")));
      return {0, rows.values, 0, true};
    }
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rows.moments[a] < rows.moments[b]; });
    Covariates::Table out{rows.moments[order.front()], {}};
    const auto& frequency = dataset_.frequency;
    if (is_of_months(frequency)) out.month_day = common_month_day(rows.moments);
    for (std::size_t i = 0; i < count; ++i) {
      const auto expected = advance(out.start, frequency, static_cast<std::int64_t>(i), out.month_day);
      if (const auto found = rows.moments[order[i]]; i > 0 && found == rows.moments[order[i - 1]])
        throw DataError(cat(file_.string(), ":", rows.lines[order[i]], ":", *time_ + 1, ": found the time ",
                            moment_text(found), " of series ", detail::in_quotes(id), " again, first seen in line ",
                            rows.lines[order[i - 1]], "; expected one row a step"));
      else if (found != expected)
        throw DataError(cat(file_.string(), ":", rows.lines[order[i]], ":", *time_ + 1, ": found the time ",
                            moment_text(found), " of series ", detail::in_quotes(id), "; expected ",
                            moment_text(expected), ", as each step of ", frequency.text(), " has a row"));
      const auto* from = rows.values.data() + order[i] * columns_.size();
      out.values.insert(out.values.end(), from, from + columns_.size());
    }
    return out;
  }

  std::filesystem::path file_;
  const Dataset& dataset_;
  const ColumnNames& stated_;
  std::size_t item_;
  std::string key_;
  std::optional<std::size_t> time_;
  std::vector<Column> columns_;
  bool found_categories_ = false;
  std::map<std::string, Rows> rows_of_;
};

}  // namespace

namespace {

std::optional<std::size_t> place_of_names(const std::filesystem::path& file, const ColumnNames& stated) {
  detail::TextFile text(file);
  const detail::CsvRows rows(text, "a header, then rows of a time stamp and values", "a time stamp and values");
  return place_of(rows, detail::Role::item, stated.item);
}

}  // namespace

bool are_of_each_series(const std::filesystem::path& file, const ColumnNames& stated) {
  return place_of_names(file, stated).has_value();
}

Covariates read_covariates(const std::filesystem::path& file, const Dataset& dataset,
                           const std::vector<std::string>& columns, const ColumnNames& stated, const std::string& key) {
  const auto item = place_of_names(file, stated);
  if (!item) return read_shared(file, dataset.frequency, columns, key);
  if (dataset.variables.empty()) return FileOfSeries(file, dataset, stated, *item, key).read(columns);
  // The variables of a series have its covariates, under its own name.
  const auto variables = dataset.variables.size();
  Dataset whole{dataset.name, dataset.frequency, {}};  // the names are all that is asked for
  for (std::size_t s = 0; s < dataset.series.size(); s += variables) {
    auto& id = whole.series.emplace_back().id = dataset.series[s].id;
    if (const auto end = cat("/", dataset.variables.front()); id.ends_with(end)) id.resize(id.size() - end.size());
  }
  auto out = FileOfSeries(file, whole, stated, *item, key).read(columns);
  std::vector<std::size_t> each;
  for (const auto table : out.table_of) each.insert(each.end(), variables, table);
  out.table_of = std::move(each);
  return out;
}

KnownSteps::KnownSteps(const Dataset& dataset, std::size_t series)
    : table_(dataset.covariates.tables.at(dataset.covariates.table(series))), width_(dataset.covariates.names.size()) {
  if (table_.always) first_ = 0;
  else first_ = steps_between(table_.start, dataset.frequency, dataset.series[series].start, table_.month_day);
}

std::span<const float> KnownSteps::at(std::int64_t place) const {
  const auto row = table_.always ? 0 : first() + place;
  if (row < 0 || static_cast<std::size_t>(row) >= table_.values.size() / width_) return {};
  return std::span(table_.values).subspan(static_cast<std::size_t>(row) * width_, width_);
}

namespace {

/// A series whose values meet the rows of a table: place 0 has row `before`, place `change` the first value that is not
/// that of an earlier place.
struct Met {
  const Series* series;
  std::int64_t before, change;

  [[nodiscard]] float value_at(std::int64_t place) const { return series->values[static_cast<std::size_t>(place)]; }
};

/// None where rows meet less than half of the values, or no change.
std::optional<Met> meeting(const Series& series, std::int64_t before, std::int64_t rows) {
  Met out{&series, before, -1};
  std::int64_t observed = 0;
  std::int64_t met = 0;
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < std::ssize(series.values); ++i) {
    if (std::isnan(out.value_at(i))) continue;
    ++observed;
    if (before + i < 0 || before + i >= rows) continue;
    if (++met == 1) first = i;
    if (out.change < 0 && out.value_at(i) != out.value_at(first)) out.change = i;
  }
  if (out.change < 0 || 2 * met < observed) return std::nullopt;
  return out;
}

/// Whether a column of a table has the values that its rows meet. Begins at the change, where others differ soon.
bool is_copy(const Met& met, const std::vector<float>& values, std::size_t width, std::size_t column) {
  const auto first = std::max<std::int64_t>(0, -met.before);
  const auto last =
      std::min(std::ssize(met.series->values), std::ssize(values) / static_cast<std::int64_t>(width) - met.before);
  const auto same = [&](std::int64_t from, std::int64_t to) {
    for (auto i = from; i < to; ++i)
      if (!std::isnan(met.value_at(i)) &&
          values[static_cast<std::size_t>(met.before + i) * width + column] != met.value_at(i))
        return false;
    return true;
  };
  return same(met.change, last) && same(first, met.change);
}

}  // namespace

std::optional<std::pair<std::string, std::string>> covariate_that_is_a_series(const Dataset& dataset) {
  const auto& known = dataset.covariates;
  const auto width = known.names.size();
  std::map<std::tuple<Moment, int, std::size_t>, std::vector<const std::vector<float>*>> tables_of;  // by their steps
  for (const auto& table : known.tables)
    if (!table.always)  // that is, it changes somewhere
      tables_of[{table.start, table.month_day, table.values.size()}].push_back(&table.values);
  for (const auto& [steps, tables] : tables_of) {
    const auto& [start, month_day, size] = steps;
    std::map<std::int64_t, std::vector<Met>> met_in;  // by the row of the change, in which few tables have its value
    for (const auto& series : dataset.series)
      if (const auto before = steps_between(start, dataset.frequency, series.start, month_day))
        if (const auto met = meeting(series, *before, static_cast<std::int64_t>(size / width)))
          met_in[met->before + met->change].push_back(*met);
    for (const auto& [row, several] : met_in) {
      std::vector<float> there;  // (tables, K), in this row
      for (const auto* values : tables) {
        const auto* from = values->data() + static_cast<std::size_t>(row) * width;
        there.insert(there.end(), from, from + width);
      }
      for (const auto& met : several)
        for (std::size_t i = 0; i < there.size(); ++i)
          if (there[i] == met.value_at(met.change) && is_copy(met, *tables[i / width], width, i % width))
            return std::pair{known.names[i % width], met.series->id};
    }
  }
  return std::nullopt;
}

void require_covariates(const Dataset& dataset, std::int64_t beyond) {
  const auto& known = dataset.covariates;
  if (known.names.empty()) return;
  for (std::size_t s = 0; s < dataset.series.size(); ++s) {
    const auto& series = dataset.series[s];
    const auto& table = known.tables[known.table(s)];
    const auto rows = static_cast<std::int64_t>(table.values.size() / known.names.size());
    const auto at = [&](std::int64_t row) { return advance(table.start, dataset.frequency, row, table.month_day); };
    const KnownSteps steps(dataset, s);
    if (!steps.meets())
      throw DataError(cat(known.file, ": its rows begin at ", moment_text(table.start), ", and series ", series.id,
                          " at ", moment_text(series.start), ", which is no whole number of steps of ",
                          dataset.frequency.text(), " apart; expected rows at the times of the series"));
    const auto end = static_cast<std::int64_t>(series.values.size()) + beyond;
    if (table.always || (steps.first() >= 0 && steps.first() + end <= rows)) continue;
    const auto lacking = steps.first() < 0 ? series.start : at(std::max(steps.first(), rows));
    throw DataError(cat(known.file, ": found rows from ", moment_text(table.start), " to ", moment_text(at(rows - 1)),
                        ", and none for ", moment_text(lacking), " of series ", series.id,
                        "; expected one for every step from ", moment_text(series.start), " to ",
                        moment_text(series.at(dataset.frequency, end - 1))));
  }
}

}  // namespace tsdp::data
