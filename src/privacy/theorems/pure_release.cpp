#include "privacy/theorems/pure_release.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "privacy/terms/numbers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// Covers the few roundings of a sum of two products of exponentials.
constexpr double outwards = 1.0 + 1e-14;

/// The uses' own certificate, extended by the release.
Certificate extended(Certificate why) {
  why.upper += ", with tsdp.7";
  why.lower += why.lower.empty() ? "" : ", without the release after it";
  return why;
}

}  // namespace

double CurveWithPureRelease::with_release(double epsilon) const { return up(epsilon + pure_); }

CurveWithPureRelease::CurveWithPureRelease(std::unique_ptr<PrivacyCurve> curve, double epsilon)
    : curve_(std::move(curve)), pure_(epsilon) {
  if (!(epsilon > 0.0) || !std::isfinite(epsilon))
    throw PrivacyError(cat("epsilon of a pure release: found ", epsilon, "; expected a positive finite number"));
}

Interval CurveWithPureRelease::find_delta(double epsilon, std::uint64_t uses, double precision, Certificate&) {
  if (uses == 0) return {0.0, 0.0};
  const auto of_uses = curve_->delta(epsilon, uses, precision);
  // H falls in its argument, which is rounded down.
  const double likely = down(epsilon - pure_);
  double at_likely = 0.0;
  if (likely >= 0.0) {
    at_likely = curve_->delta(likely, uses, precision).upper;
  } else {
    const double above = std::exp(likely);
    at_likely = -std::expm1(likely) + above * curve_->delta(-likely, uses, precision).upper;
  }
  const double at_unlikely = curve_->delta(down(epsilon + pure_), uses, precision).upper;
  const double upper = (at_likely + std::exp(-pure_) * at_unlikely) / (1.0 + std::exp(-pure_)) * outwards;
  return {of_uses.lower, std::min(1.0, upper)};
}

Interval CurveWithPureRelease::find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) {
  if (uses == 0) return {0.0, 0.0};
  const auto of_uses = curve_->epsilon(delta, uses, precision);
  why = extended(of_uses.why);
  return {of_uses.lower, with_release(of_uses.upper)};
}

double CurveWithPureRelease::left_of(double epsilon) const {
  if (!(with_release(0.0) <= epsilon)) return -1.0;
  if (with_release(epsilon) <= epsilon) return epsilon;  // infinity alone
  // with_release() never falls, and numbers from 0 on are in the order of their bits.
  auto low = std::bit_cast<std::uint64_t>(0.0);
  auto high = std::bit_cast<std::uint64_t>(epsilon);
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (with_release(std::bit_cast<double>(middle)) <= epsilon ? low : high) = middle;
  }
  return std::bit_cast<double>(low);
}

double CurveWithPureRelease::upper_epsilon(double delta, std::uint64_t uses, double precision) {
  return uses == 0 ? 0.0 : with_release(curve_->upper_epsilon(delta, uses, precision));
}

bool CurveWithPureRelease::certifies(double epsilon, double delta, std::uint64_t uses, double precision) {
  if (uses == 0) return true;
  const double left = left_of(epsilon);
  return left >= 0.0 && curve_->certifies(left, delta, uses, precision);
}

std::uint64_t CurveWithPureRelease::search_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  const double left = left_of(epsilon);
  return left >= 0.0 ? curve_->max_uses(left, delta, limit, precision) : 0;
}

Certificate CurveWithPureRelease::methods() const { return extended(curve_->methods()); }

}  // namespace tsdp::privacy
