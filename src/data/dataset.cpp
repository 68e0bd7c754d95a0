#include "tsdp/data/dataset.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/floor_divide.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

using Unit = Frequency::Unit;

// The first name of a unit is the one that text() writes.
constexpr std::array<std::pair<std::string_view, Unit>, 30> unit_names{{
    {"s", Unit::second},       {"S", Unit::second},       {"sec", Unit::second}, {"second", Unit::second},
    {"seconds", Unit::second}, {"min", Unit::minute},     {"T", Unit::minute},   {"minute", Unit::minute},
    {"minutes", Unit::minute}, {"h", Unit::hour},         {"H", Unit::hour},     {"hour", Unit::hour},
    {"hours", Unit::hour},     {"D", Unit::day},          {"d", Unit::day},      {"day", Unit::day},
    {"days", Unit::day},       {"B", Unit::business_day}, {"W", Unit::week},     {"M", Unit::month},
    {"ME", Unit::month},       {"Q", Unit::quarter},      {"QE", Unit::quarter}, {"Y", Unit::year},
    {"YE", Unit::year},        {"A", Unit::year},         {"MS", Unit::month},   {"QS", Unit::quarter},
    {"YS", Unit::year},        {"AS", Unit::year},
}};

constexpr std::int64_t day_seconds = 86400;

/// Whether pandas writes `text` after a unit that begins with `unit`: a day after weeks, a month after quarters and
/// years.
bool is_anchor(std::string_view text, char unit) {
  constexpr std::string_view days = "MON TUE WED THU FRI SAT SUN";
  constexpr std::string_view months = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC";
  const auto names = unit == 'W' ? days : unit == 'Q' || unit == 'Y' || unit == 'A' ? months : std::string_view();
  const auto place = names.find(text);
  return place != std::string_view::npos && place % 4 == 0;
}

std::int64_t advance_business_days(std::int64_t day, std::int64_t steps) {
  if (steps == 0) return day;
  constexpr std::int64_t monday = 4;  // 1970-01-05
  std::int64_t weekday = day - monday - 7 * floor_divide(day - monday, 7);
  if (weekday > 4) {
    // From a weekend, one step leads to Monday, one step back to Friday.
    const std::int64_t target = steps > 0 ? 4 : 7;
    day += target - weekday;
    weekday = target % 7;
  }
  const std::int64_t weeks = floor_divide(weekday + steps, 5);
  return day - weekday + 7 * weeks + (weekday + steps - 5 * weeks);
}

/// Seconds of a step of fixed length, 0 for others.
std::int64_t seconds_of(Unit unit) {
  switch (unit) {
    case Unit::second: return 1;
    case Unit::minute: return 60;
    case Unit::hour: return 3600;
    case Unit::day: return day_seconds;
    case Unit::week: return 7 * day_seconds;
    default: return 0;
  }
}

/// Months of a step of that unit, 0 for others.
std::int64_t months_of(Unit unit) {
  return unit == Unit::month ? 1 : unit == Unit::quarter ? 3 : unit == Unit::year ? 12 : 0;
}

/// 12 · year + month, for differences.
std::int64_t month_number(std::int64_t day) {
  using namespace std::chrono;
  const year_month_day date{sys_days(days(day))};
  return std::int64_t{12} * static_cast<int>(date.year()) + static_cast<unsigned>(date.month());
}

bool is_month_end(std::int64_t day) { return month_number(day + 1) != month_number(day); }

int day_number_in_month(std::int64_t day) {
  using namespace std::chrono;
  return static_cast<int>(static_cast<unsigned>(year_month_day{sys_days(days(day))}.day()));
}

/// Day `month_day` of the month `steps` months after that of `day`, or the last day if that month has no such day.
std::int64_t advance_months(std::int64_t day, std::int64_t steps, int month_day) {
  using namespace std::chrono;
  const year_month_day date{sys_days(days(day))};
  const auto month = year_month(date.year(), date.month()) + months(steps);
  const auto last = year_month_day_last(month.year(), month_day_last(month.month())).day();
  const year_month_day moved(month.year(), month.month(),
                             std::min(std::chrono::day(static_cast<unsigned>(month_day)), last));
  return sys_days(moved).time_since_epoch().count();
}

int month_day_of_day(std::int64_t day) { return is_month_end(day) ? 31 : day_number_in_month(day); }

/// Business days from `from` to `to`, neither of which need be one: a weekend lies between its Friday and its Monday.
std::int64_t business_days_between(std::int64_t from, std::int64_t to) {
  constexpr std::int64_t monday = 4;  // 1970-01-05
  // Number of the last business day up to `day`, of the first from `day` on.
  const auto last = [](std::int64_t day) {
    const std::int64_t week = floor_divide(day - monday, 7);
    return 5 * week + std::min<std::int64_t>(day - monday - 7 * week, 4);
  };
  const auto first = [&](std::int64_t day) { return last(day - 1) + 1; };
  return to >= from ? last(to) - last(from) : first(to) - first(from);
}

}  // namespace

Frequency Frequency::parse(std::string_view text) {
  const auto refuse = [&](std::string_view hint) {
    throw UsageError(cat("found the frequency '", text, "'; expected a whole number from 1 and a unit, such as 10min, ",
                         "30s, 1h, 1D, 1B (business days), 1W, 1M, 1Q, 1Y", hint));
  };
  const std::string_view whole = trimmed(text);
  const std::size_t digits = std::min(whole.find_first_not_of("0123456789"), whole.size());
  Frequency frequency;
  if (digits > 0) {
    long long multiple = 0;
    if (digits > 6 || !parse_int(whole.substr(0, digits), multiple) || multiple < 1) refuse("");
    frequency.multiple = static_cast<int>(multiple);
  }
  std::string_view unit = trimmed(whole.substr(digits));
  // pandas' anchors (W-SUN, QS-OCT) say on which days steps lie; here the start does.
  if (unit.size() > 4 && unit[unit.size() - 4] == '-' && is_anchor(unit.substr(unit.size() - 3), unit.front()))
    unit.remove_suffix(4);
  for (const auto& [name, value] : unit_names) {
    if (unit != name) continue;
    frequency.unit = value;
    return frequency.normal();
  }
  if (unit == "m") refuse("; 'm' may be min (minutes) or M (months)");
  refuse("");
  return frequency;
}

Frequency Frequency::normal() const {
  struct Longer {
    Unit unit;
    int count;
    Unit longer;
  };
  // Five business days are a week only if they start on a Monday.
  static constexpr std::array<Longer, 6> table{{{Unit::second, 60, Unit::minute},
                                                {Unit::minute, 60, Unit::hour},
                                                {Unit::hour, 24, Unit::day},
                                                {Unit::day, 7, Unit::week},
                                                {Unit::month, 3, Unit::quarter},
                                                {Unit::quarter, 4, Unit::year}}};
  Frequency out = *this;
  for (const auto& row : table)
    if (out.unit == row.unit && out.multiple % row.count == 0) out = {out.multiple / row.count, row.longer};
  return out;
}

std::string Frequency::text() const {
  for (const auto& [name, value] : unit_names)
    if (value == unit) return cat(multiple, name);
  return {};
}

std::int64_t shortest_step(const Frequency& frequency) {
  const auto days = frequency.unit == Unit::business_day ? 1 : 28 * months_of(frequency.unit);
  return frequency.multiple * std::max(seconds_of(frequency.unit), day_seconds * days);
}

bool is_of_months(const Frequency& frequency) { return months_of(frequency.unit) > 0; }

int month_day_of(Moment start) { return month_day_of_day(floor_divide(start, day_seconds)); }

int common_month_day(std::span<const Moment> moments) {
  int latest = 0;
  bool last_days = true;
  for (const auto moment : moments) {
    const auto day = floor_divide(moment, day_seconds);
    latest = std::max(latest, day_number_in_month(day));
    last_days = last_days && is_month_end(day);
  }
  if (last_days) return moments.empty() ? 0 : 31;
  for (const auto moment : moments) {
    const auto day = floor_divide(moment, day_seconds);
    if (day_number_in_month(day) != latest && !(is_month_end(day) && day_number_in_month(day) < latest)) return 0;
  }
  return latest;
}

Moment advance(Moment start, const Frequency& frequency, std::int64_t steps, int month_day) {
  // Further than any calendar reaches, and near enough that nothing below overflows.
  constexpr std::int64_t most = 1'000'000'000'000;
  const std::int64_t count =
      std::clamp(steps, -most / frequency.multiple, most / frequency.multiple) * frequency.multiple;
  if (const auto seconds = seconds_of(frequency.unit); seconds > 0) return start + seconds * count;
  const std::int64_t day = floor_divide(start, day_seconds);
  const std::int64_t time_of_day = start - day_seconds * day;
  const std::int64_t moved =
      frequency.unit == Unit::business_day
          ? advance_business_days(day, count)
          : advance_months(day, months_of(frequency.unit) * count, month_day > 0 ? month_day : month_day_of_day(day));
  return day_seconds * moved + time_of_day;
}

std::optional<std::int64_t> steps_between(Moment start, const Frequency& frequency, Moment moment, int month_day) {
  const std::int64_t start_day = floor_divide(start, day_seconds);
  const std::int64_t day = floor_divide(moment, day_seconds);
  const std::int64_t months = months_of(frequency.unit);
  const std::int64_t seconds = seconds_of(frequency.unit);
  const std::int64_t units = seconds > 0  ? moment - start
                             : months > 0 ? month_number(day) - month_number(start_day)
                                          : business_days_between(start_day, day);
  const std::int64_t unit = frequency.multiple * std::max<std::int64_t>(1, seconds + months);
  if (units % unit != 0) return std::nullopt;
  const std::int64_t steps = units / unit;
  const Moment expected = advance(start, frequency, steps, month_day);
  if (expected == moment) return steps;
  if (months == 0 || month_day > 0 || (moment - expected) % day_seconds != 0) return std::nullopt;
  return day == advance_months(start_day, months * frequency.multiple * steps, day_number_in_month(start_day))
             ? std::optional(steps)
             : std::nullopt;
}

std::string counted_series(const Dataset& dataset) {
  const auto count = static_cast<std::int64_t>(dataset.series.size()) / dataset.variable_count();
  return cat(count, " series",
             dataset.variables.empty() ? std::string() : cat(" of ", dataset.variable_count(), " variables"));
}

}  // namespace tsdp::data
