#include "tsdp/privacy/theorems/attack.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

// Outwards, for the few roundings of e^ε α + δ.
constexpr double outwards = 1.0 + 1e-14;

}  // namespace

AttackBound attack_bound(PrivacyCurve& curve, std::uint64_t uses, double false_positive_rate, double precision) {
  if (!(false_positive_rate > 0.0) || !(false_positive_rate < 1.0))
    throw PrivacyError(cat("false-positive rate: found ", false_positive_rate, "; expected a number in (0, 1)"));
  const auto bound = [&](double epsilon) {
    return outwards * (std::exp(epsilon) * false_positive_rate + curve.delta(epsilon, uses, precision).upper);
  };
  const double advantage = uses == 0 ? 0.0 : curve.delta(0.0, uses, precision).upper;
  double best = std::min(1.0, outwards * (false_positive_rate + advantage));
  // e^ε α + δ(ε) is convex in e^ε, and at ε = −log α it is 1 or more: golden sections in between. Missing the least by
  // a little costs tightness, never validity.
  const double ratio = 1.0 / std::numbers::phi;
  double low = 0.0;
  double high = -std::log(false_positive_rate);
  double left = high - ratio * (high - low);
  double right = low + ratio * (high - low);
  double at_left = bound(left);
  double at_right = bound(right);
  while (uses > 0 && high - low > 1e-3 * (1.0 + low)) {
    if (at_left <= at_right) {
      high = right;
      right = left;
      at_right = at_left;
      left = high - ratio * (high - low);
      at_left = bound(left);
    } else {
      low = left;
      left = right;
      at_left = at_right;
      right = low + ratio * (high - low);
      at_right = bound(right);
    }
    best = std::min({best, at_left, at_right});
  }
  return {advantage, false_positive_rate, best};
}

AttackBound stated(const AttackBound& bound) {
  constexpr double room = 1.0 + 1e-6;
  return {std::min(1.0, bound.advantage * room), bound.false_positive_rate,
          std::min(1.0, bound.true_positive_rate * room)};
}

std::vector<double> trade_off(PrivacyCurve& curve, std::uint64_t uses, std::span<const double> rates,
                              double precision) {
  for (const double rate : rates)
    if (!(rate >= 0.0) || !(rate <= 1.0))
      throw PrivacyError(cat("false-positive rate: found ", rate, "; expected a number in [0, 1]"));
  if (uses == 0) return {rates.begin(), rates.end()};
  // Denser near 0, where curves of little privacy loss bend; beyond 7 only rates below e^-7 gain.
  constexpr int points = 24;
  constexpr double most_epsilon = 7.0;
  std::vector<double> out(rates.size(), 1.0);
  for (int i = 0; i <= points; ++i) {
    const double share = static_cast<double>(i) / points;
    const double epsilon = most_epsilon * share * share;
    const double delta = curve.delta(epsilon, uses, precision).upper;
    for (std::size_t k = 0; k < rates.size(); ++k) {
      const double forward = outwards * (std::exp(epsilon) * rates[k] + delta);
      const double reversed = 1.0 - std::exp(-epsilon) * (1.0 - rates[k] - delta) + (outwards - 1.0);
      out[k] = std::min({out[k], forward, reversed});
    }
  }
  for (std::size_t k = 0; k < rates.size(); ++k) out[k] = std::max(out[k], rates[k]);  // what rounding took away
  return out;
}

}  // namespace tsdp::privacy
