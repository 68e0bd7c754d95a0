// Bounds of the posterior of a record's bin, given what the steps before have shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "means.h"
#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {

/// More are not composed step by step.
inline constexpr std::int64_t most_composed_bins = 4096;

enum class HazardMode {
  /// Bins that look like bin i so far are counted as they are, and only bins above the least mean of the step have a
  /// hazard.
  sharp,
  /// Those bins take part in the variational bound like the others, and all bins but the first have a hazard. Never
  /// better except by accident; for comparison.
  all_in
};

/// λ̄ of the last positions of each step, bins in the order of their means; the positions before these are one
/// component.
using Hazards = std::vector<std::vector<double>>;

/// Bins in the order of their means.
[[nodiscard]] std::vector<std::size_t> by_mean(const double* means, std::size_t bins);

/// Temperatures t of the weights ψ of the tail bounds; the first is +∞.
[[nodiscard]] const std::vector<double>& hazard_temperatures();

/// Upper bounds λ̄ of the reverse hazards P(z = i | z ≤ i, y_1 … y_{n−1}) of every step n (from 0), all of which hold
/// under P (remove) or Q (add) but for a chance of `may_fail(n)` (docs/proofs/conditional-composition.md, Lemmas 5 and
/// 6). So all steps together fail with at most Σ_n may_fail(n); the first step never does.
///
/// σ > 0, may_fail(n) in [0, 1). `family`: the number of the one temperature that is used; none: all, of which the best
/// counts. Throws OutOfReach for more than `most_composed_bins` or more work than two
/// seconds. Direction of rounding: tail probabilities up, quantiles down,
/// hazards up.
[[nodiscard]] Hazards hazards_of(const Means& means, double sigma, Direction direction,
                                 const std::function<double(std::int64_t)>& may_fail,
                                 HazardMode mode = HazardMode::sharp, std::optional<std::size_t> family = std::nullopt);

/// The same by the union bound: every step from the second on may fail with δ_E/(N − 1), so all together with at most
/// δ_E.
[[nodiscard]] Hazards union_hazards(const Means& means, double sigma, double spent_delta, Direction direction,
                                    HazardMode mode = HazardMode::sharp,
                                    std::optional<std::size_t> family = std::nullopt);

}  // namespace tsdp::privacy
