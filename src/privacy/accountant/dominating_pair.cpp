#include "tsdp/privacy/accountant/dominating_pair.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "gauss_rule.h"
#include "privacy/terms/checks.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

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
  // Asymptotic series of Mills' ratio; at z ≥ 25 what is left out is below 4e-15 relative.
  const double t = 1.0 / (z * z);
  const double series =
      1.0 - t * (1.0 - 3.0 * t * (1.0 - 5.0 * t * (1.0 - 7.0 * t * (1.0 - 9.0 * t * (1.0 - 11.0 * t)))));
  return -0.5 * z * z - std::log(z) - 0.5 * std::log(2.0 * std::numbers::pi) + std::log(series);
}

double normal_between(double b, double width) {
  static const GaussRule<8> rule;
  const double a = b - width;
  // Φ̄(a) − Φ̄(b) = ½(erf(b/√2) − erf(a/√2)); each tail form is exact where its tails are small, and narrow intervals
  // are left to quadrature (Gauss–Legendre, 8 nodes), for which `width` is as given, not a difference.
  if (width < 0.5 && std::abs(a) < 37.0) {
    // φ changes by e^{−|a| width} over the interval: panels keep it tame.
    const int panels = 1 + static_cast<int>(width * std::max(std::abs(a), std::abs(b)));
    const double half = 0.5 * width / panels;
    double sum = 0.0;
    for (int panel = 0; panel < panels; ++panel) {
      const double middle = b - (2 * panel + 1) * half;
      for (std::size_t i = 0; i < rule.nodes.size(); ++i)
        for (const double sign : {-1.0, 1.0}) {
          const double z = middle + sign * half * rule.nodes[i];
          sum += rule.weights[i] * std::exp(-0.5 * z * z);
        }
    }
    return sum * half / std::sqrt(2.0 * std::numbers::pi);
  }
  if (a > 0.0) return 0.5 * (std::erfc(a / std::numbers::sqrt2) - std::erfc(b / std::numbers::sqrt2));
  if (b < 0.0) return 0.5 * (std::erfc(-b / std::numbers::sqrt2) - std::erfc(-a / std::numbers::sqrt2));
  return 0.5 * (std::erf(b / std::numbers::sqrt2) - std::erf(a / std::numbers::sqrt2));
}

DominatingPair::DominatingPair(std::vector<Component> p, double sigma, Against against, double use_probability)
    : p_(std::move(p)),
      sigma_(sigma),
      inverse_variance_(1.0 / (sigma * sigma)),
      against_(against),
      use_probability_(use_probability) {
  check_noise_multiplier(sigma);
  check_sampling_probability(use_probability);
  double total = 0.0;
  std::sort(p_.begin(), p_.end(), [](const Component& a, const Component& b) { return a.mean < b.mean; });
  for (const auto& c : p_) {
    if (!(c.mean >= 0.0) || !std::isfinite(c.mean) || !(c.weight > 0.0))
      throw PrivacyError(cat("dominating pair: found mean ", c.mean, " with weight ", c.weight,
                             "; expected means of at least 0 with positive weights"));
    total += c.weight;
  }
  if (p_.empty() || p_.back().mean == 0.0 || !(std::abs(total - 1.0) <= 1e-12))
    throw PrivacyError(cat("dominating pair: found total weight ", total, " and largest mean ",
                           p_.empty() ? 0.0 : p_.back().mean,
                           "; expected weights with sum 1 and at least one positive mean"));
  if (total != 1.0)
    for (auto& c : p_) c.weight /= total;
}

DominatingPair::Truncated DominatingPair::truncated(double negligible) const {
  Truncated out{*this, 0.0};
  auto& kept = out.pair.p_;
  while (kept.size() > 1 && kept[kept.size() - 2].mean > 0.0 && out.dropped + kept.back().weight <= negligible) {
    out.dropped += kept.back().weight;
    kept.pop_back();
  }
  return out;
}

/// log of N(mean, σ²) over N(0, σ²) at x.
double DominatingPair::exponent(const Component& c, double x) const {
  return c.mean * (x - 0.5 * c.mean) * inverse_variance_;
}

/// log Σ w_k N(±μ_k, σ²) over N(0, σ²) at x.
double DominatingPair::log_mixture(double x, double sign) const {
  double top = -std::numeric_limits<double>::infinity();
  for (const auto& c : p_) top = std::max(top, exponent({sign * c.mean, c.weight}, x));
  double sum = 0.0;
  for (const auto& c : p_) sum += c.weight * std::exp(exponent({sign * c.mean, c.weight}, x) - top);
  return top + std::log(sum);
}

double DominatingPair::excess(double x) const {
  if (against_ == Against::noise) {
    double sum = 0.0;
    for (const auto& c : p_)
      if (c.mean > 0.0) sum += c.weight * std::expm1(exponent(c, x));
    return sum;
  }
  // P/Q − 1 = Σ v_k 2 sinh(μ_k x/σ²) / Σ v_k e^{−μ_k x/σ²}, v_k = w_k e^{−μ_k²/2σ²}: no cancellation for x ≥ 0. Both
  // sums are scaled by the largest v_k e^{−μ_k x/σ²}.
  double top = -std::numeric_limits<double>::infinity();
  for (const auto& c : p_) top = std::max(top, exponent({-c.mean, c.weight}, x));
  double numerator = 0.0;
  double denominator = 0.0;
  for (const auto& c : p_) {
    const double below = c.weight * std::exp(exponent({-c.mean, c.weight}, x) - top);
    denominator += below;
    // e^{a} − e^{−a} = e^{−a} expm1(2a); where e^{−a} underflows the product is formed from exponents.
    const double twice = 2.0 * c.mean * x * inverse_variance_;
    numerator += twice < large_exponent ? below * std::expm1(twice) : c.weight * std::exp(exponent(c, x) - top);
  }
  return numerator / denominator;
}

double DominatingPair::loss(double x) const {
  const double reach = exponent(p_.back(), x) * (against_ == Against::mirror ? 2.0 : 1.0);
  if (reach < large_exponent) {
    // A middle component may overflow where the largest mean's does not: μ(x − μ/2) is largest at μ = x.
    const double e = excess(x);
    if (e > -0.5 && std::isfinite(e)) return std::log1p(e);
  }
  return log_mixture(x, 1.0) - (against_ == Against::mirror ? log_mixture(x, -1.0) : 0.0);
}

double DominatingPair::inverse_loss_of_one_moved(double target) const {
  // One moved component, (1−q) N(0) + q N(μ) or N(μ) alone: log(1 + q expm1(u)) = ℓ ⇔ u = log1p(expm1(ℓ)/q), the
  // large-ℓ form avoiding overflow, and x = σ² u/μ + μ/2.
  const double q = p_.back().weight;
  const double mean = p_.back().mean;
  const double u = q == 1.0        ? target
                   : target > 30.0 ? target - std::log(q) + std::log1p(-(1.0 - q) * std::exp(-target))
                                   : std::log1p(std::expm1(target) / q);
  if (std::isnan(u) || std::isinf(u)) throw OutOfReach(cat("no point has privacy loss ", target));
  return sigma_ * sigma_ * u / mean + 0.5 * mean;
}

double DominatingPair::mean_at(double x, double sign) const {
  double top = -std::numeric_limits<double>::infinity();
  for (const auto& c : p_) top = std::max(top, exponent({sign * c.mean, c.weight}, x));
  double numerator = 0.0;
  double denominator = 0.0;
  for (const auto& c : p_) {
    const double e = c.weight * std::exp(exponent({sign * c.mean, c.weight}, x) - top);
    numerator += c.mean * e;
    denominator += e;
  }
  return numerator / denominator;
}

std::pair<double, double> DominatingPair::loss_and_slope(double x) const {
  if (against_ == Against::mirror) return {loss(x), mean_at(x, 1.0) + mean_at(x, -1.0)};
  if (exponent(p_.back(), x) < large_exponent) {
    // The terms of `excess`, which give the slope too.
    double sum = 0.0;
    double weighted = 0.0;
    for (const auto& c : p_) {
      if (!(c.mean > 0.0)) continue;
      const double e = c.weight * std::expm1(exponent(c, x));
      sum += e;
      weighted += c.mean * (e + c.weight);
    }
    if (sum > -0.5 && std::isfinite(sum)) return {std::log1p(sum), weighted / (1.0 + sum)};
  }
  return {loss(x), mean_at(x, 1.0)};
}

double DominatingPair::inverse_loss(double target, double guess) const {
  if (against_ == Against::mirror && target == 0.0) return 0.0;
  if (against_ == Against::noise && (p_.size() == 1 || (p_.size() == 2 && p_[0].mean == 0.0)))
    return inverse_loss_of_one_moved(target);
  // Bracket by doubling around the guess, then safeguarded Newton: L is increasing and L' > 0.
  double low = guess > 0.0 ? guess : 0.5 * largest_mean();
  double high = low;
  for (double step = sigma_; loss(low) > target; step *= 2.0) {
    low -= step;
    if (against_ == Against::mirror && low < 0.0) {
      low = 0.0;
      break;
    }
    if (!(low > -1e300)) throw OutOfReach(cat("no point has privacy loss ", target));
  }
  for (double step = sigma_; loss(high) < target; step *= 2.0) high += step;
  double x = guess > low && guess < high ? guess : 0.5 * (low + high);
  for (int i = 0; i < 200 && low < high; ++i) {
    const auto [at_x, slope] = loss_and_slope(x);
    const double value = at_x - target;
    if (value > 0.0) {
      high = x;
    } else {
      low = x;
    }
    if (value == 0.0) break;
    // Newton's steps are guarded: a rounded slope costs at most a step.
    double next = x - value / (slope * inverse_variance_);
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    if (next == x || std::abs(next - x) <= 2e-16 * std::max(std::abs(x), sigma_ * 1e-3)) return next;
    x = next;
  }
  return x;
}

double DominatingPair::log_tail_p(double x) const {
  std::vector<double> terms;
  terms.reserve(p_.size());
  for (const auto& c : p_) terms.push_back(std::log(c.weight) + log_normal_tail((x - c.mean) / sigma_));
  return log_sum_exp(terms.data(), terms.size());
}

double DominatingPair::log_tail_q(double x) const {
  if (against_ == Against::noise) return log_normal_tail(x / sigma_);
  std::vector<double> terms;
  terms.reserve(p_.size());
  for (const auto& c : p_) terms.push_back(std::log(c.weight) + log_normal_tail((x + c.mean) / sigma_));
  return log_sum_exp(terms.data(), terms.size());
}

double DominatingPair::log_head_p(double x) const {
  std::vector<double> terms;
  terms.reserve(p_.size());
  for (const auto& c : p_) terms.push_back(std::log(c.weight) + log_normal_tail((c.mean - x) / sigma_));
  return log_sum_exp(terms.data(), terms.size());
}

double DominatingPair::log_head_q(double x) const {
  if (against_ == Against::noise) return log_normal_tail(-x / sigma_);
  std::vector<double> terms;
  terms.reserve(p_.size());
  for (const auto& c : p_) terms.push_back(std::log(c.weight) + log_normal_tail((-c.mean - x) / sigma_));
  return log_sum_exp(terms.data(), terms.size());
}

double DominatingPair::scaled_density_p(double x, double log_scale) const {
  const double front = 1.0 / (sigma_ * std::sqrt(2.0 * std::numbers::pi));
  double sum = 0.0;
  for (const auto& c : p_)
    sum += c.weight * std::exp(log_scale - 0.5 * (x - c.mean) * (x - c.mean) * inverse_variance_);
  return front * sum;
}

double DominatingPair::scaled_density_q(double x, double log_scale) const {
  const double front = 1.0 / (sigma_ * std::sqrt(2.0 * std::numbers::pi));
  if (against_ == Against::noise) return front * std::exp(log_scale - 0.5 * x * x * inverse_variance_);
  double sum = 0.0;
  for (const auto& c : p_)
    sum += c.weight * std::exp(log_scale - 0.5 * (x + c.mean) * (x + c.mean) * inverse_variance_);
  return front * sum;
}

double DominatingPair::symmetrised_profile(double epsilon) const {
  // H_α(Q‖P) for α = e^{−e} < 1 is 1 − α + α H_{1/α}(P‖Q) (identity 3.1 of the paper's notes), so both signs rest on
  // H at |ε|; with ρ_out the whole is max(0, 1 − α) + ρ_out·(the part above it).
  const double e = std::abs(epsilon);
  const double x = inverse_loss(e);
  double positive = 0.0;
  if (e < std::numbers::ln2) {
    // P(X > x) − Q(X > x) term by term, less (e^ε − 1) Q(X > x): no cancellation where P and Q nearly agree.
    double gap = 0.0;
    for (const auto& c : p_)
      gap += c.weight * (against_ == Against::mirror ? normal_between((x + c.mean) / sigma_, 2.0 * c.mean / sigma_)
                                                     : normal_between(x / sigma_, c.mean / sigma_));
    positive = gap - std::expm1(e) * std::exp(log_tail_q(x));
  } else {
    // With tails a = P(X > x), b = Q(X > x): a − e^ε b = a · (−expm1(ε + log b − log a)).
    const double a = log_tail_p(x);
    positive = -std::exp(a) * std::expm1(e + log_tail_q(x) - a);
  }
  positive = use_probability_ * std::max(0.0, positive);
  if (epsilon >= 0.0) return positive;
  return -std::expm1(-e) + std::exp(-e) * positive;
}

void DominatingPair::require_one_moved() const {
  const bool one_moved = p_.size() == 1 || (p_.size() == 2 && p_.front().mean == 0.0);
  if (against_ != Against::noise || !one_moved || use_probability_ != 1.0)
    throw Error(ExitCode::failure, "one direction of a pair is for a single moved component");
}

double DominatingPair::largest_add_loss() const {
  require_one_moved();
  if (p_.size() == 1) return std::numeric_limits<double>::infinity();
  return -std::log1p(-p_.back().weight) * (1.0 + 1e-15);
}

DominatingPair::Value DominatingPair::add_profile(double epsilon) const {
  // sup_S Q(S) − e^ε P(S) is attained on the half line below the x of loss −ε, if there is one.
  const double weight = p_.back().weight;
  const double mean = p_.back().mean;
  const double inside = std::expm1(-epsilon) / weight;
  if (epsilon >= largest_add_loss() || (p_.size() == 2 && !(inside > -1.0))) return {0.0, 0.0};
  const double u = p_.size() == 1 ? -epsilon : std::log1p(inside);
  const double x = sigma_ * sigma_ * u / mean + 0.5 * mean;
  // x is the border of an ε′ that is off by 3 units of e^ε − 1, and the divergence is 1-Lipschitz in e^ε, with slope
  // P(X < x) ≤ e^{−ε} Q(X < x); tails are good to 1e-13 of themselves.
  const double q = std::exp(log_head_q(x));
  const double border = 4e-16 * std::expm1(epsilon) * q;
  if (epsilon < std::numbers::ln2) {
    // Q(X < x) − P(X < x) = q (Φ(x/σ) − Φ((x − μ)/σ)), without cancellation.
    const double gap = weight * normal_between(-(x - mean) / sigma_, mean / sigma_);
    return {std::max(0.0, gap - std::expm1(epsilon) * std::exp(log_head_p(x))), 4e-13 * gap + border};
  }
  return {std::max(0.0, -q * std::expm1(epsilon + log_head_p(x) - log_head_q(x))), 4e-13 * q + border};
}

double DominatingPair::profile(Direction direction, double epsilon) const {
  if (direction == Direction::symmetrised) return symmetrised_profile(epsilon);
  require_one_moved();
  if (!(epsilon >= 0.0)) throw Error(ExitCode::failure, "one direction of a profile is for epsilon of at least 0");
  return direction == Direction::remove ? symmetrised_profile(epsilon) : add_profile(epsilon).value;
}

Interval DominatingPair::profile_bracket(Direction direction, double epsilon) const {
  const double value = profile(direction, epsilon);
  if (direction == Direction::add) {
    const double error = add_profile(epsilon).error;
    return {std::max(0.0, value - error), std::min(1.0, value + error)};
  }
  if (epsilon < 0.0) return {std::max(0.0, value - 2e-15), std::min(1.0, value + 2e-15)};
  // Near ε = 0 the difference of P- and (e^ε times) Q-tails loses a factor z² twice over, z the deviations of the
  // component that matters, −2 log Q-tail: the tails' exponents round by u z², and they agree but for a share of about
  // 1/z². Elsewhere exponents and logarithms count once.
  const double square = 4.0 - 2.0 * log_tail_q(inverse_loss(epsilon));
  const double weights = 1e-13 * static_cast<double>(p_.size());
  const double error =
      2e-12 + weights + 1e-15 * (square * (epsilon < std::numbers::ln2 ? square : 4.0) + 4.0 * epsilon);
  constexpr double least = 1e-250;  // what may have underflowed
  return {value < least ? 0.0 : value * std::max(0.0, 1.0 - error),
          std::min(1.0, std::max(value, least) * (1.0 + error))};
}

}  // namespace tsdp::privacy
