// The ledger of whatever a user names: a run's folder, its privacy.json, or an exported model of any format.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace tsdp::cli {

/// A ledger and the file it was read from.
struct LedgerFile {
  std::filesystem::path file;
  nlohmann::ordered_json ledger;
  bool is_run = false;  ///< whether `what` is a run's folder
  std::optional<bool> ties_weights = {};  ///< of a model: whether its format ties its weights to its ledger
};
/// Throws UsageError beginning with `command` if nothing is there, and DataError if it holds no ledger.
[[nodiscard]] LedgerFile ledger_of(const std::filesystem::path& what, const std::string& command);

}  // namespace tsdp::cli
