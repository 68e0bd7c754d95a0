#include "tsdp/mechanism/training_method.h"

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "privacy/adaptive/adaptive_curve.h"
#include "privacy/theorems/series_law.h"
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
  if (choice_epsilon != 0.0 && unit.variables > 1)
    throw PrivacyError(cat("private choice: found epsilon ", choice_epsilon, " with series of ", unit.variables,
                           " variables; it is proven for one"));
  if (choice_epsilon != 0.0) out = followed_by_choice(std::move(out), unit.relation, choice_epsilon);
  return out;
}

struct PrivateMechanism::Answers {
  std::mutex mutex;
  std::map<std::tuple<std::uint64_t, double>, StepsCost> costs;
  std::map<std::tuple<double, double, std::uint64_t>, std::uint64_t> uses;
  std::map<std::tuple<std::uint64_t, double>, privacy::Certificate> certificates;
  std::map<std::tuple<std::uint64_t, double, double, double>, privacy::Substitution> substitutions;

  /// What is kept under `key`; if nothing is, what `ask` gives, which is kept then.
  template <class Answer, class Key, class Ask>
  Answer kept(std::map<Key, Answer>& known, const Key& key, Ask ask) {
    const std::scoped_lock lock(mutex);
    const auto found = known.find(key);
    return found != known.end() ? found->second : known.emplace(key, ask()).first->second;
  }
};

PrivateMechanism::PrivateMechanism(privacy::PrivacyUnit unit, privacy::SubsamplingScheme scheme,
                                   privacy::Clipping clipping, privacy::Noise noise,
                                   const std::optional<std::string>& theorem, double choice_epsilon,
                                   privacy::StepComposition composition)
    : unit_(std::move(unit)),
      scheme_(std::move(scheme)),
      clipping_(clipping),
      noise_(std::move(noise)),
      theorem_(covering_theorem(unit_, scheme_, noise_, theorem, choice_epsilon, composition)),
      answers_(std::make_shared<Answers>()) {
  if (!(clipping_.norm > 0.0) || !std::isfinite(clipping_.norm))
    throw UsageError(cat("clip norm: found ", clipping_.norm, "; expected a positive finite number"));
  if (theorem_.bound == privacy::Bound::optimistic_lower)
    throw PrivacyError(
        cat("theorem: found ", theorem_.theorem, ", a lower bound; expected one that bounds the loss from above"));
  // These enumerations have their names and their code; a value beyond them is an error here and not another mechanism.
  static_cast<void>(name(clipping_.kind));
  static_cast<void>(name(noise_.kind));
}

StepsCost PrivateMechanism::cost_after(std::uint64_t steps, double delta) const {
  return answers_->kept(answers_->costs, {steps, delta}, [&] {
    const auto fresh = curve();
    const auto epsilon = privacy::epsilon_after(theorem_, *fresh, delta, steps);
    const auto uses = theorem_.uses_of_steps(steps);
    return StepsCost{epsilon, noise_.sampled ? privacy::stated(privacy::attack_bound(*fresh, uses))
                                             : privacy::stated_attack(*fresh, uses, epsilon.upper, delta)};
  });
}

std::uint64_t PrivateMechanism::most_uses(double epsilon, double delta, std::uint64_t limit) const {
  return answers_->kept(answers_->uses, {epsilon, delta, limit}, [&] {
    const auto fresh = curve();
    // Asked first: what a calibrated noise multiplier was certified for must not be lost to the coarser search.
    return fresh->certifies(epsilon, delta, limit) ? limit : fresh->max_uses(epsilon, delta, limit);
  });
}

privacy::Certificate PrivateMechanism::certificate(double delta, std::uint64_t uses) const {
  return answers_->kept(answers_->certificates, {uses, delta},
                        [&] { return privacy::asked_certificate(theorem_, delta, uses); });
}

privacy::Substitution PrivateMechanism::substitution(std::uint64_t uses, double epsilon, double delta,
                                                     std::optional<double> precision) const {
  const double by = precision.value_or(privacy::Substitution::stated_precision);
  return answers_->kept(answers_->substitutions, {uses, epsilon, delta, by}, [&] {
    return privacy::substitution_of(privacy::series_law_of(scheme_), noise_, uses, epsilon, delta, by);
  });
}

}  // namespace tsdp::mechanism
