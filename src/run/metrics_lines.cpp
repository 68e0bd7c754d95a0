#include "run/metrics_lines.h"

#include <sstream>
#include <string>
#include <utility>

#include "tsdp/base/file.h"

namespace tsdp::training {

std::vector<nlohmann::ordered_json> read_metrics(const std::filesystem::path& file) {
  std::vector<nlohmann::ordered_json> out;
  if (!is_there(file)) return out;
  std::istringstream in(read_file(file));
  for (std::string line; std::getline(in, line);) {
    auto entry = nlohmann::ordered_json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("step") && entry["step"].is_number()) out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace tsdp::training
