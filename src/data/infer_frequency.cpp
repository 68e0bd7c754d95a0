#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>

#include "tsdp/data/dataset.h"

namespace tsdp::data {
namespace {

using Unit = Frequency::Unit;

constexpr std::int64_t day_seconds = 86400;

std::int64_t day_of(Moment moment) { return moment / day_seconds - (moment % day_seconds < 0 ? 1 : 0); }

std::chrono::year_month_day date_of(std::int64_t day) { return std::chrono::sys_days(std::chrono::days(day)); }

bool is_last_of_month(std::int64_t day) { return date_of(day + 1).day() == std::chrono::day(1); }

std::int64_t month_of(std::int64_t day) {
  const auto date = date_of(day);
  return std::int64_t{12} * static_cast<int>(date.year()) + static_cast<unsigned>(date.month());
}

bool is_weekend(std::int64_t day) {
  const auto weekday = std::chrono::weekday(std::chrono::sys_days(std::chrono::days(day)));
  return weekday == std::chrono::Saturday || weekday == std::chrono::Sunday;
}

/// The greatest whole number of which all steps between `of` the moments are multiples.
template <typename Of>
std::int64_t common_step(const std::vector<Moment>& moments, const Of& of) {
  std::int64_t step = 0;
  for (std::size_t i = 1; i < moments.size(); ++i) step = std::gcd(step, of(moments[i]) - of(moments[i - 1]));
  return step;
}

template <typename Holds>
bool all(const std::vector<Moment>& moments, const Holds& holds) {
  for (const auto moment : moments)
    if (!holds(moment)) return false;
  return true;
}

Frequency multiple(std::int64_t count, Unit unit) { return {static_cast<int>(std::min<std::int64_t>(count, 999'999)), unit}; }

Frequency of_months(std::int64_t months) {
  if (months % 12 == 0) return multiple(months / 12, Unit::year);
  if (months % 3 == 0) return multiple(months / 3, Unit::quarter);
  return multiple(months, Unit::month);
}

Frequency of_days(std::int64_t days, bool on_weekends) {
  if (days % 7 == 0) return multiple(days / 7, Unit::week);
  return multiple(days, days == 1 && !on_weekends ? Unit::business_day : Unit::day);
}

Frequency of_seconds(std::int64_t seconds) {
  if (seconds % 3600 == 0) return multiple(seconds / 3600, Unit::hour);
  if (seconds % 60 == 0) return multiple(seconds / 60, Unit::minute);
  return multiple(seconds, Unit::second);
}

Frequency coarsest(const std::vector<Moment>& moments) {
  const auto first = day_of(moments.front());
  const auto time_of_day = moments.front() - day_seconds * first;
  if (!all(moments, [&](Moment m) { return m - day_seconds * day_of(m) == time_of_day; }))
    return of_seconds(common_step(moments, [](Moment m) { return m; }));
  const auto day = date_of(first).day();
  if (all(moments, [&](Moment m) { return date_of(day_of(m)).day() == day; }) || all(moments, [](Moment m) { return is_last_of_month(day_of(m)); }))
    return of_months(common_step(moments, [](Moment m) { return month_of(day_of(m)); }));
  // Five days in a row without a weekend may be of any week; more of them are business days.
  const bool on_weekends = day_of(moments.back()) - first < 6 || !all(moments, [](Moment m) { return !is_weekend(day_of(m)); });
  return of_days(common_step(moments, day_of), on_weekends);
}

}  // namespace

std::optional<Frequency> infer_frequency(const std::vector<Moment>& moments) {
  if (moments.size() < 3) return std::nullopt;
  const auto found = coarsest(moments);
  const auto steps = steps_between(moments.front(), found, moments.back());
  if (!steps || *steps + 1 > 2 * static_cast<std::int64_t>(moments.size())) return std::nullopt;
  return found;
}

}  // namespace tsdp::data
