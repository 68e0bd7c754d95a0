// The game of an adaptive adversary over value-level steps, from above: the worst-case cost of up to a given number of
// steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "game_profiles.h"

namespace tsdp::privacy {

/// How closely the game is evaluated. Nothing here decides whether a bound holds, only how tight it is.
struct GameSettings {
  double cover = 1e-3;     ///< relative excess of the cover in the variance of one step's loss
  double step = 0.073;     ///< of the grid, in deviations of one step's loss
  double spacing = 0.05;   ///< of the profiles' chords
};

/// Object: W_t of docs/proofs/adaptive-composition.md, Section 4, on the grid z_n = e^{nh}, for t = 0 … m, from above.
/// Theorems A to C. Rounding: every error of a round is bounded and added to the row's; see the proof's Section 6.
class AdaptiveGame {
 public:
  /// More points of a grid are refused.
  static constexpr std::int64_t most_points = std::int64_t{1} << 20;

  /// `q` in (0, 1): the most probable touch of a step (Lemma 1); `sigma` the noise multiplier. Throws OutOfReach where
  /// losses are too large for a grid, PrivacyError for other q or σ.
  AdaptiveGame(double q, double sigma, GameSettings settings = {});

  /// Plays on until t = `rounds`. Does nothing if that is played already.
  void play(std::size_t rounds);
  [[nodiscard]] const GameProfiles& profiles() const noexcept { return *profiles_; }

 private:
  void make_kernels(double q, double sigma, const GameSettings& settings);

  class Rounds;

  double step_ = 0.0;
  double deviation_ = 0.0;
  std::int64_t reach_ = 0;  ///< last n at which one step's profile is distinguished from 0
  std::size_t kernels_ = 0;  ///< of both orders
  std::size_t ranks_ = 0;  ///< basis functions
  std::vector<double> basis_;  ///< b_l(n), −reach ≤ n ≤ reach: ranks × (2 reach + 1)
  std::vector<double> coefficients_;  ///< c_jl: kernels × ranks
  double kernel_error_ = 0.0;  ///< η
  double kernel_excess_ = 0.0;  ///< ϱ: the most by which a profile in the basis exceeds the convex one that it bounds
  double kernel_mass_ = 0.0;  ///< max_j Σ_n h̃_j(n)
  std::vector<double> last_ = {0.0};  ///< D̃ of the last round, n ≥ 0
  double error_ = 0.0;
  std::optional<GameProfiles> profiles_;
};

}  // namespace tsdp::privacy
