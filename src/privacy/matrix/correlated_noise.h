// What training with correlated noise costs: matrix mechanisms under fixed batches and under balls in bins.
//
// Units: clip norm C = 1, σ the standard deviation of Z in that unit; the release is CG + Z (strategy.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "privacy/whole_series/random_allocation_curve.h"
#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/strategy.h"
#include "tsdp/privacy/terms/terms.h"

namespace tsdp::privacy {

/// How an upper end is found. `automatic`: the least that any of the others certifies; conditional composition is asked
/// only where it can win (README.md).
///   deterministic: fixed batches, which cost no less (joint convexity).
///   gram: a larger Gram matrix of the form t 11ᵀ + u I. It gives the lower end of all methods, too.
///   renyi: Rényi divergences of both directions; for an addition Laplace transforms as well, where the matrix is
///   banded. conditional: step by step, given what was released before (docs/proofs/conditional-composition.md).
enum class CorrelatedMethod {
  automatic,
  renyi,
  conditional,
  gram,
  deterministic
};
constexpr Names<CorrelatedMethod, 5> names_of(CorrelatedMethod) {
  return {{{CorrelatedMethod::automatic, "auto"},
           {CorrelatedMethod::renyi, "renyi"},
           {CorrelatedMethod::conditional, "conditional"},
           {CorrelatedMethod::gram, "gram"},
           {CorrelatedMethod::deterministic, "deterministic"}}};
}

/// Whether batches made this way are covered with correlated noise: a record takes part once in an epoch.
[[nodiscard]] constexpr bool covers_correlated_noise(TopLevel sampler) {
  return sampler == TopLevel::balls_in_bins || sampler == TopLevel::deterministic || sampler == TopLevel::shuffled;
}
/// Whether every epoch draws orders or bins of its own.
[[nodiscard]] constexpr bool has_own_orders(TopLevel sampler, Reshuffle reshuffle, Redraw redraw) {
  return (sampler == TopLevel::shuffled && reshuffle == Reshuffle::every_epoch) ||
         (sampler == TopLevel::balls_in_bins && redraw == Redraw::every_epoch);
}
/// Whether `auto` looks for correlated noise. Not for bins drawn anew in every epoch: it would give up what they gain.
[[nodiscard]] constexpr bool searches_correlated_noise(TopLevel sampler, Redraw redraw) {
  return covers_correlated_noise(sampler) && redraw == Redraw::once;
}

/// One run of a matrix mechanism over k epochs of b steps; a use is one of the N/b epochs that were planned. Stopping
/// earlier releases a prefix, whose cost is that of the prefix.
///
/// `deterministic` batches: CG moves by Σ_j C_{:,i+jb} g_jᵀ with |g_j| ≤ 1, whose norm is at most ‖m_i‖,
/// m_i = Σ_j |C|_{:,i+jb}; the largest over i gives a Gaussian mechanism, exact for C ≥ 0 (all g_j alike); for other C
/// it is an upper end only. Gradients may depend on earlier releases: Denisov et al. (2022), Theorem 2.1, for
/// lower-triangular C.
/// `shuffled` once: given the order it is the same, and divergences are jointly convex: the same upper end, no lower
/// end.
/// `own_orders`: shuffled, or in bins, anew in every epoch: given all orders, parts of a record may be one step apart;
/// a Gaussian mechanism of squared_sensitivity_of_own_orders, for any C; no lower end. `balls_in_bins`: (1/b) Σ_i
/// N(m_i, σ²I) against N(0, σ²I) (Choquette-Choo et al. 2025, Lemma 3.2), C ≥ 0. Upper ends as in CorrelatedMethod, the
/// lower end from a smaller Gram matrix. Each direction is treated by itself until the end. With the identity as
/// matrix, `automatic` asks RandomAllocationCurve, which knows the exact profile. A claim by sampling, for balls in
/// bins: if its test is passed, its (ε, δ) is one more upper end, of `automatic`, for any number of planned epochs, as
/// what fewer release is a part of what all do (docs/proofs/sampled-noise.md).
class CorrelatedNoiseCurve final : public PrivacyCurve {
 public:
  /// b bins or batches. Throws PrivacyError for another sampler, and for balls in bins drawn once with a matrix that
  /// has negative entries.
  CorrelatedNoiseCurve(std::shared_ptr<const Strategy> strategy, TopLevel sampler, std::int64_t bins,
                       double noise_multiplier, std::optional<Direction> only = std::nullopt,
                       CorrelatedMethod method = CorrelatedMethod::automatic, std::optional<SampledClaim> sampled = {},
                       bool own_orders = false);
  ~CorrelatedNoiseCurve() override;

  /// Throw PrivacyError for more uses than were planned.
  [[nodiscard]] bool certifies(double epsilon, double delta, std::uint64_t uses,
                               double precision = default_precision) override;
  [[nodiscard]] Certificate methods() const override;

  /// Epochs that were planned.
  [[nodiscard]] std::uint64_t planned() const { return static_cast<std::uint64_t>(strategy_->steps() / bins_); }
  /// The squared norm by which one record moves the sums of this many epochs, in clip norms, at most.
  [[nodiscard]] double squared_reach(std::uint64_t uses) const;

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  struct Bounds;
  /// What is known for this many epochs.
  Bounds& bounds(std::uint64_t uses);
  /// Upper end; stops looking once it is at most `enough`, or once one direction is above. `spent`: what the failure of
  /// conditional composition may add to δ; 0: it is not used. `by`, if given, is set to the methods that gave it; left
  /// as it is if the search stops early.
  double upper(double epsilon, std::uint64_t uses, double enough, double spent, std::string* by = nullptr);
  struct Least;
  /// Takes δ(ε) from above by Rényi divergences of a removal into account, as many as it takes for `enough`.
  void take_removal(Bounds& known, double epsilon, double enough, Least& best) const;
  /// Takes δ(ε) from above by Rényi divergences of an addition into account and, where that is not enough and the
  /// matrix is banded, by Laplace transforms.
  void take_addition(Bounds& known, double epsilon, double enough, Least& best) const;
  /// Divergences of a removal up to the next number of orders.
  void extend_removal(Bounds& known) const;
  /// By conditional composition alone, at ε or, where that is out of reach, at a smaller ε: δ(ε) ≤ δ(ε′) for ε′ ≤ ε. 1
  /// where nothing is in reach.
  double conditional(Direction direction, double epsilon, std::uint64_t uses, double spent);
  /// Whether conditional composition is asked at all.
  [[nodiscard]] bool asks_conditions(const Bounds& known) const;
  double lower(double epsilon, std::uint64_t uses, std::string* by = nullptr);
  /// Whether a claim by sampling says that δ(ε) ≤ delta.
  [[nodiscard]] bool claims(double epsilon, double delta);

  std::shared_ptr<const Strategy> strategy_;
  TopLevel sampler_;
  std::int64_t bins_;
  double noise_multiplier_;
  std::optional<Direction> only_;
  CorrelatedMethod method_;
  std::optional<SampledClaim> sampled_;
  bool own_orders_;
  std::unique_ptr<Bounds> bounds_;
  std::unique_ptr<RandomAllocationCurve> exact_;  // independent noise in bins, all methods
};

}  // namespace tsdp::privacy
