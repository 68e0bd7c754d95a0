#include "composition.h"

#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <mutex>
#include <numbers>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::privacy {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2;

// Largest transform: 2^25 doubles are 256 MB.
constexpr std::int64_t max_transform = std::int64_t{1} << 25;

double log_c(double theta) { return theta * std::log(theta) - (1.0 + theta) * std::log1p(theta); }

/// The largest exponent θ·L that keeps e^{θL} finite with room to sum.
double largest_theta(const LossDistribution& d) { return 600.0 / std::max(d.largest_loss(), 1e-300); }

struct FftwFree {
  void operator()(void* p) const { fftw_free(p); }
};
struct PlanDestroy {
  void operator()(fftw_plan_s* p) const {
    const std::scoped_lock lock(mutex());
    fftw_destroy_plan(p);
  }
  static std::mutex& mutex() {
    static std::mutex instance;  // FFTW's planner is not thread-safe
    return instance;
  }
};
__extension__ using Wide = __int128;
using Plan = std::unique_ptr<fftw_plan_s, PlanDestroy>;

/// The least 2^a, 3·2^a or 5·2^a of at least `n`, even.
std::int64_t good_size(std::int64_t n) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t odd : {1, 3, 5}) {
    std::int64_t size = 2 * odd;
    while (size < n) size *= 2;
    best = std::min(best, size);
  }
  return best;
}

// Tilted mass that may lie outside a window on either side: e^{−46} = 1e-20.
constexpr double log_outside = -46.0;

/// An edge (as a loss) beyond which the tilted k-fold sum has mass at most e^{log_outside}, sign = +1 right, −1 left.
/// Chernoff: P(±(S − e) ≥ 0) ≤ exp(k (K(θ ± s) − K(θ)) ∓ s e) for every s > 0, so for each s the edge at which this is
/// e^{log_outside} is valid; the innermost of a few is taken.
double edge(const LossDistribution& d, double uses, double theta, const Cumulants& at, double sign) {
  const double deviation = std::sqrt(std::max(uses * at.variance, 1e-300));
  double best = sign * std::numeric_limits<double>::infinity();
  for (const double multiple : {0.3, 0.6, 1.2, 2.4, 4.0, 5.6, 7.2, 8.6, 10.0, 12.0, 15.0}) {
    const double s = multiple / deviation;
    if (std::abs(theta + sign * s) > 1.15 * largest_theta(d)) break;
    const double e = sign * (uses * (cumulants(d, theta + sign * s).value - at.value) - log_outside) / s;
    best = sign > 0 ? std::min(best, e) : std::max(best, e);
  }
  return best;
}

}  // namespace

Cumulants cumulants(const LossDistribution& d, double theta) {
  const auto n = d.half_size;
  // Centred at the largest exponent so that nothing overflows; blocks keep the rounding of long sums small.
  const double top = std::abs(theta) * d.largest_loss();
  const double shift = top > 500.0 ? top : 0.0;
  long double zeroth = 0.0L;
  long double first = 0.0L;
  long double second = 0.0L;
  constexpr std::int64_t block = 64;
  const double ratio = std::exp(theta * d.step);
  for (std::int64_t begin = -n; begin <= n; begin += block) {
    // Within a block the factor advances by multiplication (64 roundings), at its start it is computed anew.
    double factor = std::exp(theta * d.step * static_cast<double>(begin) - shift);
    double s0 = 0.0;
    double s1 = 0.0;
    double s2 = 0.0;
    const std::int64_t end = std::min(n, begin + block - 1);
    for (std::int64_t i = begin; i <= end; ++i) {
      const double term = d.mass[static_cast<std::size_t>(i + n)] * factor;
      const auto x = static_cast<double>(i);
      s0 += term;
      s1 += term * x;
      s2 += term * x * x;
      factor *= ratio;
    }
    zeroth += s0;
    first += s1;
    second += s2;
  }
  const auto mean = static_cast<double>(first / zeroth);
  const auto variance = static_cast<double>(second / zeroth - (first / zeroth) * (first / zeroth));
  return {static_cast<double>(std::log(zeroth)) + shift, mean * d.step, std::max(variance, 0.0) * d.step * d.step};
}

double best_tilt_for_epsilon(const LossDistribution& d, std::uint64_t uses, double epsilon) {
  const auto k = static_cast<double>(uses);
  // Stationarity: k K′(θ) + log(θ/(1+θ)) = ε, increasing in θ: safeguarded Newton in log θ.
  double low = 1e-6;
  double high = largest_theta(d);
  const auto at_zero = cumulants(d, 0.0);
  double theta = std::clamp((epsilon - k * at_zero.mean) / std::max(k * at_zero.variance, 1e-300), 10.0 * low, 0.5 * high);
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
    if (std::abs(next - theta) < 1e-3 * theta || high / low < 1.001) return next;
    theta = next;
  }
  return theta;
}

TiltAndEpsilon best_tilt_for_delta(const LossDistribution& d, std::uint64_t uses, double delta) {
  const auto k = static_cast<double>(uses);
  const double target = std::log(delta);
  // Along the curve of stationary points ε(θ) = k K′ + log(θ/(1+θ)) the bound k K − θ ε + log c falls in θ.
  double low = 1e-6;
  double high = largest_theta(d);
  double epsilon = 0.0;
  double theta = std::sqrt(low * high);
  for (int i = 0; i < 80; ++i) {
    theta = std::sqrt(low * high);
    const auto c = cumulants(d, theta);
    epsilon = k * c.mean + std::log(theta / (1.0 + theta));
    if (k * c.value - theta * epsilon + log_c(theta) > target) {
      low = theta;
    } else {
      high = theta;
    }
    if (high / low < 1.002) break;
  }
  return {theta, epsilon};
}

Composition::Composition(const LossDistribution& d, std::uint64_t uses, double theta)
    : rounding_(d.rounding), step_(d.step), uses_(static_cast<double>(uses)), theta_(theta) {
  if (uses == 0) throw Error(ExitCode::failure, "a composition has at least one use");
  const auto n = d.half_size;
  const double support = uses_ * static_cast<double>(n);  // largest |index| of the k-fold sum
  std::int64_t size = 0;
  std::int64_t first = 0;
  Cumulants at{};
  // A window that holds all but 2e-20 of the tilted sum, never more than its support. Subsampled Gaussians have a phase
  // transition in θ beyond which far tails dominate and windows grow; a smaller θ is as valid and well behaved.
  for (int attempt = 0;; ++attempt) {
    at = cumulants(d, theta_);
    const double low = std::max(-support, std::floor(edge(d, uses_, theta_, at, -1.0) / step_) - 1.0);
    const double high = std::min(support, std::ceil(edge(d, uses_, theta_, at, +1.0) / step_) + 1.0);
    const double cells = high - low + 1.0;
    const double comfortable = 64.0 * std::sqrt(uses_ * at.variance) / step_ + 4096.0;
    if (cells <= std::min(comfortable, static_cast<double>(max_transform)) ||
        (attempt >= 12 && cells <= static_cast<double>(max_transform))) {
      size = good_size(static_cast<std::int64_t>(cells));
      first = static_cast<std::int64_t>(low);
      l1_error_ = 2.0 * 2.0 * std::exp(log_outside);
      break;
    }
    if (attempt >= 40)
      throw PrivacyError(cat("the composition would need a transform of ", cells, " points; at most ", max_transform,
                             " are allowed: ask for less precision or fewer steps"));
    theta_ *= 0.8;
  }

  const auto half = static_cast<std::size_t>(size / 2 + 1);
  const std::unique_ptr<double, FftwFree> time(fftw_alloc_real(static_cast<std::size_t>(size)));
  const std::unique_ptr<fftw_complex, FftwFree> frequency(fftw_alloc_complex(half));
  if (!time || !frequency) throw Error(ExitCode::failure, "out of memory in a Fourier transform");
  Plan forward;
  Plan backward;
  {
    const std::scoped_lock lock(PlanDestroy::mutex());
    forward.reset(fftw_plan_dft_r2c_1d(static_cast<int>(size), time.get(), frequency.get(), FFTW_ESTIMATE));
    backward.reset(fftw_plan_dft_c2r_1d(static_cast<int>(size), frequency.get(), time.get(), FFTW_ESTIMATE));
  }

  // Tilted masses wrapped modulo the window. The atom at 0 has a constant transform and is added exactly afterwards,
  // which keeps it out of the transform's rounding error.
  double* x = time.get();
  std::fill_n(x, size, 0.0);
  double rest = 0.0;
  double atom = 0.0;
  for (std::int64_t i = -n; i <= n; ++i) {
    const double mass = d.mass[static_cast<std::size_t>(i + n)];
    if (mass == 0.0) continue;
    const double tilted = mass * std::exp(theta_ * step_ * static_cast<double>(i) - at.value);
    if (i == 0) {
      atom = tilted;
      continue;
    }
    const std::int64_t place = ((i % size) + size) % size;
    x[place] += tilted;
    rest += tilted;
  }
  fftw_execute(forward.get());

  // f ↦ f^k through logarithms, turned so that the window starts at `first`. Frequency m of the shift by −first:
  // e^{+2πi m first / size}, the angle reduced in integers.
  auto* f = reinterpret_cast<std::complex<double>*>(frequency.get());
  const double log2_size = std::log2(static_cast<double>(size));
  const double forward_error = unit * (8.0 * log2_size * rest + 4.0);  // on every coefficient (see l1_error_)
  double norm = 0.0;        // ‖f^k‖² over all frequencies
  double slope_norm = 0.0;  // ‖(|f| + error)^{k−1}‖²
  for (std::size_t m = 0; m < half; ++m) {
    const std::complex<double> value = f[m] + atom;
    const double twice = (m == 0 || static_cast<std::int64_t>(2 * m) == size) ? 1.0 : 2.0;
    const double magnitude = std::abs(value);
    const double log_magnitude = std::log(magnitude);
    slope_norm += twice * std::exp(2.0 * (uses_ - 1.0) * std::log(magnitude + forward_error));
    if (!(uses_ * log_magnitude > -700.0)) {
      f[m] = 0.0;
      continue;
    }
    const auto turns = static_cast<std::int64_t>((static_cast<Wide>(first) * static_cast<std::int64_t>(m)) % size);
    const double angle = uses_ * std::arg(value) +
                         2.0 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(size);
    const double power = std::exp(uses_ * log_magnitude);
    norm += twice * power * power;
    f[m] = std::polar(power, angle);
  }
  fftw_execute(backward.get());
  tilted_.resize(static_cast<std::size_t>(size));
  const double scale = 1.0 / static_cast<double>(size);
  for (std::int64_t j = 0; j < size; ++j) tilted_[static_cast<std::size_t>(j)] = x[j] * scale;
  first_loss_ = static_cast<double>(first) * step_;
  log_scale_ = uses_ * at.value;

  // Rounding, u = 2⁻⁵³, N the size. A Cooley–Tukey transform with twiddles accurate to u has, coefficient by
  // coefficient, an error of at most 8 u log₂N ‖input‖₁ (each output is a sum over log₂N stages of rounded products;
  // Higham 2002, §24.1), and in ℓ₂ relative error 8 u log₂N. The k-th power multiplies a coefficient's error by
  // k |f|^{k−1} and adds 16 k u relative (logarithm, argument up to π, k-fold products). Back in time,
  // ‖·‖₁ ≤ √N ‖·‖₂ = ‖error of the coefficients‖₂.
  const double power_error =
      uses_ * forward_error * std::sqrt(slope_norm) + (16.0 * uses_ + 16.0 * log2_size + 16.0) * unit * std::sqrt(norm);
  l1_error_ += power_error;
  // Relative errors of single masses multiply δ by at most (1 + η)^k, since δ is linear with non-negative coefficients
  // in the product of masses; tilting adds the rounding of its exponent.
  const double per_use =
      d.relative_error + unit * (8.0 + 4.0 * (theta_ * d.largest_loss() + std::abs(at.value)));
  relative_error_ = std::expm1(uses_ * per_use) + 1e-12;  // and of the sums in `delta`
  infinite_mass_ = uses_ * d.infinite_mass;               // ≥ 1 − (1 − p_∞)^k
  loss_error_ = uses_ * d.loss_error;
}

double Composition::charge(double epsilon) const {
  return std::exp(std::min(log_scale_ - theta_ * epsilon + log_c(theta_) + std::log(l1_error_), 1.0));
}

double Composition::delta(double epsilon) const {
  const bool up = rounding_ == Rounding::pessimistic;
  const double at = up ? epsilon - loss_error_ : epsilon + loss_error_;
  // Σ w(u) p over losses at + u, u > 0, in blocks: factors advance by multiplication inside a block only.
  const double offset = (at - first_loss_) / step_;
  auto j = offset < 0.0 ? std::size_t{0} : static_cast<std::size_t>(std::min(offset, 1e15)) + 1;
  const double fall = std::exp(-theta_ * step_);
  const double fall_both = std::exp(-(theta_ + 1.0) * step_);
  double sum = 0.0;
  constexpr std::size_t block = 256;
  while (j < tilted_.size()) {
    const double u = first_loss_ + static_cast<double>(j) * step_ - at;
    if (u <= 0.0) {
      ++j;
      continue;
    }
    double first = std::exp(-theta_ * u);
    double weight_of_second = std::exp(-u);
    double part = 0.0;
    const std::size_t end = std::min(tilted_.size(), j + block);
    if (u < 1.0) {
      // e^{−θu} − e^{−(θ+1)u} would cancel: expm1 keeps the small weights right.
      for (; j < end; ++j) {
        const double v = first_loss_ + static_cast<double>(j) * step_ - at;
        part += -std::expm1(-v) * std::exp(-theta_ * v) * tilted_[j];
      }
    } else {
      double second = first * weight_of_second;
      for (; j < end; ++j) {
        part += (first - second) * tilted_[j];
        first *= fall;
        second *= fall_both;
      }
    }
    sum += part;
  }
  const double log_front = log_scale_ - theta_ * at;
  const double c = std::exp(log_c(theta_));
  if (up) {
    const double inner = std::max(sum, 0.0) + c * l1_error_;
    const double value = std::exp(std::min(log_front + std::log(inner), 1.0)) * (1.0 + relative_error_) + infinite_mass_;
    return std::min(1.0, std::isnan(value) ? 1.0 : value * (1.0 + 1e-13));
  }
  const double inner = sum - c * l1_error_;
  if (!(inner > 0.0)) return 0.0;
  const double value = std::exp(log_front + std::log(inner)) * std::max(0.0, 1.0 - relative_error_);
  return std::clamp(value * (1.0 - 1e-13), 0.0, 1.0);
}

}  // namespace tsdp::privacy
