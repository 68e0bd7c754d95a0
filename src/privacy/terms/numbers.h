// Constants that all bounds are computed with, and the neighbours of a number, towards which bounds are rounded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tsdp::privacy {

/// The unit roundoff of double precision: rounding to nearest moves a number by at most this share of it.
inline constexpr double roundoff = 0x1p-53;
inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline double down(double x) { return std::nextafter(x, -infinity); }
inline double up(double x) { return std::nextafter(x, infinity); }

/// A probability that a coin of 53 uniform bits can have: the next multiple of 2⁻⁵³, at most 1.
inline double of_53_bits(double rate) { return std::min(1.0, std::ceil(rate * 0x1p53) * 0x1p-53); }

/// The coin of cyclic Poisson batches of p groups, where steps draw the share `share` on average: pρ, whose product is
/// off by half a unit of itself.
inline double cyclic_coin(double share, std::int64_t groups) {
  return of_53_bits(groups == 1 ? share : up(share * static_cast<double>(groups)));
}

}  // namespace tsdp::privacy
