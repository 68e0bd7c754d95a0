#include "calendar_ticks.h"

#include <array>
#include <chrono>

#include "base/floor_divide.h"
#include "tsdp/base/text.h"

namespace tsdp::exporting {
namespace {

constexpr std::int64_t minute = 60;
constexpr std::int64_t hour = 60 * minute;
constexpr std::int64_t day = 24 * hour;

/// A length of time whose parts can be counted: seconds or months.
struct Period {
  std::int64_t seconds;
  std::int64_t months;
};
constexpr std::array periods = {
    Period{1, 0},           Period{10, 0},   Period{minute, 0},   Period{5 * minute, 0}, Period{15 * minute, 0},
    Period{30 * minute, 0}, Period{hour, 0}, Period{2 * hour, 0}, Period{3 * hour, 0},   Period{6 * hour, 0},
    Period{12 * hour, 0},   Period{day, 0},  Period{2 * day, 0},  Period{7 * day, 0},    Period{14 * day, 0},
    Period{0, 1},           Period{0, 3},    Period{0, 6},        Period{0, 12},         Period{0, 24},
    Period{0, 60},          Period{0, 120},  Period{0, 600}};

std::chrono::year_month_day date_of(data::Moment moment) {
  return std::chrono::year_month_day(std::chrono::sys_days(std::chrono::days(floor_divide(moment, day))));
}

/// The number of the period that a moment is in, counted from one that began on a Monday or in January.
std::int64_t number_of(data::Moment moment, const Period& period) {
  if (period.months == 0) return floor_divide(moment - 4 * day, period.seconds);  // 1970-01-05 was a Monday
  const auto date = date_of(moment);
  return floor_divide(12LL * static_cast<int>(date.year()) + static_cast<unsigned>(date.month()) - 1, period.months);
}

std::string label_of(data::Moment moment, const Period& period) {
  constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto date = date_of(moment);
  const auto month = static_cast<unsigned>(date.month());
  const std::string month_name = months[month - 1];
  if (period.months > 0) return month == 1 || period.months >= 12 ? cat(static_cast<int>(date.year())) : month_name;
  const auto time = data::moment_text(moment).substr(11);  // after "2014-03-01 "
  if (period.seconds < day && time != "00:00:00") return period.seconds < minute ? time : time.substr(0, 5);
  return cat(static_cast<unsigned>(date.day()), " ", month_name);
}

}  // namespace

std::vector<CalendarTick> calendar_ticks(std::span<const data::Moment> moments, std::size_t most) {
  if (moments.size() < 2) return {};
  for (const auto& period : periods) {
    std::vector<CalendarTick> ticks;
    for (std::size_t i = 1; i < moments.size() && ticks.size() <= most; ++i)
      if (number_of(moments[i], period) != number_of(moments[i - 1], period))
        ticks.push_back({i, label_of(moments[i], period)});
    if (ticks.size() <= most) return ticks;
  }
  return {};
}

}  // namespace tsdp::exporting
