#include "tsdp/mechanism/training_method.h"

#include <cmath>
#include <utility>

#include "mechanism/private_choice.h"
#include "privacy/adaptive/adaptive_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::mechanism {

PrivateMechanism::PrivateMechanism(privacy::PrivacyUnit unit, privacy::SubsamplingScheme law, privacy::Clipping clipping,
                                   privacy::Noise noise, std::optional<std::string> theorem, double choice_epsilon,
                                   privacy::StepComposition composition)
    : unit_(unit),
      law_(std::move(law)),
      clipping_(clipping),
      noise_(std::move(noise)),
      theorem_(privacy::apply_theorem(law_, unit_, noise_, std::move(theorem))) {
  if (!(clipping_.norm > 0.0) || !std::isfinite(clipping_.norm))
    throw UsageError(cat("clip norm: found ", clipping_.norm, "; a positive finite number is expected"));
  if (theorem_.bound == privacy::Bound::optimistic_lower)
    throw PrivacyError(cat("theorem: found ", theorem_.theorem, ", a lower bound; expected one that bounds the loss from above"));
  if (composition == privacy::StepComposition::adaptive) theorem_ = privacy::composed_adaptively(std::move(theorem_), privacy::AdaptiveCurve::longest_block);
  if (choice_epsilon != 0.0) theorem_ = followed_by_choice(std::move(theorem_), unit_.relation, choice_epsilon);
  // These enumerations have their names and their code; a value beyond them is an error here and not another mechanism.
  static_cast<void>(name(clipping_.kind));
  static_cast<void>(name(noise_.kind));
  static_cast<void>(name(composition));
}

}  // namespace tsdp::mechanism
