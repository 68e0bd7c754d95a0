#include "rounded_sum.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "privacy/accountant/fourier.h"
#include "privacy/accountant/normal_tail.h"
#include "privacy/terms/numbers.h"

namespace tsdp::privacy {
namespace {

/// Masses of multiples of h below nh, each off by at most `error` from transforms, all together by at most `cells` from
/// cells.
struct Law {
  std::vector<double> mass;
  double error = 0.0;
  double cells = 0.0;
};

/// Transform of a law, padded so that sums below nh are not overlaid by others.
class Transformed {
 public:
  Transformed(const Law& law, std::int64_t size)
      : values_(static_cast<std::size_t>(size) + 2, 0.0), size_(size), error_(law.error), cells_(law.cells) {
    std::copy(law.mass.begin(), law.mass.end(), values_.begin());
    for (const double m : law.mass) {
      square_ += m * m;
      sum_ += m;
    }
    fourier::forward(values_.data(), size);
  }

  /// Law of the sum of both, its first n masses.
  static Law product(const Transformed& a, const Transformed& b, std::size_t n) {
    auto all = a.values_;
    auto* numbers = reinterpret_cast<std::complex<double>*>(all.data());
    const auto* others = reinterpret_cast<const std::complex<double>*>(b.values_.data());
    for (std::int64_t k = 0; k <= a.size_ / 2; ++k) numbers[k] *= others[k];
    fourier::backward(all.data(), a.size_);
    Law out;
    out.mass.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
    for (auto& m : out.mass) m = std::max(0.0, m / static_cast<double>(a.size_));
    // Three transforms, each off by 8 log₂ N units (Higham 2002, Theorem 24.2, generously), and the product. An entry
    // of the answer is the mean of N terms |â_k b̂_k|, each rounded log₂ N times on its way: off by at most that many
    // units of Σ|â_k b̂_k|/N ≤ ‖a‖₂ ‖b‖₂.
    const double own =
        (24.0 * std::log2(static_cast<double>(a.size_)) + 16.0) * roundoff * std::sqrt(a.square_ * b.square_) * 1.001;
    // The errors of the factors: each entry of one meets masses of the other, which sum up to at most 1, and errors.
    const auto points = static_cast<double>(n);
    out.error = own + a.error_ * (b.sum_ + points * b.error_) + b.error_ * (a.sum_ + points * a.error_);
    out.cells = a.cells_ * (b.sum_ + b.cells_ + points * b.error_) + b.cells_ * (a.sum_ + a.cells_ + points * a.error_);
    return out;
  }

 private:
  std::vector<double> values_;
  std::int64_t size_;
  double error_, cells_, square_ = 0.0, sum_ = 0.0;
};

/// P[X ≥ x], to nearest.
double tail_of(double x, double mu) { return x <= 0.0 ? 1.0 : normal_tail(std::log(x) / mu + 0.5 * mu); }

/// g(s) = P[X′ > γb − s] − γ P[X > γb − s] from what s leaves of γb, to nearest.
double g_of(double left, double mu, double gamma) {
  if (!(left > 0.0)) return 1.0 - gamma;
  const double at = std::log(left) / mu;
  return normal_tail(at - 0.5 * mu) - gamma * normal_tail(at + 0.5 * mu);
}

/// One X, rounded down to multiples of h.
struct Summand {
  Law law;
  double relative = 0.0;  // of itself, what a cell is off by
  double together = 0.0;  // what all cells are off by
};

/// The first n cells [jh, (j + 1)h) of X, to nearest, whose tails are off by at most `off` of themselves; what the
/// cells are off by, from above.
Summand summand_of(double mu, double h, std::size_t n, double off) {
  Summand out;
  Law& one = out.law;
  one.mass.resize(n);
  double before = 1.0;
  for (std::size_t j = 0; j < n; ++j) {
    const double after = tail_of(static_cast<double>(j + 1) * h, mu);
    one.mass[j] = std::max(0.0, before - after);
    before = after;
  }
  // A cell's mass is off by `relative` of itself where it is not far below the tail, which multiplies what all sums of
  // b − 1 cells weigh; elsewhere (far below the median) the errors themselves are added up.
  for (std::size_t j = 0; j < n; ++j) {
    const double tails = 2.0 * off * tail_of(static_cast<double>(j) * h, mu);
    out.together += tails;
    if (tails <= 1e-8 * one.mass[j]) out.relative = std::max(out.relative, tails / one.mass[j]);
    else one.cells += tails;
  }
  return out;
}

/// The law of the sum of `times` such variables below nh, n as many as `one` has; its errors from above.
Law sum_of(const Law& one, std::uint64_t times) {
  const auto n = one.mass.size();
  const auto size = fourier::good_size(2 * static_cast<std::int64_t>(n));
  Law sum = one;
  const Transformed of_one(one, size);
  // From the highest digit on.
  int digit = 63;
  while ((times >> digit & 1) == 0) --digit;
  for (--digit; digit >= 0; --digit) {
    const Transformed half(sum, size);
    sum = Transformed::product(half, half, n);
    if ((times >> digit & 1) != 0) sum = Transformed::product(Transformed(sum, size), of_one, n);
  }
  return sum;
}

}  // namespace

RoundedSum::Ends RoundedSum::removal(std::int64_t bins, double mu, double epsilon) {
  const auto b = static_cast<double>(bins);
  const double gamma = std::exp(epsilon);
  const double threshold = gamma * b;
  const auto points = std::clamp<std::int64_t>(1024 * bins, 1 << 14, most_points);
  const auto n = static_cast<std::size_t>(points);
  const double h = threshold / static_cast<double>(points);
  // Arguments are off by 4 units of the logarithm over μ and of μ, which a tail at t makes 1 + |t| times as many; tails
  // by themselves by t² and a few units.
  const double logs = std::abs(std::log(threshold)) + std::abs(std::log(h));
  const double farthest = logs / mu + mu;
  const double off = roundoff * (16.0 + 2.0 * farthest * farthest + 4.0 * (1.0 + farthest) * (logs + mu * mu) / mu);
  const auto one = summand_of(mu, h, n, off);
  const auto times = static_cast<std::uint64_t>(bins - 1);
  const auto sum = sum_of(one.law, times);
  const double peak = gamma * (b - 1.0);
  const double width = (b - 1.0) * h * (1.0 + 1e-12) + 8.0 * roundoff * threshold;
  const auto g = [&](double s) { return g_of(threshold - s, mu, gamma); };
  // The error of g: tails and their arguments, and the difference.
  const double g_off = 32.0 * off;
  // The errors of masses, entry by entry: of transforms, and of cells, relative to the mass.
  const double of_itself = 1.01 * (b - 1.0) * one.relative;
  const auto at_least = [&](double mass) { return std::max(0.0, mass * (1.0 - of_itself) - sum.error); };
  const auto at_most = [&](double mass) { return mass * (1.0 + of_itself) + sum.error; };
  double lower = 0.0;
  double upper = 0.0;
  double held = 0.0;
  double sizes = 0.0;  // of the terms
  for (std::size_t j = 0; j < n; ++j) {
    const double mass = sum.mass[j];
    const double left = static_cast<double>(j) * h;
    const double right = left + width;
    const double at_left = g(left);
    const double at_right = g(right);
    const double rest = std::max(threshold - right, 0.0);
    // What is left of the threshold loses digits near its end.
    const double near_end = (1.0 + farthest) / mu * 8.0 * roundoff * threshold / std::max(rest, h);
    const double slack =
        (g_off + near_end) * (std::max(std::abs(at_left), std::abs(at_right)) +
                              (1.0 + gamma) * (rest > 0.0 ? normal_tail(std::log(rest) / mu + 0.5 * mu) : 1.0));
    const double most = (right <= peak ? at_right : left >= peak ? at_left : g(peak)) + slack;
    const double least = std::min(at_left, at_right) - slack;
    upper += most * (most > 0.0 ? at_most(mass) : at_least(mass));
    lower += least * (least < 0.0 ? at_most(mass) : at_least(mass));
    sizes += std::max(std::abs(most), std::abs(least)) * mass;
    held += mass;
  }
  // Sums of n terms, and errors of cells far below the median.
  const double of_sums = static_cast<double>(n) * roundoff * 1.01 * sizes + sum.cells * std::max(1.0, gamma) + 1e-300;
  // From γb on, g is 1 − γ. One variable alone reaches it with at least this probability.
  const double held_off =
      sum.error * static_cast<double>(n) + 1.01 * (b - 1.0) * one.together + static_cast<double>(n) * roundoff;
  const double alone = -std::expm1(static_cast<double>(times) * std::log1p(-tail_of(threshold, mu) * (1.0 - off)));
  const double beyond_least = std::max({0.0, 1.0 - held - held_off, alone * (1.0 - 64.0 * roundoff)});
  const double beyond_most = std::min(1.0, std::max(beyond_least, 1.0 - held + held_off));
  upper += of_sums + (1.0 - gamma) * beyond_least * (1.0 - 8.0 * roundoff);
  lower -= of_sums + (gamma - 1.0) * beyond_most * (1.0 + 8.0 * roundoff);
  return {std::clamp(lower, 0.0, 1.0), std::clamp(upper, 0.0, 1.0)};
}

}  // namespace tsdp::privacy
