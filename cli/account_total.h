// tsdp-account total: what several runs on the same data cost together.
#pragma once

#include <filesystem>
#include <vector>

namespace tsdp::cli {

/// Composes the mechanisms of the runs' ledgers and prints epsilon at `delta`. Throws as mechanism::total_of does,
/// PrivacyError for a ledger that does not agree with its own terms, and DataError for files that cannot be read.
void run_total(const std::vector<std::filesystem::path>& runs, double delta, double precision, bool json);

}  // namespace tsdp::cli
