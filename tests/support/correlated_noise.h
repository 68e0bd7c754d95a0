// Correlated noise by a strategy matrix, as the step engine makes it.
#pragma once

#include <cstdint>

#include "dp/noise_mechanism.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::test {

inline dp::CorrelatedNoise noise_of(const privacy::Strategy& strategy, double deviation, std::int64_t coordinates) {
  using From = privacy::NoiseRecursion::Form;
  using To = dp::CorrelatedNoise::Form;
  const auto& r = strategy.recursion();
  const auto form = r.form == From::banded           ? To::banded
                    : r.form == From::banded_inverse ? To::banded_inverse
                                                     : To::buffered;
  return {{form, r.coefficients, r.decays, r.weights},
          static_cast<std::uint64_t>(strategy.steps()),
          deviation,
          coordinates};
}

}  // namespace tsdp::test
