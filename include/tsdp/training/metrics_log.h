// What a run logs while it goes on: metrics.jsonl, and the same for TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tsdp/core/event_file.h"
#include "tsdp/training/checkpoint.h"
#include "tsdp/training/metrics_lines.h"

namespace tsdp::training {

/// Appends to both logs of a run. Nothing of them is covered by epsilon: they lie under private/, for the owner alone.
class MetricsLog {
 public:
  /// Opens the logs of `folder` for what comes after `step`. What an earlier process logged of later steps is dropped:
  /// they will be taken again. Throws Error.
  MetricsLog(const RunFolder& folder, std::uint64_t step);

  /// One line of metrics.jsonl, {"step": …} and `values` after it, of which those that TensorBoard is to show
  /// (loss, training_loss, gradient_norm_median, clipped_share, validation_loss, epsilon_upper) go there, too.
  void add(std::uint64_t step, const nlohmann::ordered_json& values);
  /// Hands what was added to the system.
  void flush() { lines_.flush(); }

 private:
  std::ofstream lines_;
  EventFile events_;
};

}  // namespace tsdp::training
