#include "tsdp/mechanism/training_method.h"

#include <cmath>
#include <utility>

#include "privacy/adaptive/adaptive_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::mechanism {
namespace {

/// The steps of `theorem` followed by the choice between the trained model and its start.
privacy::AppliedTheorem followed_by_choice(privacy::AppliedTheorem theorem, privacy::Relation relation,
                                           double epsilon) {
  if (relation == privacy::Relation::series)
    throw PrivacyError(
        cat("private choice: found epsilon ", epsilon, " with relation series; it is proven for event and user"));
  if (!(epsilon >= least_choice_epsilon) || !std::isfinite(epsilon))
    throw UsageError(cat("private choice: found epsilon ", epsilon, "; expected at least ", least_choice_epsilon));
  return privacy::followed_by_pure_release(std::move(theorem), epsilon);
}

}  // namespace

privacy::AppliedTheorem covering_theorem(const privacy::PrivacyUnit& unit, const privacy::SubsamplingScheme& scheme,
                                         const privacy::Noise& noise, const std::optional<std::string>& theorem,
                                         double choice_epsilon, privacy::StepComposition composition) {
  static_cast<void>(name(composition));  // a value beyond the enumeration is an error here and not another composition
  auto out = privacy::apply_theorem(scheme, unit, noise, theorem);
  if (composition == privacy::StepComposition::adaptive)
    out = privacy::composed_adaptively(std::move(out), privacy::AdaptiveCurve::longest_block);
  if (choice_epsilon != 0.0) out = followed_by_choice(std::move(out), unit.relation, choice_epsilon);
  return out;
}

PrivateMechanism::PrivateMechanism(privacy::PrivacyUnit unit, privacy::SubsamplingScheme scheme,
                                   privacy::Clipping clipping, privacy::Noise noise,
                                   const std::optional<std::string>& theorem, double choice_epsilon,
                                   privacy::StepComposition composition)
    : unit_(std::move(unit)),
      scheme_(std::move(scheme)),
      clipping_(clipping),
      noise_(std::move(noise)),
      theorem_(covering_theorem(unit_, scheme_, noise_, theorem, choice_epsilon, composition)) {
  if (!(clipping_.norm > 0.0) || !std::isfinite(clipping_.norm))
    throw UsageError(cat("clip norm: found ", clipping_.norm, "; expected a positive finite number"));
  if (theorem_.bound == privacy::Bound::optimistic_lower)
    throw PrivacyError(
        cat("theorem: found ", theorem_.theorem, ", a lower bound; expected one that bounds the loss from above"));
  // These enumerations have their names and their code; a value beyond them is an error here and not another mechanism.
  static_cast<void>(name(clipping_.kind));
  static_cast<void>(name(noise_.kind));
}

}  // namespace tsdp::mechanism
