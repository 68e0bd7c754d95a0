// Timing of candidates side by side in one run, and peak memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tsdp::bench {

using Json = nlohmann::ordered_json;

struct Timing {
  std::string name;
  std::function<void()> work;
  std::vector<double> milliseconds = {};
  double cpu = 0.0;
};

/// Runs all candidates in turn, again and again, so that a slow spell of the machine hits all of them. Each runs for a
/// burst of repetitions whose first two are not counted, so that it finds the caches as it left them.
void time_together(std::vector<Timing>& candidates, double seconds);

/// median_ms, min_ms, cpu_ms and peak_mb (of the process so far).
void put_times(Json& row, Timing& timing);

/// The most memory that the process held while `work` ran, beyond what it held before, in megabytes.
[[nodiscard]] double memory_of(const std::function<void()>& work);

}  // namespace tsdp::bench
