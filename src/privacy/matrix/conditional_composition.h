// Balls in bins with correlated noise: certified upper bounds by composing the steps one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::privacy {

class BlendedLoss;

/// What a record of bin i adds to step n: m_i(n) ≥ 0, i < b, n < N.
///
/// Numbers may be larger than those they stand for: with 0 ≤ m_i ≤ m′_i, ⟨m_i, m_j⟩ ≤ ⟨m′_i, m′_j⟩, and both profiles
/// grow with the Gram matrix (docs/proofs/conditional-composition.md, Lemma 1). So they are rounded up, and nothing is
/// charged.
struct Means {
  static constexpr double most_values = 1e8;
  std::int64_t bins = 1;
  std::int64_t steps = 1;
  std::vector<double> values;  ///< step by step

  /// Throws UsageError unless there are b N finite numbers, none negative; OutOfReach for more than most_values.
  Means(std::int64_t bins, std::int64_t steps, std::vector<double> values);
  /// m_i = Σ_{j < k} C_{:, i + jb}, rounded up. Throws PrivacyError where an entry of C may be negative: the pair is
  /// proven for C ≥ 0.
  Means(const Strategy& strategy, std::int64_t bins, std::int64_t epochs);

  [[nodiscard]] double at(std::int64_t i, std::int64_t n) const {
    return values[static_cast<std::size_t>(n * bins + i)];
  }
};

/// Means of b steps whose Gram matrix is at least G in every entry: rows of a triangular factor L ≥ 0, L Lᵀ ≥ G, in the
/// order of bins or in reverse. None where the factor of G has negative entries, so that a factor without them is well
/// above G: where an entry of L Lᵀ would exceed G's by more than `excess` times the largest of G. Also none for so many
/// bins that it would take seconds.
///
/// Rounding: every entry of L is rounded up after what is taken away was rounded down, so that L Lᵀ ≥ G holds for the
/// numbers themselves. By Lemma 1 the profile of these means is at least that of every positive semidefinite matrix
/// between 0 and G.
[[nodiscard]] std::optional<Means> one_epoch(const Gram& gram, double excess = 1e-9);

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
  /// sharp: bins that look like bin i so far are counted as they are, and only bins above the least mean of the step
  /// have a hazard.
  /// all_in: those bins take part in the variational bound like the others, and all bins but the first have a hazard.
  /// Never better except by accident; for comparison.
  enum class Mode {
    sharp,
    all_in
  };
  /// union_bound: every step from the second on may fail with δ_E/(N − 1). largest_of_epoch: the published rule, in
  /// which the later epochs spend δ_E/k on every step and take each position's largest hazard of the epoch. That is NOT
  /// a bound but an estimate, to reproduce figures.
  enum class Allocation {
    union_bound,
    largest_of_epoch
  };

  static constexpr std::int64_t most_bins = 4096;
  /// Multiplications for all tail bounds: two seconds.
  static constexpr double most_work = 2e9;

  /// Temperatures t of the weights ψ of the tail bounds; the first is +∞.
  [[nodiscard]] static const std::vector<double>& temperatures();

  /// σ > 0, 0 < δ_E < 1. `family`: the number of the one temperature that is used; none: all, of which the best counts.
  /// Throws OutOfReach for more bins or more work.
  ConditionalComposition(Means means, double sigma, double spent_delta, Direction direction, Mode mode = Mode::sharp,
                         Allocation allocation = Allocation::union_bound,
                         std::optional<std::size_t> family = std::nullopt);

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
  void find_hazards(Mode mode, Allocation allocation, std::optional<std::size_t> family);
  void find_pairs();

  Means means_;
  double sigma_;
  double spent_delta_;
  Direction direction_;
  std::vector<std::vector<double>> hazards_;
  std::size_t pairs_ = 0;
  std::shared_ptr<const BlendedLoss> loss_;
};

}  // namespace tsdp::privacy
