// Noise on a model's inputs and targets, as the theorems about it define it (paper, §4.3; docs/proofs/augmentation.md).
#pragma once

#include <cstdint>

#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/random/random.h"

namespace tsdp::sampling {

/// Purpose name of its stream.
inline constexpr const char* augmentation_purpose = "augmentation";

/// Adds fresh N(0, σ_C²v²) to every observed context value and N(0, σ_F²v²) to every observed forecast value of each
/// window: values and observed are (windows, past + future), row-major. Padding and missing values hold no data and
/// stay 0. `stream` = (key, augmentation_purpose, step). Does nothing if both noises are 0. For training without
/// privacy: the values were rounded to single precision before.
void augment(const privacy::SubsamplingScheme& scheme, double v, const RandomStream& stream, std::int64_t windows,
             std::int64_t past_length, float* values, const float* observed);

/// The noise that the theorems about noise on the data cover: `values` become `exact` with noise (both
/// (windows, past + future), row-major), 0 where not observed. Every observed value, a double as it was read, is cut to
/// |x| ≤ 2³² v before its noise is added, and deviations are σ v̄ instead of σ v, with v̄ = Contraction(v).reach():
/// values in the file that differ by v then differ by at most v̄. Rounding to single precision comes after the noise.
/// Throws UsageError for a v that Contraction refuses.
void augment(const privacy::SubsamplingScheme& scheme, double v, const RandomStream& stream, std::int64_t windows,
             std::int64_t past_length, const double* exact, float* values, const float* observed);

}  // namespace tsdp::sampling
