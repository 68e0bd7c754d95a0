#include "tsdp/data/input_form.h"

#include <algorithm>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

template <typename Parse>
auto parsed(const std::string& name, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const UsageError& error) { throw UsageError(cat(name, ": ", error.what())); }
}

bool states_nothing(const std::string& text) { return text.empty() || text == "auto"; }

Frequency frequency_of(const std::filesystem::path& file, ReadOptions& options, const std::string& stated,
                       const std::string& name, const std::optional<Frequency>& usual) {
  if (!states_nothing(stated)) return parsed(name, stated, Frequency::parse);
  if (usual) return *usual;
  options.inferred = true;
  if (const auto own = frequency_of_file(file, options)) return *own;
  throw UsageError(cat(name, ": not given, and ", file.string(), " (", data::name(options.format),
                       ") does not tell it; expected a calendar step such as 10min, 1h, 1D, 1B"));
}

std::optional<Moment> start_of(const std::filesystem::path& file, const ReadOptions& options, const std::string& stated,
                               const std::string& name) {
  if (stated.empty()) {
    if (options.format != Format::lstnet) return std::nullopt;
    throw UsageError(cat(name, ": not given; ", file.string(),
                         " (lstnet) has no time stamps; expected the moment of its first row, such as 2015-01-01"));
  }
  const auto stamp = parse_time_stamp(stated);
  if (!stamp || (stamp->elsewhere && keeps_local_time(options.frequency)))
    throw UsageError(cat(name, ": found '", stated, "'; expected \"YYYY-MM-DD\" or \"YYYY-MM-DD hh:mm\""));
  return stamp->at(options.frequency);
}

}  // namespace

Format stated_format(const std::filesystem::path& file, const std::string& stated, const std::optional<Format>& by_name,
                     const std::string& name) {
  if (!stated.empty()) return parsed(name, stated, format_named);
  if (by_name) return *by_name;
  throw UsageError(cat(file.string(),
                       ": the name does not tell the form; expected one that ends in .txt (lstnet), .tsf, .csv or "
                       ".jsonl, also with .gz, or ",
                       name, " with one of ", join(format_names(), ", ")));
}

ColumnNames parse_columns(const std::string& text, const std::string& name) {
  ColumnNames out;
  const auto refuse = [&](const std::string& part) {
    throw UsageError(cat(name, ": found '", part,
                         "'; expected item=NAME, time=NAME and value=NAME between commas, each at most once, but value "
                         "for each variable that a series has"));
  };
  for (const auto& part : split(text, ',')) {
    const auto equals = part.find('=');
    const auto role = std::string(trimmed(part.substr(0, std::min(equals, part.size()))));
    auto* const place = role == "item" ? &out.item : role == "time" ? &out.time : nullptr;
    const auto column = equals == std::string::npos ? std::string() : std::string(trimmed(part.substr(equals + 1)));
    const bool is_new = role == "value" ? std::find(out.values.begin(), out.values.end(), column) == out.values.end()
                                        : place != nullptr && place->empty();
    if (column.empty() || !is_new) refuse(part);
    if (place != nullptr) *place = column;
    else out.values.push_back(column);
  }
  return out;
}

ReadOptions read_options_of(const std::filesystem::path& file, const StatedForm& stated, const FormNames& names,
                            const std::optional<Frequency>& usual) {
  ReadOptions options;
  const bool any_format = states_nothing(stated.format);
  options.columns = stated.columns;
  options.names = names;
  const auto& columns = options.columns;
  auto by_name = any_format ? format_of_file(file) : std::nullopt;
  // It is the long form that has a column of names or values.
  if (by_name == Format::csv && (!columns.item.empty() || !columns.values.empty())) by_name = Format::csv_long;
  options.format = stated_format(file, any_format ? std::string() : stated.format, by_name, names.format);
  const bool is_csv = options.format == Format::csv || options.format == Format::csv_long;
  const auto only_csv = [&](const std::string& name, bool given, bool taken) {
    if (given && !taken)
      throw UsageError(cat(name, ": given for ", file.string(), " (", data::name(options.format),
                           "); expected with csv_long", name == names.columns ? "; with csv, time alone" : " and csv"));
  };
  only_csv(names.columns, !columns.item.empty() || !columns.values.empty(), options.format == Format::csv_long);
  only_csv(names.columns, !columns.time.empty(), is_csv);
  if (!stated.duplicates.empty()) options.duplicates = named<Duplicates>(stated.duplicates, names.duplicates);
  only_csv(names.duplicates, options.duplicates != Duplicates::error, is_csv);
  if (!stated.gaps.empty() && stated.gaps != "auto") {
    options.gaps = named<Gaps>(stated.gaps, names.gaps);
    only_csv(names.gaps, true, is_csv);
  }
  options.frequency = frequency_of(file, options, stated.frequency, names.frequency, usual);
  options.start = start_of(file, options, stated.start, names.start);
  return options;
}

}  // namespace tsdp::data
