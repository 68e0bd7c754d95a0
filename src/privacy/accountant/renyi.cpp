#include "privacy/accountant/renyi.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <boost/math/quadrature/gauss.hpp>

#include "privacy/accountant/loss_distribution.h"
#include "privacy/terms/numbers.h"
#include "product_loss.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// log(e^a + e^b).
double log_add(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return infinity;  // nothing is certified by what cannot be computed
  const double high = std::max(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

/// An upper bound of log E_P[(dP/dQ)^{β−1}] for β > 1: the smaller of two. By joint convexity of (p, q) ↦ p^β q^{1−β},
/// that of a mixture is at most that of its components, each against its own counterpart: N(μ, σ²) against N(0, σ²) or
/// N(−μ, σ²). And where Q holds N(0, σ²) with weight w₀, Q ≥ w₀ N(0, σ²), so it is at most w₀^{1−β} times that against
/// N(0, σ²).
double log_moment(const DominatingPair& pair, double beta) {
  const bool mirror = pair.against() == DominatingPair::Against::mirror;
  const auto against = [&](double reach) {
    double sum = -infinity;
    for (const auto& c : pair.components()) {
      const double distance = reach * c.mean / pair.sigma();
      sum = log_add(sum, std::log(c.weight) + 0.5 * beta * (beta - 1.0) * distance * distance);
    }
    return sum;
  };
  if (!mirror) return against(1.0);
  const auto& first = pair.components().front();
  const double own = against(2.0);
  return first.mean == 0.0 ? std::min(own, against(1.0) - (beta - 1.0) * std::log(first.weight)) : own;
}

/// Upper ends of log H at points ε₀ = 0 < ε₁ < …, close enough that H falls by a few percent from one to the next where
/// that matters.
struct SampledProfile {
  std::vector<double> epsilon;
  std::vector<double> log_value;
};

SampledProfile sampled(const DominatingPair& pair) {
  constexpr std::size_t most_points = 20'000;
  constexpr double least = -4000.0;  // of log H: to any order that pays for any budget, what lies beyond is 0
  const double log_use = std::log(pair.use_probability());
  const auto log_profile = [&](double epsilon) {
    const double value = pair.profile_bracket(epsilon).upper;
    if (value > 1e-200) return std::log(value) + 1e-12;
    // H(e^ε) ≤ ρ P[L > ε]; the tail's exponent is good to a few units of itself.
    const double tail = pair.log_tail_p(pair.inverse_loss(epsilon));
    return log_use + tail * (1.0 - 1e-11);
  };
  SampledProfile out;
  double epsilon = 0.0;
  double value = log_profile(0.0);
  double step = std::max(1e-3 * loss_scale(pair).deviation, 1e-12);
  while (out.epsilon.size() < most_points) {
    out.epsilon.push_back(epsilon);
    out.log_value.push_back(value);
    if (value < least) break;
    const double fall = value > -150.0 ? 0.08 : 0.5;
    double next = log_profile(epsilon + step);
    for (int i = 0; i < 60 && value - next > 2.0 * fall; ++i) next = log_profile(epsilon + (step *= 0.5));
    epsilon += step;
    if (value - next < 0.5 * fall) step *= 1.5;
    value = next;
  }
  return out;
}

/// log of α(α−1) ∫ (s^{α−2} + s^{−α−1}) H(s) ds over s = e^ε, with H at most the chords of `profile`, which are exact
/// weightings of its values: with x = log(s/s₀) the weight of the right end is (e^x − 1)/(e^d − 1), where d is the
/// cell's width, and that of the left end 1 minus it.
double log_integral(const SampledProfile& profile, double order) {
  // Gauss–Legendre on cells so narrow that what is integrated changes by a factor of e at most.
  static const auto& nodes = boost::math::quadrature::gauss<double, 7>::abscissa();  // from the middle on
  static const auto& weights = boost::math::quadrature::gauss<double, 7>::weights();
  double sum = -infinity;
  for (std::size_t i = 0; i + 1 < profile.epsilon.size(); ++i) {
    const double begin = profile.epsilon[i];
    const double width = profile.epsilon[i + 1] - begin;
    const auto parts = static_cast<int>(std::ceil(std::max(1.0, order * width)));
    const double part = width / parts;
    for (int p = 0; p < parts; ++p)
      for (int n = -3; n <= 3; ++n) {
        const auto at_node = static_cast<std::size_t>(std::abs(n));
        const double x = part * (p + 0.5 + (n < 0 ? -0.5 : 0.5) * nodes[at_node]);
        const double right = std::expm1(x) / std::expm1(width);
        const double log_chord =
            log_add(std::log1p(-right) + profile.log_value[i], std::log(right) + profile.log_value[i + 1]);
        const double at = begin + x;
        sum = log_add(sum,
                      std::log(0.5 * part * weights[at_node]) + log_chord + log_add((order - 1.0) * at, -order * at));
      }
  }
  return sum + std::log(order) + std::log(order - 1.0);
}

/// The same integral from the last point on: H(s) ≤ ρ P[dP/dQ > s] ≤ s^{1−β} e^{log_moment(β)} for every β > α
/// (Markov), so at most 2 s^{α−β} e^{log_moment(β)}/(β − α).
double log_rest(const DominatingPair& pair, double order, double last) {
  double best = infinity;
  for (double above = 0.01; above < 1e6; above *= 1.3)
    best = std::min(best, std::log(2.0 / above) - above * last + log_moment(pair, order + above));
  return best + std::log(order) + std::log(order - 1.0);
}

}  // namespace

const std::vector<double>& renyi_orders() {
  static const std::vector<double> orders = {1.5,  2.0,  3.0,  4.0,  6.0,  8.0,   11.0,  16.0,
                                             22.0, 32.0, 45.0, 64.0, 90.0, 128.0, 180.0, 256.0};
  return orders;
}

std::vector<double> renyi_divergences(const DominatingPair& pair, std::span<const double> orders) {
  const auto profile = sampled(pair);
  std::vector<double> out;
  for (const double order : orders) {
    if (!(order > 1.0) || !(order <= 1024.0))
      throw PrivacyError(cat("Rényi order: found ", order, "; expected a number above 1 and at most 1024"));
    const double log_sum = log_add(log_integral(profile, order), log_rest(pair, order, profile.epsilon.back()));
    // Each value of the profile is rounded up already; logarithms, nodes and sums are good to 1e-9.
    const double value = log_add(0.0, log_sum + 1e-9) / (order - 1.0) * (1.0 + 1e-9);
    out.push_back(value <= largest_renyi ? value : infinity);
  }
  return out;
}

double renyi_budget(double order, double epsilon, double delta, std::size_t orders) {
  if (!(epsilon > 0.0) || !std::isfinite(epsilon) || !(delta > 0.0) || !(delta < 1.0) || !(order > 1.0) || orders < 1)
    throw PrivacyError(
        cat("budget: found epsilon ", epsilon, " and delta ", delta, "; expected positive numbers, delta below 1"));
  const double log_delta = std::log(delta / static_cast<double>(orders));
  const double value = epsilon + (log_delta - log_c(order - 1.0)) / (order - 1.0);
  return value - 1e-12 * (std::abs(value) + epsilon + std::abs(log_delta) / (order - 1.0));
}

}  // namespace tsdp::privacy
