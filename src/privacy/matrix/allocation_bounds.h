// Bounds of balls in bins with correlated noise that need no orders: by larger and smaller Gram matrices, and by
// Laplace transforms.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "privacy/whole_series/random_allocation_curve.h"
#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::privacy {

/// Balls in bins whose Gram matrix over σ² is t 11ᵀ + u I: exactly a Gaussian mechanism with μ₀ = √t together with
/// balls in bins with independent noise and μ = √u, as a common coordinate factors out. The profile of any Gram matrix
/// lies between two of these (docs/proofs/correlated-noise.md, Theorem 1).
///
/// With x = dP₁/dQ₁ the Gaussian's likelihood ratio and F(x) = x H_{γ/x}(P₂‖Q₂), which is convex and increasing in x,
///   H_γ(P₁P₂‖Q₁Q₂) = E_{Q₁} F(x).
/// In every cell of x chords that keep its P- and Q-mass lie above; by Jensen's inequality F at the cell's mean lies
/// below, and there the chords of both neighbours, prolonged, lie below F. Cells end where ε − log x is a multiple of
/// one step, so that all ε share what is known of H. For γ′ = γ/x < 1, H_{γ′}(P₂‖Q₂) = 1 − γ′ + γ′ H_{1/γ′}(Q₂‖P₂). An
/// addition is the same with P and Q swapped, x having the same law.
class CommonAndOwn {
 public:
  /// b bins; t, u ≥ 0, not both 0.
  CommonAndOwn(std::int64_t bins, double common, double own);

  /// ε ≥ 0. Where that takes more than `most_nodes` cells (μ₀ above some hundreds, where nothing is private) it is {0,
  /// 1}.
  [[nodiscard]] Interval delta(Direction direction, double epsilon);
  static constexpr std::int64_t most_nodes = 100'000;

 private:
  /// H_{e^ε′}(P₂‖Q₂), or the other way round, at ε′ = index · step.
  [[nodiscard]] Interval other(Direction direction, std::int64_t index);
  /// The same for index ≥ 0, each made once.
  const Interval& of_own(Direction direction, std::int64_t index);
  /// The index from which on that is next to nothing, or expensive to compute; as H falls, its value there stands for
  /// all beyond.
  std::int64_t end_of(Direction direction);

  double mu_;
  bool none_;  // no noise of the bins' own: a Gaussian mechanism alone
  RandomAllocationCurve own_;
  double step_ = 0.0;
  std::map<std::pair<Direction, std::int64_t>, Interval> known_;
  std::map<Direction, std::int64_t> end_;
};

/// An upper bound of δ_add for a Gram matrix that is banded around the cycle (entries at cyclic distance ≥ p are 0):
/// with χ colours, bins of one colour being at least p apart,
///   δ_add(ε) ≤ min_{t > 0} γ/(e t) e^{t/γ} Π_i φ_i(χ t/b)^{1/χ},   φ_i(s) = E exp(−s e^{√v_i z − v_i/2}), v_i =
///   G_ii/σ²
/// (docs/proofs/correlated-noise.md, Theorem 2). φ from above: chords of the convex exp(−sx), v_i rounded up to
/// classes.
class LaplaceOfAddition {
 public:
  LaplaceOfAddition(const Gram& gram, double noise_multiplier, std::int64_t bands);
  [[nodiscard]] double delta(double epsilon);
  [[nodiscard]] std::int64_t colours() const { return colours_; }

  /// χ: p where p divides b or nothing lies around the cycle's corner, else p + ⌈(b mod p)/⌊b/p⌋⌉; b if that is more.
  [[nodiscard]] static std::int64_t colours_for(const Gram& gram, std::int64_t bands);

 private:
  /// Σ_i log φ_i(χ t/b) / χ at t = e^{step·index}, rounded up.
  [[nodiscard]] double log_product(std::int64_t index);

  std::int64_t bins_, colours_;
  struct Class {
    double count;
    std::vector<double> x, weight;
    double near_zero;  // what lies below x.front(), counted as x = 0
  };
  std::vector<Class> classes_;
  std::map<std::int64_t, double> known_;
};

}  // namespace tsdp::privacy
