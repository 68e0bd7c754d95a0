#include "timing.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace tsdp::bench {
namespace {

using Clock = std::chrono::steady_clock;

double process_milliseconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double peak_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

/// A line of /proc/self/status, in megabytes.
double status_megabytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + ":")) return std::stod(line.substr(key.size() + 1)) / 1024.0;
  return 0.0;
}

}  // namespace

void time_together(std::vector<Timing>& candidates, double seconds) {
  for (auto& c : candidates)
    for (int i = 0; i < 3; ++i) c.work();
  const auto start = Clock::now();
  constexpr int warm_up = 2;
  constexpr double burst_seconds = 0.1;
  const auto since = [](Clock::time_point moment) {
    return std::chrono::duration<double>(Clock::now() - moment).count();
  };
  while (since(start) < seconds || candidates.front().milliseconds.size() < 5)
    for (auto& c : candidates) {
      const auto burst = Clock::now();
      for (int i = 0; i <= warm_up || since(burst) < burst_seconds; ++i) {
        const double cpu = process_milliseconds();
        const auto begin = Clock::now();
        c.work();
        if (i < warm_up) continue;
        c.milliseconds.push_back(1e3 * since(begin));
        c.cpu += process_milliseconds() - cpu;
      }
    }
}

void put_times(Json& row, Timing& t) {
  std::sort(t.milliseconds.begin(), t.milliseconds.end());
  row["median_ms"] = t.milliseconds[t.milliseconds.size() / 2];
  row["min_ms"] = t.milliseconds.front();
  row["cpu_ms"] = t.cpu / static_cast<double>(t.milliseconds.size());
  row["peak_mb"] = peak_megabytes();
}

double memory_of(const std::function<void()>& work) {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew
  const double before = status_megabytes("VmRSS");
  work();
  return status_megabytes("VmHWM") - before;
}

}  // namespace tsdp::bench
