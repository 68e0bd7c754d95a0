// metrics.jsonl as it is read.
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

namespace tsdp::training {

/// What metrics.jsonl holds, line by line; lines that are no JSON object with a step (the end of one that a crash cut
/// off) are passed over. Empty if there is no such file.
[[nodiscard]] std::vector<nlohmann::ordered_json> read_metrics(const std::filesystem::path& file);

}  // namespace tsdp::training
