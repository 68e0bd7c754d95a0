// Rényi divergences from privacy profiles, and what sums of them pay for (docs/proofs/budget.md).
#pragma once

#include <span>
#include <vector>

#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {

/// The orders α > 1 that budgets keep count of.
[[nodiscard]] const std::vector<double>& renyi_orders();

/// Upper bounds of the Rényi divergence of every order in `orders` (each in (1, 1024]) between the outputs of one use
/// of a mechanism on neighbouring data sets, in either direction, where the symmetrised profile H of `pair` dominates
/// it:
///   D_α ≤ log(1 + α(α−1) ∫_0^∞ (e^{(α−1)ε} + e^{−αε}) H(e^ε) dε) / (α − 1).
/// *Proof.* t^α as an integral of hockey sticks; budget.md, Lemma 1. +∞ where it exceeds `largest_renyi`. Rounded up: H
/// is convex in e^ε, so chords of its upper ends bound it between points, and beyond the last point a moment bounds it.
[[nodiscard]] std::vector<double> renyi_divergences(const DominatingPair& pair, std::span<const double> orders);

/// Divergences above this are of no use in any budget.
inline constexpr double largest_renyi = 1e3;

/// The most that the divergences of order α of all uses may sum up to if together they are to cost at most (ε, δ),
/// whatever is chosen after seeing earlier releases, with one of `orders` orders left at the end:
///   B(α) = ε + (log(δ/orders) − log c(α−1)) / (α − 1),   c(θ) = θ^θ (1+θ)^{−(1+θ)}
/// (budget.md, Theorem 1), rounded down; may be negative: that order then pays for nothing. Throws PrivacyError unless
/// ε > 0, 0 < δ < 1, α > 1, orders ≥ 1.
[[nodiscard]] double renyi_budget(double order, double epsilon, double delta, std::size_t orders);

}  // namespace tsdp::privacy
