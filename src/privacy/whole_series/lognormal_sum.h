// Expectations of a sum of independent lognormal variables beyond a threshold.
#pragma once

#include <cstdint>
#include <vector>

namespace tsdp::privacy {

/// E[(K − S)₊] for S = X_1 + … + X_b, X_i = e^{μ z_i − μ²/2} with z_i ~ N(0, 1) independent, at thresholds 0 < K ≤
/// K_max.
///
/// With φ(s) = E e^{−sX}, the Laplace transform in K of that expectation is φ(s)^b/s², Re s > 0. On the line s = c + iy
/// the trapezoid rule of distance 2π/L inverts it up to aliases (Abate and Whitt 1992), by Poisson's formula exactly
///   (1/L) Σ_n e^{sK} φ(s)^b/s² |_{s = c + 2πin/L} = Σ_m e^{−cmL} E[(K + mL − S)₊].
/// For L ≥ K terms of m < 0 vanish, as S > 0; those of m > 0 are at most Σ_m e^{−cmL} (K + mL). The sum over n is cut
/// where |φ(c + iy)| ≤ e^{θ²/2μ²} φ(c cos θ + y sin θ) proves the rest small, for any θ in [0, π/2) (turning z by
/// −iθ/μ).
///
/// φ(s) is the trapezoid rule in z, turned by −iη₀ with η₀ = min(a/2μ, 2), a the least arg s of a block of frequencies
/// and a′ the largest: on lines up to η* = min(π/5μ, 2) to either side, |e^{−sX}| ≤ 1 still holds (a′ − a/2 ≤ 3π/10
/// where η₀ = a/2μ; η* ≤ η₀ where it is 2), so that its error is at most 2 Σ_m e^{(η₀+η*)²/2 − 2πmη*/d}, d its
/// distance, plus what is cut off beyond |z| = 10. Within a block e^{−sX} − 1 advances by (e − 1) D + (D − 1). All of
/// these errors and the rounding of every term are summed up into `error`. Long double throughout.
class LognormalSum {
 public:
  /// Largest number of evaluations of e^{−sX} that a table takes: two seconds, and a tenth of a second.
  static constexpr double most_work = 4e7;
  static constexpr double little_work = 2e6;

  /// 1 ≤ b, μ > 0, K_max > 0. If the table would take more work, it is not made and `made` is false.
  LognormalSum(std::int64_t terms, long double mu, long double largest_threshold, double work = most_work);
  [[nodiscard]] bool made() const { return !nodes_.empty(); }

  struct Value {
    long double value, error;
  };
  /// 0 < K ≤ largest_threshold().
  [[nodiscard]] Value below(long double threshold) const;
  [[nodiscard]] long double largest_threshold() const { return largest_; }

 private:
  /// One frequency: log(φ e^{s}), the bound of its error, and the most that log|φ e^{s}| can be.
  struct Node {
    long double log_re, log_im, error, log_most;
    long double argument;  // of s = c + iy
  };
  /// Adds the nodes of `count` frequencies from number `first` on.
  void add_block(std::int64_t first, std::int64_t count);
  /// An upper bound of log φ(x), x > 0.
  [[nodiscard]] long double log_laplace(long double x) const;
  /// log of a bound on |φ(c + iy′)| for all y′ ≥ y.
  [[nodiscard]] long double log_bound(long double y) const;

  std::int64_t terms_;
  long double mu_, largest_;
  long double line_, distance_;  // c, 2π/L
  long double alias_;  // Σ_m of the bound above
  std::vector<long double> z_, weight_, x_, less_one_;  // points, d N(z), X and X − 1
  long double rule_error_;  // of φ, apart from rounding
  std::vector<Node> nodes_;
  long double log_cut_;  // log of a bound on what is cut off, less c K
};

}  // namespace tsdp::privacy
