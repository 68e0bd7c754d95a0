#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "tsdp/data/dataset.h"

namespace tsdp::data {
namespace {

using Unit = Frequency::Unit;

constexpr std::int64_t day_seconds = 86400;

std::int64_t day_of(Moment moment) { return moment / day_seconds - (moment % day_seconds < 0 ? 1 : 0); }

std::chrono::year_month_day date_of(std::int64_t day) { return std::chrono::sys_days(std::chrono::days(day)); }

std::int64_t month_of(std::int64_t day) {
  const auto date = date_of(day);
  return std::int64_t{12} * static_cast<int>(date.year()) + static_cast<unsigned>(date.month());
}

bool is_weekend(std::int64_t day) {
  const auto weekday = std::chrono::weekday(std::chrono::sys_days(std::chrono::days(day)));
  return weekday == std::chrono::Saturday || weekday == std::chrono::Sunday;
}

using AllMoments = std::span<const std::vector<Moment>>;

/// The greatest whole number of which all steps between `of` the moments of a series are multiples.
template <typename Of>
std::int64_t common_step(AllMoments series, const Of& of) {
  std::int64_t step = 0;
  for (const auto& moments : series)
    for (std::size_t i = 1; i < moments.size(); ++i) step = std::gcd(step, of(moments[i]) - of(moments[i - 1]));
  return step;
}

template <typename Holds>
bool all(AllMoments series, const Holds& holds) {
  for (const auto& moments : series)
    for (const auto moment : moments)
      if (!holds(moment, moments.front())) return false;
  return true;
}

Frequency multiple(std::int64_t count, Unit unit) {
  return {static_cast<int>(std::min<std::int64_t>(count, 999'999)), unit};
}

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

}  // namespace

std::optional<Frequency> coarsest_frequency(AllMoments series) {
  if (std::none_of(series.begin(), series.end(), [](const auto& moments) { return moments.size() >= 3; }))
    return std::nullopt;
  const auto time_of_day = [](Moment m) { return m - day_seconds * day_of(m); };
  if (!all(series, [&](Moment m, Moment first) { return time_of_day(m) == time_of_day(first); }))
    return of_seconds(common_step(series, [](Moment m) { return m; })).normal();
  if (std::all_of(series.begin(), series.end(),
                  [](const auto& moments) { return moments.empty() || common_month_day(moments) > 0; }))
    if (const auto months = common_step(series, [](Moment m) { return month_of(day_of(m)); }); months > 0)
      return of_months(months).normal();
  // Five days in a row without a weekend may be of any week; more of them are business days.
  const bool spans_a_week = std::any_of(series.begin(), series.end(), [](const auto& moments) {
    return !moments.empty() && day_of(moments.back()) - day_of(moments.front()) >= 6;
  });
  const bool on_weekends = !spans_a_week || !all(series, [](Moment m, Moment) { return !is_weekend(day_of(m)); });
  return of_days(common_step(series, day_of), on_weekends).normal();
}

namespace {

/// Steps of that frequency from the first to the last of the moments.
std::optional<std::int64_t> span_of(const Frequency& frequency, const std::vector<Moment>& moments) {
  return steps_between(moments.front(), frequency, moments.back(),
                       is_of_months(frequency) ? common_month_day(moments) : 0);
}

}  // namespace

std::optional<Frequency> infer_frequency(AllMoments series) {
  const auto found = coarsest_frequency(series);
  if (!found) return std::nullopt;
  for (const auto& moments : series)
    if (moments.size() >= 3)
      if (const auto steps = span_of(*found, moments);
          steps && *steps + 1 <= 2 * static_cast<std::int64_t>(moments.size()))
        return found;
  return std::nullopt;
}

std::optional<Frequency> infer_frequency(const std::vector<Moment>& moments) {
  return infer_frequency(AllMoments(&moments, 1));
}

std::optional<Frequency> coarser_than(const Frequency& stated, AllMoments series) {
  const auto found = coarsest_frequency(series);
  if (!found || shortest_step(*found) < 2 * shortest_step(stated)) return std::nullopt;
  // If rows were at random steps of the stated frequency, each would fit the coarser one with a chance of 1/ratio. The
  // first row of every series sets its phase, and one more is taken off.
  std::int64_t steps = -1;
  for (const auto& moments : series) steps += std::max<std::int64_t>(0, static_cast<std::int64_t>(moments.size()) - 1);
  const auto ratio = static_cast<double>(shortest_step(*found)) / static_cast<double>(shortest_step(stated));
  return static_cast<double>(steps) * std::log10(ratio) >= 3 ? found : std::nullopt;
}

}  // namespace tsdp::data
