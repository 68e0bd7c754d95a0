// A release of pure differential privacy after the uses of something else.
#pragma once

#include <cstdint>
#include <memory>

#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

/// Object: k uses of the mechanism of `curve`, and after them one release that is ε₂-differentially private whatever
/// they released. With k = 0 uses there is no release.
///
/// Theorem tsdp.7 (docs/proofs/private-choice.md): δ(ε) ≤ p δ₁(ε − ε₂) + (1 − p) δ₁(ε + ε₂), p = 1/(1 + e^{−ε₂}), where
/// δ₁(−t) = 1 − e^{−t} + e^{−t} δ₁(t); and ε(δ) ≤ ε₁(δ) + ε₂. Lower ends are those of the uses alone. Upper ends are
/// rounded up.
class CurveWithPureRelease final : public PrivacyCurve {
 public:
  /// `curve` must bound both directions of a symmetric relation, as those of the theorem table do. Throws PrivacyError
  /// unless 0 < epsilon < ∞.
  CurveWithPureRelease(std::unique_ptr<PrivacyCurve> curve, double epsilon);

  [[nodiscard]] double upper_epsilon(double delta, std::uint64_t uses, double precision = default_precision) override;
  [[nodiscard]] bool certifies(double epsilon, double delta, std::uint64_t uses,
                               double precision = default_precision) override;
  [[nodiscard]] Certificate methods() const override;

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  /// ε₁ + ε₂, rounded up.
  [[nodiscard]] double with_release(double epsilon) const;
  /// The largest ε₁ whose with_release() is at most `epsilon`; −1 if there is none. Exactly that inverse, or an ε that
  /// was stated would not be certified when it is checked.
  [[nodiscard]] double left_of(double epsilon) const;

  std::unique_ptr<PrivacyCurve> curve_;
  double pure_;  ///< ε₂
};

}  // namespace tsdp::privacy
