// The privacy ledger of a run: what was done, what it costs, and what it does not cover.
#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include "tsdp/core/config.h"
#include "tsdp/sampling/setup.h"
#include "tsdp/training/plan.h"

namespace tsdp::training {

enum class RunState { running, interrupted, finished };

/// What `privacy.json` holds, and `model.pt` carries. Contains no data, key or seed.
///
/// While a run is going on it states the cost of the whole plan, so that it never understates whatever a crash leaves;
/// afterwards the cost of the steps charged. `steps_taken` ≤ `steps_charged` ≤ plan.steps.
[[nodiscard]] nlohmann::ordered_json ledger(const Config& config, const sampling::SubsamplingScheme& scheme,
                                            const Plan& plan, RunState state, std::uint64_t steps_taken,
                                            std::uint64_t steps_charged);

/// One sentence for people: the guarantee or the lack of one.
[[nodiscard]] std::string statement(const nlohmann::ordered_json& ledger);

}  // namespace tsdp::training
