#include "tsdp/privacy/terms/curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tsdp/base/error.h"

namespace tsdp::privacy {

Certified PrivacyCurve::delta(double epsilon, std::uint64_t uses, double precision) {
  auto why = methods();
  const auto ends = find_delta(epsilon, uses, precision, why);
  return {ends, std::move(why)};
}

Certified PrivacyCurve::epsilon(double delta, std::uint64_t uses, double precision) {
  auto why = methods();
  const auto ends = find_epsilon(delta, uses, precision, why);
  return {ends, std::move(why)};
}

bool PrivacyCurve::stays_within(double epsilon, double delta, std::uint64_t uses, double precision) {
  if (uses == 0) return true;
  try {
    return certifies(epsilon, delta, uses, std::min(precision, finest_precision)) &&
           upper_epsilon(delta, uses, precision) <= epsilon;
  } catch (const PrivacyError&) { return false; }
}

std::uint64_t PrivacyCurve::max_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  limit = std::min(limit, max_uses_ever);
  auto uses = search_uses(epsilon, delta, limit, precision);
  const auto certified = [&](std::uint64_t k) {
    try {
      return certifies(epsilon, delta, k, precision);
    } catch (const PrivacyError&) {
      return false;  // more than are accounted for
    }
  };
  // δ grows with the uses, so steps of 1, 2, 4 … and back find where it is no longer certified.
  std::uint64_t step = 1;
  while (uses < limit && certified(std::min(limit, uses + step))) {
    uses = std::min(limit, uses + step);
    step *= 2;
  }
  for (; step > 1; step /= 2)
    if (uses + step / 2 <= limit && certified(uses + step / 2)) uses += step / 2;
  while (uses > 0) {
    double stated = 0.0;
    try {
      stated = upper_epsilon(delta, uses);
    } catch (const PrivacyError&) { stated = 2.0 * epsilon; }
    if (stated <= epsilon) break;
    // ε grows at least as fast as the root of the uses.
    const double share = std::clamp(epsilon / stated, 0.5, 1.0);
    uses = std::min(uses - 1, static_cast<std::uint64_t>(static_cast<double>(uses) * share * share));
  }
  return uses;
}

}  // namespace tsdp::privacy
