// What the rounds of a game leave: the profiles of that many adaptive steps, from above.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "privacy/accountant/loss_distribution.h"

namespace tsdp::privacy {

/// Object: D̃_t(n) of docs/proofs/adaptive-composition.md, Sections 4 and 6, from above, for t = 0 … m rounds:
/// `values[i]` + `error` ≥ D̃_t(i stride), and beyond the last i, D̃_t is at most the last value + error. D̃_t is even
/// in n. H_t is convex, so chords between points bound it; points are as far apart as chords allow, and every question
/// about a round is answered from them.
class GameProfiles {
 public:
  struct Row {
    std::int64_t stride = 1;     ///< a power of two
    std::vector<double> values;  ///< at least one, at least 0
    double error = 0.0;
  };

  /// No rounds yet. `step` h of the grid z_n = e^{nh}; `deviation`: of one step's loss. Both above 0.
  GameProfiles(double step, double deviation);

  [[nodiscard]] std::size_t rounds() const noexcept { return rows_.size() - 1; }
  [[nodiscard]] double step() const noexcept { return step_; }
  [[nodiscard]] double deviation() const noexcept { return deviation_; }
  [[nodiscard]] const std::vector<Row>& rows() const noexcept { return rows_; }

  /// Adds a round: `values` + `error` are upper bounds of its D̃ at n = 0, 1, …
  void add(const std::vector<double>& values, double error);
  /// Adds a round as it is. Throws Error for a row that the other `add` could not make.
  void add(Row row);

  /// The distance of points of t rounds, in grid steps: a power of two of at most a sixtieth of their deviation, and at
  /// least 1. It divides that of more rounds.
  [[nodiscard]] std::int64_t stride(std::size_t t) const;
  /// An upper bound of H_t(e^ε), ε ≥ 0: δ(ε) of t steps.
  [[nodiscard]] double profile(std::size_t t, double epsilon) const;
  /// A pair that dominates t steps in both orders, on multiples of `every` grid steps, where `every` is a multiple of
  /// stride(t). Its losses are cut at about the one where the profile is `tail`.
  [[nodiscard]] LossDistribution loss(std::size_t t, std::int64_t every, double tail) const;

 private:
  double step_, deviation_;
  std::vector<Row> rows_;
};

}  // namespace tsdp::privacy
