// Rényi divergences of balls in bins with correlated noise, from the Gram matrix of the bins' means.
#pragma once

#include <cstdint>
#include <vector>

#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::privacy {

/// Upper bounds of R_α(P‖Q) for α = 0 … `most_order` (0, 1: +∞), P = (1/b) Σ_i N(m_i, σ²I), Q = N(0, σ²I), G_ij = ⟨m_i,
/// m_j⟩ ≥ 0:
///   e^{(α−1) R_α} = α! b^{−α} W_α,   W_α = Σ_{r_1 + … + r_b = α} Π_j 1/r_j! exp( Σ_j r_j (r_j − 1) H_jj / 2 + Σ_{i<j}
///   r_i r_j H_ij )
/// with H = G/σ² (Schuchardt and Kalinin 2026, Lemma 3.2, with its sign corrected). It increases in every entry of G,
/// so G is replaced by G^{(p)} + τ 11ᵀ: entries at a cyclic distance of p or more become τ, the largest of them, and
/// others exceed it by G^{(p)}; τ adds ατ/2σ².
/// p = `bands`; exact where no entry lies beyond. For 2(p − 1) > b nothing is computed: +∞.
///
/// W is computed by a dynamic program over bins whose state is the last p − 1 counts and the sum (their Algorithm 1,
/// corrected). An outer loop runs over the counts of the first p − 1 bins, as they meet the last ones around the cycle:
/// they act on those by a factor e^{t·field}. Every pair of bins is counted once: where p − 1 bins are all there is
/// between them, the printed algorithm counts a pair twice.
/// Rounding: all terms are positive; the roundings of all sums, and what underflows, are charged upwards. What
/// overflows is +∞.
[[nodiscard]] std::vector<double> renyi_remove(const Gram& gram, double noise_multiplier, std::int64_t bands,
                                               std::int64_t most_order);

/// The same for bins whose means are orthogonal and of equal length, G = kI, k = `uses`: balls in bins with independent
/// noise. No b × b matrix is made.
[[nodiscard]] std::vector<double> renyi_remove_independent(std::int64_t bins, double noise_multiplier,
                                                           std::uint64_t uses, std::int64_t most_order);
/// And R_α(Q‖P) ≤ k/2σ² (1 + (α − 1)/b) for them (RenyiAdd).
[[nodiscard]] double renyi_add_independent(std::int64_t bins, double noise_multiplier, std::uint64_t uses,
                                           double order);

/// The least δ(ε) that these give, for an addition. What they bound grows with k, so it holds for k epochs with bins of
/// their own as well.
[[nodiscard]] double delta_add_independent(std::int64_t bins, double noise_multiplier, std::uint64_t uses,
                                           double epsilon);

/// Number of inner updates that `renyi_remove` takes.
[[nodiscard]] double renyi_remove_work(const Gram& gram, std::int64_t bands, std::int64_t most_order);
/// The largest order ≥ 2, at most `limit`, that takes at most `work` updates; 0 where even 2 takes more.
[[nodiscard]] std::int64_t affordable_order(const Gram& gram, std::int64_t bands, double work, std::int64_t limit);

/// An upper bound of R_α(Q‖P), α > 1: Σ_j G_jj / 2bσ² + (α − 1) Σ_ij G_ij / 2b²σ², from p ≥ Π φ_j^{1/b} (ibid.,
/// Lemma 3.4).
class RenyiAdd {
 public:
  RenyiAdd(const Gram& gram, double noise_multiplier);
  [[nodiscard]] double operator()(double order) const;

 private:
  long double diagonal_ = 0.0L, all_ = 0.0L;  // sums of entries
  long double bins_, sigma_;
};

/// δ(ε) ≤ e^{(α−1)(ρ−ε)} (1 − 1/α)^α / (α − 1) for R_α ≤ ρ (Canonne, Kamath and Steinke 2020, Proposition 12), rounded
/// up; at most 1.
[[nodiscard]] double delta_of_renyi(double divergence, double order, double epsilon);

}  // namespace tsdp::privacy
