#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "tsdp/base/text.h"

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

void detail(const std::string& line) { logger().debug("{}", visible(line)); }
void info(const std::string& line) { logger().info("{}", visible(line)); }
void warning(const std::string& line) { logger().warn("warning: {}", visible(line)); }
void error(const std::string& line) { logger().error("error: {}", visible(line)); }

}  // namespace tsdp::log
