// An upper bound of the joint cost of many steps, each a mixture of two out of few pairs.
#pragma once

#include <cstddef>
#include <vector>

#include "privacy/accountant/product_loss.h"
#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {

/// Object: a product of steps. Step n draws pair a_n with probability 1 − t_n and pair b_n with probability t_n and
/// says which one it drew. Its loss has the law (1 − t_n) D_a + t_n D_b, D the law of a pair's loss. δ(ε) = E(1 −
/// e^{ε−S})₊, S the sum of the losses.
///
/// By joint convexity of the hockey-stick divergence the step dominates (1 − t) P_a + t P_b against a common Q, in both
/// directions; this makes it useful: few pairs are discretised, however many steps are composed.
///
/// Rounding: everything is charged to the upper end. Losses are discretised pessimistically (loss_distribution.h). With
/// p^θ the tilted masses and F their transforms on a circle of N cells, the product of (1 − τ) F_a + τ F_b over all
/// steps is made frequency by frequency, and one transform back gives the masses t_j of the tilted sum. The error of a
/// frequency is at most Σ_n (e_n + 16u), where e_n is the error of its transforms and u = 2⁻⁵³, since factors are at
/// most 1; each t_j is off by at most as much plus what the transform back adds. The sum
/// δ = e^{K−θε} Σ_{jh>ε} w(jh − ε) t_j, w(u) = e^{−θu}(1 − e^{−u}), is then off by at most that much times
/// max w + ∫ w/h.
class BlendedLoss {
 public:
  struct Step {
    std::size_t a, b;
    double share;  ///< t, of b
  };
  /// All pairs Against::noise. `weight_error`: a bound on the relative error of the pairs' weights, charged.
  /// `direction` is remove or add.
  BlendedLoss(std::vector<DominatingPair> pairs, std::vector<Step> steps, Direction direction, double weight_error);

  /// An upper bound of δ(ε), ε ≥ 0, about a relative `precision` above it. Throws OutOfReach where no grid of allowed
  /// size holds it.
  [[nodiscard]] double delta(double epsilon, double precision) const;

 private:
  /// K and its derivatives, summed over all steps.
  [[nodiscard]] Cumulants sums(const std::vector<LossDistribution>& losses, double theta) const;
  [[nodiscard]] std::vector<LossDistribution> discretised(double step, double fine, double tail) const;
  struct Answer {
    double delta;
    double charge;  ///< the part of it that is for transforms
  };
  [[nodiscard]] Answer composed(const std::vector<LossDistribution>& losses, double theta, double epsilon) const;
  /// A window that holds all but 2 e^{log_outside} of the tilted sum's mass, by Chernoff's bound; as many cells as a
  /// circle has. Where the wanted θ gives no window of allowed size, a smaller θ is taken.
  [[nodiscard]] Window window_of(const std::vector<LossDistribution>& losses, double theta) const;
  /// The largest loss of direction `add`, from above. No loss of a pair is larger than −log of the weight at mean 0.
  [[nodiscard]] double largest_addition() const;
  struct Tilt {
    double theta;
    double tail;  ///< mass that a discretisation may leave out
  };
  /// On a coarse grid: the tilt θ at which Chernoff's bound K(θ) − θε + log c(θ), convex in θ, is least. Not certified:
  /// any tilt gives a bound, and every tail is charged.
  [[nodiscard]] Tilt best_tilt(double epsilon, double precision) const;

  std::vector<DominatingPair> pairs_;
  std::vector<Step> steps_;
  Direction direction_;
  double weight_error_;
  double deviation_ = 0.0;  // of the sum
};

}  // namespace tsdp::privacy
