// The tail of the normal law itself, not its logarithm (log_normal_tail).
#pragma once

#include <cmath>
#include <numbers>

namespace tsdp::privacy {

/// Φ̄(z) = P[N(0,1) > z]; off by a few units of itself and z² units, as √½ cannot be represented in this precision.
inline double normal_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

}  // namespace tsdp::privacy
