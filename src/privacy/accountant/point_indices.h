// Grids of losses that widen where losses are large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tsdp::privacy {

/// Indices 0 = n₀ < n₁ < … of the points, up to a loss of `largest` or just beyond it: distances 3^g, g growing with
/// the loss. From distance d to 3d the step between is 2d, so that cells of width d and 3d around their points meet.
/// Points lie `step` apart up to loss 3·`fine`. Throws OutOfReach where that takes more than `most` of them.
[[nodiscard]] std::vector<std::int64_t> point_indices(double step, double fine, double largest, std::size_t most);

}  // namespace tsdp::privacy
