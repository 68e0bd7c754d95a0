// Estimates for correlated noise: from drawn losses, and from the published rule for later epochs.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "account_options.h"

namespace tsdp::cli {

/// Answers `command`, epsilon or delta, and says that the answer is no bound. Throws UsageError for other commands, and
/// PrivacyError for samplers other than balls in bins.
void run_estimate(const std::string& command, const CLI::App& app, const MechanismOptions& mechanism,
                  const QueryOptions& query, bool json);

}  // namespace tsdp::cli
