// From a profile, known from above at points, to a privacy loss that composes.
#pragma once

#include <cstdint>
#include <vector>

#include "privacy/accountant/loss_distribution.h"

namespace tsdp::privacy {

/// An upper bound of H_α(M‖N) = sup_S M(S) − α N(S) at α = e^{index · step}.
struct ProfilePoint {
  std::int64_t index;
  long double upper;
};

/// A pessimistic loss, on multiples of `step`, of a pair that dominates every pair whose profile the points bound.
///
/// Profiles are convex in α, do not rise, and are 1 at α = 0. So the largest convex function below the points and
/// below (0, 1) that does not rise is nowhere below the profile. It is linear between the points it touches, hence the
/// profile of a discrete pair: where its slope changes by q, N has the mass q and M the mass α q; what is left at α → ∞
/// is M's mass of infinite loss (connect the dots, Doroshenko et al. 2022). A pair with a profile that is nowhere below
/// another's stays above it under composition (Zhu et al. 2022, Theorem 10).
///
/// `points`: ascending, at least one; `step`: a power of 2, so that α is off by a unit of long double. Rounding: a mass
/// α (s' − s) of two slopes is off by a few units of α |s| ≤ 1; that is charged as mass of infinite loss.
[[nodiscard]] LossDistribution dominating_loss(const std::vector<ProfilePoint>& points, double step);

/// The mass of a cell of outputs under M, from below, and under N, from above.
struct LossCell {
  long double first, second;
};

/// An optimistic loss, on multiples of `step` beside an offset, of the pair whose outputs are the cells: it is
/// dominated by (M, N), since releasing the cell alone is post-processing, and less mass under M and more under N only
/// lower a profile. A cell's loss log(first/second) is rounded down to the nearest point less what `loss_error` charges
/// for all of them, chosen so that both together cost least. Cells without mass are dropped.
[[nodiscard]] LossDistribution dominated_loss(const std::vector<LossCell>& cells, double step);

}  // namespace tsdp::privacy
