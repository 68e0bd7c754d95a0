// The curve of balls in bins with independent noise.
//
// Units: clip norm C = 1, σ the noise multiplier.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "privacy/whole_series/gaussian_curve.h"
#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

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
    double without_table = 1.0;  ///< the upper end that no table gave
    const char* without_table_by = "";
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

}  // namespace tsdp::privacy
