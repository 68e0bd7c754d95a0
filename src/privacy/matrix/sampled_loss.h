// A test by sampling: whether the noise of balls in bins is enough for one (ε, δ) (docs/proofs/sampled-noise.md).
//
// The only part of the accountant that draws anything. Its key is public.
#pragma once

#include <cstdint>
#include <memory>

#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/terms/strategy.h"
#include "tsdp/privacy/terms/terms.h"
#include "tsdp/random/random.h"

namespace tsdp::privacy {

/// Draws of both directions' losses for the pair P = (1/b) Σ_i N(m_i, σ²I), Q = N(0, σ²I) of correlated_noise.h.
///
/// Object: with X = dP/dQ and γ = e^ε, δ_remove(ε) = E_P (1 − γ/X)₊ and δ_add(ε) = E_Q (1 − γX)₊. X is a function of b
/// normals of covariance G/σ² (Choquette-Choo et al. 2025, section 3).
///
/// Rounding: the covariance of the draws is at least G/σ² in every entry, which costs no less (Theorem 1 of
/// docs/proofs/correlated-noise.md), and ε is lowered by more than log X may be off.
class SampledLoss {
 public:
  static constexpr std::int64_t most_bins = 4096;
  /// Products and exponentials of a test: minutes on two cores.
  static constexpr double most_work = 1e12;
  /// Beyond this μ no ε is worth a test.
  static constexpr double most_mu = 10.0;

  /// `gram` rounded up. Throws OutOfReach for more bins, a larger μ, or a matrix that rounding leaves indefinite.
  SampledLoss(const Gram& gram, double noise_multiplier);
  ~SampledLoss();
  SampledLoss(SampledLoss&&) = delete;

  /// Means over `samples` draws, each at least as large as that of an exact draw, whose expectations are δ_remove(ε)
  /// and δ_add(ε), ε ≥ 0, but for a chance of 5e-15; rounded up. The draws depend on `key` alone, not on the number of
  /// threads. Throws OutOfReach for more than most_work.
  struct Means {
    double remove = 0.0;
    double add = 0.0;
  };
  [[nodiscard]] Means means(double epsilon, std::uint64_t samples, const SecretKey& key) const;
  void check_work(std::uint64_t samples) const;

  /// By how much log X of a draw may be off.
  [[nodiscard]] double rounding() const { return rounding_; }
  /// Products of one draw.
  [[nodiscard]] double work() const { return work_; }

 private:
  struct Covariance;
  void draw(double gamma, std::uint64_t chunk, std::uint64_t count, const SecretKey& key, Means& sums) const;

  std::unique_ptr<Covariance> of_;
  double rounding_ = 0.0, work_ = 0.0;
};

/// What a test of (ε, δ) takes, and what passes it; 2e-9 ≤ δ < 1. Throws OutOfReach for a smaller δ.
struct SamplingPlan {
  std::uint64_t samples;
  double most_mean;  ///< of the draws of either direction
};
[[nodiscard]] SamplingPlan sampling_plan(double delta);

/// Where no test is passed, noise is used that is certified without sampling for this share of δ.
inline constexpr double fallback_share = 0.99;

/// Whether σ passes the test of `claim` for `epochs` epochs of `bins` bins. A claim is tested once in a process; the
/// answer is kept. Throws as Gram and SampledLoss do.
[[nodiscard]] bool passes(const SampledClaim& claim, const Strategy& strategy, std::int64_t bins, std::int64_t epochs,
                          double noise_multiplier);

}  // namespace tsdp::privacy
