// Which noise a target needs, and which strategy matrix then disturbs training least.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "privacy/theorems/series_law.h"
#include "tsdp/privacy/matrix/strategy_search.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {

/// (ε, δ) for this many uses.
struct PrivacyTarget {
  double epsilon = 1.0;
  double delta = 1e-7;
  std::uint64_t uses = 1;
};

/// How `auto` composes the uses: adaptively where Theorem tsdp.6 covers them and σ is in the range where that is worth
/// the time: up to 12, beyond which it saves less than a tenth of the steps, and from 3 on, below which a first answer
/// takes more than 20 seconds on two cores. Depends on public facts alone.
[[nodiscard]] StepComposition chosen_composition(const AppliedTheorem& theorem);

/// The same where σ is `auto` as well; theorem_at(σ) is the mechanism with its uses symmetrised. Decided by the σ that
/// the target needs that way: adaptively from 3.5 on, as adaptive composition needs less, so that the noise that is
/// used is in the range too. Throws as calibrate_noise does.
[[nodiscard]] StepComposition chosen_composition(const PrivacyTarget& target,
                                                 const std::function<AppliedTheorem(double)>& theorem_at);

/// The least σ, within a relative `tolerance`, with which the uses stay within the target (PrivacyCurve::stays_within);
/// theorem_at(σ) is the mechanism. It has as many digits as are printed, seven, so that asking with the printed number
/// gives the promised answer. Uses that are composed adaptively take seconds for every σ that is tried, so few are
/// tried: from what the symmetrised composition needs, by the ratio of their ε. Throws as calibrate_noise does.
[[nodiscard]] double least_noise(const PrivacyTarget& target, const std::function<AppliedTheorem(double)>& theorem_at,
                                 double tolerance = 2e-4, double precision = default_precision);

/// (ε, δ) for k ≥ 1 epochs of a law; strategies are planned for k times its batches.
struct NoiseTarget {
  SeriesLaw law;
  std::int64_t epochs = 1;
  double epsilon = 1.0;
  double delta = 1e-7;
};

/// The same for whole series; identity stands for independent noise. Throws as
/// calibrate_noise and series_theorem do.
[[nodiscard]] double least_noise(const NoiseTarget& target, const std::shared_ptr<const Strategy>& strategy,
                                 double tolerance = 2e-4);

/// Tests that are made until one is passed.
inline constexpr int most_sampled_tests = 8;

/// The least σ found, within a few percent, whose draws pass the test of the target (docs/proofs/sampled-noise.md),
/// with the claim that it passed. Without one where none of a few tests is passed: then the σ that is certified without
/// sampling at fallback_share of δ. For correlated noise in bins drawn once; `key_of(i)` draws the key of the i-th
/// test. Takes a minute or so at δ = 1e-5. Throws PrivacyError for other laws, OutOfReach where drawing takes too long,
/// and as least_noise does.
[[nodiscard]] Noise least_sampled_noise(const NoiseTarget& target, const std::shared_ptr<const Strategy>& strategy,
                                        const std::function<SecretKey(int test)>& key_of);

/// A matrix with its σ, and σ² times the mean squared error of its prefix sums (strategy.h): what training feels of the
/// noise, in squares of the clip norm.
struct PricedStrategy {
  SeriesLaw law;  ///< the target's; of cyclic Poisson batches with as many groups as C has bands
  std::shared_ptr<const Strategy> strategy;
  double noise_multiplier = 0.0;
  double total_error = 0.0;
};

/// All kinds that need no file.
[[nodiscard]] std::span<const StrategyKind> searched_kinds();

/// The kind with the least total error; identity where none is looked for (searches_correlated_noise). `sizes`: bands
/// and buffers; its kind is ignored. Cyclic Poisson batches take banded C alone, of 1, 2, 4, … bands up to T, at most
/// 64, in place of the bands in `sizes`.
///
/// Kinds are tried in the order of their error without amplification. With T the least total error so far, another can
/// only be better if it is certified at σ = √(T/mean error), as a certified σ stays certified when it grows; that is
/// checked first.
[[nodiscard]] PricedStrategy least_total_error(const NoiseTarget& target, const WantedStrategy& sizes,
                                               double tolerance = 2e-4);
/// The least of several laws, of which the target's is none; what answers fastest should come first. With
/// `independent`, without correlated noise. Steps that draw more series drown more noise, so what is compared is the
/// total error for every share of the series that a step draws, squared.
[[nodiscard]] PricedStrategy least_total_error(const std::vector<SeriesLaw>& laws, const NoiseTarget& target,
                                               const WantedStrategy& sizes, bool independent, double tolerance = 2e-4);

}  // namespace tsdp::privacy
