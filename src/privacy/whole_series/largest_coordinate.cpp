#include "largest_coordinate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "privacy/accountant/normal_tail.h"
#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {
namespace {

// Relative error of a tail. erfc's argument is off by 2 units, which moves it by z² of them: below 2e-13 for the
// |z| ≤ 14 that occur here; logarithms and expm1 add a few units.
constexpr double tail_error = 1e-12;

}  // namespace

LargestCoordinate::LargestCoordinate(std::int64_t coordinates, double with, double without, double sigma)
    : coordinates_(coordinates), with_(with), without_(without), sigma_(sigma) {}

double LargestCoordinate::tail(double shift, double threshold) const {
  const double others = static_cast<double>(coordinates_ - 1) * std::log1p(-normal_tail(threshold / sigma_));
  return -std::expm1(std::log1p(-normal_tail((threshold - shift) / sigma_)) + (coordinates_ > 1 ? others : 0.0));
}

// Where M has next to no mass below and beyond.
double LargestCoordinate::least() const { return without_ - 9.0 * sigma_; }
double LargestCoordinate::most() const { return std::max(with_ + 12.0 * sigma_, 14.0 * sigma_); }

template <class Function>
double LargestCoordinate::best_threshold(Function value) const {
  // The function has one hump, or a few: the best point of a grid, then golden section around it.
  constexpr int points = 200;
  const double low = coordinates_ > 1 ? 0.0 : least();
  const double step = (most() - low) / points;
  double best = low;
  double most_found = -std::numeric_limits<double>::infinity();
  for (int i = 0; i <= points; ++i) {
    const double found = value(low + i * step);
    if (found > most_found) {
      most_found = found;
      best = low + i * step;
    }
  }
  double left = best - step;
  double right = best + step;
  constexpr double golden = 0.6180339887498949;
  double a = right - golden * (right - left);
  double b = left + golden * (right - left);
  double at_a = value(a);
  double at_b = value(b);
  for (int i = 0; i < 40; ++i) {
    if (at_a < at_b) {
      left = a;
      a = b;
      at_a = at_b;
      b = left + golden * (right - left);
      at_b = value(b);
    } else {
      right = b;
      b = a;
      at_b = at_a;
      a = right - golden * (right - left);
      at_a = value(a);
    }
  }
  const double refined = 0.5 * (a + b);
  return value(refined) > most_found ? refined : best;
}

double LargestCoordinate::best_event(double epsilon) const {
  // Thresholds beyond which Q's tail has lost its digits are no events.
  const auto value = [&](double threshold) {
    const double q = without_tail(threshold);
    if (!(q > 1e-300)) return -1.0;
    return with_tail(threshold) * (1.0 - tail_error) -
           std::exp(std::min(epsilon + std::log(q), 700.0)) * (1.0 + tail_error + 1e-15 * epsilon);
  };
  return std::max(0.0, value(best_threshold(value)) * (1.0 - 1e-15));
}

double LargestCoordinate::best_epsilon(double delta) const {
  const auto value = [&](double threshold) {
    const double over = with_tail(threshold) * (1.0 - tail_error) - delta * (1.0 + 1e-15);
    const double q = without_tail(threshold) * (1.0 + tail_error);
    return over > 0.0 && q > 1e-300 ? std::log(over / q) : -1.0;
  };
  const double found = value(best_threshold(value));
  return std::max(0.0, found - 1e-15 * (2.0 + std::abs(found)));
}

double LargestCoordinate::best_count(double epsilon, std::uint64_t uses) const {
  const auto k = static_cast<double>(uses);
  const auto value = [&](double threshold) {
    const double p = std::min(1.0, with_tail(threshold) * (1.0 - tail_error));
    const double q = std::min(1.0, without_tail(threshold) * (1.0 + tail_error));
    if (!(p > 0.0) || !(q > 1e-300) || !(p > q) || p == 1.0 || q == 1.0) return 0.0;
    // The ratio of terms grows with j: the sum is over j ≥ j₀. Terms are good to 1e-13 (k + ε) (logarithms of
    // binomials).
    double sum = 0.0;
    const double error = 1e-13 * (k + epsilon + 10.0) + 2e-15 * k * (std::abs(std::log(q)) + std::abs(std::log(p)));
    for (std::uint64_t j = uses;; --j) {
      const auto i = static_cast<double>(j);
      const double log_binomial = std::lgamma(k + 1.0) - std::lgamma(i + 1.0) - std::lgamma(k - i + 1.0);
      const double log_p = log_binomial + i * std::log(p) + (k - i) * std::log1p(-p);
      const double log_q = log_binomial + i * std::log(q) + (k - i) * std::log1p(-q);
      const double gain = std::exp(log_p) * (1.0 - error) - std::exp(epsilon + log_q) * (1.0 + error);
      if (!(gain > 0.0) && log_p > -700.0) break;
      sum += std::max(0.0, gain);
      if (j == 0) break;
    }
    return sum;
  };
  return std::clamp(value(best_threshold(value)) * (1.0 - 1e-13), 0.0, 1.0);
}

double LargestCoordinate::step_for(double points) const {
  // The ratio of densities at C is near e^{((C − m) (with − without))/σ²}, m between the shifts.
  const double reach = (most() + with_) * (with_ - without_) / (sigma_ * sigma_);
  return reach / points;
}

LossDistribution LargestCoordinate::loss(double step) const {
  // Cells of M, several to a step of the loss, so that the loss of a cell is near that of its points.
  const double slope = (with_ - without_) / (sigma_ * sigma_);
  const double low = coordinates_ > 1 ? -2.0 * sigma_ : least();
  const double high = most();
  const auto cells = static_cast<std::int64_t>(std::clamp(4.0 * slope * (high - low) / step, 64.0, 60'000.0));
  const double width = (high - low) / static_cast<double>(cells);
  LossDistribution out;
  out.rounding = Rounding::optimistic;
  out.step = step;
  std::map<std::int64_t, double> masses;
  double p_before = with_tail(low);
  double q_before = without_tail(low);
  const auto put = [&](double p, double q, double of_p, double of_q) {
    // Differences of tails are off by their error times the tails; tails that have lost their digits are left out.
    if (!(of_q > 1e-290)) return;
    const double mass = p - tail_error * of_p;
    const double other = q + tail_error * of_q;
    if (!(mass > 0.0) || !(other > 0.0)) return;
    const double loss = std::log(mass / other);
    masses[static_cast<std::int64_t>(std::floor(loss / step * (1.0 + (loss > 0.0 ? -1e-14 : 1e-14))))] += mass;
  };
  put(1.0 - p_before, 1.0 - q_before, 1.0, 1.0);
  for (std::int64_t i = 1; i <= cells; ++i) {
    const double at = low + width * static_cast<double>(i);
    const double p = with_tail(at);
    const double q = without_tail(at);
    put(p_before - p, q_before - q, p_before, q_before);
    p_before = p;
    q_before = q;
  }
  put(p_before, q_before, p_before, q_before);
  std::map<std::int64_t, LossDistribution::Point> points;
  for (const auto& [index, mass] : masses) {
    if (index == 0) {
      out.at_zero = mass;
      continue;
    }
    auto& point = points[std::abs(index)];
    point.index = std::abs(index);
    (index > 0 ? point.plus : point.minus) = mass;
  }
  for (const auto& [index, point] : points) out.points.push_back(point);
  return out;
}

}  // namespace tsdp::privacy
