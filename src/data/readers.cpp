#include "tsdp/data/readers.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/log.h"
#include "csv_fields.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data {

std::string FormNames::column(std::string_view role) const {
  return columns.starts_with("--") ? cat(columns, " ", role, "=NAME") : cat(columns, ".", role);
}

namespace detail {

bool is_nan(std::string_view text) {
  return text.size() == 3 && (text[0] | 32) == 'n' && (text[1] | 32) == 'a' && (text[2] | 32) == 'n';
}

const char* parse_field(std::string_view field, double& value) {
  field = trimmed(field);
  if (field.empty() || field == "?" || field == "NA" || is_nan(field)) {
    value = std::numeric_limits<double>::quiet_NaN();
    return nullptr;
  }
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  double number = 0;
  const auto result = std::from_chars(field.data(), field.data() + field.size(), number);
  if (result.ptr != field.data() + field.size() || result.ec == std::errc::invalid_argument || std::isnan(number))
    return "a number, or nan or empty for missing";
  // Numbers very close to zero are out of range too, but as good as zero.
  if (result.ec == std::errc::result_out_of_range) number = std::strtod(std::string(field).c_str(), nullptr);
  if (std::isinf(number) && result.ec == std::errc{}) return "a finite number, or nan or empty for missing";
  if (std::abs(number) >= beyond_single) return "a number of magnitude at most 3.4e38, or nan or empty for missing";
  value = number;
  return nullptr;
}

bool cut_missing_ends(Series& series, const Frequency& frequency) {
  return cut_missing_ends(std::span(&series, 1), frequency);
}

bool cut_missing_ends(std::span<Series> variables, const Frequency& frequency) {
  const auto observed = [](float value) { return !std::isnan(value); };
  auto first = std::numeric_limits<std::ptrdiff_t>::max();
  std::ptrdiff_t last = 0;
  for (const auto& series : variables) {
    const auto& values = series.values;
    const auto own = std::find_if(values.begin(), values.end(), observed);
    if (own == values.end()) return false;
    first = std::min(first, own - values.begin());
    last = std::max(last, std::find_if(values.rbegin(), values.rend(), observed).base() - values.begin());
  }
  for (auto& series : variables) {
    // It keeps its day of the month, whatever month is then the first.
    if (is_of_months(frequency) && series.month_day == 0) series.month_day = month_day_of(series.start);
    series.start = series.at(frequency, first);
    series.cut += static_cast<std::int64_t>(series.values.size());
    const auto cut = [&](auto& values) {
      values.erase(values.begin() + last, values.end());
      values.erase(values.begin(), values.begin() + first);
    };
    cut(series.values);
    if (!series.exact.empty()) cut(series.exact);
    series.cut -= static_cast<std::int64_t>(series.values.size());
  }
  return true;
}

bool begins(const Series& a, const Series& b) {
  return a.start == b.start && a.month_day == b.month_day && a.values.size() <= b.values.size() &&
         std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
}

std::string base_name(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.substr(0, name.find('.', 1));
}

}  // namespace detail

namespace {

/// Everything that is particular to a format. A new one needs a file with a reader, a value of Format and a row here.
struct FormatRow {
  Format format;
  const char* name;
  std::vector<std::string_view> endings;  // of file names
  bool needs_start;                       // it has no time stamps
  Dataset (*read)(detail::TextFile&, const ReadOptions&);
  std::optional<Frequency> (*frequency)(detail::TextFile&, const ReadOptions&);  // what the file tells; may be null
};

const std::vector<FormatRow>& format_table() {
  static const std::vector<FormatRow> rows = {
      {Format::lstnet, "lstnet", {".txt"}, true, detail::read_lstnet, nullptr},
      {Format::tsf, "tsf", {".tsf"}, false, detail::read_tsf, detail::read_tsf_frequency},
      {Format::csv, "csv",
       reads_parquet() ? std::vector<std::string_view>{".csv", ".parquet"} : std::vector<std::string_view>{".csv"},
       false, detail::read_csv, detail::read_csv_frequency},
      {Format::csv_long, "csv_long", {}, false, detail::read_csv_long, detail::read_csv_long_frequency},
      {Format::jsonl, "jsonl", {".jsonl", ".json"}, false, detail::read_jsonl, nullptr},
  };
  return rows;
}

const FormatRow& row_of(Format format) {
  for (const auto& row : format_table())
    if (row.format == format) return row;
  throw Error(ExitCode::failure, "a format that no reader has");
}

}  // namespace

bool reads_parquet() {
#ifdef TSDP_PARQUET
  return true;
#else
  return false;
#endif
}

const char* name(Format format) { return row_of(format).name; }

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const auto& row : format_table()) names.emplace_back(row.name);
  return names;
}

Format format_named(std::string_view text) {
  for (const auto& row : format_table())
    if (row.name == text) return row.format;
  throw UsageError(cat("found the format '", text, "'; expected one of ", join(format_names(), ", ")));
}

std::optional<Format> format_by_ending(const std::filesystem::path& path) {
  const auto ending_of = [](const std::filesystem::path& file) {
    return detail::lower_case(file.extension().string());
  };
  const auto ending = ending_of(path) == ".gz" ? ending_of(path.stem()) : ending_of(path);
  for (const auto& row : format_table())
    if (std::find(row.endings.begin(), row.endings.end(), ending) != row.endings.end()) return row.format;
  return std::nullopt;
}

std::optional<Format> format_of_file(const std::filesystem::path& path) {
  const auto format = format_by_ending(path);
  if (!format && std::filesystem::is_regular_file(path))
    detail::TextFile{path};  // refuses files that are not text, by name
  if (format != Format::csv) return format;
  return detail::has_long_header(path) ? Format::csv_long : Format::csv;
}

std::optional<Frequency> frequency_of_file(const std::filesystem::path& path, const ReadOptions& options) {
  const auto read = row_of(options.format).frequency;
  if (read == nullptr) return std::nullopt;
  detail::TextFile file(path);
  return read(file, options);
}

namespace {

/// Moments are written with four digits of the year, and beyond them arithmetic overflows at some point.
void check_calendar(const std::filesystem::path& path, const Dataset& dataset) {
  constexpr Moment end = 253402300800;  // of the year 9999
  const auto seconds = shortest_step(dataset.frequency);
  for (const auto& series : dataset.series) {
    const auto steps = static_cast<std::int64_t>(series.values.size());
    if (steps <= (end - series.start) / seconds && series.at(dataset.frequency, steps) <= end) continue;
    throw DataError(cat(path.string(), ": series ", detail::in_quotes(series.id), ": found ", steps,
                        " values in steps of ", dataset.frequency.text(), " from ", moment_text(series.start),
                        " on; expected an end within the year 9999"));
  }
}

void warn_of_digits(const std::filesystem::path& path, const Dataset& dataset) {
  const Series* first = nullptr;
  std::int64_t count = 0;
  for (const auto& series : dataset.series) {
    if (series.lost == 0 || 20 * series.lost < series.changes) continue;
    if (count++ == 0) first = &series;
  }
  if (count == 0) return;
  log::warning(cat(path.string(), ": ", count, " series, the first of them ", detail::in_quotes(first->id),
                   ", have values that single precision, which has 7 digits, cannot tell apart: ", first->lost, " of ",
                   first->changes,
                   " changes from a value to the next are lost; subtract a constant from all values to keep them"));
}

/// GluonTS stores a data set as a folder of `train` and `test`. Its test file has an entry of each series for every
/// rolling window, each the beginning of the next, one window of all series after the other. If `path` is such a file,
/// only the longest entry of each series remains, under its name in the train file: each of its values occurs once in
/// the data, as the guarantee requires. Any other file is left unchanged.
void keep_longest_windows(const std::filesystem::path& path, const ReadOptions& options, Dataset& dataset) {
  std::error_code none;
  const auto folder = std::filesystem::absolute(path).lexically_normal().parent_path();
  const auto train_file = folder.parent_path() / "train" / path.filename();
  if (folder.filename() != "test" || !std::filesystem::is_regular_file(train_file, none)) return;
  Dataset train;
  try {
    detail::TextFile file(train_file);
    train = detail::read_jsonl(file, options);
  } catch (const Error&) {
    return;  // whatever is wrong with it, it was not asked for
  }
  const auto count = train.series.size();
  const auto varies = [](const Series& series) {
    return std::any_of(series.values.begin(), series.values.end(), [&](float x) { return x != series.values.front(); });
  };
  if (dataset.series.size() <= count || dataset.series.size() % count != 0 ||
      std::none_of(train.series.begin(), train.series.end(), varies))
    return;
  for (std::size_t i = 0; i < dataset.series.size(); ++i)
    if (!detail::begins(i < count ? train.series[i] : dataset.series[i - count], dataset.series[i])) return;
  const auto windows = dataset.series.size() / count;
  dataset.series.erase(dataset.series.begin(), dataset.series.end() - static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = 0; i < count; ++i) dataset.series[i].id = std::move(train.series[i].id);
  log::warning(cat(path.string(), ": the longest of ", windows, " rolling windows of each of the ", count,
                   " series of ", train_file.string(),
                   " is read (dataset.split: last and dataset.test_windows: ", windows, " make the windows again)"));
}

}  // namespace

Dataset read_dataset(const std::filesystem::path& path, const ReadOptions& options) {
  const auto& row = row_of(options.format);
  if (row.needs_start && !options.start)
    throw UsageError(cat(path.string(), ": no start is given; a file in ", row.name,
                         " form has no time stamps, so expected a ", "start such as 2015-01-01 or 2015-01-01 13:00"));
  detail::TextFile file(path);
  auto dataset = row.read(file, options);
  if (options.format == Format::jsonl) keep_longest_windows(path, options, dataset);
  check_calendar(path, dataset);
  if (dataset.name.empty()) dataset.name = detail::base_name(path);
  warn_of_digits(path, dataset);
  return dataset;
}

}  // namespace tsdp::data
