// Answers about correlated noise that are estimates: of drawn losses, and of the published rule for later epochs.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "account_options.h"

namespace tsdp::cli {

/// Answers `command`, epsilon or delta, and says that the answer is no bound. Throws UsageError for other commands, and PrivacyError for what
/// is not balls in bins.
void run_estimate(const std::string& command, const CLI::App& app, const MechanismOptions& mechanism, const QueryOptions& query, bool json);

}  // namespace tsdp::cli
