// The pairs of the paper's theorems, in terms of the probabilities they rest on.
//
// Theorem numbers are those of Schuchardt et al., "Privacy Amplification by Structured Subsampling for Deep
// Differentially Private Time Series Forecasting" (ICML 2025). r: share of a series' windows that a change touches; ρ:
// probability that the changed series is drawn (1 for one epoch of deterministic iteration); λ: windows drawn from a
// series; m: windows touched. All of these are for the symmetrised profile (DominatingPair::symmetrised_profile).
// Probabilities in (0, 1], counts ≥ 1, σ > 0; PrivacyError otherwise.
#pragma once

#include <cstdint>

#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {

/// (1 − q) N(0) + q N(2) against N(0). 4.2: q = r, 4.4: q = ρ r, both exact; 4.5 and G.1: q = ρ r × total variation;
/// C.1: q = Λ / records.
[[nodiscard]] DominatingPair one_window_pair(double q, double sigma);

/// λ windows with replacement, upper bound. E.1: ρ = 1; F.1: (1 − ρ) max(0, 1 − α) + ρ H_α of E.1's pair,
/// Σ Bin(i; λ, r) N(2i) against its mirror image.
[[nodiscard]] DominatingPair with_replacement_upper(std::int64_t lambda, double r, double rho, double sigma);
/// λ windows with replacement, optimistic lower bound. 4.3: ρ = 1; F.7:
/// (1 − ρ) N(0) + ρ Σ Bin(i; λ, r) N(2i) against N(0).
[[nodiscard]] DominatingPair with_replacement_optimistic(std::int64_t lambda, double r, double rho, double sigma);

/// Poisson windows at rate r_P = min(1, λ/T). E.8: ρ = 1, exact; F.2: (1 − ρ) max(0, 1 − α) + ρ H_α of E.8's pair,
/// Σ Bin(i; m, r_P) N(i) against its mirror image, upper bound.
[[nodiscard]] DominatingPair poisson_upper(std::int64_t m, double rate, double rho, double sigma);
/// F.8 as printed: (1 − ρ) N(0) + ρ Σ Bin(i; m, r_P) N(i) against N(0); optimistic lower bound.
[[nodiscard]] DominatingPair poisson_optimistic_printed(std::int64_t m, double rate, double rho, double sigma);
/// F.8 as its proof gives it: the same mixture against its mirror image; a stronger optimistic lower bound.
[[nodiscard]] DominatingPair poisson_optimistic_mirrored(std::int64_t m, double rate, double rho, double sigma);

/// C.2: Σ Hypergeom(i; records, W, Λ) N(2i) against N(0): batches of Λ of all windows without replacement, W of them
/// touched; optimistic lower bound.
[[nodiscard]] DominatingPair flat_optimistic(std::int64_t records, std::int64_t window_length, std::int64_t batch_size,
                                             double sigma);

}  // namespace tsdp::privacy
