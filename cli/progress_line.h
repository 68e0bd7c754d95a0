// How far training is: one line that rewrites itself on a terminal, and now and then a line in a log.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/terminal_line.h"
#include "tsdp/training/trainer.h"

namespace tsdp::cli {

/// Step, share done, epoch, loss, rate, time left, and epsilon spent of `target` (rounded up; left out if not private),
/// in at most `columns` characters: what matters least is left out first, and where nothing else fits the share stands.
[[nodiscard]] std::string progress_text(const training::Progress& progress, double target, std::size_t columns);

class ProgressLine {
 public:
  explicit ProgressLine(double target);
  /// On a terminal the line is rewritten, no wider than the terminal is now; elsewhere a line is logged, without any
  /// control character, every 15 s.
  void show(const training::Progress& progress);
  /// Clears the line, so that what is printed next begins where it stood.
  void end() { line_.clear(); }

 private:
  TerminalLine line_;
  double target_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace tsdp::cli
