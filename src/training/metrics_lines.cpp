#include "tsdp/training/metrics_lines.h"

#include <fstream>
#include <string>
#include <utility>

namespace tsdp::training {

std::vector<nlohmann::ordered_json> read_metrics(const std::filesystem::path& file) {
  std::vector<nlohmann::ordered_json> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    auto entry = nlohmann::ordered_json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("step") && entry["step"].is_number()) out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace tsdp::training
