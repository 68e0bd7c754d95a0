#include "tilted_transform.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "fourier.h"
#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/text.h"

// Vector units are picked at run time; -ffp-contract=off keeps all of them to the same arithmetic. The feature levels
// of base/clones.h are tuned for no processor: a plan takes a fifth longer with them.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TSDP_TUNED __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define TSDP_TUNED
#endif

namespace tsdp::privacy {
namespace {

// Directly summed frequencies: points are taken in blocks, to keep the rounding of long sums small, and angles advance
// by one frequency at a time from those at every `stride`-th frequency, which advance likewise.
constexpr std::size_t block_points = 256;
constexpr std::int64_t stride = 32;

/// One frequency of a transform summed directly: Σ (plus + minus) cos and Σ (plus − minus) sin; then every angle is
/// turned on by one frequency. `points` is a multiple of eight.
TSDP_TUNED
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
    real += ((cosines[0] + cosines[1]) + (cosines[2] + cosines[3])) +
            ((cosines[4] + cosines[5]) + (cosines[6] + cosines[7]));
    imaginary += ((sines[0] + sines[1]) + (sines[2] + sines[3])) + ((sines[4] + sines[5]) + (sines[6] + sines[7]));
  }
  *out_re = real;
  *out_im = imaginary;
}

}  // namespace

std::int64_t centred(std::int64_t index, std::int64_t size) {
  const std::int64_t place = index % size;
  return place > size / 2 ? place - size : place < -(size / 2) ? place + size : place;
}

TiltedTransform::TiltedTransform(const LossDistribution& d, double theta, std::int64_t size, std::uint64_t uses,
                                 std::int64_t wanted)
    : distribution_(&d), theta_(theta), size_(size), least_uses_(uses), cumulants_(cumulants(d, theta)) {
  std::vector<double> plus(d.points.size());
  std::vector<double> minus(d.points.size());
  double rest = 0.0;
  double mean_size = 0.0;  // E|S|
  for (std::size_t i = 0; i < d.points.size(); ++i) {
    const auto& p = d.points[i];
    const double loss = static_cast<double>(p.index) * d.step;
    if (p.plus > 0.0) plus[i] = p.plus * std::exp(theta * loss - cumulants_.value);
    if (p.minus > 0.0) minus[i] = p.minus * std::exp(-theta * loss - cumulants_.value);
    rest += plus[i] + minus[i];
    mean_size += (plus[i] + minus[i]) * loss;
  }
  at_zero_ = d.at_zero * std::exp(-cumulants_.value);
  // Samples within 0.1/E|S| of each other, so that F moves by at most 0.05 in between.
  const double close = 20.0 * std::numbers::pi * mean_size / d.step;
  const std::int64_t circle =
      std::min({size, max_transform,
                fourier::good_size(static_cast<std::int64_t>(
                    std::clamp(close, static_cast<double>(small_circle), static_cast<double>(max_transform))))});
  // u = 2⁻⁵³. A Cooley–Tukey transform with twiddles accurate to u has, coefficient by coefficient, an error of at most
  // 8 u log₂N ‖input‖₁: each output is a sum over log₂N stages of rounded products (Higham 2002, §24.1). Adding the
  // mass at 0 rounds once more.
  const auto fast = [&](std::int64_t n) {
    const double norm = transform_fast(plus, minus, n);
    error_ = roundoff * (8.0 * std::log2(static_cast<double>(n)) * rest + 4.0);
    euclidean_error_ = roundoff * (8.0 * std::log2(static_cast<double>(n)) * norm + 4.0);
  };
  fast(circle);
  if (circle == size) return;

  const double between = std::numbers::pi / (static_cast<double>(circle) * d.step);  // half of the samples' distance
  const double most = std::exp(log_vanishing / static_cast<double>(uses)) - error_ - between * mean_size * (1.0 + 1e-9);
  auto first = static_cast<std::int64_t>(coefficients_.size());
  while (first > 0 && most > 0.0 && std::norm(coefficients_[static_cast<std::size_t>(first - 1)]) <= most * most)
    --first;
  const double share = static_cast<double>(size) / static_cast<double>(circle);
  const double count = std::min(std::ceil((static_cast<double>(first) + 1.0) * share), static_cast<double>(wanted));
  if (count <= static_cast<double>(most_direct)) {
    sum_directly(plus, minus, static_cast<std::int64_t>(count));
    // An angle turned count/stride + stride times (3 units each, and 2.5 of the angle turned by, in all of the angle
    // that the loss turns by up to the last frequency), a product, and sums of block_points/8 + 3 and
    // points/block_points terms.
    const double turned = 2.0 * std::numbers::pi * count / static_cast<double>(size) * mean_size / d.step;
    error_ =
        roundoff * ((3.0 * (static_cast<double>(stride) + count / static_cast<double>(stride)) + block_points / 8.0 +
                     16.0 + static_cast<double>(d.points.size()) / static_cast<double>(block_points)) *
                        rest +
                    5.0 * turned + 4.0);
    euclidean_error_ = error_;
  } else {
    if (size > max_transform)
      throw OutOfReach(cat("the composition would need a transform of ", size, " points; at most ", max_transform,
                           " are allowed: ask for less precision or fewer steps"));
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
  fourier::forward(x, cells);
  for (auto& value : coefficients_) value += at_zero_;
  return norm;
}

void TiltedTransform::sum_directly(const std::vector<double>& plus, const std::vector<double>& minus,
                                   std::int64_t count) {
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

}  // namespace tsdp::privacy
