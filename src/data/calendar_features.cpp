#include "data/calendar_features.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

namespace tsdp::data {
namespace {

using Unit = Frequency::Unit;

constexpr std::array<std::string_view, 6> clock_names{"second_of_minute", "minute_of_hour", "hour_of_day",
                                                      "day_of_week",      "day_of_month",   "day_of_year"};
constexpr std::array<std::string_view, 2> week_names{"day_of_month", "week_of_year"};
constexpr std::array<std::string_view, 1> month_names{"month_of_year"};

std::span<const std::string_view> names_of(Unit unit) {
  const std::span<const std::string_view> clock(clock_names);
  switch (unit) {
    case Unit::second: return clock;
    case Unit::minute: return clock.subspan(1);
    case Unit::hour: return clock.subspan(2);
    case Unit::day:
    case Unit::business_day: return clock.subspan(3);
    case Unit::week: return week_names;
    case Unit::month:
    case Unit::quarter: return month_names;
    case Unit::year: break;
  }
  return {};
}

/// `count` of 0 … `largest` as −0.5 … 0.5, in this order of operations: float32 values must agree to the last bit.
double scaled(std::int64_t count, double largest) { return static_cast<double>(count) / largest - 0.5; }

std::int64_t day_of_year(std::chrono::sys_days day, std::chrono::year year) {
  return (day - std::chrono::sys_days(year / std::chrono::January / 1)).count();
}

}  // namespace

std::vector<std::string_view> calendar_feature_names(const Frequency& frequency) {
  const auto names = names_of(frequency.unit);
  return {names.begin(), names.end()};
}

void calendar_features(Moment moment, const Frequency& frequency, std::span<double> values) {
  using namespace std::chrono;
  const sys_seconds time{seconds(moment)};
  auto day = floor<days>(time);
  const std::int64_t weekday_number = weekday(day).iso_encoding() - 1;
  if (frequency.unit == Unit::week) day += days(6 - weekday_number);
  const year_month_day date(day);
  const auto day_of_month = static_cast<std::int64_t>(static_cast<unsigned>(date.day())) - 1;
  const auto month = static_cast<std::int64_t>(static_cast<unsigned>(date.month())) - 1;
  switch (frequency.unit) {
    case Unit::year: return;
    case Unit::month: values[0] = scaled(month, 11); return;
    case Unit::quarter: values[0] = scaled(month - month % 3 + 2, 11); return;
    case Unit::week: {
      // A week of ISO 8601 is numbered in the year of its Thursday.
      const auto thursday = day - days(3);
      values[0] = scaled(day_of_month, 30);
      values[1] = scaled(day_of_year(thursday, year_month_day(thursday).year()) / 7, 52);
      return;
    }
    default: break;
  }
  const std::int64_t second = (time - day).count();
  const std::array<double, clock_names.size()> all{
      scaled(second % 60, 59),   scaled(second / 60 % 60, 59), scaled(second / 3600, 23),
      scaled(weekday_number, 6), scaled(day_of_month, 30),     scaled(day_of_year(day, date.year()), 365)};
  std::copy(all.end() - static_cast<std::ptrdiff_t>(names_of(frequency.unit).size()), all.end(), values.begin());
}

float age(std::int64_t position) {
  // Single-precision logarithms differ between machines in their last bits; this one hardly can.
  return static_cast<float>(std::log10(2.0 + static_cast<double>(position)));
}

std::int64_t usual_season_length(const Frequency& frequency) {
  const auto whole = [&] {
    switch (frequency.unit) {
      case Unit::second: return 3600;
      case Unit::minute: return 1440;
      case Unit::hour: return 24;
      case Unit::day: return 7;
      case Unit::business_day: return 5;
      case Unit::week: return 52;
      case Unit::month: return 12;
      case Unit::quarter: return 4;
      case Unit::year: break;
    }
    return 1;
  }();
  return whole % frequency.multiple == 0 ? whole / frequency.multiple : 1;
}

}  // namespace tsdp::data
