// Vectorised Box–Muller. Fused operations are written out and no others are made (no contraction), so every clone gives
// the same bits; where the processor has none, the library's fma is exact, and slow. The polynomials are summed in pairs
// (Estrin), since chains of dependent operations are what bounds the speed.
//
// Double precision to the last bits, where single-precision weights are what is released: the closer this is to the
// accountant's Gaussian, the less the rounding that follows can tell. It is not a proof: floating-point noise is discrete, and
// the ledger says so.
#include "box_muller.h"

#include <bit>
#include <cmath>

#include "tsdp/core/clones.h"

namespace tsdp::detail {
namespace {

[[gnu::always_inline]] inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// 52 random bits as a double in [1, 2).
[[gnu::always_inline]] inline double one_to_two(std::uint64_t word) {
  return std::bit_cast<double>((word >> 12) | 0x3FF0000000000000ULL);
}

/// Natural logarithm of u in (0, 1], relative error below 4e-16: u = 2^e m, m in [√½, √2), by the series of artanh.
[[gnu::always_inline]] inline double log_of(double u) {
  const auto bits = std::bit_cast<std::uint64_t>(u);
  // Adding the distance from √½ to 1 carries into the exponent exactly when the mantissa is at least √2.
  const std::uint64_t shifted = bits + (0x3FF0000000000000ULL - 0x3FE6A09E667F3BCDULL);
  const auto e_bits = static_cast<std::int32_t>(shifted >> 52) - 1023;
  const double e = static_cast<double>(e_bits);
  const double m = std::bit_cast<double>((shifted & 0x000FFFFFFFFFFFFFULL) + 0x3FE6A09E667F3BCDULL);
  const double s = (m - 1.0) / (m + 1.0);
  const double t = s * s;
  const double t2 = t * t;
  const double t4 = t2 * t2;
  const double low = fma(t2, fma(t, 1.0 / 7, 1.0 / 5), fma(t, 1.0 / 3, 1.0));
  const double middle = fma(t2, fma(t, 1.0 / 15, 1.0 / 13), fma(t, 1.0 / 11, 1.0 / 9));
  const double high = fma(t2, fma(t, 1.0 / 23, 1.0 / 21), fma(t, 1.0 / 19, 1.0 / 17));
  const double sum = fma(t4 * t4, fma(t4, 1.0 / 25, high), fma(t4, middle, low));
  return fma(e, 0.6931471805599453094, 2.0 * s * sum);
}

}  // namespace

TSDP_CLONES
void box_muller(const std::uint64_t* words, double* normals, std::size_t pairs) {
  constexpr double two_pi = 6.283185307179586477;
  constexpr double round_magic = 6755399441055744.0;  // 1.5 · 2^52: adding and taking away rounds to an integer
  for (std::size_t j = 0; j < pairs; ++j) {
    const double u = 2.0 - one_to_two(words[2 * j]);       // (0, 1]
    const double v = one_to_two(words[2 * j + 1]) - 1.0;   // [0, 1)
    const double radius = std::sqrt(-2.0 * log_of(u));
    const double quarter = (4.0 * v + round_magic) - round_magic;  // 0 … 4
    const double x = two_pi * (v - 0.25 * quarter);                // [−π/4, π/4]
    const double t = x * x;
    const double t2 = t * t;
    const double t4 = t2 * t2;
    const double s_low = fma(t2, fma(t, 1.0 / 362880.0, -1.0 / 5040.0), fma(t, 1.0 / 120.0, -1.0 / 6.0));
    const double s_high = fma(t2, fma(t, 1.0 / 355687428096000.0, -1.0 / 1307674368000.0),
                              fma(t, 1.0 / 6227020800.0, -1.0 / 39916800.0));
    const double s = fma(x * t, fma(t4, s_high, s_low), x);
    const double c_low = fma(t2, fma(t, 1.0 / 40320.0, -1.0 / 720.0), fma(t, 1.0 / 24.0, -0.5));
    const double c_high = fma(t2, fma(t, 1.0 / 20922789888000.0, -1.0 / 87178291200.0),
                              fma(t, 1.0 / 479001600.0, -1.0 / 3628800.0));
    const double c = fma(t, fma(t4, c_high, c_low), 1.0);
    // Turn by the quarter: cos(x + qπ/2), sin(x + qπ/2).
    const bool odd = quarter == 1.0 || quarter == 3.0;
    const double cosine = (odd ? s : c) * (quarter == 1.0 || quarter == 2.0 ? -1.0 : 1.0);
    const double sine = (odd ? c : s) * (quarter == 2.0 || quarter == 3.0 ? -1.0 : 1.0);
    normals[2 * j] = radius * cosine;
    normals[2 * j + 1] = radius * sine;
  }
}

}  // namespace tsdp::detail
