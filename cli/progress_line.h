// Training progress: one line that rewrites itself on a terminal, and now and then a line in a log.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/terminal_line.h"
#include "tsdp/training/trainer.h"

namespace tsdp::cli {

/// Step, share done, epoch, loss, rate, time left, and epsilon spent of `target` (rounded up; left out if not private),
/// in at most `columns` characters. The least important parts are left out first; if nothing else fits, the share
/// remains.
[[nodiscard]] std::string progress_text(const training::Progress& progress, double target, std::size_t columns);

class ProgressLine {
 public:
  explicit ProgressLine(double target);
  /// Rewrites the line on a terminal, no wider than the terminal is now. Elsewhere logs a line without any control
  /// character every 15 s.
  void show(const training::Progress& progress);
  /// Clears the line, so that what is printed next begins where it stood.
  void end() { line_.clear(); }

 private:
  TerminalLine line_;
  double target_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace tsdp::cli
