// Numbers about balls in bins with correlated noise that are NOT bounds: to reproduce published figures, and to see how
// far bounds are from the truth. None of them may end up in a statement.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::privacy {

/// Where randomness comes from: fills a span with independent N(0, 1), and draws uniformly from {0, …, n − 1}.
struct Draws {
  std::function<void(std::span<double>)> normals;
  std::function<std::uint64_t(std::uint64_t n)> below;
};

/// A mean of independent values, and the square root of its estimated variance.
struct Estimate {
  double value = 0.0;
  double standard_error = 0.0;
};

/// Object: P = (1/b) Σ_i N(m_i, σ²I), Q = N(0, σ²I) of correlated_noise.h; δ(ε) = E (1 − e^{ε − L})₊, L the privacy
/// loss of a draw from P (remove) or from Q (add). Only inner products with the m_i count, whose law follows from the
/// Gram matrix: b normals per draw (Choquette-Choo et al. 2025, section 3).
class SampledProfile {
 public:
  static constexpr std::int64_t most_bins = 4096;
  static constexpr std::int64_t most_samples = 100'000'000;

  /// k epochs of b bins; `direction` remove or add. Throws UsageError for numbers out of range, PrivacyError for a
  /// matrix with negative entries.
  SampledProfile(const Strategy& strategy, std::int64_t bins, std::int64_t epochs, double noise_multiplier,
                 Direction direction, std::int64_t samples, const Draws& draws);

  /// ε ≥ 0.
  [[nodiscard]] Estimate delta(double epsilon) const;
  /// The ε ≥ 0 at which the estimate of δ is `delta`.
  [[nodiscard]] double epsilon(double delta) const;
  /// Losses, the largest first.
  [[nodiscard]] const std::vector<double>& losses() const { return losses_; }

 private:
  std::vector<double> losses_;
};

/// How λ̄ of later epochs are made (Schuchardt and Kalinin 2026, appendix E).
///   union_bound: every step spends its share of δ_E: a bound.
///   published: later epochs spend δ_E/k on every step and take the largest λ̄ of the epoch. That is no bound: the
///   chance that some step fails is up to as many times δ_E/k as the epoch has steps
///   (docs/proofs/conditional-composition.md).
enum class HazardRule {
  union_bound,
  published
};

/// λ̄ of the bin with the largest mean, of every step of conditional composition; `direction` remove or add. `family`:
/// the number of the one of hazard_temperatures() that is used (appendix F); none: all of them.
[[nodiscard]] std::vector<double> top_hazards(const Strategy& strategy, std::int64_t bins, std::int64_t epochs,
                                              double noise_multiplier, double spent_delta, Direction direction,
                                              HazardRule rule, std::optional<std::size_t> family = std::nullopt);

/// δ(ε), or the ε for a δ, by the published rule with δ_E = δ/2: the larger of both directions. Throws OutOfReach if
/// there is too much to compose.
[[nodiscard]] double published_delta(const Strategy& strategy, std::int64_t bins, std::int64_t epochs,
                                     double noise_multiplier, double epsilon, double spent_delta);
[[nodiscard]] double published_epsilon(const Strategy& strategy, std::int64_t bins, std::int64_t epochs,
                                       double noise_multiplier, double delta);

}  // namespace tsdp::privacy
