// What a theorem says of a mechanism that it was applied to.
#include <algorithm>
#include <cmath>
#include <utility>

#include "privacy/accountant/renyi.h"
#include "privacy/adaptive/adaptive_curve.h"
#include "privacy/terms/numbers.h"
#include "privacy/theorems/pure_release.h"
#include "privacy/whole_series/bounded_batches.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {

std::uint64_t AppliedTheorem::steps_per_use() const {
  switch (unit) {
    case CompositionUnit::step: return 1;
    case CompositionUnit::epoch: return static_cast<std::uint64_t>(steps_per_epoch);
    case CompositionUnit::round: return static_cast<std::uint64_t>(steps_per_round);
  }
  throw Error(ExitCode::failure, "a unit of composition without steps");
}

std::uint64_t AppliedTheorem::uses_of_steps(std::uint64_t steps) const {
  const auto each = steps_per_use();
  return steps / each + (steps % each != 0 ? 1 : 0);
}

std::uint64_t AppliedTheorem::complete_uses(std::uint64_t steps) const { return steps / steps_per_use(); }

namespace {
/// The answer after `steps` steps, where `ends` gives that of a number of uses.
template <class Ends>
Certified after(const AppliedTheorem& theorem, std::uint64_t steps, Ends ends) {
  const auto uses = theorem.uses_of_steps(steps);
  const auto complete = theorem.complete_uses(steps);
  if (complete == uses) return ends(uses);
  const auto of_complete = complete > 0 ? ends(complete) : Certified{};
  auto out = ends(uses);
  out.lower = of_complete.lower;
  out.why.lower = of_complete.why.lower;
  out.upper = std::max(out.lower, out.upper);
  return out;
}
}  // namespace

Certified epsilon_after(const AppliedTheorem& theorem, PrivacyCurve& curve, double delta, std::uint64_t steps,
                        double precision) {
  return after(theorem, steps, [&](std::uint64_t uses) { return curve.epsilon(delta, uses, precision); });
}

Certified delta_after(const AppliedTheorem& theorem, PrivacyCurve& curve, double epsilon, std::uint64_t steps,
                      double precision) {
  return after(theorem, steps, [&](std::uint64_t uses) { return curve.delta(epsilon, uses, precision); });
}

std::uint64_t AppliedTheorem::steps_of_uses(std::uint64_t uses) const { return uses * steps_per_use(); }

std::vector<double> AppliedTheorem::renyi(std::uint64_t uses, std::span<const double> orders) const {
  if (uses == 0) return std::vector<double>(orders.size());  // nothing, though a use may cost more than any number
  if (cut.chance) return std::vector<double>(orders.size(), infinity);
  auto out = renyi_divergences(pair, orders);
  for (auto& value : out) value = std::nextafter(value * static_cast<double>(uses), infinity);
  if (own_renyi) {
    const auto own = own_renyi(uses, orders);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::min(out[i], own[i]);
  }
  return out;
}

std::unique_ptr<PrivacyCurve> AppliedTheorem::curve() const {
  auto steps = [&]() -> std::unique_ptr<PrivacyCurve> {
    if (composition == StepComposition::adaptive) return std::make_unique<AdaptiveCurve>(pair, adaptive_block);
    if (own_curve) return own_curve();
    return std::make_unique<Accountant>(pair);
  }();
  if (cut.chance) steps = std::make_unique<BoundedBatchesCurve>(std::move(steps), cut.chance, cut.what);
  if (pure_release > 0.0) return std::make_unique<CurveWithPureRelease>(std::move(steps), pure_release);
  return steps;
}

std::string_view composition_cited(StepComposition composition) {
  return composition == StepComposition::adaptive ? ", its steps composed by tsdp.6" : "";
}

bool covers_adaptive_composition(const AppliedTheorem& theorem) {
  return theorem_row(theorem.theorem).couples_steps && AdaptiveCurve::serves(theorem.pair);
}

AppliedTheorem composed_adaptively(AppliedTheorem theorem, std::size_t block) {
  if (theorem_row(theorem.theorem).whole_series())
    throw PrivacyError(
        "composition: found adaptive with relation series, whose steps leak in one direction each; expected "
        "symmetrised");
  if (!covers_adaptive_composition(theorem))
    throw PrivacyError(cat("composition: found adaptive with Theorem ", theorem.theorem,
                           theorem.pair.components().size() == 1 ? ", every step of which touches a changed value" : "",
                           "; it is proven for one window a series, drawn with replacement, of which not every one is "
                           "touched (subsequences_per_sequence 1, bottom level wr); expected symmetrised otherwise"));
  theorem.composition = StepComposition::adaptive;
  theorem.adaptive_block = block;
  return theorem;
}

AppliedTheorem followed_by_pure_release(AppliedTheorem theorem, double epsilon) {
  if (theorem.bound == Bound::optimistic_lower)
    throw PrivacyError(cat("theorem: found ", theorem.theorem,
                           ", a lower bound, with a release after it; expected one that bounds the loss from above"));
  if (theorem.pure_release > 0.0)
    throw PrivacyError(
        cat("theorem ", theorem.theorem, ": found a second release after the last use; expected at most one"));
  theorem.pure_release = epsilon;
  theorem.bound = Bound::upper;
  return theorem;
}

}  // namespace tsdp::privacy
