// Boost's Gauss–Legendre rules with sizes that the compiler knows.
#pragma once

#include <algorithm>
#include <array>

#include <boost/math/quadrature/gauss.hpp>

namespace tsdp::privacy {

/// The rule of n nodes on [−1, 1], n even: the positive half, the rest is symmetric.
template <unsigned n>
struct GaussRule {
  static_assert(n % 2 == 0);
  std::array<double, n / 2> nodes, weights;

  GaussRule() {
    using Rule = boost::math::quadrature::gauss<double, n>;
    std::copy_n(Rule::abscissa().begin(), n / 2, nodes.begin());
    std::copy_n(Rule::weights().begin(), n / 2, weights.begin());
  }
};

}  // namespace tsdp::privacy
