// Certified privacy of adaptive uses of mechanisms that are described by dominating pairs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

class Composer;
class Cut;

/// A mechanism and how often it is used in one joint use.
struct MechanismUse {
  DominatingPair pair;
  std::uint64_t uses = 1;
  Direction direction = Direction::symmetrised;
};

/// Composes the profiles of dominating pairs: of one with itself, or of several different ones.
///
/// By Props. D.13 and D.10 of Schuchardt et al. (2025), δ of adaptive uses of mechanisms that are dominated by
/// symmetrised profiles is at most the δ of their product; every answer brackets that product's value. For profiles in
/// one direction, the product's is that of the same direction (Chua et al. 2024, §2): `remove` and `add` are two
/// accountants, and the larger δ counts.
/// Charged to the upper ends (and taken from the lower) are discretisation, truncated tails, aliasing and rounding of
/// the Fourier transforms, rounding of masses, losses and sums. The rounding model is that of Higham (2002, Thm. 24.2)
/// for the transforms; it is analytic, not interval arithmetic.
class Accountant final : public PrivacyCurve {
 public:
  explicit Accountant(DominatingPair pair, Direction direction = Direction::symmetrised);
  /// One use is `uses` uses of each of these together. Throws PrivacyError if there are none, one is used less than
  /// once, or all together more than `max_uses_ever` times.
  explicit Accountant(std::vector<MechanismUse> mechanisms);
  ~Accountant() override;
  Accountant(Accountant&&) noexcept;
  Accountant& operator=(Accountant&&) noexcept;

  /// From the pessimistic grid alone.
  [[nodiscard]] double upper_delta(double epsilon, std::uint64_t uses, double precision = default_precision) override;
  /// Costs only coarse brackets where those decide.
  [[nodiscard]] bool certifies(double epsilon, double delta, std::uint64_t uses,
                               double precision = default_precision) override;
  [[nodiscard]] Certificate methods() const override;
  /// What one joint use consists of.
  [[nodiscard]] const std::vector<MechanismUse>& mechanisms() const noexcept;

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) override;
  [[nodiscard]] Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) override;
  /// The result k is certified on one grid, on which k + 1 is not (unless k = limit, or a coarser grid, on which
  /// rounding costs less, certified k).
  [[nodiscard]] std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit, double precision) override;

 private:
  struct State;
  /// δ(ε); its lower end is 0 unless asked for.
  [[nodiscard]] Interval bracket_delta(double epsilon, std::uint64_t uses, double precision, bool with_lower);
  /// What is built for a tail cut, for k uses at about this δ and relative precision.
  std::shared_ptr<Cut> cut_for(double delta, std::uint64_t uses, double precision);
  /// The least ε that the pessimistic side certifies, and the largest that the optimistic side refutes.
  double least_certified_epsilon(double delta, std::uint64_t uses, const Cut& cut, Composer& side, double theta,
                                 double start, double tolerance);
  double largest_refuted_epsilon(double delta, std::uint64_t uses, const Cut& cut, Composer& side, double tolerance,
                                 double upper);
  /// Whether the uses are a single draw of a single pair, whose profile has a closed form.
  [[nodiscard]] bool is_single(std::uint64_t uses) const;
  /// ε(δ) of a single use, from the profile's closed form.
  [[nodiscard]] Interval epsilon_of_one(double delta, double tolerance) const;
  /// Σ of the profiles at ε of all draws of one joint use.
  [[nodiscard]] double profiles(double epsilon) const;
  /// The most that one joint use can lose in direction `add`; +∞ where nothing bounds it.
  [[nodiscard]] double largest_loss() const;
  /// Decay rate −d log/dε of profiles(ε) at ε, times ε.
  [[nodiscard]] double relative_decay(double epsilon) const;
  void check_uses(std::uint64_t uses) const;

  std::unique_ptr<State> state_;
};

/// The least noise multiplier σ for which `suffices(σ)` holds, for a predicate that is false below and true above some
/// σ in [1e-2, 1e6] (throwing OutOfReach counts as false: noise so small that its loss is beyond computing is not
/// enough): bisection on log σ, returning an end at which it was seen to be true, at most a factor 1 + tolerance above
/// the least. Throws PrivacyError if σ = 1e6 is not enough.
[[nodiscard]] double calibrate_noise(const std::function<bool(double)>& suffices, double tolerance = 2e-4);

}  // namespace tsdp::privacy
