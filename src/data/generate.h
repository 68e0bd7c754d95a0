// Seeded look-alike series for benchmarks and smoke tests. Not real data: no claim about forecasts follows from it.
#pragma once

#include <cstdint>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// How large, and from which seed.
struct GenerateOptions {
  std::int64_t series = 862;
  std::int64_t length = 17544;
  std::uint64_t seed = 1;
};
/// Throws UsageError for sizes below 1 or beyond `most_values` values in all.
void check_sizes(const GenerateOptions& options, std::int64_t most_values);

/// Hourly road-occupancy-like series in [0, 1]: daily and weekly seasons with two rush hours, weekday and weekend
/// profiles, a level and noise of its own per series, outages (runs of zeros). Equal options give equal values.
/// Throws UsageError for sizes below 1 or beyond 4e9 values.
[[nodiscard]] Dataset generate_traffic_like(const GenerateOptions& options);

}  // namespace tsdp::data
