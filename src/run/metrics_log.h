// What a run logs while it is going: metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>

#include "run/metrics_lines.h"
#include "tsdp/run/run_folder.h"

namespace tsdp::training {

/// What is logged for a step. Missing values are not logged.
struct Metrics {
  std::uint64_t step = 0;
  double epoch = 0.0;
  std::optional<double> loss, gradient_norm_median, clipped_share;  ///< of the step's batch; the latter two if private
  std::optional<double> epsilon_upper;  ///< not below that of the steps so far
  std::optional<double> training_loss;  ///< mean since the last look at it
  std::optional<double> validation_loss;
};

/// Appends to the log of a run. None of it is covered by epsilon: it lies under private/, for the owner only.
class MetricsLog {
 public:
  /// Opens the log of `folder` for what comes after `step`. Later steps that an earlier process logged are dropped:
  /// they will be taken again. Throws Error.
  MetricsLog(const RunFolder& folder, std::uint64_t step);

  /// One line of metrics.jsonl.
  void add(const Metrics& metrics);
  /// Hands what was added to the system.
  void flush() { lines_.flush(); }

 private:
  std::ofstream lines_;
};

}  // namespace tsdp::training
