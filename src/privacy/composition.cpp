#include "composition.h"

#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>
#include <numeric>
#include <utility>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

// Vector units are picked at run time; -ffp-contract=off keeps all of them to the same arithmetic.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TSDP_CLONES __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define TSDP_CLONES
#endif

namespace tsdp::privacy {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2;

// The most low frequencies that are summed directly.
constexpr std::int64_t most_direct = 16384;
// The most coefficients that are kept for the next composition (2 MB).
constexpr std::size_t max_kept = std::size_t{1} << 17;

// Tilted mass that may lie outside a window on either side: e^{−46} = 1e-20.
constexpr double log_outside = -46.0;

double log_c(double theta) { return theta * std::log(theta) - (1.0 + theta) * std::log1p(theta); }

/// The largest exponent θ·L that keeps e^{θL} finite with room to sum.
double largest_theta(const LossDistribution& d) { return 600.0 / std::max(d.largest_loss(), 1e-300); }

/// FFTW's plans by size, made once and kept: planning costs as much as a transform, and the planner is not thread-safe.
class Plans {
 public:
  enum class Direction { forward, backward };
  static void run_in_place(double* buffer, std::int64_t size, Direction direction) {
    auto* complex = reinterpret_cast<fftw_complex*>(buffer);
    static Plans plans;
    auto* plan = plans.find(buffer, size, direction);
    if (direction == Direction::forward) {
      fftw_execute_dft_r2c(plan, buffer, complex);
    } else {
      fftw_execute_dft_c2r(plan, complex, buffer);
    }
  }

 private:
  fftw_plan_s* find(double* buffer, std::int64_t size, Direction direction) {
    const std::scoped_lock lock(mutex_);
    auto& slot = plans_[{size, direction}];
    if (!slot) {
      auto* complex = reinterpret_cast<fftw_complex*>(buffer);
      const auto n = static_cast<int>(size);
      // Unaligned plans serve every buffer.
      slot.reset(direction == Direction::forward
                     ? fftw_plan_dft_r2c_1d(n, buffer, complex, FFTW_ESTIMATE | FFTW_UNALIGNED)
                     : fftw_plan_dft_c2r_1d(n, complex, buffer, FFTW_ESTIMATE | FFTW_UNALIGNED));
      if (!slot) throw Error(ExitCode::failure, "out of memory in a Fourier transform");
    }
    return slot.get();
  }
  struct Destroy {
    void operator()(fftw_plan_s* p) const { fftw_destroy_plan(p); }
  };
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, Direction>, std::unique_ptr<fftw_plan_s, Destroy>> plans_;
};

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

/// An edge (as a loss) beyond which the tilted k-fold sum has mass at most e^{log_outside}, sign = +1 right, −1 left.
/// Chernoff: P(±(S − e) ≥ 0) ≤ exp(k (K(θ ± s) − K(θ)) ∓ s e) for every s > 0, so for each s the edge at which this is
/// e^{log_outside} is valid. For a Gaussian s = √92 deviations⁻¹ is best; heavier tails want smaller s.
double edge(const LossDistribution& d, double uses, double theta, const Cumulants& at, double sign) {
  const double deviation = std::sqrt(std::max(uses * at.variance, 1e-300));
  double best = sign * std::numeric_limits<double>::infinity();
  for (const double multiple : {9.6, 7.0, 4.8, 12.0, 3.0, 1.8, 1.0, 0.5, 0.25}) {
    const double s = multiple / deviation;
    if (std::abs(theta + sign * s) > 1.15 * largest_theta(d)) continue;
    const double e = sign * (uses * (cumulants(d, theta + sign * s).value - at.value) - log_outside) / s;
    best = sign > 0 ? std::min(best, e) : std::max(best, e);
    if (std::abs(best - uses * at.mean) <= 10.5 * deviation) break;
  }
  return best;
}

/// index modulo size, from −size/2 to size/2.
std::int64_t centred(std::int64_t index, std::int64_t size) {
  const std::int64_t place = index % size;
  return place > size / 2 ? place - size : place < -(size / 2) ? place + size : place;
}

// Directly summed frequencies: points are taken in blocks, to keep the rounding of long sums small, and angles advance
// by one frequency at a time from those of every so many frequencies, which advance likewise.
constexpr std::size_t block_points = 256;
constexpr std::int64_t stride = 32;

/// One frequency of a transform summed directly: Σ (plus + minus) cos and Σ (plus − minus) sin; then every angle is
/// turned on by one frequency. `points` is a multiple of eight.
TSDP_CLONES
void accumulate_harmonics(std::size_t points, const double* both, const double* difference, const double* turn_re,
                          const double* turn_im, double* re, double* im, double* out_re, double* out_im) {
  double real = 0.0;
  double imaginary = 0.0;
  for (std::size_t begin = 0; begin < points; begin += block_points) {
    const std::size_t end = begin + block_points < points ? begin + block_points : points;
    double cosines[8] = {};
    double sines[8] = {};
    for (std::size_t i = begin; i < end; i += 8) {
      for (std::size_t lane = 0; lane < 8; ++lane) {
        const double c = re[i + lane];
        const double s = im[i + lane];
        cosines[lane] += both[i + lane] * c;
        sines[lane] += difference[i + lane] * s;
        re[i + lane] = c * turn_re[i + lane] - s * turn_im[i + lane];
        im[i + lane] = c * turn_im[i + lane] + s * turn_re[i + lane];
      }
    }
    real += ((cosines[0] + cosines[1]) + (cosines[2] + cosines[3])) + ((cosines[4] + cosines[5]) + (cosines[6] + cosines[7]));
    imaginary += ((sines[0] + sines[1]) + (sines[2] + sines[3])) + ((sines[4] + sines[5]) + (sines[6] + sines[7]));
  }
  *out_re = real;
  *out_im = imaginary;
}

}  // namespace

namespace {

/// Sums in `Real`, which must hold e^{±θ·largest loss} times masses.
template <class Real>
Cumulants cumulants_in(const LossDistribution& d, double theta) {
  Real zeroth = d.at_zero;
  Real first = 0;
  Real second = 0;
  for (const auto& p : d.points) {
    const Real x = static_cast<double>(p.index) * d.step;
    const Real e = std::exp(theta * x);
    const Real up = p.plus * e;
    const Real down = p.minus / e;
    zeroth += up + down;
    first += (up - down) * x;
    second += (up + down) * x * x;
  }
  const Real mean = first / zeroth;
  return {static_cast<double>(std::log(zeroth)), static_cast<double>(mean),
          static_cast<double>(std::max<Real>(second / zeroth - mean * mean, 0))};
}

}  // namespace

Cumulants cumulants(const LossDistribution& d, double theta) {
  // An underflow would understate K, and with it Chernoff's bounds.
  return std::abs(theta) * d.largest_loss() < 200.0 ? cumulants_in<double>(d, theta) : cumulants_in<long double>(d, theta);
}

double best_tilt_for_epsilon(const LossDistribution& d, std::uint64_t uses, double epsilon) {
  const auto k = static_cast<double>(uses);
  // Stationarity: k K′(θ) + log(θ/(1+θ)) = ε, increasing in θ: safeguarded Newton.
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
    if (std::abs(next - theta) < 1e-2 * theta || high / low < 1.01) return next;
    theta = next;
  }
  return theta;
}

double best_tilt_for_delta(const LossDistribution& d, std::uint64_t uses, double delta) {
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

TiltedTransform::TiltedTransform(const LossDistribution& d, double theta, std::int64_t size, std::uint64_t uses)
    : distribution_(&d), theta_(theta), size_(size), least_uses_(uses), cumulants_(cumulants(d, theta)) {
  std::vector<double> plus(d.points.size());
  std::vector<double> minus(d.points.size());
  double rest = 0.0;
  double mean_size = 0.0;  // E|S|
  for (std::size_t i = 0; i < d.points.size(); ++i) {
    const auto& p = d.points[i];
    const double loss = static_cast<double>(p.index) * d.step;
    if (p.plus == 0.0) continue;
    plus[i] = p.plus * std::exp(theta * loss - cumulants_.value);
    minus[i] = p.minus * std::exp(-theta * loss - cumulants_.value);
    rest += plus[i] + minus[i];
    mean_size += (plus[i] + minus[i]) * loss;
  }
  at_zero_ = d.at_zero * std::exp(-cumulants_.value);
  // Samples within 0.1/E|S| of each other, so that F moves by at most 0.05 in between.
  const double close = 20.0 * std::numbers::pi * mean_size / d.step;
  const std::int64_t circle =
      std::min({size, Composer::max_transform,
                good_size(static_cast<std::int64_t>(std::clamp(close, static_cast<double>(small_circle),
                                                               static_cast<double>(Composer::max_transform))))});
  // u = 2⁻⁵³. A Cooley–Tukey transform with twiddles accurate to u has, coefficient by coefficient, an error of at most
  // 8 u log₂N ‖input‖₁: each output is a sum over log₂N stages of rounded products (Higham 2002, §24.1). Adding the
  // mass at 0 rounds once more.
  const auto fast = [&](std::int64_t n) {
    const double norm = transform_fast(plus, minus, n);
    error_ = unit * (8.0 * std::log2(static_cast<double>(n)) * rest + 4.0);
    euclidean_error_ = unit * (8.0 * std::log2(static_cast<double>(n)) * norm + 4.0);
  };
  fast(circle);
  if (circle == size) return;

  const double between = std::numbers::pi / (static_cast<double>(circle) * d.step);  // half of the samples' distance
  const double most = std::exp(log_vanishing / static_cast<double>(uses)) - error_ - between * mean_size * (1.0 + 1e-9);
  auto first = static_cast<std::int64_t>(coefficients_.size());
  while (first > 0 && most > 0.0 && std::norm(coefficients_[static_cast<std::size_t>(first - 1)]) <= most * most) --first;
  const double share = static_cast<double>(size) / static_cast<double>(circle);
  const double count = std::ceil((static_cast<double>(first) + 1.0) * share);
  if (count <= static_cast<double>(most_direct)) {
    sum_directly(plus, minus, static_cast<std::int64_t>(count));
    // An angle turned count/stride + stride times (3 units each, and 2.5 of the angle turned by, in all of the angle that
    // the loss turns by up to the last frequency), a product, and sums of block_points/8 + 3 and points/block_points terms.
    const double turned = 2.0 * std::numbers::pi * count / static_cast<double>(size) * mean_size / d.step;
    error_ = unit * ((3.0 * (static_cast<double>(stride) + count / static_cast<double>(stride)) + block_points / 8.0 + 16.0 +
                      static_cast<double>(d.points.size()) / static_cast<double>(block_points)) * rest + 5.0 * turned + 4.0);
    euclidean_error_ = error_;
  } else {
    if (size > Composer::max_transform)
      throw PrivacyError(cat("the composition would need a transform of ", size, " points; at most ",
                             Composer::max_transform, " are allowed: ask for less precision or fewer steps"));
    fast(size);
  }
}

double TiltedTransform::transform_fast(const std::vector<double>& plus, const std::vector<double>& minus,
                                       std::int64_t cells) {
  coefficients_.assign(static_cast<std::size_t>(cells / 2 + 1), 0.0);
  auto* x = reinterpret_cast<double*>(coefficients_.data());
  for (std::size_t i = 0; i < plus.size(); ++i) {
    const std::int64_t place = distribution_->points[i].index % cells;
    x[place] += plus[i];
    x[place == 0 ? 0 : cells - place] += minus[i];
  }
  const double norm = std::sqrt(std::inner_product(x, x + cells, x, 0.0));
  Plans::run_in_place(x, cells, Plans::Direction::forward);
  for (auto& value : coefficients_) value += at_zero_;
  return norm;
}

void TiltedTransform::sum_directly(const std::vector<double>& plus, const std::vector<double>& minus, std::int64_t count) {
  const auto& points = distribution_->points;
  const std::size_t padded = (points.size() + 7) / 8 * 8;
  std::vector<double> both(padded), difference(padded), turn_re(padded), turn_im(padded), re(padded), im(padded);
  std::vector<double> far_re(padded), far_im(padded), start_re(padded, 1.0), start_im(padded);
  const double angle = 2.0 * std::numbers::pi / static_cast<double>(size_);
  for (std::size_t i = 0; i < points.size(); ++i) {
    both[i] = plus[i] + minus[i];
    difference[i] = plus[i] - minus[i];
    const std::int64_t place = centred(points[i].index, size_);
    const double near = angle * static_cast<double>(place);
    const double far = angle * static_cast<double>(centred(place * stride, size_));
    turn_re[i] = std::cos(near);
    turn_im[i] = std::sin(near);
    far_re[i] = std::cos(far);
    far_im[i] = std::sin(far);
  }
  coefficients_.resize(static_cast<std::size_t>(count));
  for (std::int64_t m = 0; m < count; ++m) {
    if (m % stride == 0) {
      re = start_re;
      im = start_im;
      for (std::size_t i = 0; i < padded; ++i) {
        start_re[i] = re[i] * far_re[i] - im[i] * far_im[i];
        start_im[i] = re[i] * far_im[i] + im[i] * far_re[i];
      }
    }
    double real = 0.0;
    double imaginary = 0.0;
    accumulate_harmonics(padded, both.data(), difference.data(), turn_re.data(), turn_im.data(), re.data(), im.data(),
                         &real, &imaginary);
    coefficients_[static_cast<std::size_t>(m)] = {real + at_zero_, -imaginary};
  }
}

bool high_frequencies_vanish(const LossDistribution& d, std::uint64_t uses) {
  return static_cast<double>(uses) * std::log(0.5 + 0.5 * d.at_zero) < 2.0 * TiltedTransform::log_vanishing;
}

Window window_of(const LossDistribution& d, std::uint64_t uses, double theta, double most) {
  if (uses == 0) throw Error(ExitCode::failure, "a composition has at least one use");
  const auto k = static_cast<double>(uses);
  const double support = k * static_cast<double>(d.largest_index());  // largest |index| of the k-fold sum
  // Subsampled Gaussians have a phase transition in θ beyond which far tails dominate and windows grow; a smaller θ is
  // as valid and well behaved.
  for (int attempt = 0;; ++attempt) {
    const auto at = cumulants(d, theta);
    if (!std::isfinite(at.value) || !std::isfinite(at.mean) || !std::isfinite(at.variance))
      throw PrivacyError("the privacy loss is too large to be composed: ask for a larger noise multiplier");
    const double low = std::max(-support, std::floor(edge(d, k, theta, at, -1.0) / d.step) - 1.0);
    const double high = std::min(support, std::ceil(edge(d, k, theta, at, +1.0) / d.step) + 1.0);
    const double cells = high - low + 1.0;
    if (!(cells >= 1.0)) throw PrivacyError("the privacy loss is too large to be composed: ask for a larger noise multiplier");
    const double comfortable =
        high_frequencies_vanish(d, uses) ? most : std::max(64.0 * std::sqrt(k * at.variance) / d.step, 4194304.0);
    if (cells <= std::min(comfortable, most) || (attempt >= 12 && cells <= most))
      return {theta, static_cast<std::int64_t>(low), static_cast<std::int64_t>(cells)};
    if (attempt >= 40)
      throw PrivacyError(cat("the composition would need a transform of ", cells, " points; at most ", most,
                             " are allowed: ask for less precision or fewer steps"));
    theta *= 0.8;
  }
}

Composition::Composition(const TiltedTransform& transform, std::uint64_t uses, std::int64_t first)
    : rounding_(transform.distribution().rounding),
      step_(transform.distribution().step),
      theta_(transform.theta()),
      size_(transform.size()),
      first_(first) {
  const auto& d = transform.distribution();
  const auto k = static_cast<double>(uses);
  const auto n = static_cast<double>(size_);
  const double fe = transform.error();
  const auto& f = transform.coefficients();
  // What of the coefficients does not vanish: |F|^k > e^{log_vanishing}, the error counted in.
  constexpr double log_vanishing = TiltedTransform::log_vanishing;
  const double least = std::exp(log_vanishing / k) - fe;
  auto end = static_cast<std::int64_t>(f.size());
  while (end > 0 && least > 0.0 && std::norm(f[static_cast<std::size_t>(end - 1)]) <= least * least) --end;

  // F ↦ F^k through logarithms. Rounding of a coefficient: its own error times k (|F| + error)^{k−1}, and 16 k u
  // relative for logarithm, angle (up to π) and k-fold products.
  const bool direct = end <= std::min(most_direct, size_ / 4);
  if (direct) {
    low_.resize(static_cast<std::size_t>(end));
  } else {
    all_.assign(static_cast<std::size_t>(size_) + 2, 0.0);
  }
  auto* out = direct ? low_.data() : reinterpret_cast<std::complex<double>*>(all_.data());
  double power_error = std::exp(log_vanishing) * n;  // of the coefficients left out
  double power_square = 0.0;                         // ‖F^k‖₂²
  double twice = 0.0;                                // Σ |D's coefficients|
  const double angle = 2.0 * std::numbers::pi / n;
  const double near_fall = std::exp(-theta_ * step_);
  const double far_fall = std::exp(-(theta_ + 1.0) * step_);
  const double near_gap = -std::expm1(-theta_ * step_);
  const double far_gap = -std::expm1(-(theta_ + 1.0) * step_);
  for (std::int64_t m = 0; m < end; ++m) {
    const auto value = f[static_cast<std::size_t>(m)];
    const double both = (m == 0 || 2 * m == size_) ? 1.0 : 2.0;
    const double magnitude = std::sqrt(std::norm(value));
    // (|F| + e)^{k−1} ≤ |F|^{k−1} e^{(k−1) e/|F|}.
    const double log_power = k * std::log(magnitude);
    if (!(log_power > 2.0 * log_vanishing)) {
      power_error += both * k * fe * std::exp((k - 1.0) * std::log(magnitude + fe));
      out[m] = 0.0;
      continue;
    }
    std::complex<double> power;
    if (uses <= 1024) {
      // Repeated squaring: at most 2(k − 1) rounded products.
      power = 1.0;
      auto base = value;
      for (auto left = uses;; base *= base) {
        if (left % 2 == 1) power *= base;
        left /= 2;
        if (left == 0) break;
      }
    } else {
      power = std::polar(std::exp(log_power), k * std::arg(value));
    }
    const double size = std::sqrt(std::norm(power));
    power_square += both * size * size;
    power_error += both * size * (k * fe / magnitude * std::exp(k * fe / magnitude) + (16.0 * k + 16.0) * unit);
    // 1 − z = (1 − e^{−θh}) + e^{−θh} (1 − y), 1 − y = 2 sin²(φ/2) − i sin φ: nothing cancels.
    const double sin_half = std::sin(0.5 * angle * static_cast<double>(m));
    const double cos_half = std::cos(0.5 * angle * static_cast<double>(m));
    const std::complex<double> turn{2.0 * sin_half * sin_half, -2.0 * sin_half * cos_half};
    const auto divisor = (near_gap + near_fall * turn) * (far_gap + far_fall * turn);
    // Division written out: std::complex guards against overflow that cannot occur here.
    const double scale = 1.0 / (std::norm(divisor) * n);
    out[m] = {(power.real() * divisor.real() + power.imag() * divisor.imag()) * scale,
              (power.imag() * divisor.real() - power.real() * divisor.imag()) * scale};
    twice += both * size * std::sqrt(std::norm(divisor)) * scale;
  }
  double sum_rounding = 0.0;  // of D_j, relative to Σ |coefficients|
  if (direct) {
    // 64 turns of an angle of up to π (8 units) with 3 roundings each, and the sum.
    sum_rounding = unit * (static_cast<double>(end) + 64.0 * 11.0 + 60.0);
  } else {
    Plans::run_in_place(all_.data(), size_, Plans::Direction::backward);
    sum_rounding = unit * (8.0 * std::log2(n) + 60.0);
  }
  twice_error_ = sum_rounding * twice;

  // Window: the missing mass and its alias, at weights of at most c. Coefficients: an error of Σ|ΔF^k|/N on every t_j,
  // and Σ_j w(u_j) ≤ max w + ∫w/h, as w rises once and falls.
  const double c = std::exp(log_c(theta_));
  const double absolute = power_error / n * (c + 1.0 / (step_ * theta_ * (1.0 + theta_)));
  // The same by Cauchy and Schwarz, better where no frequency vanishes: the fast transform's error in ℓ₂ is relative to
  // ‖F‖₂ = √N ‖p^θ‖₂ (Higham 2002, Thm. 24.2), a k-th power multiplies it by at most k, and Σ_j w(u_j)² is at most
  // max w² + ∫w²/h, ∫w² = 1 / (2θ(2θ+1)(θ+1)).
  const double square = std::sqrt(c * c + 1.0 / (step_ * 2.0 * theta_ * (2.0 * theta_ + 1.0) * (theta_ + 1.0)));
  const double euclidean = square * (k * transform.euclidean_error() + (16.0 * k + 16.0) * unit * std::sqrt(power_square / n) +
                                     std::exp(log_vanishing));
  sum_error_ = c * 4.0 * std::exp(log_outside) + std::min(absolute, euclidean * std::exp(k * fe));
  log_scale_ = k * transform.at_theta().value;
  // Relative errors of single masses multiply δ by at most (1 + η)^k, since δ is linear with non-negative coefficients
  // in the product of masses; tilting adds the rounding of its exponent.
  const double per_use =
      d.relative_error + unit * (8.0 + 4.0 * (theta_ * d.largest_loss() + std::abs(transform.at_theta().value)));
  relative_error_ = std::expm1(k * per_use) + 1e-12;
  infinite_mass_ = k * d.infinite_mass;  // ≥ 1 − (1 − p_∞)^k
  loss_error_ = k * d.loss_error;
}

double Composition::twice_summed(std::int64_t j) const {
  const std::int64_t place = ((j % size_) + size_) % size_;
  if (!all_.empty()) return all_[static_cast<std::size_t>(place)];
  // Re Σ (1 or 2) low_m e^{2πi m place/N}; the factor advances by multiplication and is set anew every 64 terms.
  const double angle = 2.0 * std::numbers::pi / static_cast<double>(size_);
  const auto at = [&](std::int64_t m) { return std::polar(1.0, angle * static_cast<double>(centred(m * place, size_))); };
  const auto turn = at(1);
  double sum = 0.0;
  const auto count = static_cast<std::int64_t>(low_.size());
  for (std::int64_t begin = 0; begin < count; begin += 64) {
    double re = 0.0;
    auto factor = at(begin);
    double fr = factor.real();
    double fi = factor.imag();
    for (std::int64_t m = begin; m < std::min(count, begin + 64); ++m) {
      const auto& v = low_[static_cast<std::size_t>(m)];
      const double term = v.real() * fr - v.imag() * fi;
      re += m == 0 ? term : 2.0 * term;
      const double next = fr * turn.real() - fi * turn.imag();
      fi = fr * turn.imag() + fi * turn.real();
      fr = next;
    }
    sum += re;
  }
  return sum;
}

Composition::Part Composition::suffix(std::int64_t j, double u) const {
  const double front = std::exp(-theta_ * u);
  const double a = -std::expm1(-u);
  const double b = std::exp(-(theta_ + 1.0) * step_) * std::expm1(step_ - u);  // e^{−θh} (e^{−u} − e^{−h})
  const double one = a * twice_summed(j);
  const double two = b * twice_summed(j + 1);
  return {front * (one + two),
          front * ((std::abs(a) + std::abs(b)) * twice_error_ + 16.0 * unit * (std::abs(one) + std::abs(two)))};
}

Composition::Part Composition::sum_beyond(double epsilon) const {
  const std::int64_t end = first_ + size_;
  const double place = std::floor(epsilon / step_) + 1.0;
  if (place >= static_cast<double>(end)) return {0.0, 0.0};
  const std::int64_t j = std::max(first_, static_cast<std::int64_t>(place));
  const auto from = suffix(j, static_cast<double>(j) * step_ - epsilon);
  const auto past = suffix(end, static_cast<double>(end) * step_ - epsilon);
  return {from.value - past.value, from.error + past.error};
}

double Composition::charge(double epsilon) const {
  const double error = sum_error_ + sum_beyond(epsilon).error;
  return std::exp(std::min(log_scale_ - theta_ * epsilon + std::log(error), 1.0));
}

double Composition::delta(double epsilon) const {
  const bool up = rounding_ == Rounding::pessimistic;
  // Positions on the grid are rounded by a unit of ε or a cell.
  const double shift = loss_error_ + 8.0 * unit * (epsilon + step_);
  const double at = std::max(0.0, up ? epsilon - shift : epsilon + shift);
  const auto sum = sum_beyond(at);
  const double log_front = log_scale_ - theta_ * at;
  const double error = sum_error_ + sum.error;
  if (up) {
    const double inner = std::max(sum.value, 0.0) + error;
    // δ̂ falls by at most its argument's rise: below the shift its value at 0 is raised by what is missing.
    const double missing = std::max(0.0, shift - epsilon);
    const double value = std::exp(std::min(log_front + std::log(inner), 1.0)) * (1.0 + relative_error_) + infinite_mass_ +
                         missing * (1.0 + relative_error_);
    return std::min(1.0, std::isnan(value) ? 1.0 : value * (1.0 + 1e-13));
  }
  const double inner = sum.value - error;
  if (!(inner > 0.0)) return 0.0;
  const double value = std::exp(log_front + std::log(inner)) * std::max(0.0, 1.0 - relative_error_);
  return std::clamp(value * (1.0 - 1e-13), 0.0, 1.0);
}

Composition Composer::compose(std::uint64_t uses, double theta) {
  if (transform_ && uses >= transform_->least_uses() && std::abs(transform_->theta() - theta) <= 0.2 * theta) {
    const auto size = transform_->size();
    try {
      const auto window = window_of(distribution_, uses, transform_->theta(), static_cast<double>(size));
      if (window.theta == transform_->theta() && window.cells > size / 8) return {*transform_, uses, window.first};
    } catch (const PrivacyError&) {
      // Does not fit: a transform of its own.
    }
  }
  auto window = window_of(distribution_, uses, theta, static_cast<double>(most_cells_));
  transform_.reset();
  std::unique_ptr<TiltedTransform> made;
  // Room for some more uses and some less.
  const auto make = [&] {
    made = std::make_unique<TiltedTransform>(distribution_, window.theta, good_size(window.cells + window.cells / 16),
                                             uses - uses / 8);
  };
  try {
    make();
  } catch (const PrivacyError&) {
    window = window_of(distribution_, uses, theta, 0.9 * static_cast<double>(std::min(most_cells_, max_transform)));
    make();
  }
  Composition out(*made, uses, window.first);
  if (made->coefficients().size() <= max_kept) transform_ = std::move(made);
  return out;
}

}  // namespace tsdp::privacy
