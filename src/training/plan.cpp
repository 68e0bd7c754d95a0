#include "tsdp/training/plan.h"

#include <algorithm>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"
#include "tsdp/privacy/accountant.h"
#include "tsdp/sampling/setup.h"

namespace tsdp::training {

Plan make_plan(const Config& config, const sampling::SubsamplingScheme& scheme) {
  Plan plan;
  plan.steps_per_epoch = static_cast<std::uint64_t>(scheme.steps_per_epoch());
  const auto limit = static_cast<std::uint64_t>(config.training.max_epochs) * plan.steps_per_epoch;
  if (!config.privacy.enabled) {
    plan.steps = limit;
    return plan;
  }
  const auto unit = sampling::unit_of(config);
  const double target = config.privacy.target_epsilon;
  const double delta = config.privacy.delta;
  const auto uses_at_limit = sampling::mechanism_of(scheme, unit, 1.0).uses_of_steps(limit);
  if (uses_at_limit > privacy::Accountant::max_uses_ever)
    throw UsageError(cat("training.max_epochs: found ", config.training.max_epochs, ", that is ", limit,
                         " steps; at most ", privacy::Accountant::max_uses_ever, " are accounted for"));
  plan.noise_multiplier = config.privacy.noise_multiplier ? *config.privacy.noise_multiplier
                                                          : privacy::calibrate_noise([&](double sigma) {
    privacy::Accountant trial(sampling::mechanism_of(scheme, unit, sigma).pair);
    return trial.certifies(target, delta, uses_at_limit);
  });
  plan.mechanism = sampling::mechanism_of(scheme, unit, plan.noise_multiplier);
  privacy::Accountant accountant(plan.mechanism->pair);
  const auto uses = accountant.max_uses(target, delta, uses_at_limit);
  if (uses == 0)
    throw PrivacyError(cat("privacy.target_epsilon: found ", target, " at delta ", delta, "; one ",
                           sampling::name(plan.mechanism->unit), " alone costs epsilon ",
                           rounded_up(accountant.epsilon(delta, 1).upper, 6),
                           "; raise privacy.noise_multiplier or the target, or choose fewer windows a step"));
  plan.limited_by_epsilon = uses < uses_at_limit;
  plan.steps = std::min(limit, plan.mechanism->steps_of_uses(uses));
  // The same certified quantity decides and is stated: an epsilon whose upper end rounds past the target would be odd,
  // and min() of two valid upper bounds is valid (delta at the target was certified).
  plan.epsilon = accountant.epsilon(delta, uses);
  plan.epsilon.upper = std::min(plan.epsilon.upper, target);
  plan.attack = privacy::attack_bound(accountant, uses);
  return plan;
}

}  // namespace tsdp::training
