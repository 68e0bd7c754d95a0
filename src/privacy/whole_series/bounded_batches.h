// Batches of at most B series: what it costs that larger ones are cut (docs/proofs/bounded-batches.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tsdp/base/error.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

/// P(X > B), X binomial of n trials with probability p, from above: e^{−n kl((B + 1)/n ‖ p)} (Chernoff), 0 for B ≥ n; 1
/// where B + 1 ≤ np. n ≥ 1, 0 < p ≤ 1, B ≥ 0. Rounded up.
[[nodiscard]] double chance_of_excess(std::int64_t trials, double probability, std::int64_t largest);

/// δ + (1 + e^ε) η, at most 1, rounded up: δ(ε) of a mechanism that is another one, whose δ(ε) is δ, but for an event
/// of probability η at most, under both data sets.
[[nodiscard]] double delta_with_cuts(double delta, double epsilon, double chance);

/// Says that no noise keeps within this δ.
[[nodiscard]] PrivacyError too_many_cuts(double delta);

/// ε such that `least(δ − (1 + e^ε) η)` is at most ε, within a share `slack` of the least one; `least` gives ε(δ) of
/// the mechanism without cuts, rounded up. Throws PrivacyError where no ε is found: cuts alone cost more than δ.
[[nodiscard]] double epsilon_with_cuts(double delta, double chance, double slack,
                                       const std::function<double(double delta)>& least);

/// The least B for which cuts in `batches` batches, of N series drawn with this probability each, add at most a
/// hundredth to δ at ε, by the same bounds; at most N.
[[nodiscard]] std::int64_t least_largest_batch(std::int64_t series, double probability, double batches, double epsilon,
                                               double delta);

/// Object: the mechanism of `curve`, but batches of more series than are allowed are cut, whatever is left out.
///
/// Theorem (docs/proofs/bounded-batches.md): with η the chance that some batch of k uses is cut, δ′(ε) ≤ δ(ε) +
/// (1 + e^ε) η, and δ′(ε) ≥ δ(ε) − (1 + e^ε) η. As δ′ does not rise, the first holds with the least sum of any smaller
/// ε, too. Ends are rounded outwards.
class BoundedBatchesCurve final : public PrivacyCurve {
 public:
  /// `chance(k)`: η, or more; it does not fall. `what` says in a certificate what is cut.
  BoundedBatchesCurve(std::unique_ptr<PrivacyCurve> curve, std::function<double(std::uint64_t uses)> chance,
                      std::string what);

  [[nodiscard]] bool certifies(double epsilon, double delta, std::uint64_t uses,
                               double precision = default_precision) override;
  [[nodiscard]] double upper_delta(double epsilon, std::uint64_t uses, double precision = default_precision) override;
  [[nodiscard]] double upper_epsilon(double delta, std::uint64_t uses, double precision = default_precision) override;
  [[nodiscard]] Certificate methods() const override;

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  [[nodiscard]] Certificate extended(Certificate why) const;
  /// δ′(ε) at most, where δ(ε) ≤ `without`.
  [[nodiscard]] double upper_with_cuts(double without, double epsilon, std::uint64_t uses, double precision);

  std::unique_ptr<PrivacyCurve> curve_;
  std::function<double(std::uint64_t uses)> chance_;
  std::string what_;
};

}  // namespace tsdp::privacy
