#include "tsdp/training/plan.h"

#include <algorithm>

#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::training {

Plan make_plan(const mechanism::TrainingMethod& method, const PrivacyBudget& budget, std::int64_t max_epochs) {
  Plan plan;
  plan.steps_per_epoch = static_cast<std::uint64_t>(method.scheme().steps_per_epoch());
  const auto limit = static_cast<std::uint64_t>(max_epochs) * plan.steps_per_epoch;
  if (!method.privacy()) {
    plan.steps = limit;
    return plan;
  }
  const auto& theorem = method.privacy()->theorem();
  if (budget.epsilon == 0.0) {
    // Nothing of the data reaches the model: delta is 0, too.
    plan.limited_by_epsilon = true;
    plan.attack = privacy::stated_attack(*method.privacy()->curve(), 0, 0.0, 0.0);
    return plan;
  }
  const auto uses_at_limit = mechanism::uses_of_epochs(theorem, max_epochs);
  const auto uses = method.privacy()->most_uses(budget.epsilon, budget.delta, uses_at_limit);
  if (uses == 0)
    throw PrivacyError(cat("privacy.target_epsilon: found ", budget.epsilon, " at delta ", budget.delta, "; one ",
                           name(theorem.unit), " alone costs epsilon ",
                           rounded_up(method.privacy()->curve()->epsilon(budget.delta, 1).upper, 6),
                           "; raise privacy.noise_multiplier or the target, or choose fewer windows a step"));
  plan.limited_by_epsilon = uses < uses_at_limit;
  plan.steps = std::min(limit, theorem.steps_of_uses(uses));
  // The same certified quantity decides and is stated: an epsilon whose upper end rounds past the target would be odd,
  // and min() of two valid upper bounds is valid (delta at the target was certified). A plan may end inside a round,
  // which counts from above and not from below.
  const auto cost = method.privacy()->cost_after(plan.steps, budget.delta);
  plan.epsilon = cost.epsilon;
  plan.epsilon.upper = std::min(plan.epsilon.upper, budget.epsilon);
  plan.attack = cost.attack;
  return plan;
}

Plan ended_after(std::uint64_t steps, Plan plan, const mechanism::TrainingMethod& method, double delta) {
  if (steps >= plan.steps) return plan;
  plan.steps = steps;
  if (!method.privacy()) return plan;
  const auto whole = plan.epsilon.upper;
  const auto cost = method.privacy()->cost_after(steps, delta);
  plan.epsilon = cost.epsilon;
  plan.epsilon.upper = std::min(plan.epsilon.upper, whole);  // fewer steps cost no more
  plan.attack = cost.attack;
  return plan;
}

std::optional<UnusedBudget> unused_budget(const Config& config, const mechanism::TrainingMethod& method,
                                          const Plan& plan) {
  constexpr double worth_telling = 0.01;  // of the target
  const auto& p = config.privacy;
  if (!method.privacy() || plan.limited_by_epsilon || plan.epsilon.upper >= (1.0 - worth_telling) * p.target_epsilon)
    return std::nullopt;
  UnusedBudget out;
  out.epsilon = p.target_epsilon - plan.epsilon.upper;
  const auto& mechanism = *method.privacy();
  const auto& theorem = mechanism.theorem();
  // This takes minutes for some ways of making batches of whole series, and if steps are composed adaptively.
  if (p.relation == privacy::Relation::series || theorem.composition != privacy::StepComposition::symmetrised)
    return out;
  try {
    const auto uses = mechanism.curve()->max_uses(p.target_epsilon, p.delta);
    const auto epochs = static_cast<std::int64_t>(theorem.steps_of_uses(uses) / plan.steps_per_epoch);
    if (epochs > config.training.max_epochs.value()) out.max_epochs = epochs;
    auto calibrated = config;
    calibrated.privacy.noise_multiplier.reset();
    calibrated.privacy.composition = theorem.composition;
    out.noise_multiplier =
        mechanism::method_of(calibrated, method.scheme().parameters().lengths).privacy()->noise().multiplier;
  } catch (const PrivacyError&) {
    // Beyond what is accounted for: the run is still as planned.
  }
  return out;
}

}  // namespace tsdp::training
