// How far noise on a model's inputs hides a change from the gradients (docs/proofs/augmentation.md).
#pragma once

#include <cstdint>

#include "tsdp/privacy/terms/scheme.h"

namespace tsdp::privacy {

/// Total variation between the laws of a noised window and of its neighbour's, which differ in `context` steps of the
/// context and `forecast` steps of the forecast by at most v each (in the ℓ₂ norm of the step):
///   2Φ(½ √(context/σ_C² + forecast/σ_F²)) − 1,
/// 1 where a step without noise differs, 0 where none differs. Noises in multiples of v.
[[nodiscard]] double noised_window_variation(std::int64_t context, std::int64_t forecast, double context_noise,
                                             double forecast_noise);

/// An upper bound of the chance that a uniformly drawn, noised window of a series of `length` tells neighbours apart:
///   (1/T) max over placements of the change of Σ_t noised_window_variation(c_t, f_t),
/// c_t and f_t the numbers of changed steps in context and forecast of window t. For the event relation the maximum is
/// exact; for the user relation it is bounded by min(w · that of one step, m · that of the most telling window).
/// Rounded up. Throws as touched_windows, and UsageError if L_C + L_F + w passes 1e8.
[[nodiscard]] double noised_share(std::int64_t length, std::int64_t context_length, std::int64_t forecast_length,
                                  const PrivacyUnit& unit, double context_noise, double forecast_noise);

/// The largest over the series of `scheme`.
[[nodiscard]] double noised_share(const SubsamplingScheme& scheme, const PrivacyUnit& unit);

}  // namespace tsdp::privacy
