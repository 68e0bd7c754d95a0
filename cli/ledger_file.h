// The ledger of whatever a user names: a run's folder, its privacy.json, or an exported model.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace tsdp::cli {

/// A ledger and the file that it was read from.
struct LedgerFile {
  std::filesystem::path file;
  nlohmann::ordered_json ledger;
  bool is_run = false;  ///< whether `what` is a run's folder
};
/// Throws UsageError that begins with `command` where nothing is there, DataError where no ledger is in it.
[[nodiscard]] LedgerFile ledger_of(const std::filesystem::path& what, const std::string& command);

}  // namespace tsdp::cli
