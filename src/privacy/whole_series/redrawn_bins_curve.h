// The curve of balls in bins whose bins are drawn anew in every epoch, with independent noise.
//
// Units: clip norm C = 1, σ the noise multiplier.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "privacy/whole_series/gaussian_curve.h"
#include "privacy/whole_series/random_allocation_curve.h"
#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

class Composer;

/// Balls in bins with a bin of its own in every epoch: every record draws one of b bins for an epoch and takes part in
/// that batch; a use is an epoch. Independent noise.
///
/// Object: with P = (1/b) Σ_i N(e_i, σ²I_b) and Q = N(0, σ²I_b), which dominate one epoch (Choquette-Choo et al. 2025,
/// Lemma 3.2), the k-fold product P^k against Q^k for a removal, Q^k against P^k for an addition; the larger δ counts.
/// Epochs draw independently and may depend on earlier releases, so dominating pairs compose direction by direction
/// (Zhu et al. 2022, Theorem 10), and a worst case attains the product.
///
/// Upper end: the least of
///   * the profile of one epoch at points, H_α(P‖Q) = E[(α − S/b)₊] + 1 − α and H_α(Q‖P) = α E[(1/α − S/b)₊], S the
///     sum of b lognormal variables (lognormal_sum.h), made a loss that dominates it (profile_loss.h), and composed;
///   * k times the Rényi divergences of one epoch (allocation_renyi.h);
///   * k Gaussian mechanisms (given the bins; joint convexity).
/// Lower end: the larger of
///   * the same loss on cells, a pair that the epoch dominates, composed;
///   * the sum of an epoch's b releases, N(1, bσ²) against N(0, bσ²): k Gaussian mechanisms of distance 1/√b (data
///     processing), which is nearly all there is to learn where σ is large.
class RedrawnBinsCurve final : public PrivacyCurve {
 public:
  /// b ≥ 1 bins. `only`: one direction alone, `remove` or `add`.
  RedrawnBinsCurve(std::int64_t bins, double noise_multiplier, std::optional<Direction> only = std::nullopt);
  ~RedrawnBinsCurve() override;

  [[nodiscard]] Certificate methods() const override;

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  struct End {
    double delta;
    const char* by;
  };
  [[nodiscard]] End upper(double epsilon, std::uint64_t uses);
  [[nodiscard]] End upper(Direction direction, double epsilon, std::uint64_t uses);
  [[nodiscard]] End lower(double epsilon, std::uint64_t uses);
  /// By composing the loss of one epoch, from its own side; `none` where there is none or it is out of reach.
  [[nodiscard]] static double composed(Composer* side, double epsilon, std::uint64_t uses, double none);
  [[nodiscard]] double by_renyi(Direction direction, double epsilon, std::uint64_t uses);

  std::int64_t bins_;
  double noise_multiplier_;
  std::optional<Direction> only_;
  RandomAllocationCurve drawn_once_;  ///< what one epoch is, and what refuses bins out of range
  GaussianCurve cap_, sums_;
  struct OneEpoch;
  /// Made on demand.
  [[nodiscard]] OneEpoch& one_epoch();
  std::unique_ptr<OneEpoch> one_;
};

}  // namespace tsdp::privacy
