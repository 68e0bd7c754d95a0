// What a count of hits says of a probability.
#pragma once

#include <cstdint>

#include <boost/math/distributions/binomial.hpp>

#include "tsdp/privacy/terms/curve.h"

namespace tsdp::test {

/// Lower and upper end for a probability after `hits` of `trials`: Clopper–Pearson, 2.5e-7 a side.
inline privacy::Interval share(std::uint64_t hits, std::uint64_t trials) {
  using Law = boost::math::binomial_distribution<>;
  const auto n = static_cast<double>(trials);
  const auto h = static_cast<double>(hits);
  return {hits == 0 ? 0.0 : Law::find_lower_bound_on_p(n, h, 2.5e-7),
          hits == trials ? 1.0 : Law::find_upper_bound_on_p(n, h, 2.5e-7)};
}

}  // namespace tsdp::test
