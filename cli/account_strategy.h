// tsdp-account strategy: every mechanism of correlated noise, side by side.
#pragma once

#include <nlohmann/json.hpp>

#include "account_options.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::cli {

/// {"mechanism", "planned_steps", and its definition: "coefficients" of C, "inverse" of C⁻¹, or "decays" and
/// "weights"}.
[[nodiscard]] nlohmann::ordered_json strategy_json(const privacy::Strategy& strategy);

/// Prints, for N = --steps in k = --epochs: mean and largest squared error of prefix sums for sigma 1, the sensitivity
/// max_i |m_i|, and the objective, the mean error times the sensitivity squared; with --epsilon and --delta the least
/// noise multiplier and the total error, its square times the mean error. A table, or JSON; with --plot the error
/// over the steps.
void run_strategy(const MechanismOptions& mechanism, const QueryOptions& query, bool json);

}  // namespace tsdp::cli
