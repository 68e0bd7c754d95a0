// What is known of the privacy of repeated uses of a mechanism, whatever theorem it rests on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tsdp::privacy {

/// lower ≤ truth ≤ upper. Every comparison that could spend privacy uses `upper`.
struct Interval {
  double lower = 0.0;
  double upper = 0.0;
};

/// Relative width that brackets aim at unless told otherwise.
inline constexpr double default_precision = 1e-3;
/// The precision at which commands decide whether something stays within a target.
inline constexpr double finest_precision = 2e-5;
/// The most uses of anything that are accounted for.
inline constexpr std::uint64_t max_uses_ever = 100'000'000;

/// What the ends of a bracket rest on.
struct Certificate {
  std::string upper;                     ///< theorem that gives the upper end
  std::string lower;                     ///< likewise; empty: the lower end is 0, as nothing gives one
  std::vector<std::string> assumptions;  ///< beyond those of the theorems
};

/// A bracket with what its ends rest on.
struct Certified : Interval {
  Certificate why = {};
};

/// δ(ε) and ε(δ) after k uses, as brackets: `upper` certifies, `lower` refutes.
///
/// Not thread-safe: answers may share state that is made on demand.
class PrivacyCurve {
 public:
  virtual ~PrivacyCurve() = default;
  PrivacyCurve() = default;
  PrivacyCurve(const PrivacyCurve&) = delete;
  PrivacyCurve& operator=(const PrivacyCurve&) = delete;
  PrivacyCurve(PrivacyCurve&&) = default;
  PrivacyCurve& operator=(PrivacyCurve&&) = default;

  /// Bracket of δ(ε) after `uses` uses, ε ≥ 0. uses = 0 gives {0, 0}.
  /// Aims at the relative width `precision` in δ; where that is out of reach the bracket is wider, never wrong.
  [[nodiscard]] Certified delta(double epsilon, std::uint64_t uses, double precision = default_precision);

  /// Bracket of the least ε ≥ 0 with δ(ε) ≤ delta after `uses` uses, 1e-25 ≤ delta < 1. uses = 0 gives {0, 0}. Throws
  /// PrivacyError if no finite ε can be certified.
  [[nodiscard]] Certified epsilon(double delta, std::uint64_t uses, double precision = default_precision);

  /// Whether δ(ε) ≤ delta is certified after `uses` uses, by δ's upper end at `precision`.
  [[nodiscard]] virtual bool certifies(double epsilon, double delta, std::uint64_t uses,
                                       double precision = default_precision) {
    return this->delta(epsilon, uses, precision).upper <= delta;
  }

  /// Only an upper end, where that costs less than delta(): without a lower one it is not known to be within
  /// `precision`, only meant to be.
  [[nodiscard]] virtual double upper_delta(double epsilon, std::uint64_t uses, double precision = default_precision) {
    return delta(epsilon, uses, precision).upper;
  }

  /// Only the upper end of epsilon(), where that costs less.
  [[nodiscard]] virtual double upper_epsilon(double delta, std::uint64_t uses, double precision = default_precision) {
    return epsilon(delta, uses, precision).upper;
  }

  /// Whether `uses` uses stay within a target, as all commands decide it: δ(ε) ≤ delta is certified at
  /// finest_precision or `precision`, whichever is finer, and epsilon() says at most ε. Both calibrated noise and
  /// max_uses() are decided by this. False for more uses than are accounted for, and if no ε can be certified.
  [[nodiscard]] bool stays_within(double epsilon, double delta, std::uint64_t uses,
                                  double precision = default_precision);

  /// The most uses k ≤ limit that stay within a target, as far as brackets of relative width `precision` in ε tell them
  /// apart; 0 if not even one does. A search on grids only gives the starting point: from there, uses are added as long
  /// as one more is certified, then removed until epsilon() agrees.
  [[nodiscard]] std::uint64_t max_uses(double epsilon, double delta, std::uint64_t limit = max_uses_ever,
                                       double precision = finest_precision);

  /// The methods that may give the ends of an answer; the answer itself says which of them did.
  [[nodiscard]] virtual Certificate methods() const = 0;

 protected:
  /// delta() and epsilon(). `why` is passed in as methods(); a curve that knows which of them gave an end narrows it.
  [[nodiscard]] virtual Interval find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) = 0;
  [[nodiscard]] virtual Interval find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) = 0;
  /// About the most uses k ≤ limit for which δ(ε) ≤ delta is certified; 0 if it finds none.
  [[nodiscard]] virtual std::uint64_t search_uses(double epsilon, double delta, std::uint64_t limit,
                                                  double precision) = 0;
};

}  // namespace tsdp::privacy
