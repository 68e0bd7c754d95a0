// The law of a sum of independent lognormal variables on a grid, where thresholds are far above its mean.
#pragma once

#include <cstdint>
#include <vector>

namespace tsdp::privacy {

/// δ_remove of balls in bins for one threshold: with X = e^{μz − μ²/2}, X′ = e^{μz + μ²/2}, z ~ N(0, 1), S′ the sum of
/// b − 1 variables like X, and γ = e^ε,
///   δ = P[X′ + S′ > γb] − γ P[X + S′ > γb] = E g(S′),   g(s) = P[X′ > γb − s] − γ P[X > γb − s],
/// since dP/dQ = S/b, and P is the mean of b laws, each of which has one X′ (random_allocation_curve.h). dX′/dX at x is
/// x, so that g rises up to s = γ(b − 1) and falls beyond; from s = γb on it is 1 − γ.
///
/// Every X is rounded down to a multiple of h = γb/n: S̲ ≤ S′ ≤ S̲ + (b − 1)h. Below γb the law of S̲ is made by
/// repeated squaring, and sums of γb or more are dropped; so the largest and the least g over [s, s + (b − 1)h] give
/// both ends. The errors of Fourier transforms and cells are carried along per entry.
class RoundedSum {
 public:
  /// Largest n and b; for more bins errors of transforms, which grow with b, would decide.
  static constexpr std::int64_t most_points = 1 << 16;
  static constexpr std::int64_t most_bins = 64;
  struct Ends {
    double lower, upper;
  };
  /// b ≥ 2, μ > 0, γ ≥ 1.
  [[nodiscard]] static Ends removal(std::int64_t bins, double mu, double epsilon);
};

}  // namespace tsdp::privacy
