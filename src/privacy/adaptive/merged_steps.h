// Outputs of some steps, merged until the ratios of their probabilities lie on a grid: what lower bounds of a game are played with.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tsdp::privacy {

/// Object: a Markov kernel applied to `steps` uses of P = (1 − q) N(0, σ²) + q N(2, σ²) and of Q = N(0, σ²), after which the ratios P/Q are e^{nh}, n = first,
/// first + 1, …: `q` holds masses under Q, and those under P are e^{nh} times as much. The kernel's true masses differ from these by at most `mismatch`
/// in all, under either law. What is left out at the ends is counted there.
struct MergedSteps {
  std::int64_t first = 0;
  std::vector<double> q;
  double mismatch = 0.0;

  /// One step on a grid of distance `step`, q in (0, 1), σ > 0; none where it would be too long.
  [[nodiscard]] static std::optional<MergedSteps> one(double q, double sigma, double step);
  /// So many of these steps, on the same grid; none where they would be too long.
  [[nodiscard]] std::optional<MergedSteps> repeated(std::uint64_t times, double step) const;
  /// On every `factor`-th point of the grid of distance `step`.
  [[nodiscard]] MergedSteps coarser(std::int64_t factor, double step) const;
};

}  // namespace tsdp::privacy
