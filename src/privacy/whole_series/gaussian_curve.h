// The curve of a Gaussian mechanism, which is that of fixed batches.
//
// Units: clip norm C = 1, σ the noise multiplier. Chua et al., "How Private are DP-SGD Implementations?"
// (ICML 2024), is [C].
#pragma once

#include <cstdint>

#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

/// A Gaussian mechanism, used k times: exact.
///
/// Object: N(s√k, σ²) against N(0, σ²), where s is the distance between neighbours' sums. With μ = s√k/σ,
///   δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2),
/// the same in both directions. With s = 1 it is deterministic iteration over fixed batches of records ([C] §2.1,
/// tightly dominating; a use is an epoch, in which a record takes part once; over k epochs the record's contribution is
/// a vector of norm √k); with s = 2 the same for a record that is replaced by another. Rounding: long double; brackets
/// are wider than the closed form's error of 1e-17 z² by an order of magnitude.
class GaussianCurve final : public PrivacyCurve {
 public:
  /// Throws PrivacyError unless both are positive and finite.
  explicit GaussianCurve(double noise_multiplier, double distance = 1.0);

  [[nodiscard]] Certificate methods() const override;

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  double least_distance_;  // s/σ
};

/// δ_G(ε; μ), ε ≥ 0, μ > 0: the closed form above as a bracket.
[[nodiscard]] Interval gaussian_delta(double epsilon, double mu);

}  // namespace tsdp::privacy
