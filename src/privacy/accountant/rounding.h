// The neighbours of a number, towards which bounds are rounded.
#pragma once

#include <cmath>
#include <limits>

namespace tsdp::privacy {

inline double down(double x) { return std::nextafter(x, -std::numeric_limits<double>::infinity()); }
inline double up(double x) { return std::nextafter(x, std::numeric_limits<double>::infinity()); }

}  // namespace tsdp::privacy
