// What each step of one run shows of a record, by the bin that the record is in.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::privacy {

/// What a record of bin i adds to step n: m_i(n) ≥ 0, i < b, n < N.
///
/// Numbers may be larger than those they stand for: with 0 ≤ m_i ≤ m′_i, ⟨m_i, m_j⟩ ≤ ⟨m′_i, m′_j⟩, and both profiles
/// grow with the Gram matrix (docs/proofs/conditional-composition.md, Lemma 1). So they are rounded up, and nothing is
/// charged.
struct Means {
  static constexpr double most_values = 1e8;
  /// Products for a factor of one epoch: two seconds.
  static constexpr double most_work = 2e9;
  std::int64_t bins = 1;
  std::int64_t steps = 1;
  std::vector<double> values;  ///< step by step

  /// Throws UsageError unless there are b N finite numbers, none negative; OutOfReach for more than most_values.
  Means(std::int64_t bins, std::int64_t steps, std::vector<double> values);
  /// m_i = Σ_{j < k} C_{:, i + jb}, rounded up. Throws PrivacyError where an entry of C may be negative: the pair is
  /// proven for C ≥ 0.
  Means(const Strategy& strategy, std::int64_t bins, std::int64_t epochs);

  [[nodiscard]] double at(std::int64_t i, std::int64_t n) const {
    return values[static_cast<std::size_t>(n * bins + i)];
  }
};

/// Means of b steps whose Gram matrix is at least G in every entry: rows of a triangular factor L ≥ 0, L Lᵀ ≥ G, in the
/// order of bins or in reverse. None where the factor of G has negative entries, so that a factor without them is well
/// above G: where an entry of L Lᵀ would exceed G's by more than `excess` times the largest of G. Also none for so many
/// bins that it would take seconds.
///
/// Rounding: every entry of L is rounded up after what is taken away was rounded down, so that L Lᵀ ≥ G holds for the
/// numbers themselves. By Lemma 1 the profile of these means is at least that of every positive semidefinite matrix
/// between 0 and G.
[[nodiscard]] std::optional<Means> one_epoch(const Gram& gram, double excess = 1e-9);

}  // namespace tsdp::privacy
