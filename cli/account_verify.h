// tsdp-account verify: a statement derived again from its own terms.
#pragma once

#include <filesystem>

namespace tsdp::cli {

/// Derives again the epsilon of a ledger: of a run's folder (whose config.yaml and model.pt, if present, must belong to
/// it), a privacy.json or an exported model. Prints what it found. Returns the exit code: 0 if all agrees, 4 if not.
/// Throws DataError if there is nothing that can be read.
int run_verify(const std::filesystem::path& what, bool json);

}  // namespace tsdp::cli
