// A privacy number with direction: the truth lies between `lower` and `upper`, floating point included.
#pragma once

namespace tsdp::privacy {

/// lower ≤ truth ≤ upper. Every comparison that could spend privacy uses `upper`.
struct Interval {
  double lower = 0.0;
  double upper = 0.0;
};

}  // namespace tsdp::privacy
