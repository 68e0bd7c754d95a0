// tsdp-account compare: every way of making batches of whole series, side by side.
#pragma once

#include <nlohmann/json.hpp>

#include "account_options.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::cli {

/// A bracket; its lower end is null where nothing certifies one.
[[nodiscard]] nlohmann::ordered_json bracket_json(const privacy::Interval& bracket, const privacy::Certificate& why);

/// Prints epsilon at --delta of each sampler for T batches an epoch, k epochs and one noise multiplier: a table, or JSON; with --plot
/// the profiles as well.
void run_compare(const MechanismOptions& mechanism, const QueryOptions& query, bool json);

}  // namespace tsdp::cli
