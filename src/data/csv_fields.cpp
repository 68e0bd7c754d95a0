#include "csv_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data::detail {
namespace {

std::vector<std::string> csv_fields(const TextFile& file, std::string_view line, char separator, const char* expected) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  while (true) {
    std::string field;
    std::size_t begin = line.find_first_not_of(separator == '\t' ? " " : " \t", at);
    if (begin != std::string_view::npos && line[begin] == '"') {
      for (at = begin + 1;; ++at) {
        if (at >= line.size())
          file.fail(static_cast<std::int64_t>(fields.size()) + 1,
                    cat("found ", in_quotes(line.substr(begin)), " without a closing quote; expected ", expected));
        if (line[at] == '"') {
          if (at + 1 >= line.size() || line[at + 1] != '"') break;
          ++at;
        }
        field += line[at];
      }
      const std::size_t end = std::min(line.find(separator, at), line.size());
      if (!trimmed(line.substr(at + 1, end - at - 1)).empty())
        file.fail(static_cast<std::int64_t>(fields.size()) + 1,
                  cat("found ", in_quotes(line.substr(begin, end - begin)), "; expected a ",
                      separator == ','   ? "comma"
                      : separator == ';' ? "semicolon"
                                         : "tab",
                      " after the closing quote"));
      at = end;
    } else {
      const std::size_t end = std::min(line.find(separator, at), line.size());
      field = trimmed(line.substr(at, end - at));
      at = end;
    }
    fields.push_back(std::move(field));
    if (at >= line.size()) return fields;
    ++at;
  }
}

/// The separator that occurs most often outside quotes; a comma if there is none.
char separator_of(std::string_view header) {
  constexpr std::string_view separators = ",;\t";
  std::array<std::size_t, separators.size()> count{};
  bool quoted = false;
  for (const char c : header) {
    if (c == '"') quoted = !quoted;
    if (const auto k = separators.find(c); !quoted && k != std::string_view::npos) ++count[k];
  }
  return separators[static_cast<std::size_t>(std::max_element(count.begin(), count.end()) - count.begin())];
}

bool is_known(Role role, std::string_view name) {
  const auto& names = known_names(role);
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has(const std::vector<std::string>& names, Role role) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return is_known(role, name); });
}

/// Whether this looks like 1/31/2015 or 31/1/2015.
bool is_slashed(std::string_view text) {
  const auto slash = text.find('/');
  return slash != std::string_view::npos && slash <= 2 &&
         text.find_first_not_of("0123456789/ :APMapm.") == std::string_view::npos;
}

bool has_letters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  });
}

/// The number that a name ends in, as in d_1, V1, 3.
std::optional<long long> last_number(std::string_view name) {
  const auto digits = name.find_last_not_of("0123456789") + 1;
  long long number = 0;
  return parse_int(name.substr(digits), number) ? std::optional(number) : std::nullopt;
}

/// Whether the digits of this number are grouped as those of thousands are: 1.234, 12,345.
bool is_grouped(std::string_view field, char mark) {
  if (field.starts_with('-') || field.starts_with('+')) field.remove_prefix(1);
  const auto at = field.find(mark);
  return at >= 1 && at <= 3 && field.front() != '0' && field.size() == at + 4 &&
         field.find_first_not_of("0123456789", at + 1) == std::string_view::npos;
}

/// Whether no field is a number or a time, as in a header.
bool is_of_names(const std::vector<std::string>& row) {
  return std::all_of(row.begin(), row.end(), [](const std::string& field) {
    return field.empty() || (has_letters(field) && !parse_time_stamp(field));
  });
}

constexpr const char* lines_above =
    "; lines above the header, or between it and the rows, are not read: expected it in the first line";

}  // namespace

const std::vector<std::string>& known_names(Role role) {
  static const std::vector<std::string> item{"unique_id", "item_id", "series_id"};
  static const std::vector<std::string> time{"ds", "timestamp", "date", "time", "datetime"};
  static const std::vector<std::string> value{"y", "target", "value"};
  return role == Role::item ? item : role == Role::time ? time : value;
}

bool says_nothing(std::string_view field) {
  const auto lower = lower_case(trimmed(field));
  for (const char* word : {"", "?", "na", "n/a", "nan", "null", "none", "nat", "<na>"})
    if (lower == word) return true;
  return false;
}

bool has_long_header(const std::filesystem::path& path) {
  {
    TextFile file(path);
    std::string_view line;
    if (!file.next(line)) return false;
  }
  TextFile file(path);
  const CsvRows rows(file, "a header", "");
  return has(rows.names(), Role::item) && has(rows.names(), Role::time) && has(rows.names(), Role::value);
}

CsvRows::CsvRows(TextFile& file, const std::string& columns, std::string row, const FormNames& stated, bool wide)
    : file_(file), stated_(stated), wide_(wide), row_is_(std::move(row)), header_line_(0) {
  std::string_view line;
  bool found = file.next(line);
  while (found && trimmed(line).empty()) found = file.next(line);
  if (!found) file.fail(cat("found an empty file; expected ", columns));
  constexpr std::string_view excel = "sep=";
  const bool named = line.size() == excel.size() + 1 && line.starts_with(excel);
  if (named) {
    separator_ = line.back();
    if (separator_ == '"' || !file.next(line))
      file.fail(cat("found no header after ", in_quotes(line), "; expected ", columns));
  } else {
    separator_ = separator_of(line);
  }
  header_ = to_utf8(line);
  header_line_ = file.line();
  names_ = csv_fields(file, header_, separator_, "a column name");
  if ((names_.front().empty() || names_.front() == "Unnamed: 0") && has({names_.begin() + 1, names_.end()}, Role::time))
    first_ = 1;
}

bool CsvRows::lies_on_its_side(bool numbered) const {
  std::size_t times = 0, in_turn = 0;
  for (std::size_t i = first_ + 1; i < names_.size(); ++i) {
    times += parse_time_stamp(names_[i]) || is_slashed(names_[i]) ? 1 : 0;
    const auto before = last_number(names_[i - 1]), here = last_number(names_[i]);
    in_turn += before && here && *here == *before + 1 ? 1 : 0;
  }
  const auto width = names_.size() - first_;
  return times >= 2 ? 2 * times >= width : numbered && in_turn >= 1 && 2 * (in_turn + 1) >= width - 1;
}

std::optional<std::size_t> CsvRows::place_of(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return std::nullopt;
  const auto again = std::find(found + 1, names_.end(), name);
  if (again != names_.end())
    file_.fail(header_line_, again - names_.begin() + 1,
               cat("found the column ", in_quotes(name), " again, first seen in column ", found - names_.begin() + 1,
                   "; expected each name once"));
  return static_cast<std::size_t>(found - names_.begin());
}

void CsvRows::fail_header(const std::string& expected) const {
  file_.fail(header_line_, 1, cat("found the header ", in_quotes(header_), expected));
}

bool CsvRows::next() {
  const auto is_empty = [&] {
    return std::all_of(line_.begin(), line_.end(), [&](char c) { return c == separator_ || c == ' ' || c == '\t'; });
  };
  std::int64_t empty_line = 0;
  while (file_.next(line_)) {
    if (!is_empty()) {
      if (empty_line != 0)
        file_.fail(empty_line, 1, cat("found an empty line; expected ", row_is_, rows_ == 0 ? lines_above : ""));
      ++rows_;
      return true;
    }
    if (empty_line == 0) empty_line = file_.line();
  }
  return false;
}

const std::vector<std::string_view>& CsvRows::fields() {
  fields_.clear();
  if (line_.find('"') != std::string_view::npos) {
    decoded_ = csv_fields(file_, line_, separator_, "a field");
    fields_.assign(decoded_.begin(), decoded_.end());
  } else {
    for (std::size_t at = 0;;) {
      const std::size_t end = std::min(line_.find(separator_, at), line_.size());
      fields_.push_back(trimmed(line_.substr(at, end - at)));
      if (end == line_.size()) break;
      at = end + 1;
    }
  }
  if (fields_.size() != names_.size()) fail_count(fields_.size());
  return fields_;
}

void CsvRows::fail_count(std::size_t found) const {
  file_.fail(static_cast<std::int64_t>(std::min(found, names_.size())) + 1,
             cat("found ", found, " columns; expected ", names_.size(), ", as in the header",
                 rows_ == 1 && found > names_.size() && is_of_names(csv_fields(file_, line_, separator_, "a field"))
                     ? lines_above
                     : ""));
}

std::string CsvRows::hint_of_first_row(std::size_t place, std::string_view field) const {
  if (wide_ && lies_on_its_side(has_letters(field)))
    return "; the table lies on its side, with a series a row and times across the header: expected a row a time and a "
           "column a series (pandas: frame.set_index(…).T)";
  if (rows_ != 1) return "";
  const auto row = csv_fields(file_, line_, separator_, "a field");
  for (std::size_t i = 0; i < std::min(row.size(), names_.size()); ++i)
    if (wide_ && i != place && parse_time_stamp(row[i]))
      return cat("; times stand in the column ", in_quotes(names_[i]), ", which ", stated_.column("time"),
                 " can name (and item and value, where a row is one value of a series)");
  return is_of_names(row) ? lines_above : "";
}

void CsvRows::fail_value(std::size_t place, std::string_view field, const char* accepted) const {
  const bool is_name = wide_ && rows_ == 1 && has_letters(field) && has_letters(field.substr(0, 1));
  file_.fail(static_cast<std::int64_t>(place) + 1,
             cat("found ", in_quotes(to_utf8(field)), "; expected ", accepted,
                 is_name ? cat("; where that is the name of a series, and a row one value of it, ",
                               stated_.column("item"), " and ", stated_.column("value"), " name the columns")
                         : std::string()));
}

void CsvRows::note_mark(std::size_t place, std::string_view field, double value) {
  if (has_commas()) return;
  const auto at = field.find_first_of(".,");
  if (at == std::string_view::npos) {
    if (std::isnan(value)) return;
    has_unmarked_ = true;
    may_be_thousands_ = may_be_thousands_ && std::abs(value) < 1000;
    return;
  }
  const char mark = field[at];
  if (marked_ && mark != mark_) {
    const auto words = [](char c) { return c == ',' ? " with a comma" : " with a point"; };
    file_.fail(static_cast<std::int64_t>(place) + 1,
               cat("found ", in_quotes(field), words(mark), ", below ", in_quotes(marked_->text), words(mark_),
                   " in line ", marked_->line, ", column ", marked_->place + 1,
                   "; expected the same decimal mark in the whole file, and no thousands separators"));
  }
  if (!marked_) marked_ = Seen{std::string(field), file_.line(), place};
  mark_ = mark;
  may_be_thousands_ = may_be_thousands_ && is_grouped(field, mark);
}

void CsvRows::check_numbers() const {
  if (!marked_ || !may_be_thousands_ || !has_unmarked_) return;
  file_.fail(marked_->line, static_cast<std::int64_t>(marked_->place) + 1,
             cat("found ", in_quotes(marked_->text), ", and in the whole file no number that tells whether its ",
                 mark_ == ',' ? "comma" : "point",
                 " is decimal or of thousands; expected no thousands separators, and of decimals at least one with "
                 "another number of digits, such as ",
                 marked_->text, "0"));
}

TimeStamp CsvRows::time_stamp(std::size_t place, std::string_view field) {
  const auto stamp = parse_time_stamp(field);
  if (!stamp)
    file_.fail(static_cast<std::int64_t>(place) + 1,
               cat("found ", in_quotes(field), "; expected a time stamp such as 2015-01-31 or 2015-01-31 13:00:00",
                   is_slashed(field) ? std::string(", the year first: which of the others is the month cannot be told")
                                     : hint_of_first_row(place, field)));
  // Otherwise half of them would be shifted against the others.
  if (const bool zoned = stamp->ahead.has_value(); zoned_.value_or(zoned) != zoned)
    file_.fail(static_cast<std::int64_t>(place) + 1,
               cat("found the time ", in_quotes(field),
                   zoned ? " with a zone, below times without one" : " without a zone, below times with one",
                   "; expected a zone in every row or in none"));
  else zoned_ = zoned;
  return *stamp;
}

Moment CsvRows::moment(std::size_t place, std::string_view field, const Frequency& frequency) {
  const auto stamp = time_stamp(place, field);
  if (stamp.elsewhere && keeps_local_time(frequency))
    file_.fail(static_cast<std::int64_t>(place) + 1,
               cat("found the time ", in_quotes(field), ", in UTC though it is of another place, with steps of ",
                   frequency.text(),
                   ", which are in local time; expected times without a zone: with pandas, "
                   "frame[column].dt.tz_localize(None)"));
  return stamp.at(frequency);
}

std::string CsvRows::zone_hint(const Frequency& frequency) const {
  if (!zoned_.value_or(false)) return "";
  return keeps_local_time(frequency) ? " (times with a zone are read in local time, as a step is a day or longer)"
                                     : " (times with a zone are read in UTC, as a step is shorter than a day)";
}

const char* CsvRows::parse(std::string_view field, double& value) const {
  std::string with_point;
  if (const auto comma = field.find(',');
      separator_ != ',' && comma != std::string_view::npos && field.find('.') == std::string_view::npos) {
    with_point = field;
    with_point[comma] = '.';
  }
  return parse_field(with_point.empty() ? field : std::string_view(with_point), value);
}

double CsvRows::value(std::size_t place, std::string_view field) {
  double value = 0.0;
  if (const char* const accepted = parse(field, value)) fail_value(place, field, accepted);
  note_mark(place, field, value);
  return value;
}

void FewTimeStamps::add(std::size_t series, const TimeStamp& stamp) {
  constexpr std::size_t most_of_one = 10'000;
  if (series >= stamps_.size()) stamps_.resize(series + 1);
  if (stamps_[series].size() >= most_of_one) return;
  stamps_[series].push_back(stamp);
  ++count_;
}

namespace {

template <class Of>
std::optional<Frequency> frequency_of(const std::vector<std::vector<TimeStamp>>& stamps, const Of& of) {
  std::vector<std::vector<Moment>> all;
  for (const auto& own : stamps) {
    auto& moments = all.emplace_back();
    moments.reserve(own.size());
    for (const auto& stamp : own) moments.push_back(of(stamp));
    std::sort(moments.begin(), moments.end());
    moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  }
  return infer_frequency(all);
}

}  // namespace

std::optional<Frequency> FewTimeStamps::frequency() const {
  const auto of_clock = frequency_of(stamps_, [](const TimeStamp& stamp) { return stamp.clock; });
  // What TimeStamp::at then returns must be what this was inferred from.
  if (of_clock && keeps_local_time(*of_clock)) return of_clock;
  const auto of_utc = frequency_of(stamps_, [](const TimeStamp& stamp) { return stamp.utc(); });
  return of_utc && keeps_local_time(*of_utc) ? std::nullopt : of_utc;
}

void check_stated_step(const TextFile& file, const ReadOptions& options,
                       const std::vector<std::vector<Moment>>& series) {
  const auto found = options.inferred ? std::nullopt : coarser_than(options.frequency, series);
  if (!found) return;
  const auto what =
      cat("found times that all lie on steps of ", found->text(), ", for a frequency of ", options.frequency.text(),
          ", stated or of the model, at which nearly all values would be missing");
  if (options.gaps != Gaps::missing)
    file.fail(cat(what, "; expected series of ", options.frequency.text(), ", or, where no model has that step, ",
                  options.names.frequency, " ", found->text(), " (", options.names.gaps,
                  ": missing, takes them as they are)"));
  log::warning(cat(file.name(), ": ", what));
}

std::string inferred_hint(const ReadOptions& options) {
  return options.inferred ? cat(" (the step was inferred from the times; ", options.names.frequency, " states another)")
                          : std::string();
}

}  // namespace tsdp::data::detail
