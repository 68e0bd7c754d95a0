// What a theorem's epsilon is for a whole run.
#pragma once

#include <algorithm>

#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {

/// A tight profile of a step, composed by an upper bound (tsdp.6), gives an upper bound.
[[nodiscard]] inline Bound bound_of_run(const AppliedTheorem& theorem) {
  return theorem.composition == StepComposition::adaptive ? std::max(theorem.bound, Bound::upper) : theorem.bound;
}

}  // namespace tsdp::privacy
