// The subsampling scheme as one value. Two things are made from it and nothing else: the sampler that draws the
// batches (sampling/batch_sampler.h) and what the accountant composes (theorems.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tsdp/privacy/terms.h"

namespace tsdp::privacy {

/// The lengths of N series; public. Either each is known, or only how many there are and which lengths occur, which is all
/// that theorems ask for and that a ledger holds.
class SeriesLengths {
 public:
  SeriesLengths() = default;
  SeriesLengths(std::vector<std::int64_t> each);  // NOLINT: lengths are what a list of numbers is here
  SeriesLengths(std::initializer_list<std::int64_t> each) : SeriesLengths(std::vector<std::int64_t>(each)) {}
  /// `count` series of one length.
  [[nodiscard]] static SeriesLengths equal(std::int64_t count, std::int64_t length) { return between(count, length, length); }
  /// `count` series, the shortest and the longest of which have these lengths. Of two lengths the last series has the longest.
  [[nodiscard]] static SeriesLengths between(std::int64_t count, std::int64_t shortest, std::int64_t longest);

  /// N.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t shortest() const { return distinct_.front(); }
  [[nodiscard]] std::int64_t longest() const { return distinct_.back(); }
  /// Those that occur, ascending; at most N.
  [[nodiscard]] const std::vector<std::int64_t>& distinct() const noexcept { return distinct_; }
  /// L of one series.
  [[nodiscard]] std::int64_t operator[](std::int64_t series) const;

 private:
  std::int64_t count_ = 0;
  std::vector<std::int64_t> distinct_;
  std::vector<std::int64_t> each_;  // empty where all but the last have the shortest
};

/// Structured subsampling (paper, Algorithms 1–6): first whole series, then windows inside them.
class SubsamplingScheme {
 public:
  struct Parameters {
    SeriesLengths lengths;                      ///< L of every training series, N ≥ 1 of them
    std::int64_t context_length = 1;            ///< L_C ≥ 1: all past steps that can influence a window's gradient
    std::int64_t forecast_length = 1;           ///< L_F ≥ 1
    std::int64_t batch_size = 1;                ///< Λ ≥ 1: expected windows a step, and the divisor of every step
    std::int64_t subsequences_per_sequence = 1; ///< λ, 1 ≤ λ ≤ Λ
    TopLevel top_level = TopLevel::without_replacement;
    BottomLevel bottom_level = BottomLevel::with_replacement;
    double context_noise = 0.0;                 ///< σ_C ≥ 0, standard deviation in multiples of v
    double forecast_noise = 0.0;                ///< σ_F ≥ 0, likewise
  };

  /// Throws UsageError or PrivacyError naming the condition that is broken.
  explicit SubsamplingScheme(Parameters parameters);

  [[nodiscard]] const Parameters& parameters() const noexcept { return parameters_; }
  /// N.
  [[nodiscard]] std::int64_t sequences() const noexcept { return parameters_.lengths.count(); }
  /// N′ = min(N, ⌊Λ/λ⌋): series in a batch. Capped, since a sample without replacement has at most N.
  [[nodiscard]] std::int64_t sequences_per_batch() const noexcept;
  /// max(1, ⌊N λ/Λ⌋). Under deterministic iteration the series after the last full batch are not used.
  [[nodiscard]] std::int64_t steps_per_epoch() const noexcept;
  /// T = L − L_F + 1 of one series: the number of its windows.
  [[nodiscard]] std::int64_t windows_of(std::int64_t series) const;
  /// Expected number of windows a step; the divisor of the noisy sum is Λ nevertheless.
  [[nodiscard]] std::int64_t expected_windows() const noexcept;
  [[nodiscard]] bool has_noise_on_data() const noexcept {
    return parameters_.context_noise > 0.0 || parameters_.forecast_noise > 0.0;
  }

  /// Parts of a drawn series' windows, each of which is expected to hold at most 64.
  [[nodiscard]] std::int64_t parts_of_a_series() const noexcept { return (parameters_.subsequences_per_sequence + 63) / 64; }
  /// Places of a batch: parts of each of its series. A window's place is public, as it hangs on no other window.
  [[nodiscard]] std::int64_t places() const noexcept { return sequences_per_batch() * parts_of_a_series(); }
  /// Whether every place holds the same number of windows in every batch, or what coins say.
  [[nodiscard]] bool has_fixed_windows() const noexcept { return parameters_.bottom_level == BottomLevel::with_replacement; }

 private:
  Parameters parameters_;
};

}  // namespace tsdp::privacy
