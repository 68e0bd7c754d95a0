// Reads metrics.jsonl.
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

namespace tsdp::training {

/// What metrics.jsonl holds, line by line. Lines that are not a JSON object with a step (such as the end of one that a
/// crash cut off) are skipped. Empty if there is no such file.
[[nodiscard]] std::vector<nlohmann::ordered_json> read_metrics(const std::filesystem::path& file);

}  // namespace tsdp::training
