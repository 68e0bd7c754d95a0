#include "privacy/whole_series/gaussian_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "privacy/terms/checks.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/terms/terms.h"

namespace tsdp::privacy {
namespace {

/// Φ(z), long double.
long double below(long double z) { return 0.5L * std::erfc(-z / std::numbers::sqrt2_v<long double>); }

/// Φ̄(z)/φ(z) for z ≥ 60, where what the asymptotic series leaves out is below 1e-17.
long double mills_ratio(long double z) {
  const auto t = 1.0L / (z * z);
  return (1.0L - t * (1.0L - 3.0L * t * (1.0L - 5.0L * t * (1.0L - 7.0L * t * (1.0L - 9.0L * t))))) / z;
}

void check_uses(std::uint64_t uses) {
  if (uses > max_uses_ever)
    throw PrivacyError(cat("steps: found ", uses, "; at most ", max_uses_ever, " are accounted for"));
}

}  // namespace

Interval gaussian_delta(double epsilon, double mu) {
  check_epsilon(epsilon);
  if (!(mu > 0.0) || !std::isfinite(mu))
    throw PrivacyError(cat("Gaussian mechanism: found a ratio of ", mu, " to the noise"));
  const auto e = static_cast<long double>(epsilon);
  const auto m = static_cast<long double>(mu);
  const auto near = -e / m + m / 2.0L;
  const auto far = -e / m - m / 2.0L;
  const auto first = below(near);
  // e^ε φ(far) = φ(near), which gives the second term where e^ε or Φ(far) leave the range of numbers.
  const auto second = far > -60.0L ? std::exp(e) * below(far)
                                   : std::exp(-0.5L * near * near) / std::sqrt(2.0L * std::numbers::pi_v<long double>) *
                                         mills_ratio(-far);
  // Arguments are off by 3 units of themselves, which moves a tail by z² of them; erfc by 4 units.
  constexpr auto unit = std::numeric_limits<long double>::epsilon();
  const auto error =
      unit * first * (16.0L + 4.0L * (near * near + (far > -60.0L ? far * far + e : 0.0L) + std::abs(near) * e / m));
  const bool resolved = std::isfinite(second) && first > 1e-4000L;
  const auto value = resolved ? std::clamp(first - second, 0.0L, 1.0L) : 0.0L;
  const auto upper = resolved ? value + error : first + std::numeric_limits<long double>::min();
  const auto lower = resolved ? std::max(0.0L, value - error) : 0.0L;
  const auto down = static_cast<double>(lower);
  const auto up = static_cast<double>(upper);
  return {std::max(0.0, std::nextafter(down, -1.0)), std::min(1.0, std::nextafter(up, 2.0))};
}

GaussianCurve::GaussianCurve(double noise_multiplier, double distance) : least_distance_(distance / noise_multiplier) {
  check_noise_multiplier(noise_multiplier);
  if (!(least_distance_ > 0.0) || !std::isfinite(least_distance_))
    throw PrivacyError(
        cat("Gaussian mechanism: found a distance of ", distance, "; expected a positive finite number"));
}

Interval GaussianCurve::find_delta(double epsilon, std::uint64_t uses, double, Certificate&) {
  check_uses(uses);
  if (uses == 0) return {0.0, 0.0};
  // √k and the quotient are off by a unit each; δ grows with μ, so its ends are taken at μ's ends.
  const double mu = least_distance_ * std::sqrt(static_cast<double>(uses));
  const auto low = gaussian_delta(epsilon, mu * (1.0 - 4e-16));
  const auto high = gaussian_delta(epsilon, mu * (1.0 + 4e-16));
  return {low.lower, high.upper};
}

Interval GaussianCurve::find_epsilon(double delta, std::uint64_t uses, double, Certificate&) {
  check_delta(delta);
  if (uses == 0) return {0.0, 0.0};
  if (this->delta(0.0, uses).upper <= delta) return {0.0, 0.0};
  double low = 0.0;
  double high = 1.0;
  while (this->delta(high, uses).upper > delta) {
    low = high;
    high *= 2.0;
    if (high > 1e15) throw PrivacyError(cat("delta: found ", delta, "; no finite epsilon can be certified for it"));
  }
  // Bisection to a relative width of 1e-15: each end of δ decides its own end of ε.
  const auto ends = [&](double left, double right, auto decides) {
    while (right - left > 1e-15 * right) {
      const double middle = 0.5 * (left + right);
      if (middle <= left || middle >= right) break;
      (decides(middle) ? right : left) = middle;
    }
    return std::pair{left, right};
  };
  const auto upper = ends(low, high, [&](double e) { return this->delta(e, uses).upper <= delta; }).second;
  const double start = this->delta(0.999 * low, uses).lower > delta ? 0.999 * low : 0.0;
  const auto lower = ends(start, upper, [&](double e) { return !(this->delta(e, uses).lower > delta); }).first;
  return {lower, upper};
}

std::uint64_t GaussianCurve::search_uses(double epsilon, double delta, std::uint64_t limit, double) {
  limit = std::min(limit, max_uses_ever);
  if (limit == 0 || !certifies(epsilon, delta, 1)) return 0;
  std::uint64_t low = 1;
  std::uint64_t high = limit + 1;
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (certifies(epsilon, delta, middle) ? low : high) = middle;
  }
  return low;
}

Certificate GaussianCurve::methods() const {
  return {"Gaussian mechanism, closed form", "Gaussian mechanism, closed form", {}};
}

}  // namespace tsdp::privacy
