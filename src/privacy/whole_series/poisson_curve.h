// The curve of Poisson batches.
//
// Units: clip norm C = 1, σ the noise multiplier. Chua et al., "How Private are DP-SGD Implementations?"
// (ICML 2024), is [C].
#pragma once

#include <cstdint>

#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/terms.h"

namespace tsdp::privacy {

/// Poisson batches: in every step, every record takes part independently with probability q.
///
/// Object ([C] §2.2, tightly dominating): k-fold products of A = (1 − q) N(0, σ²) + q N(1, σ²) and B = N(0, σ²); the
/// record's removal is A against B, its addition B against A. The direction of a neighbour is the same in every step,
/// so each direction is composed by itself; the larger δ counts.
class PoissonCurve final : public PrivacyCurve {
 public:
  /// rate q in (0, 1]. Throws PrivacyError for it or σ out of range.
  PoissonCurve(double rate, double noise_multiplier);

  [[nodiscard]] double upper_delta(double epsilon, std::uint64_t uses, double precision = default_precision) override;
  [[nodiscard]] bool certifies(double epsilon, double delta, std::uint64_t uses,
                               double precision = default_precision) override;
  [[nodiscard]] Certificate methods() const override;

  /// One direction alone.
  [[nodiscard]] Accountant& of(Direction direction) { return direction == Direction::add ? add_ : remove_; }

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  Accountant remove_, add_;
};

/// The pair of one step of Poisson batches.
[[nodiscard]] DominatingPair poisson_step(double rate, double noise_multiplier);

}  // namespace tsdp::privacy
