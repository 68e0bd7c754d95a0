// How far a run goes: the most steps whose upper epsilon stays within the target.
#pragma once

#include <cstdint>
#include <optional>

#include "tsdp/mechanism/training_method.h"
#include "tsdp/privacy/terms/interval.h"
#include "tsdp/privacy/theorems/attack.h"
#include "tsdp/settings/config.h"

namespace tsdp::training {

/// What a run may cost.
struct PrivacyBudget {
  double epsilon;
  double delta;
};

/// How far training goes. Not private: to max_epochs.
struct Plan {
  std::uint64_t steps = 0;           ///< steps that will be taken
  std::uint64_t steps_per_epoch = 1;
  bool limited_by_epsilon = false;   ///< whether the budget, not max_epochs, ends the run
  privacy::Interval epsilon;         ///< after `steps` steps
  std::optional<privacy::AttackBound> attack;  ///< after `steps` steps; none: not private
};

/// The most steps (up to max_epochs epochs) whose upper epsilon stays within the budget, which is not looked at without privacy.
/// Throws PrivacyError (exit 4) if not even one use is within the budget.
[[nodiscard]] Plan make_plan(const mechanism::TrainingMethod& method, const PrivacyBudget& budget, std::int64_t max_epochs);

/// The plan ended after `steps` of its steps, if it has more: what it states is of these.
[[nodiscard]] Plan ended_after(std::uint64_t steps, Plan plan, const mechanism::TrainingMethod& method, double delta);

/// What a plan that max_epochs ends leaves of its target, and what would use it.
struct UnusedBudget {
  double epsilon = 0.0;                       ///< target less upper end
  std::optional<std::int64_t> max_epochs;     ///< the most epochs within the target with the plan's noise; none: not told without long work
  std::optional<double> noise_multiplier;     ///< the least noise within the target over the plan's epochs; none: likewise
};

/// None without privacy, where the budget ends the run, and where less than a hundredth of the target is left. From the configuration and the
/// lengths of the series alone, so it costs no privacy; it takes about as long as a plan. `config` is settled: noise and epochs are numbers.
[[nodiscard]] std::optional<UnusedBudget> unused_budget(const Config& config, const mechanism::TrainingMethod& method, const Plan& plan);

}  // namespace tsdp::training
