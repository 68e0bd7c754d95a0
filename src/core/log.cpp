#include "tsdp/core/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace tsdp::log {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = std::make_shared<spdlog::logger>("tsdp", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%H:%M:%S %v");
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) {
  logger().set_level(level == Level::quiet    ? spdlog::level::warn
                     : level == Level::normal ? spdlog::level::info
                                              : spdlog::level::debug);
}

void detail(const std::string& line) { logger().debug("{}", line); }
void info(const std::string& line) { logger().info("{}", line); }
void warning(const std::string& line) { logger().warn("warning: {}", line); }
void error(const std::string& line) { logger().error("error: {}", line); }

}  // namespace tsdp::log
