// tsdp-account verify: a statement derived again from its own terms.
#pragma once

#include <filesystem>

namespace tsdp::cli {

/// Derives the epsilon of a ledger again: of a run's folder (whose config.yaml and model.pt must belong to it, where they are
/// there), a privacy.json or an exported model. Prints what it found. Returns the exit code: 0 if all agrees, 4 if not. Throws
/// DataError if there is nothing that can be read.
int run_verify(const std::filesystem::path& what, bool json);

}  // namespace tsdp::cli
