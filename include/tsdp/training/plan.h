// How far a run goes: the most steps whose upper epsilon stays within the target.
#pragma once

#include <cstdint>
#include <optional>

#include "tsdp/mechanism/training_method.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/theorems/attack.h"
#include "tsdp/settings/config.h"

namespace tsdp::training {

/// What a run may cost.
struct PrivacyBudget {
  double epsilon;
  double delta;
};

/// How far training goes; without privacy, to max_epochs.
struct Plan {
  std::uint64_t steps = 0;           ///< steps that will be taken
  std::uint64_t steps_per_epoch = 1;
  bool limited_by_epsilon = false;   ///< whether the budget, not max_epochs, ends the run
  privacy::Interval epsilon;         ///< after `steps` steps
  std::optional<privacy::AttackBound> attack;  ///< after `steps` steps; none without privacy
};

/// The most steps (up to max_epochs epochs) whose upper epsilon stays within the budget, which is ignored without
/// privacy. Throws PrivacyError (exit 4) if not even one use is within the budget.
[[nodiscard]] Plan make_plan(const mechanism::TrainingMethod& method, const PrivacyBudget& budget,
                             std::int64_t max_epochs);

/// The plan cut off after `steps` of its steps, if it has more; its statements then refer to these steps.
[[nodiscard]] Plan ended_after(std::uint64_t steps, Plan plan, const mechanism::TrainingMethod& method, double delta);

/// What a plan that max_epochs ends leaves unused of its target, and what would use it.
struct UnusedBudget {
  double epsilon = 0.0;                       ///< target minus upper end
  std::optional<std::int64_t> max_epochs;  ///< the most epochs within the target with the plan's noise; none if it
                                           ///< takes long to compute, or if there are no more
  std::optional<double> noise_multiplier;  ///< the least noise within the target over the plan's epochs; none if it
                                           ///< takes long to compute, or if there is none
};

/// None without privacy, if the budget ends the run, or if less than a hundredth of the target is left. Computed from
/// the configuration and the lengths of the series alone, so it costs no privacy; it takes about as long as a plan.
/// `config` must be settled: noise and epochs are numbers.
[[nodiscard]] std::optional<UnusedBudget> unused_budget(const Config& config, const mechanism::TrainingMethod& method,
                                                        const Plan& plan);

}  // namespace tsdp::training
