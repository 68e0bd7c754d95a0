// Logging facade. No logging library appears here, so that LibTorch and spdlog never meet in one file.
#pragma once

#include <string>

namespace tsdp::log {

enum class Level {
  quiet,
  normal,
  verbose
};

/// Sets what reaches stderr: `quiet` only errors and warnings, `normal` also information, `verbose` also details.
void set_level(Level level);

// Lines are shown as `visible` (text.h) renders them, whatever names they quote.
void detail(const std::string& line);
void info(const std::string& line);
void warning(const std::string& line);
void error(const std::string& line);

}  // namespace tsdp::log
