// The tail of the normal law, where it is wanted as it is and not as its logarithm (log_normal_tail).
#pragma once

#include <cmath>
#include <numbers>

namespace tsdp::privacy {

/// Φ̄(z) = P[N(0,1) > z]; off by a few units of itself and z² units, as √½ is no number of this precision.
inline double normal_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

}  // namespace tsdp::privacy
