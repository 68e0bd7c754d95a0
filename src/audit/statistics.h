// What attacks on a running mechanism say about what is certified for it. No LibTorch.
//
// Units: clip norm C = 1; σ is the noise multiplier. D and D′ are two neighbouring data sets, "first" and "second".
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "audit/attack.h"
#include "tsdp/privacy/accountant/dominating_pair.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::audit {

/// Lower and upper end for a probability after `hits` in `trials` independent trials (Clopper & Pearson 1934): each end
/// fails with probability at most `error`, 0 < error < 1, trials ≥ 1.
[[nodiscard]] privacy::Interval share_bracket(std::uint64_t hits, std::uint64_t trials, double error);

/// One use of the mechanism, as the attacker sees it.
struct Release {
  float along = 0.0F;
  float across = 0.0F;
  float blank = 0.0F;  ///< along a direction of its own, chosen so that gradients have little there; canary: none
  std::int32_t touched =
      -1;  ///< touched windows in the batch, as the auditor (not the attacker) counted them; −1: not known
};

/// What was seen: uses on D and on D′, in the order they were made.
struct Observations {
  std::vector<Release> first, second;
  std::uint64_t repeats = 0;  ///< releases equal to the one before them in every coordinate
  std::uint64_t strays = 0;  ///< batches with touched windows that, by the scheme, cannot have any
};

/// What is certified for the attacked mechanism.
struct Claim {
  std::string theorem;
  double noise_multiplier = 0.0;
  /// The theorem's pair for this scheme and relation at any noise multiplier in [0.01, 1e6].
  std::function<privacy::DominatingPair(double sigma)> pair_at;
  Shape shape;
  /// Whether `shape` is exactly the law of the releases at the certified noise multiplier, not only close to it.
  bool shape_is_exact = true;
  /// Whether all uses of a run leak in the same direction: whole series, which are there or missing throughout.
  bool one_direction = false;
  /// Chance of a batch with touched windows; none: not known.
  std::optional<double> touched_share = std::nullopt;
  double delta = 0.0;
  std::uint64_t uses = 1;  ///< of the whole run
  privacy::Interval epsilon = {};  ///< of the whole run, as certified
  std::optional<double> one_use = std::nullopt;  ///< ε of a single use, as certified; none: that of the pair
};

/// One event as it was measured.
struct Measured {
  double threshold = 0.0;
  privacy::Interval first, second;  ///< brackets of P(S | D) and P(S | D′)
  std::optional<double> law_first, law_second;  ///< according to the claim's shape and noise
};

/// What the audit found.
struct Verdict {
  /// lower: what the theorem gives for the whole run at noise_multiplier.upper; upper: what is certified.
  privacy::Interval epsilon;
  /// Noise multipliers that the measurement allows; 0 and infinity where it bounds nothing.
  privacy::Interval noise_multiplier{0.0, std::numeric_limits<double>::infinity()};
  /// For a single use, without any assumption: its ε at δ is at least this.
  double direct_epsilon = 0.0;
  double direct_upper = 0.0;  ///< the certified ε of a single use at δ
  std::optional<privacy::Interval> touched;  ///< bracket of the share of batches with touched windows
  std::vector<Measured> events;
  std::vector<std::string> contradictions;  ///< one line each; empty: nothing found
  std::vector<std::string> remarks;  ///< departures that do not cost privacy
  [[nodiscard]] bool contradicted() const { return !contradictions.empty(); }
};

/// Checks observations against a claim. With probability at least `confidence` (in (0, 1)) everything found is true,
/// that is, a healthy mechanism has no contradiction and the brackets hold the truth:
///
/// **Brackets.** The claim fixes E events S before anything is measured. Uses are independent (streams are keyed by
/// step), so every P(S | D) and P(S | D′) is bracketed by Clopper–Pearson, each of its two ends at error (1 −
/// confidence)/(4 E + 9). The same holds for the share of batches with touched windows, of pairs of uses whose blank
/// coordinates agree in sign, of pairs that agree in having touched windows, and for the lower ends of three shares
/// P(|blank| ≤ h). By Bonferroni all of them hold at once.
///
/// **Certificate** (assumes nothing else). The theorem says H_α(D′‖D), H_α(D‖D′) ≤ δ(log α) for a single use. It is
/// contradicted if for some event A (an S or its complement), some ε ≥ 0 and the data sets in some order
///     P_low(A | one) > e^ε P_high(A | other) + δ(ε),
/// where δ is the upper end of the pair's profile. Directly, ε of a single use at δ is at least log((P_low(A | one) −
/// δ)/P_high(A | other)).
///
/// **Noise multiplier.** Assumption: a use is a member, at some noise multiplier σ′, of the family whose profile at σ′
/// is at most the theorem's at σ′. Then σ′ is below every s at which the theorem's profile is contradicted (that
/// profile falls in s), so σ′ < s* = inf of those s. If the claim's shape is exact, the assumption is that the release
/// has this shape with some noise multiplier σ′ within a factor Attack::fit_range of the certified one. Then σ′ is
/// among those at which every P_σ′(S | ·) lies in its bracket (searched on a grid of 5 % and by bisection at the ends).
/// Also, whatever gradients add to it, independent noise N(0, σ′²) keeps a coordinate within ±h with probability at
/// most 2 Φ(h/σ′) − 1 (Anderson 1955; assumption: noise of one deviation in every direction). Measured shares of
/// |blank| ≤ h bound this from below, and so bound σ′ from above. The upper end is the least of the three. As the
/// theorem's ε falls in the noise multiplier, ε of the whole run at the upper end is at most what the theorem gives for
/// what runs: Verdict::epsilon.lower. It bounds the theorem's number, not what an attacker reaches: that may be less
/// where the theorem is an upper bound, and where composing its symmetrised profile is one (4.2, 4.4).
///
/// **Repeats.** If the claim's shape is exact, blank coordinates are symmetric noise: those of independent uses
/// 2 j, 2 j + 1 agree in sign with probability exactly 1/2. Releases equal in every coordinate do not occur (chance
/// below 2⁻⁴⁰ for a pair of eight coordinates).
///
/// Throws PrivacyError as the accountant does.
[[nodiscard]] Verdict judge(const Claim& claim, const Observations& observations, double confidence);

}  // namespace tsdp::audit
