// The pairs of one value-level step that an adaptive adversary may choose from: a finite cover and its profiles.
#pragma once

#include <cstdint>
#include <vector>

namespace tsdp::privacy {

/// The Gram matrix of (v − u, v′ − u) in units of σ², entries (r, t; t, s): it determines the pair
///   A = (1 − q) N(u, σ²I) + q N(v, σ²I)   and   B = (1 − q) N(u, σ²I) + q N(v′, σ²I).
struct TriangleGram {
  double r, s, t;

  [[nodiscard]] TriangleGram swapped() const { return {s, r, t}; }
};

/// Matrices such that every triangle of the unit ball has a Gram matrix below one of them, or below one with v and v′
/// exchanged, in the Loewner order (docs/proofs/adaptive-composition.md, Lemma 4 and Section 5). Rounding: entries on
/// the diagonal are enlarged by more than their rounding, so that the order holds for the numbers returned.
/// `tolerance` > 0 decides how fine the cover is; it is doubled until there are at most 6000 cells. It is by how much
/// the variance of A/B may exceed the largest, relative to the largest, and a tenth of how much the squared distance of
/// v and v′ may. Throws OutOfReach for noise so small that no double holds the losses.
[[nodiscard]] std::vector<TriangleGram> triangle_cover(double sigma, double tolerance);

/// An upper bound of H_α(A‖B), α ≥ 1, of one matrix: chords of a convex function of the density of N(v) (Section 6).
/// Rounding: upwards; every term by more than its relative rounding.
class TriangleProfile {
 public:
  /// Requires 0 < q < 1, r ≥ t, s ≥ t ≥ 0, r s ≥ t². `spacing` of the grid in deviations of log density: the bound
  /// exceeds the profile as if r were larger by about spacing²/6.
  TriangleProfile(const TriangleGram& gram, double q, double spacing);

  /// H_α(A‖B) at α = e^ε, ε ≥ 0.
  [[nodiscard]] double upper(double epsilon) const;

 private:
  struct Node {
    double density, weight, mean;  ///< of N(v) at the node, its mass, and the mean of N(v′)'s density there
    double rounding;  ///< relative, of the density
  };
  double q_;
  double deviation_;  ///< of log N(v′)'s density given N(v)'s
  double beyond_;  ///< mass of N(v) where there is no node
  std::vector<Node> nodes_;
};

}  // namespace tsdp::privacy
