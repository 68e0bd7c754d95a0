// Certified privacy of k adaptive uses of one mechanism.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "tsdp/privacy/dominating_pair.h"
#include "tsdp/privacy/interval.h"
#include "tsdp/privacy/loss_distribution.h"

namespace tsdp::privacy {

class Composer;

/// Composes the symmetrised profile of a dominating pair with itself.
///
/// By Props. D.13 and D.10 of Schuchardt et al. (2025), δ of k adaptive uses of a mechanism that is dominated by the
/// symmetrised profile is at most the δ of the k-fold product; every answer brackets that product's value.
/// What is charged to the upper ends (and taken from the lower): discretisation, truncated tails, aliasing and
/// rounding of the Fourier transforms, rounding of masses, losses and sums. The rounding model is that of Higham
/// (2002, Thm. 24.2) for the transforms; it is analytic, not interval arithmetic.
///
/// Not thread-safe: answers share grids that are made on demand.
class Accountant {
 public:
  /// Relative width that answers aim at unless told otherwise.
  static constexpr double default_precision = 1e-3;
  /// The most uses of one mechanism that are accounted for.
  static constexpr std::uint64_t max_uses_ever = 100'000'000;

  explicit Accountant(DominatingPair pair);
  ~Accountant();
  Accountant(Accountant&&) noexcept;
  Accountant& operator=(Accountant&&) noexcept;

  /// Bracket of δ(ε) after `uses` uses, ε ≥ 0. uses = 0 gives {0, 0}.
  /// Aims at the relative width `precision` in δ; where rounding prevents that the bracket is wider, never wrong.
  [[nodiscard]] Interval delta(double epsilon, std::uint64_t uses, double precision = default_precision);

  /// Bracket of the least ε ≥ 0 with δ(ε) ≤ delta after `uses` uses, 0 < delta < 1. uses = 0 gives {0, 0}.
  [[nodiscard]] Interval epsilon(double delta, std::uint64_t uses, double precision = default_precision);

  /// The most uses k ≤ limit for which δ(ε) ≤ delta is certified at k; 0 if not even one is. The next use, k + 1, is
  /// not certified at the same precision (unless k = limit).
  [[nodiscard]] std::uint64_t max_uses(double epsilon, double delta, std::uint64_t limit = max_uses_ever,
                                       double precision = 2e-5);

  [[nodiscard]] const DominatingPair& pair() const noexcept { return pair_; }

 private:
  struct Grid;
  /// The grid on which k uses, with tilt θ, give brackets of ε of about `precision` times `per_epsilon`; cells of the tail
  /// have at most the relative width `share`.
  Grid& grid_for(std::uint64_t uses, double theta, double per_epsilon, double share, double precision);
  /// The least ε that the pessimistic side certifies, and the largest that the optimistic side refutes.
  double least_certified_epsilon(double delta, std::uint64_t uses, Composer& side, double theta, double start,
                                 double tolerance);
  double largest_refuted_epsilon(double delta, std::uint64_t uses, Composer& side, double tolerance, double upper);

  DominatingPair pair_;
  LossScale scale_;
  std::unique_ptr<Composer> scout_;  // a coarse one, on which tilts are chosen
  std::map<std::pair<int, int>, std::unique_ptr<Grid>> grids_;
};

/// The least noise multiplier σ for which `enough(σ)` holds, for a predicate that is false below and true above some
/// σ in [1e-2, 1e6]: bisection on log σ, answering with an end at which it was seen true, at most a factor
/// 1 + tolerance above the least. Throws PrivacyError if σ = 1e6 is not enough.
[[nodiscard]] double calibrate_noise(const std::function<bool(double)>& enough, double tolerance = 2e-4);

}  // namespace tsdp::privacy
