#include "tsdp/privacy/dominating_pair.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::privacy {
namespace {

// Beyond this exponent e^u is close to overflow and sums are formed in logarithms.
constexpr double large_exponent = 600.0;

double log_sum_exp(const double* terms, std::size_t count) {
  const double top = *std::max_element(terms, terms + count);
  if (!std::isfinite(top)) return top;
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(terms[i] - top);
  return top + std::log(sum);
}

}  // namespace

double log_normal_tail(double z) {
  if (z < 25.0) return std::log(0.5 * std::erfc(z / std::numbers::sqrt2));
  // Asymptotic series of Mills' ratio; at z ≥ 25 eight terms are exact to 1e-17 relative.
  const double t = 1.0 / (z * z);
  const double series = 1.0 - t * (1.0 - 3.0 * t * (1.0 - 5.0 * t * (1.0 - 7.0 * t * (1.0 - 9.0 * t * (1.0 - 11.0 * t)))));
  return -0.5 * z * z - std::log(z) - 0.5 * std::log(2.0 * std::numbers::pi) + std::log(series);
}

DominatingPair::DominatingPair(std::vector<Component> p, double sigma) : p_(std::move(p)), sigma_(sigma) {
  if (!(sigma > 0.0) || !std::isfinite(sigma))
    throw PrivacyError(cat("noise multiplier: found ", sigma, "; a positive finite number is expected"));
  double total = 0.0;
  for (const auto& c : p_) {
    if (!(c.mean >= 0.0) || !std::isfinite(c.mean) || !(c.weight > 0.0))
      throw PrivacyError(cat("dominating pair: found mean ", c.mean, " with weight ", c.weight,
                             "; means of at least 0 with positive weights are expected"));
    total += c.weight;
    largest_mean_ = std::max(largest_mean_, c.mean);
  }
  if (largest_mean_ == 0.0 || !(std::abs(total - 1.0) <= 1e-12))
    throw PrivacyError(cat("dominating pair: found total weight ", total, " and largest mean ", largest_mean_,
                           "; weights with sum 1 and at least one positive mean are expected"));
  if (total != 1.0)
    for (auto& c : p_) c.weight /= total;
}

DominatingPair DominatingPair::substitution(double q, double sigma) {
  if (!(q > 0.0) || !(q <= 1.0))
    throw PrivacyError(cat("sampling probability: found ", q, "; a number in (0, 1] is expected"));
  if (q == 1.0) return DominatingPair({{2.0, 1.0}}, sigma);
  return DominatingPair({{0.0, 1.0 - q}, {2.0, q}}, sigma);
}

double DominatingPair::excess(double x) const {
  double sum = 0.0;
  for (const auto& c : p_) sum += c.weight * std::expm1(c.mean * (x - 0.5 * c.mean) / (sigma_ * sigma_));
  return sum;
}

double DominatingPair::loss(double x) const {
  const double top = largest_mean_ * (x - 0.5 * largest_mean_) / (sigma_ * sigma_);
  if (top < large_exponent) {
    const double e = excess(x);
    if (e > -0.5) return std::log1p(e);
  }
  std::vector<double> terms;
  terms.reserve(p_.size());
  for (const auto& c : p_) terms.push_back(std::log(c.weight) + c.mean * (x - 0.5 * c.mean) / (sigma_ * sigma_));
  return log_sum_exp(terms.data(), terms.size());
}

double DominatingPair::inverse_loss(double target) const {
  // One moved component, (1−q) N(0) + q N(μ) or N(μ) alone: log(1 + q expm1(u)) = ℓ ⇔ u = log1p(expm1(ℓ)/q), the
  // large-ℓ form avoiding overflow, and x = σ² u/μ + μ/2.
  if (p_.size() == 1 || (p_.size() == 2 && p_[0].mean == 0.0)) {
    const double q = p_.back().weight;
    const double mean = p_.back().mean;
    const double u = q == 1.0         ? target
                     : target > 30.0  ? target - std::log(q) + std::log1p(-(1.0 - q) * std::exp(-target))
                                      : std::log1p(std::expm1(target) / q);
    if (std::isnan(u) || std::isinf(u)) throw PrivacyError(cat("no point has privacy loss ", target));
    return sigma_ * sigma_ * u / mean + 0.5 * mean;
  }
  // Bracket by doubling around the largest mean, then safeguarded Newton: L is increasing and L' > 0.
  double low = 0.5 * largest_mean_;
  double high = low;
  const double start_step = sigma_;
  for (double step = start_step; loss(low) > target; step *= 2.0) {
    low -= step;
    if (!(low > -1e300)) throw PrivacyError(cat("no point has privacy loss ", target));
  }
  for (double step = start_step; loss(high) < target; step *= 2.0) high += step;
  double x = 0.5 * (low + high);
  for (int i = 0; i < 200 && low < high; ++i) {
    const double value = loss(x) - target;
    if (value > 0.0) {
      high = x;
    } else {
      low = x;
    }
    if (value == 0.0) break;
    // L'(x) = E_P[μ | x] / σ².
    double numerator = 0.0;
    double denominator = 0.0;
    const double shift = largest_mean_ * (x - 0.5 * largest_mean_) / (sigma_ * sigma_);
    const double base = std::max(shift, 0.0);
    for (const auto& c : p_) {
      const double e = c.weight * std::exp(c.mean * (x - 0.5 * c.mean) / (sigma_ * sigma_) - base);
      numerator += c.mean * e;
      denominator += e;
    }
    double next = x - value * denominator * sigma_ * sigma_ / numerator;
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    if (next == x || std::abs(next - x) <= 2e-16 * std::max(std::abs(x), sigma_ * 1e-3)) return next;
    x = next;
  }
  return x;
}

double DominatingPair::log_tail_q(double x) const { return log_normal_tail(x / sigma_); }

double DominatingPair::log_tail_p(double x) const {
  std::vector<double> terms;
  terms.reserve(p_.size());
  for (const auto& c : p_) terms.push_back(std::log(c.weight) + log_normal_tail((x - c.mean) / sigma_));
  return log_sum_exp(terms.data(), terms.size());
}

double DominatingPair::scaled_density_q(double x, double log_scale) const {
  const double z = x / sigma_;
  return std::exp(log_scale - 0.5 * z * z) / (sigma_ * std::sqrt(2.0 * std::numbers::pi));
}

double DominatingPair::symmetrised_profile(double epsilon) const {
  // H_α(Q‖P) for α = e^{−e} < 1 is 1 − α + α H_{1/α}(P‖Q) (identity 3.1 of the paper's notes), so both signs rest on
  // H at |ε|. With tails a = P(x > x_ε), b = Q(x > x_ε): H = a − e^ε b = a · (−expm1(ε + log b − log a)).
  const double e = std::abs(epsilon);
  const double x = inverse_loss(e);
  const double a = log_tail_p(x);
  const double b = log_tail_q(x);
  const double positive = std::max(0.0, -std::exp(a) * std::expm1(e + b - a));
  if (epsilon >= 0.0) return positive;
  return -std::expm1(-e) + std::exp(-e) * positive;
}

}  // namespace tsdp::privacy
