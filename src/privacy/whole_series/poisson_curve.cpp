#include "privacy/whole_series/poisson_curve.h"

#include <algorithm>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

DominatingPair poisson_step(double rate, double noise_multiplier) {
  if (!(rate > 0.0) || !(rate <= 1.0))
    throw PrivacyError(cat("sampling rate: found ", rate, "; expected a number above 0 and at most 1"));
  if (rate == 1.0) return DominatingPair({{1.0, 1.0}}, noise_multiplier);
  return DominatingPair({{0.0, 1.0 - rate}, {1.0, rate}}, noise_multiplier);
}

PoissonCurve::PoissonCurve(double rate, double noise_multiplier)
    : remove_(poisson_step(rate, noise_multiplier), Direction::remove),
      add_(poisson_step(rate, noise_multiplier), Direction::add) {}

Interval PoissonCurve::find_delta(double epsilon, std::uint64_t uses, double precision, Certificate&) {
  const Interval removed = remove_.delta(epsilon, uses, precision);
  // Addition costs less where ε matters; a coarse bound shows it.
  if (removed.lower >= 1e-25 && add_.certifies(epsilon, removed.lower, uses, 0.1)) return removed;
  const auto added = add_.delta(epsilon, uses, precision);
  return {std::max(removed.lower, added.lower), std::max(removed.upper, added.upper)};
}

double PoissonCurve::upper_delta(double epsilon, std::uint64_t uses, double precision) {
  return std::max(remove_.upper_delta(epsilon, uses, precision), add_.upper_delta(epsilon, uses, precision));
}

Interval PoissonCurve::find_epsilon(double delta, std::uint64_t uses, double precision, Certificate&) {
  const Interval removed = remove_.epsilon(delta, uses, precision);
  if (add_.certifies(removed.lower, delta, uses, precision)) return removed;
  const auto added = add_.epsilon(delta, uses, precision);
  return {std::max(removed.lower, added.lower), std::max(removed.upper, added.upper)};
}

bool PoissonCurve::certifies(double epsilon, double delta, std::uint64_t uses, double precision) {
  return remove_.certifies(epsilon, delta, uses, precision) && add_.certifies(epsilon, delta, uses, precision);
}

std::uint64_t PoissonCurve::search_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  const auto removed = remove_.max_uses(epsilon, delta, limit, precision);
  if (removed == 0 || add_.certifies(epsilon, delta, removed)) return removed;
  return std::min(removed, add_.max_uses(epsilon, delta, removed, precision));
}

Certificate PoissonCurve::methods() const {
  const char* why = "composition of the exact pair of a Poisson step, both directions (Chua et al. 2024, section 2.2)";
  return {why, why, {}};
}

}  // namespace tsdp::privacy
