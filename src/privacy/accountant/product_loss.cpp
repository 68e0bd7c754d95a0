#include "product_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "privacy/terms/out_of_reach.h"
#include "tilted_transform.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// The largest exponent θ·L that keeps e^{θL} finite with room to sum, for θ > 0.
double largest_theta(const ProductLoss& d) { return 600.0 / std::max(d.largest_plus(), 1e-300); }

/// Whether e^{θL} is finite for all losses L, θ of either sign, with a little less room.
bool is_finite_at(const ProductLoss& d, double theta) {
  return theta >= 0.0 ? theta <= 1.15 * largest_theta(d) : -theta * d.largest_loss() <= 1.15 * 600.0;
}

/// Sums in `Real`, which must hold e^{±θ·largest loss} times masses.
template <class Real>
Cumulants cumulants_in(const LossDistribution& d, double theta) {
  Real zeroth = d.at_zero;
  Real first = 0;
  Real second = 0;
  for (const auto& p : d.points) {
    const Real x = static_cast<double>(p.index) * d.step;
    const Real e = std::exp(theta * x);
    // One of them may be so far out that it has no mass.
    const Real up = p.plus > 0.0 ? p.plus * e : Real{0};
    const Real down = p.minus > 0.0 ? p.minus / e : Real{0};
    zeroth += up + down;
    first += (up - down) * x;
    second += (up + down) * x * x;
  }
  const Real mean = first / zeroth;
  return {static_cast<double>(std::log(zeroth)), static_cast<double>(mean),
          static_cast<double>(std::max<Real>(second / zeroth - mean * mean, 0))};
}

/// An edge (as a loss) beyond which the tilted k-fold sum has mass at most e^{log_outside}, sign = +1 right, −1 left.
/// Chernoff: P(±(S − e) ≥ 0) ≤ exp(k (K(θ ± s) − K(θ)) ∓ s e) for every s > 0, so for each s the edge at which this is
/// e^{log_outside} is valid. For a Gaussian s = √92 deviations⁻¹ is best; heavier tails want smaller s.
double edge(const ProductLoss& d, double uses, double theta, const Cumulants& at, double sign) {
  const double deviation = std::sqrt(std::max(uses * at.variance, 1e-300));
  double best = sign * std::numeric_limits<double>::infinity();
  for (const double multiple : {9.6, 7.0, 4.8, 12.0, 3.0, 1.8, 1.0, 0.5, 0.25}) {
    const double s = multiple / deviation;
    if (!is_finite_at(d, theta + sign * s)) continue;
    const double e = sign * (uses * (cumulants(d, theta + sign * s).value - at.value) - log_outside) / s;
    best = sign > 0 ? std::min(best, e) : std::max(best, e);
    if (std::abs(best - uses * at.mean) <= 10.5 * deviation) break;
  }
  return best;
}

}  // namespace

ProductLoss::ProductLoss(std::vector<Part> all) : parts(std::move(all)) {
  for (const auto& part : parts)
    if (part.count < 1 || part.distribution.step != step() || part.distribution.rounding != rounding())
      throw Error(ExitCode::failure, "losses that are added up stand on one grid");
  if (parts.empty()) throw Error(ExitCode::failure, "a composition has at least one mechanism");
}

double ProductLoss::largest_index() const {
  double sum = 0.0;
  for (const auto& part : parts)
    sum += static_cast<double>(part.count) * static_cast<double>(part.distribution.largest_index());
  return sum;
}

double ProductLoss::largest_loss() const {
  double largest = 0.0;
  for (const auto& part : parts) largest = std::max(largest, part.distribution.largest_loss());
  return largest;
}

double ProductLoss::largest_plus() const {
  double largest = 0.0;
  for (const auto& part : parts) largest = std::max(largest, part.distribution.largest_plus());
  return largest;
}

double ProductLoss::offset() const {
  double sum = 0.0;
  for (const auto& part : parts) sum += static_cast<double>(part.count) * part.distribution.offset;
  return sum;
}

double log_c(double theta) { return theta * std::log(theta) - (1.0 + theta) * std::log1p(theta); }

Cumulants cumulants(const LossDistribution& d, double theta) {
  // An underflow would understate K, and with it Chernoff's bounds. For losses below 0 alone it does not matter if
  // θ > 0: what is left out is less than e^{−700}.
  return std::abs(theta) * (theta > 0.0 ? d.largest_plus() : d.largest_loss()) < 200.0
             ? cumulants_in<double>(d, theta)
             : cumulants_in<long double>(d, theta);
}

Cumulants cumulants(const ProductLoss& loss, double theta) {
  Cumulants sum{0.0, 0.0, 0.0};
  for (const auto& part : loss.parts) {
    const auto one = cumulants(part.distribution, theta);
    const auto count = static_cast<double>(part.count);
    sum.value += count * one.value;
    sum.mean += count * one.mean;
    sum.variance += count * one.variance;
  }
  return sum;
}

double best_tilt_for_epsilon(const ProductLoss& d, std::uint64_t uses, double epsilon) {
  const auto k = static_cast<double>(uses);
  // Stationarity: k K′(θ) + log(θ/(1+θ)) = ε, increasing in θ: safeguarded Newton.
  double low = 1e-6;
  double high = largest_theta(d);
  const auto at_zero = cumulants(d, 0.0);
  double theta =
      std::clamp((epsilon - k * at_zero.mean) / std::max(k * at_zero.variance, 1e-300), 10.0 * low, 0.5 * high);
  for (int i = 0; i < 60; ++i) {
    const auto c = cumulants(d, theta);
    const double value = k * c.mean + std::log(theta / (1.0 + theta)) - epsilon;
    if (value > 0.0) {
      high = theta;
    } else {
      low = theta;
    }
    const double slope = k * c.variance + 1.0 / (theta * (1.0 + theta));
    double next = theta - value / slope;
    if (!(next > low && next < high)) next = std::sqrt(low * high);
    if (std::abs(next - theta) < 1e-2 * theta || high / low < 1.01) return next;
    theta = next;
  }
  return theta;
}

double best_tilt_for_delta(const ProductLoss& d, std::uint64_t uses, double delta) {
  const auto k = static_cast<double>(uses);
  const double target = std::log(delta);
  // Along the curve of stationary points ε(θ) = k K′ + log(θ/(1+θ)) the bound k K − θ ε + log c falls in θ.
  double low = 1e-6;
  double high = largest_theta(d);
  while (high / low > 1.02) {
    const double theta = std::sqrt(low * high);
    const auto c = cumulants(d, theta);
    const double epsilon = k * c.mean + std::log(theta / (1.0 + theta));
    (k * c.value - theta * epsilon + log_c(theta) > target ? low : high) = theta;
  }
  return std::sqrt(low * high);
}

bool high_frequencies_vanish(const ProductLoss& d, std::uint64_t uses) {
  double left = 0.0;
  for (const auto& part : d.parts)
    left += static_cast<double>(part.count) * std::log(0.5 + 0.5 * part.distribution.at_zero);
  return static_cast<double>(uses) * left < 2.0 * TiltedTransform::log_vanishing;
}

Window window_of(const ProductLoss& d, std::uint64_t uses, double theta, double most) {
  if (uses == 0) throw Error(ExitCode::failure, "a composition has at least one use");
  const auto k = static_cast<double>(uses);
  const double support = k * d.largest_index();  // largest |index| of the k-fold sum
  // Subsampled Gaussians have a phase transition in θ beyond which far tails dominate and windows grow; a smaller θ is
  // as valid and well behaved.
  for (int attempt = 0;; ++attempt) {
    const auto at = cumulants(d, theta);
    if (!std::isfinite(at.value) || !std::isfinite(at.mean) || !std::isfinite(at.variance))
      throw OutOfReach("the privacy loss is too large to be composed: ask for a larger noise multiplier");
    const double low = std::max(-support, std::floor(edge(d, k, theta, at, -1.0) / d.step()) - 1.0);
    const double high = std::min(support, std::ceil(edge(d, k, theta, at, +1.0) / d.step()) + 1.0);
    const double cells = high - low + 1.0;
    if (!(cells >= 1.0))
      throw OutOfReach("the privacy loss is too large to be composed: ask for a larger noise multiplier");
    const double comfortable =
        high_frequencies_vanish(d, uses) ? most : std::max(64.0 * std::sqrt(k * at.variance) / d.step(), 4194304.0);
    if (cells <= std::min(comfortable, most) || (attempt >= 12 && cells <= most))
      return {theta, static_cast<std::int64_t>(low), static_cast<std::int64_t>(cells)};
    if (attempt >= 40)
      throw OutOfReach(cat("the composition would need a transform of ", cells, " points; at most ", most,
                           " are allowed: ask for less precision or fewer steps"));
    theta *= 0.8;
  }
}

}  // namespace tsdp::privacy
