// The loss of several mechanisms used together, its cumulants, and the tilts and windows that follow from them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "privacy/accountant/loss_distribution.h"

namespace tsdp::privacy {

/// The grid loss of one joint use of mechanisms: a sum of independent losses, `count` of each part. All parts share one
/// step and one rounding. With a single part of count 1 it is that part.
struct ProductLoss {
  struct Part {
    LossDistribution distribution;
    std::uint64_t count = 1;
  };
  std::vector<Part> parts;

  ProductLoss(LossDistribution one) { parts.push_back({std::move(one), 1}); }  // NOLINT: one part is a product
  /// Throws Error unless steps and roundings agree.
  explicit ProductLoss(std::vector<Part> all);

  [[nodiscard]] double step() const { return parts.front().distribution.step; }
  [[nodiscard]] Rounding rounding() const { return parts.front().distribution.rounding; }
  /// Largest |index| of the sum, and the largest loss of a single draw.
  [[nodiscard]] double largest_index() const;
  [[nodiscard]] double largest_loss() const;
  [[nodiscard]] double largest_plus() const;
  /// Of the sum of all draws.
  [[nodiscard]] double offset() const;
};

/// Value and first two derivatives of K(θ) = log Σ_i p_i e^{θ i h}.
struct Cumulants {
  double value;
  double mean;
  double variance;
};
[[nodiscard]] Cumulants cumulants(const LossDistribution& distribution, double theta);
/// For a sum of independent losses they are sums.
[[nodiscard]] Cumulants cumulants(const ProductLoss& loss, double theta);

/// log c(θ), c(θ) = max_u e^{−θu}(1 − e^{−u}) = θ^θ (1+θ)^{−(1+θ)}.
[[nodiscard]] double log_c(double theta);

/// The θ > 0 at which the Chernoff bound k K(θ) − θ ε + log c(θ) on log δ(ε) is least.
[[nodiscard]] double best_tilt_for_epsilon(const ProductLoss& loss, std::uint64_t uses, double epsilon);
/// The same where the least bound equals log δ.
[[nodiscard]] double best_tilt_for_delta(const ProductLoss& loss, std::uint64_t uses, double delta);

/// Whether this many uses leave next to nothing of the high frequencies, at which a transform is little more than the
/// mass at 0; then wide windows cost nothing. A guess that chooses grids and windows: what is left is always proven.
[[nodiscard]] bool high_frequencies_vanish(const ProductLoss& loss, std::uint64_t uses);

/// Tilted mass that may lie outside a window on either side: e^{−46} = 1e-20.
inline constexpr double log_outside = -46.0;

/// The window of cells that holds the tilted k-fold sum: indices first … first + cells − 1.
struct Window {
  double theta;
  std::int64_t first;
  std::int64_t cells;
};
/// `loss` may be a coarser one when only the width of the window is wanted. All but 2e-20 of the tilted sum's mass lies
/// in the answer, by Chernoff's bound. Where the wanted θ gives no window of at most `most` cells, a smaller θ is
/// taken. Throws OutOfReach if none does.
[[nodiscard]] Window window_of(const ProductLoss& loss, std::uint64_t uses, double theta, double most);

}  // namespace tsdp::privacy
