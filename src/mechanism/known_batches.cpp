#include "mechanism/known_batches.h"

#include "privacy/whole_series/gaussian_curve.h"
#include "tsdp/base/error.h"

namespace tsdp::mechanism {
namespace {

/// The most steps among the first `steps` in which one series takes part.
std::uint64_t most_uses_of_a_series(const privacy::SubsamplingScheme& scheme, std::uint64_t steps) {
  const auto rounds = [&](std::int64_t length) {
    const auto each = static_cast<std::uint64_t>(length);
    return steps / each + (steps % each == 0 ? 0 : 1);
  };
  switch (scheme.parameters().top_level) {
    case privacy::TopLevel::deterministic:
    case privacy::TopLevel::shuffled:
    case privacy::TopLevel::balls_in_bins: return rounds(scheme.steps_per_epoch());
    case privacy::TopLevel::cyclic_poisson: return rounds(scheme.parameters().groups);
    case privacy::TopLevel::without_replacement:
    case privacy::TopLevel::poisson: return steps;
  }
  throw Error(ExitCode::failure, "a top level that no sampler draws");
}

/// The most by which neighbours' sums of one step differ, in units of C; none if only chance limits it.
std::optional<double> most_moved(const PrivateMechanism& mechanism) {
  const auto& p = mechanism.scheme().parameters();
  // A whole series is there or not; values of a series that stays are others.
  const double of_a_record = mechanism.unit().relation == privacy::Relation::series ? 1.0 : 2.0;
  // Where batches are cut, a series that is there may push out another one.
  if (p.record == privacy::Record::series) return p.largest_batch ? 2.0 * of_a_record : of_a_record;
  if (p.bottom_level != privacy::BottomLevel::with_replacement) return std::nullopt;
  return of_a_record * static_cast<double>(p.subsequences_per_sequence);
}

}  // namespace

std::optional<double> epsilon_of_known_batches(const PrivateMechanism& mechanism, std::uint64_t steps, double delta) {
  const auto moved = most_moved(mechanism);
  if (!moved || mechanism.noise().kind != privacy::NoiseKind::independent) return std::nullopt;
  if (steps == 0) return 0.0;
  privacy::GaussianCurve curve(mechanism.noise().multiplier, *moved);
  return curve.epsilon(delta, most_uses_of_a_series(mechanism.scheme(), steps)).upper;
}

}  // namespace tsdp::mechanism
