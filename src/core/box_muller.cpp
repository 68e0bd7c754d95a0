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

/// Natural logarithm of u in (0, 1), relative error below 4e-16: u = 2^e m, m in [√½, √2), and log m = 2s + s R(s²) with
/// s = (m − 1)/(m + 1), |s| < 0.172, R the minimax polynomial of FreeBSD's msun (error below 2^−58).
[[gnu::always_inline]] inline double log_of(double u) {
  const auto bits = std::bit_cast<std::uint64_t>(u);
  // Adding the distance from √½ to 1 carries into the exponent exactly when the mantissa is at least √2.
  const std::uint64_t shifted = bits + (0x3FF0000000000000ULL - 0x3FE6A09E667F3BCDULL);
  // The biased exponent in the last places of 2^52.
  const double e = std::bit_cast<double>((shifted >> 52) | 0x4330000000000000ULL) - (0x1p52 + 1023.0);
  const double m = std::bit_cast<double>((shifted & 0x000FFFFFFFFFFFFFULL) + 0x3FE6A09E667F3BCDULL);
  const double s = (m - 1.0) / (m + 1.0);
  const double t = s * s;
  const double t2 = t * t;
  const double t4 = t2 * t2;
  const double low = fma(t, 3.999999999940941908e-01, 6.666666666666735130e-01);
  const double middle = fma(t, 2.222219843214978396e-01, 2.857142874366239149e-01);
  const double high = fma(t, 1.531383769920937332e-01, 1.818357216161805012e-01);
  const double tail = fma(t4, fma(t2, 1.479819860511658591e-01, high), fma(t2, middle, low));
  return fma(e, 0.6931471805599453094, fma(s * t, tail, 2.0 * s));
}

}  // namespace

TSDP_CLONES
void box_muller(const std::uint64_t* words, double* normals, std::size_t pairs) {
  constexpr double half_pi = 1.570796326794896619;
  constexpr std::uint64_t sign = 0x8000000000000000ULL;
  for (std::size_t j = 0; j < pairs; ++j) {
    const double u = (2.0 - one_to_two(words[2 * j])) - 0x1p-53;  // midpoints of 2^52 cells of (0, 1), exactly
    const double radius = std::sqrt(-2.0 * log_of(u));
    // A uniform angle is a uniform x in [−π/4, π/4) in one of four quarters of the circle: two more random bits give
    // (c, s), (−c, s), (s, c) or (s, −c). The 52 bits of x are the word's first, the two bits its last.
    const std::uint64_t word = words[2 * j + 1];
    const double x = half_pi * (one_to_two(word) - 1.5);
    const double t = x * x;
    const double t2 = t * t;
    const double t4 = t2 * t2;
    // Minimax polynomials of FreeBSD's msun on [−π/4, π/4]; errors below 2^−57.
    const double s_low = fma(t2, fma(t, 2.75573137070700676789e-06, -1.98412698298579493134e-04),
                             fma(t, 8.33333333332248946124e-03, -1.66666666666666324348e-01));
    const double s_high = fma(t, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
    const double s = fma(x * t, fma(t4, s_high, s_low), x);
    const double c_low = fma(t2, fma(t, 2.48015872894767294178e-05, -1.38888888888741095749e-03),
                             fma(t, 4.16666666666666019037e-02, -0.5));
    const double c_high = fma(t2, -1.13596475577881948265e-11,
                              fma(t, 2.08757232129817482790e-09, -2.75573143513906633035e-07));
    const double c = std::bit_cast<double>(std::bit_cast<std::uint64_t>(fma(t, fma(t4, c_high, c_low), 1.0)) ^
                                           ((word << 63) & sign));
    const bool swapped = (word & 2) != 0;
    normals[2 * j] = radius * (swapped ? s : c);
    normals[2 * j + 1] = radius * (swapped ? c : s);
  }
}

}  // namespace tsdp::detail
