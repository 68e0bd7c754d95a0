// What a model is told of the calendar, as GluonTS has it, and the usual season of a frequency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// No frequency has more calendar features than this.
inline constexpr std::size_t most_calendar_features = 6;

/// Names of the calendar features of a frequency, in order; they depend on its unit alone:
///
/// s: second_of_minute and those of min; min: minute_of_hour and those of h; h: hour_of_day and those of D;
/// D, B: day_of_week (Monday first), day_of_month, day_of_year; W: day_of_month, week_of_year (of ISO 8601);
/// M, Q: month_of_year; Y: none.
[[nodiscard]] std::vector<std::string_view> calendar_feature_names(const Frequency& frequency);

/// Writes the calendar features of a step that begins at `moment`, each counted from 0, divided by the largest count
/// (59, 59, 23, 6, 30, 365; week 52, month 11) and moved to [−0.5, 0.5]. Steps of weeks and quarters are described by
/// their last day: the Sunday of the calendar week, the last month of the calendar quarter.
/// Requires values.size() = number of names.
void calendar_features(Moment moment, const Frequency& frequency, std::span<double> values);

/// Age of place `position` ≥ 0 (0-based) of a series: log10(2 + position), rounded to float32. GluonTS takes the
/// logarithm in float32, with whatever error its NumPy has there; 2 units in the last place were seen.
[[nodiscard]] float age(std::int64_t position);

/// Steps in the usual season of a frequency, wherever none is stated: an hour of seconds, a day of minutes or hours, a
/// week of days or business days, a year of weeks, months or quarters, otherwise 1; also 1 where the multiple does not
/// divide it.
[[nodiscard]] std::int64_t usual_season_length(const Frequency& frequency);

}  // namespace tsdp::data
