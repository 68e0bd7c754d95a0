// Draws the windows of a step, exactly as the scheme says (paper, Algorithms 3–6).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tsdp/core/random.h"
#include "tsdp/data/windows.h"
#include "tsdp/sampling/scheme.h"

namespace tsdp::sampling {

/// Purpose names of the streams a run draws from.
inline constexpr const char* sampling_purpose = "sampling";
inline constexpr const char* augmentation_purpose = "augmentation";
inline constexpr const char* order_purpose = "order of an epoch";

/// The windows of a step.
struct Draw {
  std::vector<data::WindowIndex> windows;
  /// For each window its place in the batch, 0 … Sampler::places() − 1, ascending: the place of its series among those drawn,
  /// and which part of the series' windows it is from. Places with no window occur. A window's place does not hang on which
  /// others were drawn: neighbouring data sets have it in common.
  std::vector<std::int64_t> places;
};

/// The batches of one scheme. A batch is a function of (key, step) alone, through the streams that the caller makes of
/// them; there is no state between steps.
class Sampler {
 public:
  explicit Sampler(SubsamplingScheme scheme);

  [[nodiscard]] const SubsamplingScheme& scheme() const noexcept { return scheme_; }
  /// Places of a batch, at least one a series: each is expected to hold at most 64 windows.
  [[nodiscard]] std::int64_t places() const noexcept { return scheme_.sequences_per_batch() * parts_of_a_series(); }

  /// The stream of an epoch's order: (key, order_purpose, epoch).
  using OrderOf = std::function<RandomStream(std::uint64_t epoch)>;

  /// The windows of step `step` (0-based, over all epochs), from `stream` = (key, sampling_purpose, step) and, shuffled,
  /// from `order` of the step's epoch, which other schemes do not ask for. Throws Error for a shuffled scheme without it.
  ///
  /// Top level (N′ series): deterministic: series b N′ … b N′ + N′ − 1, b = step mod steps per epoch, so that no series
  /// occurs twice in an epoch; shuffled: the same places of a uniform order of the epoch's own; without replacement: a
  /// fresh uniform N′-subset for every step. Bottom level in each of
  /// them, with T windows: with replacement: λ independent uniform windows; Poisson: every window independently with
  /// probability min(1, λ/T). All laws are exact up to the uniform bits, except that Poisson skips are computed in
  /// double precision (a window's probability p is off by at most 2e-16/p of itself: below 1e-11 for up to 50,000 windows).
  [[nodiscard]] Draw draw_places(std::uint64_t step, RandomStream& stream, const OrderOf& order = {});
  /// Its windows alone.
  [[nodiscard]] std::vector<data::WindowIndex> draw(std::uint64_t step, RandomStream& stream, const OrderOf& order = {}) {
    return draw_places(step, stream, order).windows;
  }

 private:
  [[nodiscard]] std::int64_t parts_of_a_series() const noexcept {
    return (scheme_.parameters().subsequences_per_sequence + 63) / 64;
  }

  SubsamplingScheme scheme_;
  std::vector<std::int64_t> order_;  // identity between calls
};

/// Adds fresh N(0, σ_C²v²) to every observed context value and N(0, σ_F²v²) to every observed forecast value of each
/// window: values and observed are (windows, past + future), row-major. Padding and missing values hold no data and
/// stay 0. `stream` = (key, augmentation_purpose, step). Does nothing where both noises are 0. For training without privacy:
/// values were rounded to single precision before.
void augment(const SubsamplingScheme& scheme, double v, const RandomStream& stream, std::int64_t windows,
             std::int64_t past_length, float* values, const float* observed);

/// What theorems about noise on the data are about: `values` become `exact` with noise (both (windows, past + future),
/// row-major), 0 where not observed. Every observed value, a double as it was read, is cut to |x| ≤ 2³² v before its noise
/// is added, and deviations are σ v̄ in place of σ v, v̄ = Contraction(v).reach(): values in the file that differ by v differ
/// by at most v̄ then. Single precision comes behind the noise. Throws UsageError for a v that Contraction refuses.
void augment(const SubsamplingScheme& scheme, double v, const RandomStream& stream, std::int64_t windows,
             std::int64_t past_length, const double* exact, float* values, const float* observed);

}  // namespace tsdp::sampling
