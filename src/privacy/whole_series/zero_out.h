// Curves where neighbours differ in one whole record, present or absent (zero-out).
//
// Units: clip norm C = 1, σ the noise multiplier. Chua et al., "How Private are DP-SGD Implementations?" (ICML 2024),
// is [C].
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/terms.h"

namespace tsdp::privacy {

/// A Gaussian mechanism, used k times: exact.
///
/// Object: N(s√k, σ²) against N(0, σ²), where s is the distance between neighbours' sums. With μ = s√k/σ,
///   δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2),
/// the same in both directions. With s = 1 it is deterministic iteration over fixed batches of records ([C] §2.1,
/// tightly dominating; a use is an epoch, in which a record takes part once; over k epochs the record's contribution is
/// a vector of norm √k); with s = 2 the same for a record that is replaced by another. Rounding: long double; brackets
/// are wider than the closed form's error of 1e-17 z² by an order of magnitude.
class GaussianCurve final : public PrivacyCurve {
 public:
  /// Throws PrivacyError unless both are positive and finite.
  explicit GaussianCurve(double noise_multiplier, double distance = 1.0);

  [[nodiscard]] Certificate methods() const override;

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  double least_distance_;  // s/σ
};

/// δ_G(ε; μ), ε ≥ 0, μ > 0: the closed form above as a bracket.
[[nodiscard]] Interval gaussian_delta(double epsilon, double mu);

/// Poisson batches: in every step, every record takes part independently with probability q.
///
/// Object ([C] §2.2, tightly dominating): k-fold products of A = (1 − q) N(0, σ²) + q N(1, σ²) and B = N(0, σ²); the
/// record's removal is A against B, its addition B against A. The direction of a neighbour is the same in every step,
/// so each direction is composed by itself; the larger δ counts.
class PoissonCurve final : public PrivacyCurve {
 public:
  /// rate q in (0, 1]. Throws PrivacyError for it or σ out of range.
  PoissonCurve(double rate, double noise_multiplier);

  [[nodiscard]] bool certifies(double epsilon, double delta, std::uint64_t uses,
                               double precision = default_precision) override;
  [[nodiscard]] Certificate methods() const override;

  /// One direction alone.
  [[nodiscard]] Accountant& of(Direction direction) { return direction == Direction::add ? add_ : remove_; }

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  Accountant remove_, add_;
};

/// Shuffled batches: a uniform permutation of the records, cut into T batches of equal size; a use is an epoch.
///
/// Upper end ([C] Theorem 4.1): given the permutations it is deterministic iteration, and the hockey-stick divergence
/// is jointly convex, so δ is at most that of k Gaussian mechanisms, whether or not every epoch has its own order.
///
/// Lower end ([C] §2.3, by data processing): queries ψ(x) = x on [−1, 1], with one record 1, or a ghost, among records
/// −1. After shifting by the batch size the outputs are N(2e_t, σ²I_T) and N(e_t, σ²I_T), t uniform, told apart by
/// M = max_t w_t. One epoch: events {M ≥ C}, any C. A new order in every epoch: the k values of M are independent, and
/// their joint law is composed; the number of epochs with M ≥ C, a binomial variable, is used too. One order for all
/// epochs: the sums over epochs are one epoch with σ/√k.
/// No theorem gives an exact curve (Conjecture 3.2 is not used).
class ShuffledCurve final : public PrivacyCurve {
 public:
  /// T ≥ 1 batches per epoch.
  ShuffledCurve(std::int64_t batches, double noise_multiplier, Reshuffle reshuffle);
  ~ShuffledCurve() override;

  [[nodiscard]] Certificate methods() const override;

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  /// Certified lower ends of δ(ε): the better of the next two, or the events of one epoch.
  [[nodiscard]] double lower(double epsilon, std::uint64_t uses);
  [[nodiscard]] double composed(double epsilon, std::uint64_t uses);
  [[nodiscard]] double counted(double epsilon, std::uint64_t uses) const;

  std::int64_t batches_;
  double noise_multiplier_;
  Reshuffle reshuffle_;
  GaussianCurve upper_;
  struct Composed;
  std::unique_ptr<Composed> composed_;  // the loss of M, made on demand
};

/// Balls in bins (random allocation): every record draws one of b bins, once, and takes part in that batch of every
/// epoch; a use is an epoch. Independent noise.
///
/// Object (Choquette-Choo et al. 2025, Lemma 3.2, for the identity strategy): P = (1/b) Σ_i N(√k e_i, σ²I_b) against
/// N(0, σ²I_b); removal is P against Q, addition Q against P. With μ = √k/σ, X_i = e^{μ z_i − μ²/2} independent, S
/// their sum, γ = e^ε:
///   δ_remove = E[(S − γb)₊]/b = E[(γb − S)₊]/b + 1 − γ,   δ_add = (γ/b) E[(b/γ − S)₊],
/// exact; both from the Laplace transform of X (lognormal_sum.h), to an absolute error of about 1e-17 γ. Where that
/// would take too long (thresholds far above the mean), the law of S on a grid gives both ends of δ_remove
/// (rounded_sum.h; up to 64 bins, a relative 1e-2), and δ_add ≤ Q(all X_i < b/γ).
/// The upper end of each direction is the least of what is known: the above; Rényi divergences of the direction
/// (Schuchardt and Kalinin 2026, Lemmas 3.2 and 3.4, G = kI; allocation_renyi.h); k Gaussian mechanisms (given the bin;
/// joint convexity); and any of these at a smaller ε, as δ(ε) ≤ δ(ε′) for ε′ ≤ ε. Lower ends are the largest: the exact
/// one, and for removals the events {max_i w_i ≥ C}. A caller that asks for no more than a relative 1e-2 gets tables
/// only where they are made in a tenth of a second.
class RandomAllocationCurve final : public PrivacyCurve {
 public:
  /// b ≥ 1 bins. `only`: one direction alone.
  RandomAllocationCurve(std::int64_t bins, double noise_multiplier, std::optional<Direction> only = std::nullopt);
  ~RandomAllocationCurve() override;

  /// Where fixed batches certify it, or an event refutes it, no table is made.
  [[nodiscard]] bool certifies(double epsilon, double delta, std::uint64_t uses,
                               double precision = default_precision) override;
  [[nodiscard]] Certificate methods() const override;

  using PrivacyCurve::delta;
  /// One direction alone, `remove` or `add`.
  [[nodiscard]] Interval delta(Direction direction, double epsilon, std::uint64_t uses,
                               double precision = default_precision);

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  struct Tables;
  /// Both ends in one direction, and what gave them.
  struct Ends {
    Interval delta;
    const char* upper_by;
    const char* lower_by;
  };
  Ends ends(Direction direction, double epsilon, std::uint64_t uses, double precision);
  /// Takes the bound at a smaller ε where that is less: δ does not grow with ε, though bounds of it may.
  void refine(Direction direction, double epsilon, std::uint64_t uses, double precision, Ends& known);
  /// What may be used at this precision: tables of sums, with how much work, and the law on a grid.
  struct Reach {
    bool tables, grid;
    double work;
  };
  [[nodiscard]] Reach reach(double epsilon, std::uint64_t uses, double precision) const;
  /// The exact value by a table, if there is one for this ε within the precision's work.
  bool by_table(Direction direction, double epsilon, std::uint64_t uses, double work, Ends& known);
  /// ε(δ), given what fixed batches cost.
  Interval searched(double delta, std::uint64_t uses, double precision, double cap);
  /// An upper bound by Rényi divergences.
  double by_renyi(Direction direction, double epsilon, std::uint64_t uses);

  std::int64_t bins_;
  double noise_multiplier_;
  std::optional<Direction> only_;
  GaussianCurve cap_;
  std::unique_ptr<Tables> tables_;
};

/// The pair of one step of Poisson batches.
[[nodiscard]] DominatingPair poisson_step(double rate, double noise_multiplier);

}  // namespace tsdp::privacy
