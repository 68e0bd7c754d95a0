#include "lognormal_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tsdp::privacy {
namespace {

constexpr auto pi = std::numbers::pi_v<long double>;
constexpr auto unit = std::numeric_limits<long double>::epsilon();
constexpr long double reach = 10.0L;       // of z: beyond lies 1.5e-23 of the mass
constexpr long double log_alias = 46.0L;   // c L: aliases weigh e^{−46}
constexpr long double largest_turn = 2.0L; // η₀ and η* at most
constexpr std::int64_t largest_block = 64;

}  // namespace

LognormalSum::LognormalSum(std::int64_t terms, long double mu, long double largest_threshold, double work)
    : terms_(terms), mu_(mu), largest_(largest_threshold) {
  const auto b = static_cast<long double>(terms);
  // Rounding grows by e^{c (K − b)}, which is kept near e^3.
  const auto length = std::max(largest_, log_alias / 3.0L * (largest_ - b));
  line_ = log_alias / length;
  distance_ = 2.0L * pi / length;
  const auto fall = std::exp(-log_alias);
  alias_ = largest_ * fall / (1.0L - fall) + length * fall / ((1.0L - fall) * (1.0L - fall));

  const auto side = std::min(pi / (5.0L * mu_), largest_turn);
  const auto step = 2.0L * pi * side / 56.0L;
  const auto each_side = static_cast<std::int64_t>(std::ceil(reach / step));
  for (auto j = -each_side; j <= each_side; ++j) {
    const auto z = static_cast<long double>(j) * step;
    const auto exponent = mu_ * z - 0.5L * mu_ * mu_;
    z_.push_back(z);
    weight_.push_back(step / std::sqrt(2.0L * pi) * std::exp(-0.5L * z * z));
    x_.push_back(std::exp(exponent));
    less_one_.push_back(std::expm1(exponent));
  }
  // (η₀ + η*)²/2 ≤ 8 where both are 2, and less elsewhere; e^{c} for e^{s}, cut off on both sides.
  const auto aliased = std::exp(8.0L - 56.0L);
  rule_error_ = std::exp(line_) *
                (2.0L * aliased / (1.0L - aliased) + 2.0L * std::exp(2.0L) * std::erfc(reach / std::sqrt(2.0L)));

  // What is cut off: Σ_{n > N} (1/π) Δ e^{cK} |φ|^b/y² ≤ e^{cK} bound^b/(π y_N).
  const auto cut_at = [&](long double y) { return b * (log_bound(y) + 1e-16L) - std::log(pi * y); };
  const auto wanted = std::log(b) - 46.0L - line_ * largest_;
  const auto most = static_cast<long double>(work) / static_cast<long double>(z_.size());
  auto high = 64.0L * distance_;
  while (cut_at(high) > wanted && high < most * distance_) high *= 1.5L;
  if (high >= most * distance_) return;
  const auto count = static_cast<std::int64_t>(std::ceil(high / distance_)) + 1;
  log_cut_ = cut_at(static_cast<long double>(count - 1) * distance_);
  nodes_.reserve(static_cast<std::size_t>(count));
  // Δ/c = 2π/46: from the 32nd frequency on arg s ≥ 77°, and a′ − a/2 ≤ 54° whatever the block.
  for (std::int64_t first = 0; first < count;) {
    const auto block = std::min<std::int64_t>(first < 32 ? 1 : largest_block, count - first);
    add_block(first, block);
    first += block;
  }
}

void LognormalSum::add_block(std::int64_t first, std::int64_t count) {
  const auto begin = static_cast<long double>(first) * distance_;
  const auto turn = std::min(std::atan2(begin, line_) / (2.0L * mu_), largest_turn);  // η₀
  const auto front = std::exp(0.5L * turn * turn);
  const auto cosine = std::cos(mu_ * turn);
  const auto half_sine = std::sin(0.5L * mu_ * turn);
  const auto sine = std::sin(mu_ * turn);
  // v = φ e^{s} − 1 = Σ w e^{iη₀z} front (e^{u} − 1), u = −s (X e^{−iθ₀} − 1).
  const auto size = static_cast<std::size_t>(count);
  std::vector<long double> re(size), im(size), error(size);
  for (std::size_t j = 0; j < z_.size(); ++j) {
    // X e^{−iθ₀} − 1 = (X − 1) − X 2 sin²(θ₀/2) − i X sin θ₀; far from 1 the difference needs no care.
    const bool near = x_[j] > 0.5L && x_[j] < 2.0L;
    const auto x_re = near ? less_one_[j] - 2.0L * x_[j] * half_sine * half_sine : x_[j] * cosine - 1.0L;
    const auto x_im = -x_[j] * sine;
    // e^{a + ib} − 1 = expm1(a) − 2 e^a sin²(b/2) + i e^a sin b.
    const auto less_one = [](long double a, long double b, long double& out_re, long double& out_im) {
      if (a < -50.0L) {  // e^a is less than half a unit of 1, and rounds to nothing
        out_re = -1.0L;
        out_im = 0.0L;
        return;
      }
      const auto less = std::expm1(a);
      const auto half = std::sin(0.5L * b);
      out_re = less - (less + 1.0L) * 2.0L * half * half;
      out_im = (less + 1.0L) * std::sin(b);
    };
    long double e_re = 0.0L, e_im = 0.0L, d_re = 0.0L, d_im = 0.0L;
    less_one(-(line_ * x_re - begin * x_im), -(line_ * x_im + begin * x_re), e_re, e_im);
    if (count > 1) less_one(distance_ * x_im, -distance_ * x_re, d_re, d_im);
    const auto w_re = weight_[j] * front * std::cos(turn * z_[j]);
    const auto w_im = weight_[j] * front * std::sin(turn * z_[j]);
    const auto weight = weight_[j] * front;
    // X is off by as many units as its exponent is large, and exponents of e^{u} by 8 more, of |s| (1 + X), which e^{u}
    // multiplies; weights and products by 16 units and z²/2 for the weight's exponent; every advance by 8 more, of e −
    // 1 and of D − 1, and by the error of D's exponent.
    const auto off_x = (8.0L + 2.0L * mu_ * (std::abs(z_[j]) + mu_)) * (1.0L + x_[j]);
    const auto off_weight = 16.0L + z_[j] * z_[j] + 0.5L * static_cast<long double>(z_.size());  // and the sum over z
    const auto step_size = std::abs(d_re) + std::abs(d_im);
    const auto step_off = 8.0L * step_size + off_x * distance_;
    auto off = off_x * (line_ + begin);
    for (std::size_t n = 0; n < size; ++n) {
      re[n] += e_re * w_re - e_im * w_im;
      im[n] += e_re * w_im + e_im * w_re;
      const auto magnitude = std::abs(e_re) + std::abs(e_im);
      // The error of the first exponent counts for nothing where e^{u} vanishes: |e^{u}| ≤ 1 + magnitude, and it falls
      // with |s| X.
      error[n] += weight * (off_weight * magnitude + off * (1.0L + magnitude));
      const auto next = e_re * d_re - e_im * d_im + e_re + d_re;
      e_im = e_re * d_im + e_im * d_re + e_im + d_im;
      e_re = next;
      off += 8.0L * magnitude + step_off;
    }
  }
  for (std::size_t n = 0; n < size; ++n) {
    const auto off = unit * error[n] * 1.01L + rule_error_;
    const auto square = re[n] * (2.0L + re[n]) + im[n] * im[n];  // |1 + v|² − 1
    const auto modulus = square > -0.5L ? std::sqrt(1.0L + square) : std::hypot(1.0L + re[n], im[n]);
    Node out{square > -0.5L ? 0.5L * std::log1p(square) : std::log(std::max(modulus, 1e-4000L)),
             std::atan2(im[n], 1.0L + re[n]), 0.0L, 0.0L,
             std::atan2(static_cast<long double>(first + static_cast<std::int64_t>(n)) * distance_, line_)};
    // log(1 + v): off by error/|1 + v|, and rounding.
    out.log_most = std::log(modulus + off);
    out.error = off / std::max(modulus - off, 1e-300L) + 4.0L * unit * (std::abs(out.log_re) + std::abs(out.log_im));
    nodes_.push_back(out);
  }
}

long double LognormalSum::log_laplace(long double x) const {
  long double sum = 0.0L;
  for (std::size_t j = 0; j < z_.size(); ++j) sum += weight_[j] * std::exp(-x * x_[j]);
  return std::log(sum + 1e-20L);
}

long double LognormalSum::log_bound(long double y) const {
  auto best = 0.0L;  // |φ| ≤ 1
  for (const auto share : {0.02L, 0.05L, 0.1L, 0.2L, 0.35L, 0.5L, 0.7L, 0.85L, 1.0L}) {
    const auto theta = std::min(share * pi / 2.0L, share * mu_ * 12.0L);
    const auto exponent = 0.5L * (theta / mu_) * (theta / mu_);
    best = std::min(best, exponent + log_laplace(line_ * std::cos(theta) + y * std::sin(theta)));
  }
  return best;
}

LognormalSum::Value LognormalSum::below(long double threshold) const {
  const auto b = static_cast<long double>(terms_);
  const auto gap = threshold - b;
  long double sum = 0.0L;
  long double error = 0.0L;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const auto y = static_cast<long double>(n) * distance_;
    const auto& at = nodes_[n];
    const auto log_size = line_ * gap + b * at.log_re;
    const auto phase = y * gap + b * at.log_im;
    const auto square = line_ * line_ + y * y;
    const auto size = (n == 0 ? 0.5L : 1.0L) * std::exp(log_size) / square;
    // 1/s² = conj(s)²/|s|⁴: an angle of −2 arg s.
    const auto angle = phase - 2.0L * at.argument;
    sum += size * std::cos(angle);
    const auto off =
        b * at.error +
        unit * (4.0L * ((line_ + y) * std::abs(gap) + b * (std::abs(at.log_re) + std::abs(at.log_im))) + 16.0L);
    // Where nothing is known of the angle, both the term and the true one are at most as large as φ can be: 2 size or
    // more, as log_most ≥ log_re.
    error += off < 0.5L ? 1.3L * off * size
                        : (n == 0 ? 0.5L : 1.0L) * 2.0L * std::exp(line_ * gap + b * at.log_most) / square;
  }
  const auto scale = distance_ / pi;
  const auto count = static_cast<long double>(nodes_.size());
  return {scale * sum,
          scale * (error * 1.01L + unit * count * std::abs(sum)) + alias_ + std::exp(line_ * threshold + log_cut_)};
}

}  // namespace tsdp::privacy
