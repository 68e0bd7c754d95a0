// Discretised privacy loss distributions, with the direction of the discretisation as a type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {

/// Which side of the truth a discretisation lies on.
enum class Rounding {
  pessimistic,  ///< its profile is nowhere below the true one
  optimistic,   ///< its profile is nowhere above the true one
};

/// The privacy loss distribution of one pair in one direction, on multiples of `step`.
///
/// Object (Schuchardt et al. 2025, notes 3.3), symmetrised: with x₀ the point of loss 0, the loss under the first
/// measure P* is +L(x) with mass ρ_out P(dx) and −L(x) with mass ρ_out Q(dx) for x > x₀, and 0 with the mass that is
/// left.
///
/// In one direction (DominatingPair::profile) it is L(x) under P for every x (remove), or −L(x) under Q (add).
///
/// Meaning of the fields for k independent uses, loss S = sum of k grid losses, δ(ε) = E[(1 − e^{ε−S})₊]:
///   pessimistic: truth(ε) ≤ (1 + relative_error)^k · δ(ε − k·loss_error) + k·infinite_mass
///   optimistic:  truth(ε) ≥ (1 − relative_error)^k · δ(ε + k·(loss_error − offset))
/// `relative_error` covers quadrature and rounding of the masses; `loss_error` rounding of losses and, on the
/// optimistic side, the distance of merged losses from the grid.
struct LossDistribution {
  struct Point {
    std::int64_t index;  ///< > 0
    double plus;         ///< mass at loss offset + index·step
    double minus;        ///< mass at loss offset − index·step
  };
  Rounding rounding = Rounding::pessimistic;
  double step = 0.0;
  double offset = 0.0;        ///< of all losses; 0 unless optimistic and of one direction
  double at_zero = 0.0;       ///< mass at loss offset
  std::vector<Point> points;  ///< by increasing index
  double infinite_mass = 0.0;
  double relative_error = 0.0;
  double loss_error = 0.0;

  [[nodiscard]] std::int64_t largest_index() const { return points.empty() ? 0 : points.back().index; }
  /// Largest |loss − offset|, of either sign and of those above it.
  [[nodiscard]] double largest_loss() const { return step * static_cast<double>(largest_index()); }
  [[nodiscard]] double largest_plus() const;
};

/// Discretises the loss of `pair` in one direction (see DominatingPair::profile for the pairs that have one). Points
/// lie `step` apart up to loss 3·`fine`, from there on at most step·loss/fine apart: a cell of width Δ changes the
/// variance of the loss by at most Δ²/6, so that all cells together change second moments, under any tilt, by at most a
/// share of about (step/fine)²/6. P-mass of at most about `tail` (never more than 4e-36 where 0) may lie beyond the
/// last point: counted as infinite loss on the pessimistic side, dropped on the optimistic one. Throws PrivacyError if
/// that takes more than `most_points` points, or `step`, `fine` are not positive and finite.
[[nodiscard]] LossDistribution discretise(const DominatingPair& pair, double step, double fine, Rounding rounding,
                                          double tail = 0.0, std::size_t most_points = std::size_t{1} << 20,
                                          Direction direction = Direction::symmetrised);

/// Standard deviation of the loss and the largest loss that a grid has to reach. Not certified: they
/// choose grids, and every grid is charged for what it is.
struct LossScale {
  double deviation;
  double largest_loss;
};
[[nodiscard]] LossScale loss_scale(const DominatingPair& pair, Direction direction = Direction::symmetrised);

}  // namespace tsdp::privacy
