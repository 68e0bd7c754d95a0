// The game of an adaptive adversary over value-level steps, from above: what up to so many steps cost at worst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tsdp/privacy/loss_distribution.h"

namespace tsdp::privacy {

/// How closely the game is evaluated. Nothing here decides whether a bound holds, only how tight it is.
struct GameSettings {
  double cover = 1e-3;     ///< excess of the cover, relative, in the variance of one step's loss
  double step = 0.073;     ///< of the grid, in deviations of one step's loss
  double spacing = 0.05;   ///< of the profiles' chords
};

/// Object: W_t of docs/proofs/adaptive-composition.md, Section 4, from above, on the grid z_n = e^{nh}, for t = 0 … m. With
/// D̃_t(n) = (W_t(z_n) − (z_n − 1)₊) / √z_n, which is even in n, `value(t)[n]` + `error(t)` ≥ D̃_t(n) for 0 ≤ n < value(t).size(), and beyond its end
/// D̃_t is at most its last value + error(t). Theorems A to C. Rounding: every error of a round is bounded and added to error(t); see the proof's Section 6.
class AdaptiveGame {
 public:
  /// `q` in (0, 1): the most probable touch of a step (Lemma 1); `sigma` the noise multiplier. Throws OutOfReach where losses are too large for a grid,
  /// PrivacyError for other q or σ.
  AdaptiveGame(double q, double sigma, GameSettings settings = {});

  /// Plays on until t = `rounds`; nothing to do where that is played already.
  void play(std::size_t rounds);
  [[nodiscard]] std::size_t rounds() const noexcept { return values_.size() - 1; }

  [[nodiscard]] double step() const noexcept { return step_; }
  [[nodiscard]] const std::vector<double>& value(std::size_t t) const { return values_.at(t); }
  [[nodiscard]] double error(std::size_t t) const { return errors_.at(t); }
  /// Of one step's loss: of Theorem 4.4's pair.
  [[nodiscard]] double deviation() const noexcept { return deviation_; }

  /// An upper bound of H_t(e^ε), ε ≥ 0: δ(ε) of t steps.
  [[nodiscard]] double profile(std::size_t t, double epsilon) const;
  /// A pair that dominates t steps in both orders, on multiples of `every` grid steps, its losses cut at about the one where the profile is `tail`.
  [[nodiscard]] LossDistribution loss(std::size_t t, std::int64_t every, double tail) const;

 private:
  void make_kernels(double q, double sigma, const GameSettings& settings);

  class Rounds;

  double step_ = 0.0;
  double deviation_ = 0.0;
  std::int64_t reach_ = 0;           ///< last n at which one step's profile is told from 0
  std::size_t kernels_ = 0;          ///< of both orders
  std::size_t ranks_ = 0;            ///< basis functions
  std::vector<double> basis_;        ///< b_l(n), −reach ≤ n ≤ reach: ranks × (2 reach + 1)
  std::vector<double> coefficients_; ///< c_jl: kernels × ranks
  double kernel_error_ = 0.0;        ///< η
  double kernel_excess_ = 0.0;       ///< ϱ: the most by which a profile in the basis exceeds the convex one that it bounds
  double kernel_mass_ = 0.0;         ///< max_j Σ_n h̃_j(n)
  std::vector<std::vector<double>> values_;
  std::vector<double> errors_;
};

}  // namespace tsdp::privacy
