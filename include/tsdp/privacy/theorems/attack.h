// What a differential-privacy guarantee says about the best possible attacker.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

/// Bounds on every test that guesses from all releases which of two neighbouring data sets was used, whatever it knows
/// and computes. With δ(ε) the composed profile and α the false-positive rate, a test's true-positive rate is at most
/// e^ε α + δ(ε) for every ε, by the definition of (ε, δ)-differential privacy (Wasserman & Zhou 2010, Thm. 2.4; Dong,
/// Roth & Su 2022, Prop. 2.12). So upper bounds on δ give upper bounds here, at any ε that is tried.
struct AttackBound {
  double advantage;            ///< true- minus false-positive rate, at most δ(0), in [0, 1]
  double false_positive_rate;  ///< α
  double true_positive_rate;   ///< at most, in [α, 1]
};

/// The bounds after `uses` uses, 0 < false_positive_rate < 1. `precision` as for PrivacyCurve::delta.
[[nodiscard]] AttackBound attack_bound(PrivacyCurve& curve, std::uint64_t uses, double false_positive_rate = 1e-3,
                                       double precision = 1e-2);

/// A bound as a statement gives it: larger by a millionth (and at most 1), so that computing it again on a machine that
/// rounds differently gives no more than is stated.
[[nodiscard]] AttackBound stated(const AttackBound& bound);

/// Upper bounds on the true-positive rate of every test at each of the false-positive rates α in [0, 1] after `uses`
/// uses: the least, over a grid of ε, of e^ε α + δ(ε) and of 1 − e^(−ε) (1 − α − δ(ε)); the latter is the former with
/// the data sets exchanged and the test's answers reversed. Never below α nor above 1. A curve for plotting, a little
/// less tight than attack_bound.
[[nodiscard]] std::vector<double> trade_off(PrivacyCurve& curve, std::uint64_t uses, std::span<const double> rates,
                                            double precision = 1e-2);

}  // namespace tsdp::privacy
