// Brings every run of a sweep to its end: as child processes, several at a time, from wherever the disk says they are.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sweep/plan.h"
#include "tsdp/base/error.h"

namespace tsdp::sweep {

/// Runs that failed, each with one line saying why, by place in `SweepPlan::runs`.
using Failures = std::map<std::size_t, std::string>;

/// A stop was asked for; the programs have ended, and the sweep can be resumed later.
class Interrupted : public Error {
 public:
  explicit Interrupted(const std::string& line) : Error(ExitCode::interrupted, line) {}
};

struct SweepOptions {
  int jobs = 0;                                       ///< most runs at a time; 0: as many as cores and memory allow
  int threads = 0;                                    ///< of each run; 0: one, or all cores for a single run
  std::filesystem::path programs;                     ///< folder of tsdp-train and tsdp-evaluate
  std::int64_t memory = 0;                            ///< bytes that all runs together may take; 0: what is free
  const std::atomic<bool>* stop = nullptr;            ///< set by a signal: programs are told to end, and waited for
  bool progress = true;                               ///< a status line on stderr
  std::function<void(const Failures&)> on_done = {};  ///< called at the beginning and after every run that ended
};

/// Takes every run to its scores. A run that fails is left, and the others go on. State is kept only on disk, so a
/// killed sweep goes on where it was; steps of training are replayed as tsdp-train does it.
///
/// Throws Interrupted if a stop was asked for; Error if another sweep works in the folder; UsageError if the folder
/// holds a sweep of the other kind (smoke or not); DataError if a run's data are missing.
[[nodiscard]] Failures run_sweep(const SweepPlan& plan, const SweepOptions& options);

/// The line on a terminal, in at most `columns` columns: `head`, which stays in place, and the names of the runs at
/// work, shortened if they do not fit.
[[nodiscard]] std::string status_text(const std::string& head, const std::vector<std::string>& names,
                                      std::size_t columns);

/// Threads that each run gets under these options.
[[nodiscard]] int threads_of(const SweepPlan& plan, const SweepOptions& options);

}  // namespace tsdp::sweep
