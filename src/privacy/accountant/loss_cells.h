// Cells of the privacy loss between the points of a grid: their masses, spread to their ends or merged to their points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "half_lines.h"

namespace tsdp::privacy {

// Relative error of a mass. An n-point Gauss–Legendre rule over a panel of half width r leaves at most
// (64/15) M η^{−2n} r, M the integrand's largest modulus on the ellipse with foci at the ends and half axes summing to
// η r. The integrand is a Gaussian times exponentials: with change e = |d log| · 2r of its exponent over the panel,
// M ≤ e^{e η/4 + (r η/2σ)²/2} times its value in the middle.
//   n = 4, 2r ≤ 0.05 σ, e ≤ 0.05: η = 75 leaves 2e-14;   n = 8, 2r ≤ 0.25 σ, e ≤ 1: η = 30 leaves 1e-18
// of ∫q. Of ∫q (e^{L−l} − 1), whose integrand vanishes at one end, the eighth derivative in the rule's own error term
// leaves 1e-15.
// Rounding of the terms (all of one sign) adds less than 2e-14, mixture weights (structured_pairs) less than 1e-14.
// 1e-13 leaves a margin.
inline constexpr double mass_error = 1e-13;

struct CellMasses {
  double q = 0.0;  // e^{base} ∫ q
  double excess = 0.0;  // e^{base} ∫ q (e^{L − base} − 1), base the loss the caller names
};

/// Integrals of e^{base} q and of e^{base} q (e^{L(x) − base} − 1) over [from, to], by panels on which the integrand is
/// tame. Scaled this way because P-mass is e^{L} times Q-mass: far out Q-mass underflows where P-mass does not.
template <class Side>
[[nodiscard]] CellMasses integrate(const Side& pair, double from, double to, double base);

/// Masses of one side at the points, `heavy` of the heavier measure and `light` of the lighter; [0] is at loss 0.
struct SideMasses {
  std::vector<double> heavy, light;
  double heavy_beyond = 0.0;  ///< of the heavier measure past the last point
  double light_beyond = 0.0;

  explicit SideMasses(std::size_t points) : heavy(points), light(points) {}
};

/// Connect the dots (Doroshenko et al. 2022; notes D.16), in the form that keeps each cell's P- and Q-mass: the mass of
/// the cell of losses [l, l + Δ] goes to its two ends as Q-masses a, b with
///   b = ∫ q (e^{L−l} − 1) / (e^Δ − 1),   a = ∫ q − b,   and P-masses a e^{l}, b e^{l+Δ}.
/// A mean-preserving spread of the likelihood ratio only raises every hockey-stick divergence, so the result dominates.
/// Below, where losses are bounded, the last cell ends at `end`; its losses still lie in it.
template <class Side>
[[nodiscard]] SideMasses spread(const Side& side, const std::vector<std::int64_t>& index, double step, double zero,
                                double end);

/// Cells of one side whose merged masses have a loss on the grid, from the outermost inwards.
struct MergedCells {
  SideMasses masses;
  double border;  ///< inner border of the innermost cell
  double worst;  ///< largest |merged loss − point|
};

/// What becomes of a cell that would have to reach beyond the next point.
enum class Unfitting {
  draws_in,  ///< its outer border is drawn in, and what lies beyond is dropped: for tails of next to no mass
  joins,  ///< its outputs join the next cell: for losses that are bounded, where the outermost may hold most of the
          ///< mass
};

/// Merging outputs is post-processing: the pair of merged masses is dominated by the original (data processing).
/// Cell i is [b_{i−1}, b_i] with merged loss log(P(cell)/Q(cell)) equal to its point's, index·step + offset. So b_i
/// gives b_{i−1}, from the tail inwards; in that direction an error of a border shrinks (masses grow), outwards it
/// would grow. What remains of |merged loss − point| is charged as loss error. Mass beyond the outermost border
/// `outer`, and between cells that cannot meet, is dropped, which only lowers.
template <class Side>
[[nodiscard]] MergedCells merge(const Side& side, const std::vector<std::int64_t>& index, double step, double offset,
                                double zero, double outer, Unfitting unfitting);

}  // namespace tsdp::privacy
