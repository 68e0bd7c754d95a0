// The curve of shuffled batches.
//
// Units: clip norm C = 1, σ the noise multiplier. Chua et al., "How Private are DP-SGD Implementations?"
// (ICML 2024), is [C].
#pragma once

#include <cstdint>
#include <memory>

#include "privacy/whole_series/gaussian_curve.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/terms.h"

namespace tsdp::privacy {

/// Shuffled batches: a uniform permutation of the records, cut into T batches of equal size; a use is an epoch.
///
/// Upper end ([C] Theorem 4.1): given the permutations it is deterministic iteration, and the hockey-stick divergence
/// is jointly convex, so δ is at most that of k Gaussian mechanisms, whether or not every epoch has its own order.
///
/// Lower end ([C] §2.3, by data processing): queries ψ(x) = x on [−1, 1], with one record 1, or a ghost, among records
/// −1. After shifting by the batch size the outputs are N(2e_t, σ²I_T) and N(e_t, σ²I_T), t uniform, told apart by
/// M = max_t w_t. One epoch: events {M ≥ C}, any C. A new order in every epoch: the k values of M are independent, and
/// their joint law is composed; the number of epochs with M ≥ C, a binomial variable, is used too. One order for all
/// epochs: the sums over epochs are one epoch with σ/√k.
/// No theorem gives an exact curve (Conjecture 3.2 is not used).
class ShuffledCurve final : public PrivacyCurve {
 public:
  /// T ≥ 1 batches per epoch.
  ShuffledCurve(std::int64_t batches, double noise_multiplier, Reshuffle reshuffle);
  ~ShuffledCurve() override;

  [[nodiscard]] Certificate methods() const override;

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  /// Certified lower ends of δ(ε): the better of the next two, or the events of one epoch.
  [[nodiscard]] double lower(double epsilon, std::uint64_t uses);
  [[nodiscard]] double composed(double epsilon, std::uint64_t uses);
  [[nodiscard]] double counted(double epsilon, std::uint64_t uses) const;

  std::int64_t batches_;
  double noise_multiplier_;
  Reshuffle reshuffle_;
  GaussianCurve upper_;
  struct Composed;
  std::unique_ptr<Composed> composed_;  // the loss of M, made on demand
};

}  // namespace tsdp::privacy
