#include "data/propose.h"

#include <algorithm>
#include <vector>

#include "data/calendar_features.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/data/windows.h"

namespace tsdp::data {
namespace {

using Unit = Frequency::Unit;

/// The prediction length if none is asked for: a day if steps are hours or less, but no more than 48 steps; for longer
/// steps, as many as the M4 competition forecast.
std::int64_t usual_prediction_length(const Frequency& frequency) {
  switch (frequency.unit) {
    case Unit::second:
    case Unit::minute:
    case Unit::hour: return std::clamp<std::int64_t>(86400 / shortest_step(frequency), 1, 48);
    case Unit::day: return 14;
    case Unit::business_day: return 10;
    case Unit::week: return 13;
    case Unit::month: return 18;
    case Unit::quarter: return 8;
    case Unit::year: return 6;
  }
  return 1;
}

/// A split that a series of `length` values fits: as many test windows as leave four fifths for the rest, seven at
/// most, and a validation part of the same length.
std::optional<SplitOptions> split_for(std::int64_t length, std::int64_t horizon) {
  SplitOptions split{SplitKind::last, horizon, std::clamp<std::int64_t>(length / (5 * horizon), 1, 7), 0};
  split.validation_length = horizon * split.test_windows;
  if (least_length(split) + horizon > length) split.validation_length = 0;
  return least_length(split) + horizon <= length ? std::optional(split) : std::nullopt;
}

/// YAML text that reads back as `text`, whatever is in it.
std::string quoted_yaml(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// The path as a configuration in `folder` names it: files below the folder move with it.
std::filesystem::path path_for(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const auto absolute = std::filesystem::absolute(file).lexically_normal();
  const auto relative =
      absolute.lexically_relative(std::filesystem::absolute(folder.empty() ? "." : folder).lexically_normal());
  return relative.empty() || *relative.begin() == ".." ? absolute : relative;
}

}  // namespace

std::string proposed_configuration(const std::filesystem::path& file, const std::filesystem::path& folder,
                                   const StatedForm& stated, const ReadOptions& read, const Dataset& dataset,
                                   const ProposalOptions& options) {
  std::vector<std::int64_t> lengths;
  for (const auto& series : dataset.series) lengths.push_back(static_cast<std::int64_t>(series.values.size()));
  std::sort(lengths.begin(), lengths.end());
  const auto usual_length = lengths[lengths.size() / 4];  // three quarters of the series have this many values or more
  const auto horizon = options.prediction_length.value_or(
      std::min(usual_prediction_length(dataset.frequency), std::max<std::int64_t>(1, usual_length / 8)));
  const auto usual_season = usual_season_length(dataset.frequency);
  const auto season = options.season_length.value_or(4 * usual_season <= usual_length ? usual_season : 1);
  const auto split = split_for(usual_length, horizon);
  if (!split)
    throw DataError(cat(file.string(), ": found series of ", lengths.front(), " to ", lengths.back(),
                        " values, of which most are shorter than ", 3 * horizon,
                        ", the least that leaves something to train on beside a forecast of ", horizon,
                        "; expected longer series, or a shorter --prediction-length"));
  const auto least = least_length(*split);
  const auto short_ones = std::lower_bound(lengths.begin(), lengths.end(), least) - lengths.begin();

  std::string out = cat("# Proposed by tsdp-data describe from public facts alone: ", counted_series(dataset), " of ",
                        lengths.front(), " to ", lengths.back(), " values in steps of ", dataset.frequency.text(),
                        ".\n# Change what you know better; docs/choosing.md says how the `auto` values are settled.\n");
  out += cat("dataset:\n  path: ", quoted_yaml(path_for(file, folder).string()), "\n  format: ", name(read.format),
             "\n  frequency: ", dataset.frequency.text(), "\n");
  if (read.start) out += cat("  start: ", quoted_yaml(moment_text(*read.start)), "\n");
  const auto& columns = stated.columns;
  std::vector<std::string> named_columns;
  if (!columns.item.empty()) named_columns.push_back(cat("item: ", quoted_yaml(columns.item)));
  if (!columns.time.empty()) named_columns.push_back(cat("time: ", quoted_yaml(columns.time)));
  std::vector<std::string> values;
  for (const auto& column : columns.values) values.push_back(quoted_yaml(column));
  if (!values.empty())
    named_columns.push_back(values.size() == 1 ? cat("value: ", values.front())
                                               : cat("value: [", join(values, ", "), "]"));
  if (!named_columns.empty()) out += cat("  columns: {", join(named_columns, ", "), "}\n");
  if (read.duplicates != Duplicates::error) out += cat("  duplicates: ", tsdp::name(read.duplicates), "\n");
  if (read.gaps) out += cat("  gaps: ", tsdp::name(*read.gaps), "\n");
  if (short_ones > 0) out += cat("  short_series: drop  # ", short_ones, " are shorter than ", least, " values\n");
  out +=
      cat("  prediction_length: ", horizon, "\n  season_length: ", season,
          "\n  split: last\n  test_windows: ", split->test_windows, "\n  validation_length: ", split->validation_length,
          "\n  # covariates: {file: FILE}  # what is known of every step, coming ones too: weather, prices, holidays "
          "(docs/data.md)\n");
  out += cat("model: {name: dlinear, context_length: auto, prior: auto, start: auto}\n",
             "sampling: {top_level: wor, bottom_level: wr, batch_size: auto}\n",
             dataset.variables.empty() ? "# One value of one series is protected"
                                       : "# All values of one series at one step are protected",
             " (relation event, w 1); docs/choosing.md says what else may be.\n",
             "privacy: {relation: event, w: 1, noise_multiplier: auto, clip_norm: 1.0e-4, target_epsilon: 1.0, delta: "
             "1.0e-7}\n",
             "optimizer: {learning_rate: auto}\ntraining: {max_epochs: auto}\n");
  return out;
}

}  // namespace tsdp::data
