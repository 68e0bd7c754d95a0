// Constants that all bounds are computed with.
#pragma once

#include <limits>

namespace tsdp::privacy {

/// The unit roundoff of double precision: rounding to nearest moves a number by at most this share of it.
inline constexpr double roundoff = 0x1p-53;
inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace tsdp::privacy
