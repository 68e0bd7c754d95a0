// Ranges of the numbers that bounds are asked for, checked alike everywhere.
#pragma once

#include <cmath>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

inline void check_noise_multiplier(double sigma) {
  if (!(sigma > 0.0) || !std::isfinite(sigma))
    throw PrivacyError(cat("noise multiplier: found ", sigma, "; expected a positive finite number"));
}

/// Of a whole mechanism. With less than 0.01 a single step has a loss in the ten thousands, and no budget that anyone
/// states survives it.
inline void check_noise_multiplier_of_mechanism(double sigma) {
  if (!(sigma >= 0.01) || !(sigma <= 1e6))
    throw UsageError(cat("noise multiplier: found ", sigma, "; expected a number from 0.01 to 1e6"));
}

inline void check_sampling_probability(double q) {
  if (!(q > 0.0) || !(q <= 1.0))
    throw PrivacyError(cat("sampling probability: found ", q, "; expected a number in (0, 1]"));
}

inline void check_epsilon(double epsilon) {
  if (!(epsilon >= 0.0) || !std::isfinite(epsilon))
    throw PrivacyError(cat("epsilon: found ", epsilon, "; expected a finite number of at least 0"));
}

/// Truncated tails leave up to max_uses_ever · 4e-36 of infinite loss: no smaller delta could be answered.
inline void check_delta(double delta) {
  if (!(delta >= 1e-25) || !(delta < 1.0))
    throw PrivacyError(cat("delta: found ", delta, "; expected a number from 1e-25 to below 1"));
}

}  // namespace tsdp::privacy
