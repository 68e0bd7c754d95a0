// Balls in bins with correlated noise: certified upper bounds by composing the steps one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hazards.h"
#include "means.h"
#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {

class BlendedLoss;

/// Object: P = (1/b) Σ_i N(m_i, σ²I_N), Q = N(0, σ²I_N); δ(ε) = H_{e^ε}(P‖Q) (remove) or H_{e^ε}(Q‖P) (add). Upper
/// bounds, by conditional composition (Choquette-Choo et al. 2024, Theorem 3.1; Schuchardt and Kalinin, Algorithm 4,
/// corrected): given y_1 … y_{n−1}, the output of step n is a mixture of N(m_i(n), σ²) with the posterior of the bin as
/// weights. Bins are sorted by their means of step n. If the posterior's reverse hazards are at most λ̄_i, the mixture
/// with p_i = λ̄_i Π_{j>i} (1 − λ̄_j) dominates the step.
/// Each λ̄_i may fail with a small probability under P (remove) or Q (add); all of them together with at most δ_E,
/// which is added to δ. Statement and proof: docs/proofs/conditional-composition.md.
///
/// Direction of rounding: tail probabilities are rounded up, quantiles down, hazards up; means up; the loss of the
/// composed steps is pessimistic (blended_loss.h).
class ConditionalComposition {
 public:
  /// Every step from the second on may fail with δ_E/(N − 1). σ > 0, 0 < δ_E < 1. Throws OutOfReach as hazards_of.
  ConditionalComposition(Means means, double sigma, double spent_delta, Direction direction,
                         HazardMode mode = HazardMode::sharp);
  /// With λ̄ made elsewhere: a bound only where they fail together with at most δ_E.
  ConditionalComposition(Means means, double sigma, double spent_delta, Direction direction, Hazards hazards);

  [[nodiscard]] const Means& means() const { return means_; }
  [[nodiscard]] double spent_delta() const { return spent_delta_; }
  /// Bins of step n (from 0) in the order of their means.
  [[nodiscard]] std::vector<std::int64_t> order(std::int64_t n) const;
  /// λ̄ of the last positions in that order; the positions before these are one component.
  [[nodiscard]] const std::vector<double>& hazards(std::int64_t n) const {
    return hazards_[static_cast<std::size_t>(n)];
  }
  /// p of all b positions: 0 for those that are one component with the next.
  [[nodiscard]] std::vector<double> weights(std::int64_t n) const;
  /// Number of pairs of which the steps are mixed.
  [[nodiscard]] std::size_t pairs() const { return pairs_; }

  /// The composed steps alone, and with δ_E: upper ends of δ(ε), ε ≥ 0, about a relative `precision` above what the λ̄
  /// give.
  [[nodiscard]] double composed(double epsilon, double precision = 1e-3) const;
  [[nodiscard]] double delta(double epsilon, double precision = 1e-3) const;

 private:
  void find_pairs();

  Means means_;
  double sigma_;
  double spent_delta_;
  Direction direction_;
  Hazards hazards_;
  std::size_t pairs_ = 0;
  std::shared_ptr<const BlendedLoss> loss_;
};

}  // namespace tsdp::privacy
