// tsdp-account compare: every way of making batches of whole series, side by side.
#pragma once

#include <nlohmann/json.hpp>

#include "account_options.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::cli {

/// A bracket. Its lower end is null if nothing certifies one.
[[nodiscard]] nlohmann::ordered_json bracket_json(const privacy::Interval& bracket, const privacy::Certificate& why);

/// Prints the epsilon of each sampler at --delta for T batches an epoch, k epochs and one noise multiplier, as a table
/// or JSON. With --plot, also plots the profiles.
void run_compare(const MechanismOptions& mechanism, const QueryOptions& query, bool json);

}  // namespace tsdp::cli
