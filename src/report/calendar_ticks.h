// Labels of a time axis, at the beginnings of days, months or years.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::exporting {

struct CalendarTick {
  std::size_t step;   ///< index of its moment
  std::string label;  ///< "06:00", "3 Mar", "Mar", "2014": the largest part of a date that begins there
};

/// The finest ticks of which at most `most` (from 1) fall within `moments`, which ascend: at the first moment in each
/// minute, hour, …, day, week (from Monday), month, quarter, year or some years. None if there are fewer than two
/// moments.
[[nodiscard]] std::vector<CalendarTick> calendar_ticks(std::span<const data::Moment> moments, std::size_t most);

}  // namespace tsdp::exporting
