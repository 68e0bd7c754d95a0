// How far a run goes: the most steps whose upper epsilon stays within the target.
#pragma once

#include <cstdint>
#include <optional>

#include "tsdp/core/config.h"
#include "tsdp/privacy/attack.h"
#include "tsdp/privacy/interval.h"
#include "tsdp/sampling/mechanism.h"
#include "tsdp/sampling/scheme.h"

namespace tsdp::training {

/// How far training goes. Not private: to max_epochs.
struct Plan {
  std::uint64_t steps = 0;           ///< steps that will be taken
  std::uint64_t steps_per_epoch = 1;
  bool limited_by_epsilon = false;   ///< whether the budget, not max_epochs, ends the run
  double noise_multiplier = 0.0;
  std::optional<sampling::Mechanism> mechanism;  ///< none: not private
  privacy::Interval epsilon;         ///< after `steps` steps
  std::optional<privacy::AttackBound> attack;  ///< after `steps` steps; none: not private
};

/// The most steps (up to max_epochs) whose upper epsilon stays within the target. Throws PrivacyError (exit 4) if no
/// theorem covers the scheme or not even one use is within the budget.
[[nodiscard]] Plan make_plan(const Config& config, const sampling::SubsamplingScheme& scheme);

}  // namespace tsdp::training
