// Two data sets that the theorems of a scheme tell apart the least: worst-case neighbours, and what an attacker sees of
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "audit/attack.h"
#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::audit {

/// Where D and D′ differ.
struct Neighbours {
  std::int64_t series = 0;  ///< where series have owners and are records: the number of the owner
  std::vector<std::int64_t> places = {};  ///< its changed places, increasing, 0-based
  std::vector<std::int64_t> missing = {};  ///< records are series: those whose values are all missing on D, increasing
};

/// Changed places of one series that touch as many of its windows as possible: w consecutive places (event), or places
/// L_C + L_F apart (user), starting at place L_F − 1. The series is one with the largest touched share (with
/// replacement) or with the most drawn touched windows (Poisson); under deterministic iteration, among those used at
/// all. Throws as privacy::touched_windows.
///
/// Where records are series: one series, or all of an owner, is missing on D and there on D′; the one that most likely
/// has a window in a step of its own.
[[nodiscard]] Neighbours worst_neighbours(const privacy::SubsamplingScheme& scheme, const privacy::PrivacyUnit& unit);

/// The series' windows that hold a changed place, with the number of changed places in context and in forecast.
struct TouchedWindow {
  std::int64_t start = 0;  ///< of the forecast, as data::WindowIndex
  std::int64_t context = 0;
  std::int64_t forecast = 0;
};
[[nodiscard]] std::vector<TouchedWindow> touched_windows_of(const privacy::SubsamplingScheme& scheme,
                                                            const Neighbours& neighbours);

/// The canary's gradients, in multiples of the clip norm.
enum class CanaryKind {
  /// Every window has −1 along, except that touched windows on D′ have +1: the pairs of 4.2 and 4.4 themselves (and of
  /// 4.3 and F.7). With noise on the data, +1 if the noised values are likelier on D′, on either data set.
  substituted,
  /// Touched windows have −1 along on D and +1 on D′, other windows of the changed series 1 across, all others 0.
  /// Along, it is the pair of E.8; across shows whether the series was drawn, which F.2 grants the attacker.
  opposed,
  /// Windows of a series that is missing have 0, like those of all others; on D′, where it is there, they have +1
  /// along. That is the pair of Poisson batches of whole series itself, and that of fixed ones: what another series
  /// adds does not depend on it, and no vector that clipping allows is longer.
  present,
};
/// `present` where records are series; else `substituted` for windows with replacement, `opposed` for Poisson.
[[nodiscard]] CanaryKind canary_kind(const privacy::SubsamplingScheme& scheme);

/// The law of the canary's release, under one use of a step in which its series may be drawn. `unit_length` in (0, 1]
/// is what clipping leaves of a gradient far longer than C, in multiples of C. With `substituted`, `along` counts from
/// the sum of a batch without the change. With `present`, it may be any length that the statistic of a use has if its
/// series is drawn.
[[nodiscard]] Shape canary_shape(const privacy::SubsamplingScheme& scheme, const Neighbours& neighbours,
                                 double unit_length = 1.0);

/// The chance that a batch has touched windows: under deterministic iteration and in cyclic Poisson batches, one of
/// those in which the changed series has its turn.
[[nodiscard]] double touched_share_of_batches(const privacy::SubsamplingScheme& scheme, const Neighbours& neighbours);

}  // namespace tsdp::audit
