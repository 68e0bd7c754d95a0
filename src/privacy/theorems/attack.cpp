#include "tsdp/privacy/theorems/attack.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "privacy/accountant/normal_tail.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

// Outwards, for the few roundings of e^ε α + δ.
constexpr double outwards = 1.0 + 1e-14;
// For those of tangents and chords, and of a tail's own few thousand units.
constexpr double rounding = 1e-12;

/// δ(ε) at most, at t = e^ε.
struct ProfilePoint {
  double epsilon, t, delta;
};

/// Where δ ≤ δ_μ + delta does not follow from upper bounds at some ε.
struct Gaps {
  bool at_points = false;
  std::vector<std::size_t> between;  ///< two points, though it follows at all of them: places of the left ones
  [[nodiscard]] bool any() const { return at_points || !between.empty(); }
};

/// See gaussian_bound.
Gaps gaps_of(double mu, std::span<const ProfilePoint> points, double delta) {
  std::vector<double> values;
  for (const auto& point : points) {
    values.push_back(gaussian_delta(point.epsilon, mu).lower);
    if (point.delta > values.back() + delta) return {true, {}};
  }
  Gaps out;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const auto& left = points[i];
    const auto& right = points[i + 1];
    const auto slope = [&](const ProfilePoint& at) { return -normal_tail(mu / 2.0 + at.epsilon / mu); };
    // Slopes are negative: on the right of its point a tangent falls faster, on the left of it rises more slowly.
    const double falling = slope(left) * (1.0 + rounding);
    const double rising = slope(right) * (1.0 - rounding);
    if (!(rising > falling)) continue;  // one line, but for rounding, which is compared at its ends
    const double kink = std::clamp(
        (values[i + 1] - values[i] - rising * right.t + falling * left.t) / (falling - rising), left.t, right.t);
    const double tangents = std::max(values[i] + falling * (kink - left.t), values[i + 1] + rising * (kink - right.t));
    const double chord = left.delta + (right.delta - left.delta) * (kink - left.t) / (right.t - left.t);
    const double room = rounding * (values[i] + values[i + 1] + delta - falling * right.t);
    if (!(chord <= tangents + delta - room)) out.between.push_back(i);
  }
  return out;
}

/// The least μ, within a millionth, without a gap; none up to 1024.
std::optional<double> least_mu(std::span<const ProfilePoint> points, double delta) {
  double high = 1.0;
  while (gaps_of(high, points, delta).any())
    if ((high *= 2.0) > 1024.0) return std::nullopt;
  double low = 0.0;
  while (high - low > 1e-6 * high) {
    const double middle = 0.5 * (low + high);
    (gaps_of(middle, points, delta).any() ? low : high) = middle;
  }
  return high;
}

/// κ of GaussianBound: on a grid of rates α = Φ̄(z), where between two of them the one curve is taken at the left end
/// and the other at the right.
double regret_of(double mu, std::span<const ProfilePoint> points, double delta) {
  constexpr double furthest = 8.0;
  constexpr double step = 0.005;
  std::vector<double> rates;
  std::vector<double> misses;  // the false-negative rate that μ and delta leave
  for (double z = furthest; z >= -furthest; z -= step) {
    rates.push_back(normal_tail(z));
    misses.push_back(std::max(0.0, normal_tail(mu - z) - delta));
  }
  rates.front() = 0.0;
  rates.push_back(1.0);
  misses.push_back(0.0);
  const auto certified = [&](double rate) {
    double most = 0.0;
    for (const auto& p : points) most = std::max({most, 1.0 - p.delta - p.t * rate, (1.0 - p.delta - rate) / p.t});
    return most;
  };
  const auto covers = [&](double regret) {
    for (std::size_t i = 0; i + 1 < rates.size() && rates[i] + regret < 1.0; ++i)
      if (certified(rates[i] + regret) - regret > misses[i + 1]) return false;
    return true;
  };
  double low = 0.0;
  double high = 1.0;
  while (high - low > 1e-5) {
    const double middle = 0.5 * (low + high);
    (covers(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

AttackBound attack_bound(PrivacyCurve& curve, std::uint64_t uses, double false_positive_rate, double precision) {
  if (!(false_positive_rate > 0.0) || !(false_positive_rate < 1.0))
    throw PrivacyError(cat("false-positive rate: found ", false_positive_rate, "; expected a number in (0, 1)"));
  const auto bound = [&](double epsilon) {
    return outwards * (std::exp(epsilon) * false_positive_rate + curve.upper_delta(epsilon, uses, precision));
  };
  const double advantage = uses == 0 ? 0.0 : curve.upper_delta(0.0, uses, precision);
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
  auto out = bound;
  out.advantage = std::min(1.0, bound.advantage * room);
  out.true_positive_rate = std::min(1.0, bound.true_positive_rate * room);
  if (out.gaussian) out.gaussian->mu *= room;
  return out;
}

AttackBound stated_attack(PrivacyCurve& curve, std::uint64_t uses, double epsilon, double delta) {
  auto out = attack_bound(curve, uses);
  out.gaussian = gaussian_bound(curve, uses, epsilon, delta);
  return stated(out);
}

std::optional<GaussianBound> gaussian_bound(PrivacyCurve& curve, std::uint64_t uses, double epsilon, double delta,
                                            double precision) {
  if (!(epsilon >= 0.0) || !std::isfinite(epsilon) || !(delta >= 0.0) || !(delta <= 1.0))
    throw PrivacyError(cat("gaussian bound: found epsilon ", epsilon, " and delta ", delta,
                           "; expected a finite epsilon from 0 and a delta from 0 to 1"));
  if (uses == 0) return GaussianBound{0.0, 0.0, 0.0};
  if (epsilon == 0.0) return GaussianBound{0.0, delta, 0.0};
  constexpr double most_epsilon = 600.0;  // e^ε is a number, and so are tails that matter beside it
  if (epsilon > most_epsilon) return std::nullopt;
  constexpr int first_intervals = 12;
  const std::size_t most_points = precision < 1e-2 ? 1024 : 64;
  std::vector<ProfilePoint> points;
  const auto at = [&](double e) { return ProfilePoint{e, std::exp(e), curve.upper_delta(e, uses, precision)}; };
  for (int i = 0; i < first_intervals; ++i) points.push_back(at(epsilon * i / first_intervals));
  points.push_back({epsilon, std::exp(epsilon), delta});
  if (points.front().delta <= delta) return GaussianBound{0.0, delta, regret_of(0.0, points, delta)};
  // A point between two is asked where a μ that is less by a share could only be refused for what lies between them.
  const double share = 0.2 * precision;
  for (;;) {
    const auto mu = least_mu(points, delta);
    if (!mu) return std::nullopt;
    const auto gaps = gaps_of(*mu * (1.0 - share), points, delta);
    if (gaps.between.empty() || points.size() + gaps.between.size() > most_points)
      return GaussianBound{*mu, delta, regret_of(*mu, points, delta)};
    for (auto left = gaps.between.rbegin(); left != gaps.between.rend(); ++left) {  // the others keep their places
      const auto right = points.begin() + static_cast<std::ptrdiff_t>(*left) + 1;
      points.insert(right, at(0.5 * (std::prev(right)->epsilon + right->epsilon)));
    }
  }
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
    const double delta = curve.upper_delta(epsilon, uses, precision);
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
