// What a run of tsdp-train will do, in JSON and in words: its plan, and advice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/forecaster.h"
#include "tsdp/base/json.h"
#include "tsdp/settings/auto_settings.h"
#include "tsdp/training/trainer.h"

namespace tsdp::cli {

using Json = nlohmann::ordered_json;

/// Whether private training is expected to pay ("pays": true, false, or null where no rule says it), "why", and with
/// `alternatives` what would change it ("instead"). From public facts alone.
[[nodiscard]] Json expectation_json(const mechanism::Settled& run,
                                    const std::optional<std::vector<mechanism::Alternative>>& alternatives = {});

/// The plan of a run: its steps, what they cost and what they leave of the target.
[[nodiscard]] Json plan_json(const Config& config, const training::Trainer& trainer, models::Forecaster& model,
                             const Json& expectation, mechanism::StartOrigin origin);

/// What max_epochs leaves of the target, and what would use it; empty if hardly anything is left. Rounded down and up,
/// so that either number keeps the target.
[[nodiscard]] std::string unused_text(const Json& plan, const char* would_use);

/// plan_json() in words.
[[nodiscard]] std::string plan_text(const Json& p);

/// What `auto` became, setting by setting, and what it amounts to.
void print_advice(const mechanism::Settled& settled, const training::Plan& plan, double step_seconds,
                  const std::vector<mechanism::Alternative>& alternatives, bool json);

}  // namespace tsdp::cli
