// What curves of whole series share: ends from different theorems, and epochs as one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

/// A bracket whose ends come from different theorems. It is an error of the program if they cross by more than
/// rounding.
inline Interval in_order(Interval bracket) {
  if (!(bracket.lower <= bracket.upper * (1.0 + 1e-9) + 1e-300))
    throw Error(ExitCode::failure, cat("a lower end of ", bracket.lower, " above an upper end of ", bracket.upper));
  return {std::min(bracket.lower, bracket.upper), bracket.upper};
}

/// The most epochs k ≤ limit that `certified(k)` admits, found by doubling and halving from `known` on, which are.
template <class Certified>
std::uint64_t most_epochs(std::uint64_t known, std::uint64_t limit, Certified certified) {
  auto low = known;
  auto high = std::max<std::uint64_t>(low, 1);
  while (high <= limit && certified(high)) {
    low = high;
    high *= 2;
  }
  high = std::min(high, limit + 1);
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (certified(middle) ? low : high) = middle;
  }
  return low;
}

/// σ/√k: k epochs with the same batches are one with less noise.
inline double of_one_epoch(double noise_multiplier, std::uint64_t epochs) {
  return noise_multiplier / std::sqrt(static_cast<double>(epochs));
}

}  // namespace tsdp::privacy
