// The private choice between a trained model and its start, by how likely each makes the validation windows.
#pragma once

#include <cstdint>
#include <string>

#include "tsdp/privacy/terms/terms.h"
#include "tsdp/privacy/theorems/theorems.h"
#include "tsdp/random/random.h"

namespace tsdp::mechanism {

inline constexpr const char* choice_purpose = "choice";
/// The most nats per value by which one series speaks for either model.
inline constexpr double choice_bound = 0.25;
/// Scores are whole multiples of choice_bound / choice_unit, so that their sum is exact.
inline constexpr std::int64_t choice_unit = std::int64_t{1} << 20;
/// The least ε₂: below it, a choice is a coin toss.
inline constexpr double least_choice_epsilon = 1e-4;

/// One series' score, in [−choice_unit, choice_unit]: mean loss of its validation windows (nats per value) under the
/// trained model minus that under the start, clipped to ±choice_bound and rounded. Positive: the trained model is
/// worse. A loss that is not finite loses; two are a draw.
[[nodiscard]] std::int64_t choice_score(double trained_loss, double start_loss);

/// log P[trained] − log P[start], with `sum` that of all series' scores:
///   clamp(−(ε₂ − 1e-6) · sum / (2 choice_unit), −20, 20).
/// Theorem tsdp.7 (docs/proofs/private-choice.md): neighbours that differ in values of one series change `sum` by at
/// most 2 choice_unit, so the choice is ε₂-differentially private. The 1e-6 pays for floating point and for the 53 bits
/// of the draw.
[[nodiscard]] double log_odds_of_trained(std::int64_t sum, double epsilon);

/// The cost of a run of `theorem` that ends with a choice of `epsilon`. Throws PrivacyError for the relation series and
/// for bounds from below, UsageError for an epsilon below least_choice_epsilon.
[[nodiscard]] privacy::AppliedTheorem followed_by_choice(privacy::AppliedTheorem theorem, privacy::Relation relation,
                                                         double epsilon);

/// The text that follows the theorem of the steps: " and tsdp.7 for a private choice of epsilon …"; empty for 0.
[[nodiscard]] std::string choice_cited(double epsilon);

/// The choice: true keeps the trained model. Drawn from the key's stream of `choice_purpose`: the same key draws the
/// same again.
[[nodiscard]] bool keeps_trained(std::int64_t sum, double epsilon, const SecretKey& key);

}  // namespace tsdp::mechanism
