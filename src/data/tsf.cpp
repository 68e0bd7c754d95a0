#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data::detail {
namespace {

enum class Type {
  string,
  numeric,
  date
};

struct Attribute {
  std::string name;
  Type type;
};

/// What stands above @data.
struct Header {
  std::string relation;
  std::optional<Frequency> frequency;
  std::vector<Attribute> attributes;
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  constexpr std::string_view white = " \t";
  for (auto begin = text.find_first_not_of(white); begin != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(white, begin), text.size());
    out.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(white, end);
  }
  return out;
}

/// Reads names such as hourly, half_hourly, 10_minutes, 4_seconds.
bool parse_tsf_frequency(const std::string& name, Frequency& frequency) {
  using Unit = Frequency::Unit;
  static const std::array<std::pair<const char*, Frequency>, 26> names{{
      {"half_hourly", {30, Unit::minute}},
      {"secondly", {1, Unit::second}},
      {"seconds", {1, Unit::second}},
      {"second", {1, Unit::second}},
      {"minutely", {1, Unit::minute}},
      {"minutes", {1, Unit::minute}},
      {"minute", {1, Unit::minute}},
      {"hourly", {1, Unit::hour}},
      {"hours", {1, Unit::hour}},
      {"hour", {1, Unit::hour}},
      {"daily", {1, Unit::day}},
      {"days", {1, Unit::day}},
      {"day", {1, Unit::day}},
      {"weekly", {1, Unit::week}},
      {"weeks", {1, Unit::week}},
      {"week", {1, Unit::week}},
      {"monthly", {1, Unit::month}},
      {"months", {1, Unit::month}},
      {"month", {1, Unit::month}},
      {"quarterly", {1, Unit::quarter}},
      {"quarters", {1, Unit::quarter}},
      {"quarter", {1, Unit::quarter}},
      {"yearly", {1, Unit::year}},
      {"years", {1, Unit::year}},
      {"year", {1, Unit::year}},
      {"annual", {1, Unit::year}},
  }};
  std::string unit = lower_case(name);
  long long multiple = 1;
  if (const auto digits = unit.find_first_not_of("0123456789"); digits > 0) {
    if (digits == std::string::npos || digits > 6 || unit[digits] != '_') return false;
    if (!parse_int(unit.substr(0, digits), multiple) || multiple < 1) return false;
    unit.erase(0, digits + 1);
  }
  for (const auto& [known, value] : names) {
    if (unit != known) continue;
    frequency = Frequency{static_cast<int>(multiple) * value.multiple, value.unit}.normal();
    return true;
  }
  return false;
}

void read_frequency(const TextFile& file, const std::string& name, const Frequency* stated, Header& header) {
  static const std::vector<std::string> examples{"4_seconds", "minutely", "10_minutes", "half_hourly", "hourly",
                                                 "daily",     "weekly",   "monthly",    "quarterly",   "yearly"};
  Frequency frequency;
  if (!parse_tsf_frequency(name, frequency))
    file.fail(2, cat("found the frequency ", in_quotes(name), ", of the known ones nearest to ",
                     nearest_name(name, examples), "; expected one of ", join(examples, ", ")));
  if (stated != nullptr && frequency != *stated)
    file.fail(2, cat("found the frequency ", in_quotes(name), " (", frequency.text(),
                     "); expected the stated frequency ", stated->text()));
  header.frequency = frequency;
}

/// Reads a line that starts with '@'. False at @data. Its @frequency must agree with `stated`, if that is given.
bool read_tag(const TextFile& file, std::string_view line, const Frequency* stated, Header& header) {
  const auto parts = words(line);
  const std::string tag = lower_case(parts[0]);
  if (tag == "@data") return false;
  const auto need = [&](std::size_t count, const char* what) {
    if (parts.size() < count)
      file.fail(static_cast<std::int64_t>(parts.size()) + 1, cat("found ", in_quotes(line), "; expected ", what));
  };
  if (tag == "@relation") {
    header.relation = to_utf8(trimmed(line.substr(parts[0].size())));
  } else if (tag == "@attribute") {
    need(3, "@attribute NAME TYPE");
    const std::string type = lower_case(parts[2]);
    const auto known = type == "string"    ? std::optional(Type::string)
                       : type == "numeric" ? std::optional(Type::numeric)
                       : type == "date"    ? std::optional(Type::date)
                                           : std::nullopt;
    if (!known) file.fail(3, cat("found the type ", in_quotes(parts[2]), "; expected string, numeric or date"));
    for (const auto& attribute : header.attributes)
      if (attribute.name == parts[1])
        file.fail(2, cat("found the attribute ", in_quotes(parts[1]), " again; expected each name once"));
    header.attributes.push_back({parts[1], *known});
  } else if (tag == "@frequency") {
    need(2, "@frequency NAME");
    read_frequency(file, parts[1], stated, header);
  } else if (tag == "@horizon") {
    need(2, "@horizon NUMBER");
    long long horizon = 0;
    if (!parse_int(parts[1], horizon) || horizon < 1)
      file.fail(2, cat("found the horizon ", in_quotes(parts[1]), "; expected a whole number from 1"));
  } else if (tag == "@missing" || tag == "@equallength") {
    need(2, "true or false after it");
    if (const auto value = lower_case(parts[1]); value != "true" && value != "false")
      file.fail(2, cat("found ", in_quotes(parts[1]), "; expected true or false"));
  }
  return true;
}

/// Place of the attribute of this type, preferably the one with this name.
std::optional<std::size_t> find_attribute(const Header& header, Type type, std::string_view preferred) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < header.attributes.size(); ++i) {
    if (header.attributes[i].type != type) continue;
    if (header.attributes[i].name == preferred) return i;
    if (!found) found = i;
  }
  return found;
}

/// Reads up to and including @data.
Header read_header(TextFile& file, const Frequency* stated) {
  Header header;
  bool in_data = false;
  std::string_view line;
  while (!in_data && file.next(line)) {
    line = trimmed(line);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() != '@')
      file.fail(1, cat("found ", in_quotes(line), "; expected a header line that starts with @"));
    in_data = !read_tag(file, line, stated, header);
  }
  if (file.line() == 0) file.fail("found an empty file; expected header lines that start with @");
  if (!in_data) file.fail(cat("found no @data line in ", file.line(), " lines; expected one after the header"));
  return header;
}

}  // namespace

std::optional<Frequency> read_tsf_frequency(TextFile& file, const ReadOptions&) {
  return read_header(file, nullptr).frequency;
}

std::string tsf_frequency_word(const Frequency& frequency) {
  using Unit = Frequency::Unit;
  struct Words {
    Unit unit;
    const char* one;
    const char* many;
  };
  static constexpr std::array<Words, 8> words_of{{{Unit::second, "1_seconds", "seconds"},
                                                  {Unit::minute, "minutely", "minutes"},
                                                  {Unit::hour, "hourly", "hours"},
                                                  {Unit::day, "daily", "days"},
                                                  {Unit::week, "weekly", "weeks"},
                                                  {Unit::month, "monthly", "months"},
                                                  {Unit::quarter, "quarterly", "quarters"},
                                                  {Unit::year, "yearly", "years"}}};
  if (frequency == Frequency{30, Unit::minute}) return "half_hourly";
  for (const auto& known : words_of)
    if (known.unit == frequency.unit)
      return frequency.multiple == 1 ? known.one : cat(frequency.multiple, "_", known.many);
  return {};
}

Dataset read_tsf(TextFile& file, const ReadOptions& options) {
  const Header header = read_header(file, &options.frequency);
  std::string_view line;
  Dataset dataset;
  dataset.name = header.relation;
  dataset.frequency = options.frequency;
  const auto& attributes = header.attributes;
  const auto name_place = find_attribute(header, Type::string, "series_name");
  const auto start_place = find_attribute(header, Type::date, "start_timestamp");
  if (!start_place && !options.start)
    file.fail("found no attribute of type date; expected '@attribute start_timestamp date', or a stated start");
  std::optional<bool> zoned;
  while (file.next(line)) {
    line = trimmed(line);
    if (line.empty() || line.front() == '#') continue;
    const auto parts = static_cast<std::size_t>(std::count(line.begin(), line.end(), ':')) + 1;
    if (parts != attributes.size() + 1)
      file.fail(static_cast<std::int64_t>(std::min(parts, attributes.size() + 1)),
                cat("found ", parts, " parts separated by ':'; expected ", attributes.size() + 1, ": ",
                    attributes.size(), " attributes and the values"));
    auto& series = dataset.series.emplace_back();
    series.id = std::to_string(dataset.series.size() - 1);
    series.start = options.start.value_or(0);
    for (std::size_t i = 0; i < attributes.size(); ++i) {
      const auto colon = line.find(':');
      const auto text = trimmed(line.substr(0, colon));
      line.remove_prefix(colon + 1);
      const auto column = static_cast<std::int64_t>(i) + 1;
      if (name_place == i) series.id = to_utf8(text);
      if (attributes[i].type == Type::numeric) {
        long long number = 0;
        if (!parse_int(text, number))
          file.fail(column, cat("found ", in_quotes(text), "; expected a whole number for the attribute ",
                                in_quotes(attributes[i].name)));
      } else if (attributes[i].type == Type::date) {
        const auto stamp = parse_time_stamp(text);
        if (!stamp) file.fail(column, cat("found ", in_quotes(text), "; expected a date such as 2006-01-31 13-00-00"));
        if (start_place != i) continue;
        if (const auto why = why_no_start(*stamp, zoned, options.frequency); !why.empty()) file.fail(column, why);
        series.start = stamp->at(options.frequency);
      }
    }
    // Monash files have starts such as 00-00-01; only steps of seconds have seconds.
    if (options.frequency.unit != Frequency::Unit::second) series.start -= ((series.start % 60) + 60) % 60;
    const auto columns_before = static_cast<std::int64_t>(attributes.size());
    const auto fields = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1;
    series.values.reserve(fields);
    if (options.exact) series.exact.reserve(fields);
    for_each_value(
        line, [&](std::size_t, double value) { append(series, value, options.exact); },
        [&](std::size_t i, std::string_view field, const char* accepted) {
          file.fail(columns_before + static_cast<std::int64_t>(i) + 1,
                    cat("found ", in_quotes(field), " as value ", i + 1, " of series ", in_quotes(series.id),
                        "; expected ", accepted));
        });
    if (!cut_missing_ends(series, options.frequency))
      file.fail(columns_before + 1,
                cat("found no value in series ", in_quotes(series.id), "; expected at least one that is not missing"));
  }
  if (dataset.series.empty()) file.fail("found no series after @data; expected one a line");
  return dataset;
}

}  // namespace tsdp::data::detail
