#include "data/writers.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "text_file.h"
#include "text_writer.h"
#include "tsdp/base/error.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data {
namespace {

using detail::TextWriter;
using Unit = Frequency::Unit;

[[noreturn]] void refuse(const std::filesystem::path& path, const Series& series, const std::string& what) {
  throw DataError(cat(path.string(), ": series ", detail::in_quotes(series.id), ": ", what));
}

void check_values(const Dataset& dataset, const std::filesystem::path& path) {
  if (dataset.series.empty()) throw DataError(cat(path.string(), ": found no series to write; expected at least one"));
  for (const auto& series : dataset.series)
    if (std::all_of(series.values.begin(), series.values.end(), [](float value) { return std::isnan(value); }))
      refuse(path, series, "found no value; expected at least one that is not missing");
}

/// Ids in a CSV file must differ from each other and fit on one line.
void check_csv_ids(const Dataset& dataset, const std::filesystem::path& path, Format format) {
  std::set<std::string_view> seen;
  for (const auto& series : dataset.series) {
    if (series.id.empty() || series.id.find_first_of("\r\n") != std::string::npos)
      refuse(path, series,
             cat("found ", series.id.empty() ? "an empty id" : "a line break in the id",
                 "; expected a name in one line, as the form ", name(format), " needs it"));
    if (!seen.insert(series.id).second)
      refuse(path, series, cat("found the id again; expected each once, as the form ", name(format), " needs it"));
  }
}

/// Whether time stamps need no time of the day: steps are days or longer, and no start has one.
bool dates_alone(const Dataset& dataset) {
  constexpr Moment day_seconds = 86400;
  const auto unit = dataset.frequency.unit;
  if (unit == Unit::second || unit == Unit::minute || unit == Unit::hour) return false;
  return std::all_of(dataset.series.begin(), dataset.series.end(),
                     [](const Series& series) { return series.start % day_seconds == 0; });
}

/// How many steps earlier a form that stores only the start must begin so that it tells the day of the month: a series
/// of the 28th that begins on 28 February, a last day, begins on 28 January with a missing value.
std::int64_t steps_before(const Series& series, const Frequency& frequency) {
  if (!is_of_months(frequency) || series.month_day == 0) return 0;
  constexpr std::int64_t most = 100;  // months until February has had all its lengths, including turns of centuries
  for (std::int64_t steps = 0; steps <= most; ++steps)
    if (month_day_of(series.at(frequency, -steps)) == series.month_day) return steps;
  return 0;
}

std::string stamp_text(Moment moment, bool date_alone) {
  std::string text = moment_text(moment);
  if (date_alone) text.resize(text.find(' '));
  return text;
}

void write_lstnet(const Dataset& dataset, const std::filesystem::path& path) {
  const auto& front = dataset.series.front();
  for (const auto& series : dataset.series) {
    if (series.values.size() != front.values.size())
      refuse(path, series,
             cat("found ", series.values.size(), " values; expected ", front.values.size(), ", as in series ",
                 detail::in_quotes(front.id), ": columns of the form lstnet are of one length"));
    if (series.start != front.start)
      refuse(path, series,
             cat("found the start ", moment_text(series.start), "; expected ", moment_text(front.start),
                 ", as of series ", detail::in_quotes(front.id), ": columns of the form lstnet have one start"));
  }
  TextWriter out(path);
  for (std::size_t t = 0; t < front.values.size(); ++t) {
    for (std::size_t i = 0; i < dataset.series.size(); ++i) {
      if (i > 0) out << ',';
      out.number(dataset.series[i].values[t], "nan");
    }
    out << '\n';
  }
  out.commit();
}

void write_csv(const Dataset& dataset, const std::filesystem::path& path) {
  check_csv_ids(dataset, path, Format::csv);
  const auto& frequency = dataset.frequency;
  const auto first = std::min_element(dataset.series.begin(), dataset.series.end(),
                                      [](const Series& a, const Series& b) { return a.start < b.start; });
  // Months of unequal lengths and weekends bring calendars together that started apart, and the other way round. So all
  // steps are checked if steps are not of one length.
  const bool steady = frequency.unit <= Unit::day || frequency.unit == Unit::week;
  std::vector<std::int64_t> places;  // row of each series' first value
  std::int64_t rows = 0;
  std::int64_t held = 0;
  for (const auto& series : dataset.series) {
    const auto place = steps_between(first->start, frequency, series.start, first->month_day).value_or(-1);
    const std::size_t checked = steady ? 1 : series.values.size();
    for (std::size_t t = 0; t < checked; ++t) {
      const auto step = static_cast<std::int64_t>(t);
      if (place < 0 || series.at(frequency, step) != first->at(frequency, place + step))
        refuse(path, series,
               cat("found the time ", moment_text(series.at(frequency, step)), "; expected whole steps of ",
                   frequency.text(), " from ", moment_text(first->start), " on, where series ",
                   detail::in_quotes(first->id), " starts: rows of the form csv are steps of one calendar"));
    }
    places.push_back(place);
    rows = std::max(rows, place + static_cast<std::int64_t>(series.values.size()));
    held += static_cast<std::int64_t>(series.values.size());
  }
  // Every row has a field for every series: few values at times far apart would fill the disk with commas.
  const auto columns = static_cast<std::int64_t>(dataset.series.size());
  const std::int64_t most = 100'000'000 + 100 * held;
  if (rows > most / columns) {
    const auto last = static_cast<std::size_t>(std::max_element(places.begin(), places.end()) - places.begin());
    refuse(
        path, dataset.series[last],
        cat("found the start ", moment_text(dataset.series[last].start), " beside ", moment_text(first->start),
            " of series ", detail::in_quotes(first->id), ", which makes ", rows, " rows of ", columns, " fields for ",
            held, " values; expected at most ", most, " fields; the form csv_long has no rows without values"));
  }
  TextWriter out(path);
  out << "time";
  for (const auto& series : dataset.series) out << ',' << csv_field(series.id);
  out << '\n';
  const bool date_alone = dates_alone(dataset);
  for (std::int64_t row = 0; row < rows; ++row) {
    out << stamp_text(first->at(frequency, row), date_alone);
    for (std::size_t i = 0; i < places.size(); ++i) {
      out << ',';
      const auto& values = dataset.series[i].values;
      const std::int64_t step = row - places[i];
      if (step >= 0 && step < static_cast<std::int64_t>(values.size()))
        out.number(values[static_cast<std::size_t>(step)], "");
    }
    out << '\n';
  }
  out.commit();
}

void write_csv_long(const Dataset& dataset, const std::filesystem::path& path) {
  check_csv_ids(dataset, path, Format::csv_long);
  TextWriter out(path);
  out << "unique_id,ds,y\n";
  const bool date_alone = dates_alone(dataset);
  for (const auto& series : dataset.series) {
    const std::string id = csv_field(series.id);
    for (std::size_t t = 0; t < series.values.size(); ++t) {
      const auto moment = series.at(dataset.frequency, static_cast<std::int64_t>(t));
      out << id << ',' << stamp_text(moment, date_alone) << ',';
      out.number(series.values[t], "");
      out << '\n';
    }
  }
  out.commit();
}

void write_tsf(const Dataset& dataset, const std::filesystem::path& path) {
  const std::string frequency = detail::tsf_frequency_word(dataset.frequency);
  if (frequency.empty())
    refuse(path, dataset.series.front(),
           cat("found steps of ", dataset.frequency.text(),
               "; expected steps for which the form tsf has a word, from seconds to years"));
  bool missing = false;
  bool equal = true;
  for (const auto& series : dataset.series) {
    if (series.id.find_first_of(":\r\n") != std::string::npos || series.id != trimmed(series.id) ||
        series.id.starts_with('#'))
      refuse(path, series,
             "found an id with a colon, a line break, outer white space or a leading '#'; expected none of them, which "
             "have another meaning in the form tsf");
    if (dataset.frequency.unit != Unit::second && series.start % 60 != 0)
      refuse(path, series,
             cat("found the start ", moment_text(series.start),
                 "; expected a whole minute, as the form tsf has it for steps of ", dataset.frequency.text()));
    missing = missing || std::any_of(series.values.begin(), series.values.end(), [](float v) { return std::isnan(v); });
    missing = missing || steps_before(series, dataset.frequency) > 0;
    equal = equal && series.values.size() == dataset.series.front().values.size() &&
            steps_before(series, dataset.frequency) == steps_before(dataset.series.front(), dataset.frequency);
  }
  std::string relation = dataset.name;
  std::replace_if(relation.begin(), relation.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  TextWriter out(path);
  out << "@relation " << relation << "\n@attribute series_name string\n@attribute start_timestamp date\n@frequency "
      << frequency << "\n@missing " << (missing ? "true" : "false") << "\n@equallength " << (equal ? "true" : "false")
      << "\n@data\n";
  for (const auto& series : dataset.series) {
    const auto before = steps_before(series, dataset.frequency);
    std::string start = moment_text(series.at(dataset.frequency, -before));
    std::replace(start.begin(), start.end(), ':', '-');
    out << series.id << ':' << start << ':';
    for (std::int64_t k = 0; k < before; ++k) out << "?,";
    for (std::size_t t = 0; t < series.values.size(); ++t) {
      if (t > 0) out << ',';
      out.number(series.values[t], "?");
    }
    out << '\n';
  }
  out.commit();
}

/// One line of JSON Lines: the first `length` values of a series.
void put_entry(TextWriter& out, const Series& series, const Frequency& frequency, std::size_t length) {
  const auto before = steps_before(series, frequency);
  out << "{\"item_id\": " << json_text(nlohmann::json(detail::to_utf8(series.id))) << ", \"start\": \""
      << moment_text(series.at(frequency, -before)) << "\", \"target\": [";
  for (std::int64_t k = 0; k < before; ++k) out << "null, ";
  for (std::size_t t = 0; t < length; ++t) {
    if (t > 0) out << ", ";
    out.number(series.values[t], "null");
  }
  out << "]}\n";
}

void write_jsonl(const Dataset& dataset, const std::filesystem::path& path) {
  TextWriter out(path);
  for (const auto& series : dataset.series) put_entry(out, series, dataset.frequency, series.values.size());
  out.commit();
}

}  // namespace

void write_dataset(const Dataset& dataset, const std::filesystem::path& path, Format format) {
  check_values(dataset, path);
  switch (format) {
    case Format::lstnet: return write_lstnet(dataset, path);
    case Format::tsf: return write_tsf(dataset, path);
    case Format::csv: return write_csv(dataset, path);
    case Format::csv_long: return write_csv_long(dataset, path);
    case Format::jsonl: return write_jsonl(dataset, path);
  }
}

void write_split(const Dataset& dataset, const Split& split, const SplitFacts& facts,
                 const std::filesystem::path& folder) {
  std::error_code reason;
  std::filesystem::create_directories(folder, reason);
  if (reason) throw Error(ExitCode::failure, cat(folder.string(), ": the folder cannot be made: ", reason.message()));
  TextWriter train(folder / "train.jsonl");
  for (std::size_t i = 0; i < dataset.series.size(); ++i)
    put_entry(train, dataset.series[i], dataset.frequency, static_cast<std::size_t>(split.training_length[i]));
  train.commit();
  const auto put_ranges = [&](const char* file, std::span<const ForecastRange> ranges) {
    TextWriter out(folder / file);
    for (const auto& range : ranges)
      put_entry(out, dataset.series[static_cast<std::size_t>(range.series)], dataset.frequency,
                static_cast<std::size_t>(range.forecast_start + facts.prediction_length));
    out.commit();
  };
  put_ranges("validation.jsonl", split.validation);
  put_ranges("test.jsonl", split.test);
  nlohmann::ordered_json metadata;
  metadata["name"] = detail::to_utf8(dataset.name);
  metadata["frequency"] = dataset.frequency.text();
  metadata["freq"] = dataset.frequency.text();  // GluonTS's name for it
  metadata["prediction_length"] = facts.prediction_length;
  metadata["season_length"] = facts.season_length;
  metadata["series"] = dataset.series.size();
  metadata["validation_entries"] = split.validation.size();
  metadata["test_entries"] = split.test.size();
  write_file_atomically(folder / "metadata.json", json_text(metadata, 2) + "\n");
}

}  // namespace tsdp::data
