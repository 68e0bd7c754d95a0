// The single value from which everything that a run does to its data is derived: sampler, clipping, noise, divisor,
// accountant, ledger.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/privacy/terms/terms.h"
#include "tsdp/privacy/theorems/attack.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {
struct Substitution;
}

namespace tsdp::mechanism {

/// The least ε₂ of a private choice.
inline constexpr double least_choice_epsilon = 1e-4;

/// The theorem that covers these terms, with its uses composed by `composition` and followed by a private choice of
/// `choice_epsilon` (0: none), with which runs of earlier versions ended (docs/proofs/private-choice.md). Everything
/// stated about a configured mechanism takes its theorem from here. Throws as privacy::apply_theorem,
/// composed_adaptively and followed_by_pure_release do; for a choice also PrivacyError with the relation series, and
/// UsageError below least_choice_epsilon.
[[nodiscard]] privacy::AppliedTheorem covering_theorem(
    const privacy::PrivacyUnit& unit, const privacy::SubsamplingScheme& scheme, const privacy::Noise& noise,
    const std::optional<std::string>& theorem = std::nullopt, double choice_epsilon = 0.0,
    privacy::StepComposition composition = privacy::StepComposition::symmetrised);

/// What steps of a mechanism cost, as it is stated.
struct StepsCost {
  privacy::Interval epsilon;
  privacy::AttackBound attack;
};

/// A private training step, repeated: records are drawn by `scheme`, each one's gradient is bounded by `clipping`,
/// `noise` is added to their sum, and the sum is divided by `divisor`. Immutable; one that no theorem covers cannot be
/// made.
class PrivateMechanism {
 public:
  /// `theorem` names a row of the table; without it the row that apply_theorem chooses for the scheme is
  /// taken. Throws PrivacyError if no theorem covers the combination or the named one bounds nothing from above,
  /// UsageError for numbers out of range. After the last step, a choice of `choice_epsilon` kept the trained model or
  /// its start; 0: no choice, as in all runs of this version. `composition` says how the steps are composed; throws
  /// PrivacyError if that is not proven.
  PrivateMechanism(privacy::PrivacyUnit unit, privacy::SubsamplingScheme scheme, privacy::Clipping clipping,
                   privacy::Noise noise, const std::optional<std::string>& theorem = std::nullopt,
                   double choice_epsilon = 0.0,
                   privacy::StepComposition composition = privacy::StepComposition::symmetrised);

  [[nodiscard]] const privacy::PrivacyUnit& unit() const noexcept { return unit_; }
  [[nodiscard]] const privacy::SubsamplingScheme& scheme() const noexcept { return scheme_; }
  [[nodiscard]] const privacy::Clipping& clipping() const noexcept { return clipping_; }
  [[nodiscard]] const privacy::Noise& noise() const noexcept { return noise_; }
  /// What every sum is divided by, however many records were drawn.
  [[nodiscard]] double divisor() const noexcept { return scheme_.divisor(); }
  /// σ C: standard deviation of the noise of a single step, in every coordinate of the sum.
  [[nodiscard]] double noise_deviation() const noexcept { return noise_.multiplier * clipping_.norm; }

  /// ε₂ of the choice between the trained model and its start; 0: there is none.
  [[nodiscard]] double choice_epsilon() const noexcept { return theorem_.pure_release; }

  [[nodiscard]] privacy::StepComposition composition() const noexcept { return theorem_.composition; }

  [[nodiscard]] const privacy::AppliedTheorem& theorem() const noexcept { return theorem_; }
  /// The cost of uses of the mechanism; a use is a step or an epoch (theorem().unit).
  [[nodiscard]] std::unique_ptr<privacy::PrivacyCurve> curve() const { return theorem_.curve(); }

  // What a curve that was asked nothing before answers. An answer may take seconds and a run asks the same again at
  // every write of its ledger, so copies of a mechanism keep their answers together.

  /// ε(delta) after `steps` steps, and what an attack can reach.
  [[nodiscard]] StepsCost cost_after(std::uint64_t steps, double delta) const;
  /// The most uses, at most `limit`, that stay within (epsilon, delta); 0 if not even one is certified.
  [[nodiscard]] std::uint64_t most_uses(double epsilon, double delta, std::uint64_t limit) const;
  /// What gives ε(delta) after `uses` uses.
  [[nodiscard]] privacy::Certificate certificate(double delta, std::uint64_t uses) const;
  /// The guarantee for a series replaced by another, where that for one added or removed is (epsilon, delta); of whole
  /// series alone. `precision` is finer than that of ledgers, if there is one (privacy::substitution_of).
  [[nodiscard]] privacy::Substitution substitution(std::uint64_t uses, double epsilon, double delta,
                                                   std::optional<double> precision = std::nullopt) const;

 private:
  struct Answers;

  privacy::PrivacyUnit unit_;
  privacy::SubsamplingScheme scheme_;
  privacy::Clipping clipping_;
  privacy::Noise noise_;
  privacy::AppliedTheorem theorem_;
  std::shared_ptr<Answers> answers_;
};

/// What a run does with its data: a private mechanism, or ordinary training on the batches of a scheme.
class TrainingMethod {
 public:
  TrainingMethod(PrivateMechanism mechanism)  // NOLINT: every private mechanism is one
      : scheme_(mechanism.scheme()), private_(std::move(mechanism)) {}
  /// Without privacy.
  explicit TrainingMethod(privacy::SubsamplingScheme scheme) : scheme_(std::move(scheme)) {}

  [[nodiscard]] const privacy::SubsamplingScheme& scheme() const noexcept { return scheme_; }
  /// Where a run may continue under a new key: nowhere with correlated noise, as a new key would be another mechanism.
  [[nodiscard]] privacy::NewKey new_key() const noexcept {
    return private_ && private_->noise().kind == privacy::NoiseKind::correlated ? privacy::NewKey::never
                                                                                : scheme_.new_key();
  }
  /// None: not private.
  [[nodiscard]] const std::optional<PrivateMechanism>& privacy() const noexcept { return private_; }
  /// ε₂ of the choice between the trained model and its start; 0: there is none.
  [[nodiscard]] double choice_epsilon() const noexcept { return private_ ? private_->choice_epsilon() : 0.0; }
  /// What the sum of a step is divided by: the sum of clipped records or, without privacy, of all windows, which gives
  /// the same mean.
  [[nodiscard]] double divisor() const noexcept {
    return private_ ? private_->divisor() : scheme_.divisor() / scheme_.record_scale();
  }

 private:
  privacy::SubsamplingScheme scheme_;
  std::optional<PrivateMechanism> private_;
};

}  // namespace tsdp::mechanism
