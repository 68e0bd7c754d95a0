// The true cost of adaptive uses of value-level steps: less than the composition of Theorem 4.4's symmetrised pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/terms.h"

namespace tsdp::privacy {

/// Steps of one window, λ = 1, drawn with replacement, whose pair is (1 − q) N(0, σ²) + q N(2, σ²) against N(0, σ²):
/// Theorems 4.2 and 4.4, tsdp.1 to tsdp.4 with one moved component.
///
/// Upper end: Theorem tsdp.6 (docs/proofs/adaptive-composition.md), for blocks of at most `block` steps of the game, or
/// the composition of the symmetrised pair where that is smaller. Lower end: a strategy of the game (the better
/// direction in every step), so that [lower, upper] holds the game's value. Floating-point errors of a bound are
/// charged to it.
///
/// The first answer plays the game, which takes seconds on all cores; later ones, for other δ, ε and fewer or more
/// uses, take milliseconds.
class AdaptiveCurve final : public PrivacyCurve {
 public:
  static constexpr std::size_t longest_block = 1000;

  /// Throws PrivacyError for a pair of another kind, or if block is not in 1 … longest_block.
  explicit AdaptiveCurve(const DominatingPair& pair, std::size_t block = longest_block);
  ~AdaptiveCurve() override;
  AdaptiveCurve(AdaptiveCurve&&) noexcept;
  AdaptiveCurve& operator=(AdaptiveCurve&&) noexcept;

  /// These do not evaluate the lower end's strategy.
  [[nodiscard]] double upper_delta(double epsilon, std::uint64_t uses, double precision = default_precision) override;
  [[nodiscard]] double upper_epsilon(double delta, std::uint64_t uses, double precision = default_precision) override;
  [[nodiscard]] bool certifies(double epsilon, double delta, std::uint64_t uses,
                               double precision = default_precision) override;
  [[nodiscard]] Certificate methods() const override;

  /// Whether `pair` is of this kind, with q < 1. At q = 1 the symmetrised composition is already exact.
  [[nodiscard]] static bool serves(const DominatingPair& pair);

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tsdp::privacy
