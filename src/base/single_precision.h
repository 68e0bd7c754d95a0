// Numbers of a configuration in the precision of a model's weights.
#pragma once

#include <cmath>
#include <limits>

namespace tsdp {

/// A bound in single precision, rounded inwards, so that nothing cut there is outside.
inline float bound_inwards(double bound, bool from_below) {
  auto rounded = static_cast<float>(bound);
  if (from_below && rounded < bound) rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
  if (!from_below && rounded > bound) rounded = std::nextafter(rounded, -std::numeric_limits<float>::infinity());
  return rounded;
}

}  // namespace tsdp
