// Vectorised Box–Muller. Fused operations are written out and no others are made (no contraction), so every clone gives
// the same bits; where the processor has none, the library's fma is exact, and slow. The polynomials are summed in
// pairs (Estrin) and the work is done in two passes, with the division in one and the root in the other: a processor
// looks ahead by some hundred operations, and a chain from the random bits to the normal would fill that with
// operations that wait.
#include "box_muller.h"

#include <bit>
#include <cmath>

#include "base/clones.h"

namespace tsdp::detail {
namespace {

[[gnu::always_inline]] inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// 52 random bits as a double in [1, 2).
[[gnu::always_inline]] inline double one_to_two(std::uint64_t word) {
  return std::bit_cast<double>((word >> 12) | 0x3FF0000000000000ULL);
}

/// u in (0, 1) as u = 2^e m with m in [√½, √2).
struct Split {
  double e;
  double m;
};
[[gnu::always_inline]] inline Split split(double u) {
  const auto bits = std::bit_cast<std::uint64_t>(u);
  // Adding the distance from √½ to 1 carries into the exponent exactly when the mantissa is at least √2.
  const std::uint64_t shifted = bits + (0x3FF0000000000000ULL - 0x3FE6A09E667F3BCDULL);
  // The biased exponent in the last places of 2^52.
  return {std::bit_cast<double>((shifted >> 52) | 0x4330000000000000ULL) - (0x1p52 + 1023.0),
          std::bit_cast<double>((shifted & 0x000FFFFFFFFFFFFFULL) + 0x3FE6A09E667F3BCDULL)};
}

/// log(2^e m) from s = (m − 1)/(m + 1), |s| < 0.172, relative error below 4e-16: log m = 2s + s R(s²), R the minimax
/// polynomial of FreeBSD's msun (error below 2^−58).
[[gnu::always_inline]] inline double log_of(double e, double s) {
  const double t = s * s;
  const double t2 = t * t;
  const double t4 = t2 * t2;
  const double low = fma(t, 3.999999999940941908e-01, 6.666666666666735130e-01);
  const double middle = fma(t, 2.222219843214978396e-01, 2.857142874366239149e-01);
  const double high = fma(t, 1.531383769920937332e-01, 1.818357216161805012e-01);
  const double tail = fma(t4, fma(t2, 1.479819860511658591e-01, high), fma(t2, middle, low));
  return fma(e, 0.6931471805599453094, fma(s * t, tail, 2.0 * s));
}

/// A uniform point of the unit circle. A uniform angle is a uniform x in [−π/4, π/4) in one of four quarters of the
/// circle. x: the midpoints of 2^42 cells, from the 32 bits next to the word and ten of the twelve bits of the word
/// that the radius does not use; the last two choose among (c, s), (−c, s), (s, c) and (s, −c).
struct Direction {
  double c;
  double s;
};
[[gnu::always_inline]] inline Direction direction(std::uint64_t word, std::uint32_t more) {
  constexpr double half_pi = 1.570796326794896619;
  constexpr std::uint64_t sign = 0x8000000000000000ULL;
  const std::uint64_t cell = (std::uint64_t{more} << 20) | ((word & 0xFFC) << 8);
  const double x = half_pi * (std::bit_cast<double>(cell | 0x3FF0000000000200ULL) - 1.5);
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
  const double c_high =
      fma(t2, -1.13596475577881948265e-11, fma(t, 2.08757232129817482790e-09, -2.75573143513906633035e-07));
  const double c =
      std::bit_cast<double>(std::bit_cast<std::uint64_t>(fma(t, fma(t4, c_high, c_low), 1.0)) ^ ((word << 63) & sign));
  const bool swapped = (word & 2) != 0;
  return {swapped ? s : c, swapped ? c : s};
}

}  // namespace

TSDP_CLONES
bool box_muller(std::span<const UniformBlock> blocks, double* normals) {
  constexpr std::size_t together = 8;  // blocks; what is kept of them between the passes stays in the first-level cache
  std::uint64_t tail = 0;  // bit 20: the first 20 bits of some word were all 1
  double exponents[together * pairs_a_block];
  double ratios[together * pairs_a_block];
  double cosines[together * pairs_a_block];
  double sines[together * pairs_a_block];
  for (std::size_t first = 0; first < blocks.size(); first += together) {
    const std::size_t now = blocks.size() - first < together ? blocks.size() - first : together;
    for (std::size_t b = 0; b < now; ++b) {
      const auto& block = blocks[first + b];
      for (std::size_t j = 0; j < pairs_a_block; ++j) {
        const std::size_t place = b * pairs_a_block + j;
        const std::uint64_t word = block.words[j];
        tail |= (word >> 44) + 1;
        const double u = (2.0 - one_to_two(word)) - 0x1p-53;  // midpoints of 2^52 cells of (0, 1), exactly
        const auto [e, m] = split(u);
        exponents[place] = e;
        ratios[place] = (m - 1.0) / (m + 1.0);
        const auto [c, s] = direction(word, block.more[j]);
        cosines[place] = c;
        sines[place] = s;
      }
    }
    for (std::size_t b = 0; b < now; ++b, normals += 2 * pairs_a_block)
      for (std::size_t j = 0; j < pairs_a_block; ++j) {
        const std::size_t place = b * pairs_a_block + j;
        const double radius = std::sqrt(-2.0 * log_of(exponents[place], ratios[place]));
        normals[j] = radius * cosines[place];
        normals[pairs_a_block + j] = radius * sines[place];
      }
  }
  return (tail >> 20) != 0;
}

void refine(const UniformBlock& block, std::size_t pair, std::uint64_t further, double* normals) {
  const std::uint64_t cells = (1ULL << 52) - 1 - (block.words[pair] >> 12);  // below this one: less than 2^32
  const double inside = one_to_two(further) - (1.0 - 0x1p-53);  // midpoints of 2^52 cells of (0, 1), exactly
  const auto [e, m] = split((static_cast<double>(cells) + inside) * 0x1p-52);
  const double radius = std::sqrt(-2.0 * log_of(e, (m - 1.0) / (m + 1.0)));
  const auto [c, s] = direction(block.words[pair], block.more[pair]);
  normals[pair] = radius * c;
  normals[pairs_a_block + pair] = radius * s;
}

}  // namespace tsdp::detail
