// Seeded look-alike series for benchmarks and smoke tests. Not real data: no claim about forecasts follows from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// How large, and from which seed.
struct GenerateOptions {
  std::int64_t series = 862;
  std::int64_t length = 17544;
  std::uint64_t seed = 1;
};

/// Hourly road-occupancy-like series in [0, 1]: daily and weekly seasons with two rush hours, weekday and weekend
/// profiles, a level and noise of its own per series, outages (runs of zeros). Equal options give equal values.
/// Throws UsageError for sizes below 1 or beyond 4e9 values.
[[nodiscard]] Dataset generate_traffic_like(const GenerateOptions& options);

/// Writes `dataset` as LSTNet text (gzip if the name ends in .gz); all series must have one length.
void write_lstnet(const Dataset& dataset, const std::filesystem::path& path);

}  // namespace tsdp::data
