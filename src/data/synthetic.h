// Synthetic series to pretrain on: nobody's data. Broad families of what series of one frequency look like, so that a
// model that starts from them has seen seasons, walks, level shifts, zeros and heavy tails before it sees a private
// value.
#pragma once

#include <cstdint>

#include "data/generate.h"
#include "tsdp/base/names.h"
#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// What a step is, and with it the seasons: 10 minutes (day 144, week 1008 steps), an hour (24, 168, year 8766), a day
/// (week 7, year 365.25), a business day (5, 261), a week (52.18), a month (12).
enum class SyntheticKind {
  ten_minutes,
  hourly,
  daily,
  business_daily,
  weekly,
  monthly
};
constexpr Names<SyntheticKind, 6> names_of(SyntheticKind) {
  return {{{SyntheticKind::ten_minutes, "10_minutes"},
           {SyntheticKind::hourly, "hourly"},
           {SyntheticKind::daily, "daily"},
           {SyntheticKind::business_daily, "business_daily"},
           {SyntheticKind::weekly, "weekly"},
           {SyntheticKind::monthly, "monthly"}}};
}

/// Every series belongs to one of these families, drawn by weight, with sizes, shapes and levels of its own:
///   load (60 %): positive; a day's (or the shortest season's) shape times a longer season's, slow weather, short
///   noise. signed (20 %): a sum of seasons and of autoregressive noise about a level of either sign, as temperatures
///   or net flows. walk (5 %): a random walk with varying volatility; half of them revert, half are walks of the
///   values' logarithms. counts (8 %): whole numbers, many of them 0, from a rate with seasons; bursts. shifting (7 %):
///   levels that jump and trends that break, with a season and noise.
/// Noise is Student-t with 4 to 12 degrees of freedom. Levels span six decades, except for counts. Series do not depend
/// on each other: with more series the first ones are the same. Equal options give equal values on one machine (the
/// mathematical library may differ elsewhere in the last digit). Throws UsageError for sizes below 1 or beyond 1e9
/// values.
[[nodiscard]] Dataset generate_synthetic(SyntheticKind kind, const GenerateOptions& options);

}  // namespace tsdp::data
