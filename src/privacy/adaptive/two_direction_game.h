// The game of an adaptive adversary who has the two directions of a step alone, from below: what so many steps cost at least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tsdp::privacy {

struct MergedSteps;

/// How closely the game is evaluated. Nothing here decides whether a bound holds, only how tight it is.
struct TwoDirectionSettings {
  double share = 0.03;                    ///< of a decision's deviation: the grid's distance, up to twice as much where steps are many
  std::uint64_t most_decisions = 10'000;  ///< more steps than that are decided in runs of equal length, a quarter as many
};

/// Object: the game (2) of docs/proofs/adaptive-composition.md after `uses` steps, with the two pairs P = (1 − q) N(0, σ²) + q N(2, σ²) against Q = N(0, σ²), and Q against P, in
/// the place of all triangles: the best strategy that chooses the direction of a step by what the steps before released. Its Section 6, "Lower
/// end". Rounding: down; all that is floating point is subtracted. Where losses are too large for a grid every bound is 0.
class TwoDirectionGame {
 public:
  /// On a grid one of whose points is `epsilon` > 0, or just above it where ε is less than the distance of points. Throws PrivacyError unless 0 < q < 1 and σ > 0 is finite.
  TwoDirectionGame(double q, double sigma, std::uint64_t uses, double epsilon, TwoDirectionSettings settings = {});

  /// A lower bound of the game's δ(ε), ε ≥ 0: that of the grid point at ε or next above it.
  [[nodiscard]] double delta(double epsilon) const;
  /// A lower bound of the game's ε(δ), δ > 0: the last grid point where δ is certain to be exceeded.
  [[nodiscard]] double epsilon(double delta) const;
  /// Where the bound of δ would be δ, between points; no bound. 0 where it is nowhere so large.
  [[nodiscard]] double likely_epsilon(double delta) const;

 private:
  [[nodiscard]] double at(std::size_t n) const;
  [[nodiscard]] std::size_t last_of_at_least(double delta) const;

  /// Rounds of these steps each.
  void play(const MergedSteps& steps, std::uint64_t rounds);

  double step_ = 0.0;
  std::vector<double> values_ = {0.0};  ///< D̃(n), 0 ≤ n, 0 beyond
  double relative_error_ = 0.0;
  double absolute_error_ = 0.0;
  double mismatch_ = 0.0;
  bool played_ = false;
};

/// A lower bound of the game's ε(δ), to a millionth of the best; `guess` > 0: an upper bound. 0 where there is none.
[[nodiscard]] double two_direction_epsilon(double q, double sigma, std::uint64_t uses, double delta, double guess, TwoDirectionSettings settings = {});

}  // namespace tsdp::privacy
