// Comma-separated values of one line, and what every reader does with them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "text_file.h"
#include "tsdp/base/text.h"
#include "tsdp/data/dataset.h"
#include "tsdp/data/readers.h"

namespace tsdp::data::detail {

/// Magnitudes from here on are infinite in single precision: halfway between its largest number and the next power
/// of 2.
inline constexpr double beyond_single = 0x1.ffffffp127;

/// Whether `text` is nan, in upper or lower case.
[[nodiscard]] bool is_nan(std::string_view text);

/// Reads one field, missing values included, as the double nearest to it. Gives nullptr, or what would have been
/// accepted.
[[nodiscard]] const char* parse_field(std::string_view field, double& value);

/// What is wrong with the time stamp of a series' start, or nothing. `zoned`: whether those before it have a zone.
[[nodiscard]] inline std::string why_no_start(const TimeStamp& stamp, std::optional<bool>& zoned,
                                              const Frequency& frequency) {
  const bool has_zone = stamp.ahead.has_value();
  if (zoned.value_or(has_zone) != has_zone)
    return cat("found a start ",
               has_zone ? "with a zone, below starts without one" : "without a zone, below starts with one",
               "; expected a zone in every line or in none");
  zoned = has_zone;
  if (stamp.elsewhere && keeps_local_time(frequency))
    return cat("found a start in UTC though it is of another place, with steps of ", frequency.text(),
               ", which are in local time; expected starts without a zone");
  return {};
}

/// Appends `value`, also in double precision where `exact` asks for that.
inline void append(Series& series, double value, bool exact) {
  const auto single = static_cast<float>(value);
  series.values.push_back(single);
  if (exact) series.exact.push_back(value);
  if (std::isnan(value)) return;
  // Smaller changes are what arithmetic in double precision leaves behind. With NaN, if nothing was read before, this
  // is false.
  constexpr double least_change = 1e-12;
  if (std::abs(value - series.last_read) > least_change * std::abs(value)) {
    ++series.changes;
    series.lost += single == static_cast<float>(series.last_read) ? 1 : 0;
  }
  series.last_read = value;
}

/// Calls `take(i, value)` for each comma-separated field of `text` and `refuse(i, field, accepted)`, which must throw,
/// for a field that is neither a finite number nor missing. Returns the number of fields, at least one.
template <class Take, class Refuse>
std::size_t for_each_value(std::string_view text, Take&& take, Refuse&& refuse) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0;; ++i) {
    double value = 0;
    auto [stop, code] = std::from_chars(at, end, value);
    // NaN and infinity fail the comparison and so take the slow way.
    if (code != std::errc{} || (stop != end && *stop != ',') || !(std::abs(value) < beyond_single)) {
      const std::string_view rest(at, end);
      const std::string_view field = rest.substr(0, rest.find(','));
      stop = at + field.size();
      if (const char* const accepted = parse_field(field, value)) refuse(i, field, accepted);
    }
    take(i, value);
    if (stop == end) return i + 1;
    at = stop + 1;
  }
}

/// Cuts leading and trailing missing values and advances the start by as many steps. False if nothing is left.
[[nodiscard]] bool cut_missing_ends(Series& series, const Frequency& frequency);
/// The same of the variables of one series, which have the same steps: cuts what is missing in all of them. False if
/// one of them has no value at all.
[[nodiscard]] bool cut_missing_ends(std::span<Series> variables, const Frequency& frequency);

/// Whether `a` is the beginning of `b`, missing values included.
[[nodiscard]] bool begins(const Series& a, const Series& b);

/// The most steps that a series with this many rows may span: more of them come from a wrong year or too fine a
/// frequency.
[[nodiscard]] constexpr std::int64_t most_steps(std::int64_t rows) { return 1'000'000 + 1'000 * rows; }

/// `path` without folder and endings.
[[nodiscard]] std::string base_name(const std::filesystem::path& path);

[[nodiscard]] Dataset read_lstnet(TextFile& file, const ReadOptions& options);
[[nodiscard]] Dataset read_csv(TextFile& file, const ReadOptions& options);
[[nodiscard]] Dataset read_csv_long(TextFile& file, const ReadOptions& options);
[[nodiscard]] Dataset read_tsf(TextFile& file, const ReadOptions& options);
[[nodiscard]] Dataset read_jsonl(TextFile& file, const ReadOptions& options);

/// What a file says about its frequency; options.frequency is not used.
[[nodiscard]] std::optional<Frequency> read_tsf_frequency(TextFile& file, const ReadOptions& options);
[[nodiscard]] std::optional<Frequency> read_csv_frequency(TextFile& file, const ReadOptions& options);
[[nodiscard]] std::optional<Frequency> read_csv_long_frequency(TextFile& file, const ReadOptions& options);
/// The @frequency that a tsf header would have; empty if the Monash form has no word for it.
[[nodiscard]] std::string tsf_frequency_word(const Frequency& frequency);

}  // namespace tsdp::data::detail
