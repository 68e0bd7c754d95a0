#include "privacy/whole_series/bounded_batches.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "privacy/terms/numbers.h"
#include "privacy/whole_series/epoch_bounds.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// The least δ that curves answer for.
constexpr double least_delta = 1e-25;
/// Covers the few roundings of a sum of products.
constexpr double outwards = 1.0 + 1e-14;

/// (1 + e^ε) η, rounded up.
double cost_of_cuts(double epsilon, double chance) {
  return chance == 0.0 ? 0.0 : (1.0 + std::exp(epsilon)) * chance * outwards;
}

/// Whether cuts cost so little of δ that a smaller ε would gain nothing worth looking for.
bool costs_little(double delta, double epsilon, double chance) { return cost_of_cuts(epsilon, chance) <= 0.02 * delta; }

/// What is left of δ for the mechanism without cuts, rounded down; it may be negative.
double left_of(double delta, double epsilon, double chance) {
  const double cost = cost_of_cuts(epsilon, chance);
  return cost == 0.0 ? delta : down(delta - cost);
}

}  // namespace

double chance_of_excess(std::int64_t trials, double probability, std::int64_t largest) {
  if (trials < 1 || !(probability > 0.0) || !(probability <= 1.0) || largest < 0)
    throw Error(ExitCode::failure, "the tail of a law that is not binomial");
  if (largest >= trials) return 0.0;
  const auto n = static_cast<long double>(trials);
  const auto k = static_cast<long double>(largest) + 1.0L;
  const auto p = static_cast<long double>(probability);
  if (k <= n * p) return 1.0;
  // n kl(k/n ‖ p) is the sum of these. Both logarithms are off by a few units of themselves or of 1; their arguments,
  // by a unit. np and k are far below 2⁶³.
  const auto heads = k * std::log(k / (n * p));
  const auto tails = k == n ? 0.0L : (n - k) * std::log((n - k) / (n * (1.0L - p)));
  const auto error = 1e-18L * (k + n + std::abs(heads) + std::abs(tails));
  return std::clamp(static_cast<double>(std::exp(-(heads + tails - error))) * outwards,
                    std::numeric_limits<double>::denorm_min(), 1.0);
}

double delta_with_cuts(double delta, double epsilon, double chance) {
  const double cost = cost_of_cuts(epsilon, chance);
  return cost == 0.0 ? delta : std::min(1.0, up(delta + cost));
}

PrivacyError too_many_cuts(double delta) {
  return PrivacyError(cat("delta: found ", delta,
                          ", less than what cuts of large batches cost (sampling.largest_batch); expected a larger "
                          "largest batch, or a larger delta"));
}

double epsilon_with_cuts(double delta, double chance, double slack, const std::function<double(double delta)>& least) {
  if (chance == 0.0) return least(delta);
  constexpr int most_tries = 100;
  double epsilon = 0.0;
  for (int tries = 0; tries < most_tries; ++tries) {
    const double left = left_of(delta, epsilon, chance);
    if (!(left >= least_delta)) break;
    const double needed = least(left);
    if (needed <= epsilon) return epsilon;
    epsilon = needed * (1.0 + slack);
  }
  throw too_many_cuts(delta);
}

std::int64_t least_largest_batch(std::int64_t series, double probability, double batches, double epsilon,
                                 double delta) {
  constexpr double share = 0.01;
  auto high = series;
  auto low = std::min(series, static_cast<std::int64_t>(probability * static_cast<double>(series)));
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    const double chance = chance_of_excess(series, probability, middle) * batches;
    if (cost_of_cuts(epsilon, chance) <= share * delta) high = middle;
    else low = middle + 1;
  }
  return high;
}

BoundedBatchesCurve::BoundedBatchesCurve(std::unique_ptr<PrivacyCurve> curve,
                                         std::function<double(std::uint64_t uses)> chance, std::string what)
    : curve_(std::move(curve)), chance_(std::move(chance)), what_(std::move(what)) {}

Interval BoundedBatchesCurve::find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) {
  if (uses == 0) return {0.0, 0.0};
  const auto without = curve_->delta(epsilon, uses, precision);
  const double chance = chance_(uses);
  why = extended(without.why);
  const double lower = std::max(0.0, left_of(without.lower, epsilon, chance));
  const double upper = upper_with_cuts(without.upper, epsilon, uses, precision);
  return {std::min(lower, upper), upper};
}

double BoundedBatchesCurve::upper_delta(double epsilon, std::uint64_t uses, double precision) {
  return uses == 0 ? 0.0 : upper_with_cuts(curve_->upper_delta(epsilon, uses, precision), epsilon, uses, precision);
}

double BoundedBatchesCurve::upper_with_cuts(double without, double epsilon, std::uint64_t uses, double precision) {
  const double chance = chance_(uses);
  double upper = delta_with_cuts(without, epsilon, chance);
  if (costs_little(without, epsilon, chance)) return upper;
  // The sum is convex in e^ε and may rise, while δ′ does not: the least up to ε, by thirds.
  constexpr int thirds = 25;
  double low = 0.0;
  double high = epsilon;
  const auto at = [&](double e) {
    const double value = delta_with_cuts(curve_->upper_delta(e, uses, precision), e, chance);
    upper = std::min(upper, value);
    return value;
  };
  for (int i = 0; i < thirds; ++i) {
    const double third = (high - low) / 3.0;
    if (at(low + third) <= at(high - third)) high -= third;
    else low += third;
  }
  return upper;
}

Interval BoundedBatchesCurve::find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) {
  if (uses == 0) return {0.0, 0.0};
  const double chance = chance_(uses);
  Certified last;
  const double upper = epsilon_with_cuts(delta, chance, precision / 16.0, [&](double left) {
    last = curve_->epsilon(left, uses, precision);
    return last.upper;
  });
  why = extended(last.why);
  if (chance == 0.0) return {last.lower, upper};
  // δ′(e) > δ for every e below the uncut ε(δ + (1 + e^upper) η), as e ≤ upper.
  const double more = delta_with_cuts(delta, upper, chance);
  return in_order({more < 1.0 ? std::min(upper, curve_->epsilon(more, uses, precision).lower) : 0.0, upper});
}

bool BoundedBatchesCurve::certifies(double epsilon, double delta, std::uint64_t uses, double precision) {
  if (uses == 0) return true;
  const double chance = chance_(uses);
  const double left = left_of(delta, epsilon, chance);
  if (left >= least_delta && curve_->certifies(epsilon, left, uses, precision)) return true;
  if (costs_little(delta, epsilon, chance)) return false;
  try {
    return upper_epsilon(delta, uses, precision) <= epsilon;  // a smaller ε, at which cuts cost less
  } catch (const PrivacyError&) { return false; }
}

double BoundedBatchesCurve::upper_epsilon(double delta, std::uint64_t uses, double precision) {
  if (uses == 0) return 0.0;
  return epsilon_with_cuts(delta, chance_(uses), precision / 16.0,
                           [&](double left) { return curve_->upper_epsilon(left, uses, precision); });
}

std::uint64_t BoundedBatchesCurve::search_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  // More uses cost more cuts, so what the first answer leaves of δ suffices for the second.
  const auto without = curve_->max_uses(epsilon, delta, limit, precision);
  if (without == 0) return 0;
  const double left = left_of(delta, epsilon, chance_(without));
  if (left >= 0.5 * delta) return curve_->max_uses(epsilon, left, without, precision);
  return most_epochs(0, without, [&](std::uint64_t uses) { return certifies(epsilon, delta, uses, precision); });
}

Certificate BoundedBatchesCurve::extended(Certificate why) const {
  why.upper += cat(", ", what_);
  if (!why.lower.empty()) why.lower += cat(", ", what_);
  return why;
}

Certificate BoundedBatchesCurve::methods() const { return extended(curve_->methods()); }

}  // namespace tsdp::privacy
