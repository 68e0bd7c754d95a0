// Constants that all bounds are computed with, and the neighbours of a number, towards which bounds are rounded.
#pragma once

#include <cmath>
#include <limits>

namespace tsdp::privacy {

/// The unit roundoff of double precision: rounding to nearest moves a number by at most this share of it.
inline constexpr double roundoff = 0x1p-53;
inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline double down(double x) { return std::nextafter(x, -infinity); }
inline double up(double x) { return std::nextafter(x, infinity); }

}  // namespace tsdp::privacy
