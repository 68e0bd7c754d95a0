// Discretised privacy loss distributions, with the direction of the discretisation as a type.
#pragma once

#include <cstdint>
#include <vector>

#include "tsdp/privacy/dominating_pair.h"

namespace tsdp::privacy {

/// Which side of the truth a discretisation lies on.
enum class Rounding {
  pessimistic,  ///< its profile is nowhere below the true one
  optimistic,   ///< its profile is nowhere above the true one
};

/// The privacy loss distribution of the symmetrised profile of one pair, on the grid {i·step : |i| ≤ half_size}.
///
/// Object (Schuchardt et al. 2025, notes 3.3): with x₀ the point of loss 0, the loss under the first measure P* is
/// +L(x) with mass P(dx) and −L(x) with mass Q(dx) for x > x₀, and 0 with the mass that is left.
///
/// Meaning of the fields for k independent uses, loss S = sum of k grid losses, δ(ε) = E[(1 − e^{ε−S})₊]:
///   pessimistic: truth(ε) ≤ (1 + relative_error)^k · δ(ε − k·loss_error) + k·infinite_mass
///   optimistic:  truth(ε) ≥ (1 − relative_error)^k · δ(ε + k·loss_error)
/// `relative_error` covers quadrature and rounding of the masses; `loss_error` rounding of losses and, on the
/// optimistic side, the distance of merged losses from the grid.
struct LossDistribution {
  Rounding rounding = Rounding::pessimistic;
  double step = 0.0;
  std::int64_t half_size = 0;
  std::vector<double> mass;  ///< mass[i + half_size] at loss i·step
  double infinite_mass = 0.0;
  double relative_error = 0.0;
  double loss_error = 0.0;

  [[nodiscard]] double largest_loss() const { return step * static_cast<double>(half_size); }
};

/// Discretises the symmetrised loss of `pair` with grid distance `step` > 0.
/// Throws PrivacyError if the grid would need more than `max_half_size` points a side.
[[nodiscard]] LossDistribution discretise(const DominatingPair& pair, double step, Rounding rounding,
                                          std::int64_t max_half_size = std::int64_t{1} << 21);

/// Standard deviation of the symmetrised loss and the largest loss that a grid has to reach. Not certified: they
/// choose grids, and every grid is charged for what it is.
struct LossScale {
  double deviation;
  double largest_loss;
};
[[nodiscard]] LossScale loss_scale(const DominatingPair& pair);

}  // namespace tsdp::privacy
