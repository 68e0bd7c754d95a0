// The terms in which a private mechanism is stated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tsdp/base/names.h"
#include "tsdp/random/random.h"

namespace tsdp::privacy {

/// Largest length and count that is accepted anywhere.
inline constexpr std::int64_t largest_count = 1'000'000'000;

/// How the series of a step are drawn. `deterministic`: in turn. `wor`: a fresh sample without replacement. `shuffled`:
/// in turn, in a random order. `poisson`: each by a coin of its own. `cyclic_poisson`: the same, but only every p-th
/// step, with a coin that shows heads p times as often: series s in the steps t with t mod p = s mod p.
/// `balls_in_bins`: each in one bin (Redraw); a step is a bin.
enum class TopLevel {
  deterministic,
  without_replacement,
  shuffled,
  poisson,
  cyclic_poisson,
  balls_in_bins
};
constexpr Names<TopLevel, 6> names_of(TopLevel) {
  return {{{TopLevel::without_replacement, "wor"},
           {TopLevel::deterministic, "deterministic"},
           {TopLevel::shuffled, "shuffled"},
           {TopLevel::poisson, "poisson"},
           {TopLevel::cyclic_poisson, "cyclic_poisson"},
           {TopLevel::balls_in_bins, "balls_in_bins"}}};
}
/// Whether every epoch of shuffled batches has an order of its own.
enum class Reshuffle {
  every_epoch,
  once
};
constexpr Names<Reshuffle, 2> names_of(Reshuffle) {
  return {{{Reshuffle::every_epoch, "every_epoch"}, {Reshuffle::once, "once"}}};
}
/// Whether bins are drawn once for the whole run, or anew in every epoch.
enum class Redraw {
  once,
  every_epoch
};
constexpr Names<Redraw, 2> names_of(Redraw) { return {{{Redraw::once, "once"}, {Redraw::every_epoch, "every_epoch"}}}; }
enum class BottomLevel {
  with_replacement,
  poisson
};
constexpr Names<BottomLevel, 2> names_of(BottomLevel) {
  return {{{BottomLevel::with_replacement, "wr"}, {BottomLevel::poisson, "poisson"}}};
}
/// How the steps of value-level rows are composed: as dominating pairs that may leak in both directions at once, or as
/// what an adaptive adversary can truly make of them (tsdp.6, adaptive_curve.h).
enum class StepComposition {
  symmetrised,
  adaptive
};
constexpr Names<StepComposition, 2> names_of(StepComposition) {
  return {{{StepComposition::symmetrised, "symmetrised"}, {StepComposition::adaptive, "adaptive"}}};
}
/// What is clipped as one: every window by itself, or the sum of all windows of a series that a step draws.
enum class Record {
  window,
  series
};
constexpr Names<Record, 2> names_of(Record) { return {{{Record::window, "window"}, {Record::series, "series"}}}; }
enum class Relation {
  event,
  user,
  series
};
constexpr Names<Relation, 3> names_of(Relation) {
  return {{{Relation::event, "event"}, {Relation::user, "user"}, {Relation::series, "series"}}};
}

/// What two neighbouring data sets may differ in. Event and user (paper §1): one series, in places within w consecutive
/// steps or in any w places, each value by at most v if v is given. Series: one whole series, present or absent
/// (zero-out), or all series of one owner; w and v do not apply.
struct PrivacyUnit {
  Relation relation = Relation::event;
  std::int64_t w = 1;
  std::optional<double> v;
  /// For relation series: SHA-256 of which series belong together; empty if every series is on its own.
  std::string owners = {};
  /// V: what a series has at one step is V values, of as many variables, all of which may differ there.
  std::int64_t variables = 1;

  bool operator==(const PrivacyUnit&) const = default;
};

/// How a record's gradient is bounded: scaled down to the clip norm where it is longer; each of M layers on its own, to
/// the clip norm / √M; or every gradient g scaled by the clip norm / (|g| + 0.01).
enum class ClippingKind {
  flat,
  per_layer,
  automatic
};
constexpr Names<ClippingKind, 3> names_of(ClippingKind) {
  return {
      {{ClippingKind::flat, "flat"}, {ClippingKind::per_layer, "per_layer"}, {ClippingKind::automatic, "automatic"}}};
}

/// The bound on what a record adds to the sum of a step.
struct Clipping {
  ClippingKind kind = ClippingKind::flat;
  double norm = 1e-4;  ///< C > 0

  bool operator==(const Clipping&) const = default;
};

/// How the noises of different steps are related: not at all, or as C⁻¹Z for a strategy matrix C (strategy.h).
enum class NoiseKind {
  independent,
  correlated
};
constexpr Names<NoiseKind, 2> names_of(NoiseKind) {
  return {{{NoiseKind::independent, "independent"}, {NoiseKind::correlated, "correlated"}}};
}

class Strategy;

/// (ε, δ) for all planned epochs of balls in bins, by a test that draws from `key`, which is public and was drawn after
/// the settings were made (docs/proofs/sampled-noise.md). Whoever relies on it repeats the test.
struct SampledClaim {
  double epsilon = 0.0;
  double delta = 0.0;
  SecretKey key;

  bool operator==(const SampledClaim&) const = default;
};

/// Gaussian noise on the sum of a step.
struct Noise {
  NoiseKind kind = NoiseKind::independent;
  double multiplier =
      1.0;  ///< σ: the standard deviation of Z in multiples of the clip norm; nothing is normalised by C
  std::shared_ptr<const Strategy> strategy = nullptr;  ///< of correlated noise only
  std::optional<SampledClaim> sampled = {};  ///< how `multiplier` was found, where it was by sampling
};

/// Correlated noise by `strategy`; independent noise if it is null.
[[nodiscard]] inline Noise noise_by(std::shared_ptr<const Strategy> strategy, double multiplier,
                                    std::optional<SampledClaim> sampled = {}) {
  return {strategy ? NoiseKind::correlated : NoiseKind::independent, multiplier, std::move(strategy),
          std::move(sampled)};
}

}  // namespace tsdp::privacy
