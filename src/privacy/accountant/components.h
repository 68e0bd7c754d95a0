// Components of dominating pairs whose weights are laws of counts.
#pragma once

#include <cstdint>
#include <vector>

#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {

/// Components {spacing·i : Binomial(i; trials, probability)}, i = 0 … trials, by recurrence from the mode in extended
/// precision (relative error below 1e-14 up to 1e6 components that matter). 1 ≤ trials, 0 < probability ≤ 1. Weights
/// below 1e-300 are left out. Throws PrivacyError if more than 5000 are left.
[[nodiscard]] std::vector<DominatingPair::Component> binomial_components(std::int64_t trials, double probability,
                                                                         double spacing);
/// Components {spacing·i : Hypergeometric(i; population, marked, drawn)}, likewise: drawing `drawn` of `population`
/// without replacement, `marked` of which are marked.
[[nodiscard]] std::vector<DominatingPair::Component> hypergeometric_components(std::int64_t population,
                                                                               std::int64_t marked, std::int64_t drawn,
                                                                               double spacing);
/// The mixture of a series that is drawn with probability `use`: (1 − use) of the mass at mean 0, the rest as given.
[[nodiscard]] std::vector<DominatingPair::Component> diluted(std::vector<DominatingPair::Component> components,
                                                             double use);

}  // namespace tsdp::privacy
