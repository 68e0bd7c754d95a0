// Certified privacy of k adaptive uses of one mechanism.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tsdp/privacy/dominating_pair.h"
#include "tsdp/privacy/interval.h"

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

  /// Bracket of the least ε ≥ 0 with δ(ε) ≤ delta after `uses` uses, 1e-25 ≤ delta < 1. uses = 0 gives {0, 0}. Throws
  /// PrivacyError if no finite ε can be certified, or the losses of a use are beyond computing.
  [[nodiscard]] Interval epsilon(double delta, std::uint64_t uses, double precision = default_precision);

  /// Whether δ(ε) ≤ delta is certified after `uses` uses, as δ's upper end at `precision` says; where coarse brackets
  /// decide, at their cost.
  [[nodiscard]] bool certifies(double epsilon, double delta, std::uint64_t uses, double precision = default_precision);

  /// The most uses k ≤ limit for which δ(ε) ≤ delta is certified on one grid, chosen for brackets of ε of relative width
  /// `precision`; 0 if not even one is. On that grid k + 1 is not certified (unless k = limit, or a coarser grid, on which
  /// rounding costs less, certified k).
  [[nodiscard]] std::uint64_t max_uses(double epsilon, double delta, std::uint64_t limit = max_uses_ever,
                                       double precision = 2e-5);

  [[nodiscard]] const DominatingPair& pair() const noexcept;

 private:
  class Cut;
  struct State;
  /// What is made for a tail cut for k uses at about this δ and relative precision.
  std::shared_ptr<Cut> cut_for(double delta, std::uint64_t uses, double precision);
  /// The least ε that the pessimistic side certifies, and the largest that the optimistic side refutes.
  double least_certified_epsilon(double delta, std::uint64_t uses, const Cut& cut, Composer& side, double theta,
                                 double start, double tolerance);
  double largest_refuted_epsilon(double delta, std::uint64_t uses, const Cut& cut, Composer& side, double tolerance,
                                 double upper);
  /// ε(δ) of a single use, from the profile's closed form.
  [[nodiscard]] Interval epsilon_of_one(double delta, double tolerance) const;

  std::unique_ptr<State> state_;
};

/// The least noise multiplier σ for which `suffices(σ)` holds, for a predicate that is false below and true above some
/// σ in [1e-2, 1e6] (throwing PrivacyError counts as false): bisection on log σ, answering with an end at which it was seen
/// true, at most a factor 1 + tolerance above the least. Throws PrivacyError if σ = 1e6 is not enough.
[[nodiscard]] double calibrate_noise(const std::function<bool(double)>& suffices, double tolerance = 2e-4);

}  // namespace tsdp::privacy
