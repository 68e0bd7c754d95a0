// Telling two laws apart by the largest coordinate.
#pragma once

#include <cstdint>

#include "privacy/accountant/loss_distribution.h"

namespace tsdp::privacy {

/// The largest of T coordinates of N(a e_t, σ²I_T), for any t, with a = `with` (law P) or a = `without` (law Q), a ≥ 0:
///   P(M ≥ C) = 1 − Φ((C − a)/σ) Φ(C/σ)^{T−1}
/// = −expm1(log1p(−Φ̄((C − a)/σ)) + (T − 1) log1p(−Φ̄(C/σ))), which keeps every digit where both factors are near 1.
/// What is computed for it is a lower bound for whatever releases w (data processing). All answers are rounded down.
class LargestCoordinate {
 public:
  LargestCoordinate(std::int64_t coordinates, double with, double without, double sigma);

  /// P(M ≥ C) for a shift a.
  [[nodiscard]] double tail(double shift, double threshold) const;
  [[nodiscard]] double with_tail(double threshold) const { return tail(with_, threshold); }
  [[nodiscard]] double without_tail(double threshold) const { return tail(without_, threshold); }

  /// max_C P(E_C) − e^ε Q(E_C) over all C, rounded down; at least 0.
  [[nodiscard]] double best_event(double epsilon) const;
  /// The largest ε at which that exceeds δ: max_C log((P(E_C) − δ)/Q(E_C)), rounded down; at least 0.
  [[nodiscard]] double best_epsilon(double delta) const;
  /// `best_event` for k independent M, by the number of them with M ≥ C, a binomial variable:
  ///   max_C Σ_j Bin(k, j) [p^j (1 − p)^{k−j} − e^ε q^j (1 − q)^{k−j}]₊.
  [[nodiscard]] double best_count(double epsilon, std::uint64_t uses) const;
  /// The loss of M in the direction P against Q, on multiples of `step`, rounded down: cells of M with their P-mass
  /// rounded down and the logarithm of the ratio of masses rounded down to the grid.
  [[nodiscard]] LossDistribution loss(double step) const;
  /// A step for which `loss` has about `points` points.
  [[nodiscard]] double step_for(double points) const;

 private:
  /// The C that maximises `value` on a grid, refined by golden section.
  template <class Function>
  [[nodiscard]] double best_threshold(Function value) const;
  [[nodiscard]] double least() const;
  [[nodiscard]] double most() const;

  std::int64_t coordinates_;
  double with_, without_, sigma_;
};

}  // namespace tsdp::privacy
