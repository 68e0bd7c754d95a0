// The subsampling scheme as one value. Two things are made from it and nothing else: the sampler that draws the
// batches (sampling/structured_sampler.h) and what the accountant composes (theorems.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "tsdp/privacy/terms/terms.h"

namespace tsdp::privacy {

/// Whose each of N series is, numbered from 0 in the order of their first series, and a SHA-256 of which series have
/// the same owner, whatever order they come in.
struct Owners {
  std::vector<std::int64_t> of;
  std::string grouping;
};

/// The lengths of N series, and whose they are; public. Either each is known, or only how many there are and which
/// lengths occur, which is all that theorems ask for and that a ledger holds.
class SeriesLengths {
 public:
  SeriesLengths() = default;
  SeriesLengths(std::vector<std::int64_t> each);  // NOLINT: lengths are what a list of numbers is here
  SeriesLengths(std::initializer_list<std::int64_t> each) : SeriesLengths(std::vector<std::int64_t>(each)) {}
  /// The same with owners. Throws UsageError for numbers that are not as Owners has them.
  SeriesLengths(std::vector<std::int64_t> each, Owners owners);
  /// `count` series of one length.
  [[nodiscard]] static SeriesLengths equal(std::int64_t count, std::int64_t length) {
    return between(count, length, length);
  }
  /// `count` series, the shortest and the longest of which have these lengths. If these differ, the last series has the
  /// longest. With `owners`, that many own them, grouped so.
  [[nodiscard]] static SeriesLengths between(std::int64_t count, std::int64_t shortest, std::int64_t longest,
                                             std::optional<std::int64_t> owners = std::nullopt,
                                             std::string grouping = {});

  /// The same series, each of which has `variables` variables with the same steps. Throws UsageError unless there is
  /// one or more.
  [[nodiscard]] SeriesLengths of_variables(std::int64_t variables) const;

  /// N.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// V.
  [[nodiscard]] std::int64_t variables() const noexcept { return variables_; }
  /// Whether series have owners, who may have several.
  [[nodiscard]] bool has_owners() const noexcept { return owners_.has_value(); }
  /// How many owners there are: N without owners.
  [[nodiscard]] std::int64_t owners() const noexcept { return owners_.value_or(count_); }
  /// Which series have the same owner; empty where that is not known.
  [[nodiscard]] const Owners& grouped() const noexcept { return grouped_; }
  /// The series of one owner, ascending. Only where each is known.
  [[nodiscard]] const std::vector<std::int64_t>& series_of(std::int64_t owner) const {
    return owned_.at(static_cast<std::size_t>(owner));
  }
  [[nodiscard]] std::int64_t shortest() const { return distinct_.front(); }
  [[nodiscard]] std::int64_t longest() const { return distinct_.back(); }
  /// The lengths that occur, ascending; at most N.
  [[nodiscard]] const std::vector<std::int64_t>& distinct() const noexcept { return distinct_; }
  /// L of one series.
  [[nodiscard]] std::int64_t operator[](std::int64_t series) const;

 private:
  std::int64_t count_ = 0;
  std::vector<std::int64_t> distinct_;
  std::vector<std::int64_t> each_;  // empty where all but the last have the shortest
  std::optional<std::int64_t> owners_;
  std::int64_t variables_ = 1;
  Owners grouped_;
  std::vector<std::vector<std::int64_t>> owned_;  // the series of each owner
};

/// Where a run may continue under a new key, which draws other batches from there on: at any step, if steps are drawn
/// separately or in no secret order; where an epoch begins, if its order must be a single one; or nowhere, if the whole
/// run is one draw.
enum class NewKey {
  at_any_step,
  at_next_epoch,
  never
};

/// Structured subsampling (paper, Algorithms 1–6): first whole series, then windows inside them.
///
/// Records are windows, or whole series: then a drawn series' windows are summed, divided by λ, and clipped as one.
/// Where series have V variables (paper, Appendix I: a step is a vector), a window of a series is one of each variable,
/// at the same steps: V windows, whose mean gradient takes the place of one window's. They are drawn together and are
/// in one record, so neighbours that differ in all variables of a step differ in no more records than else.
/// Where series have owners, "series" below means all series of one owner: λ windows are drawn from all of them.
/// Epochs of batches in turn leave out the series after the last full batch where records are windows; where they are
/// series, ghosts that contribute nothing fill the last batch.
class SubsamplingScheme {
 public:
  struct Parameters {
    SeriesLengths lengths;  ///< L of every training series, N ≥ 1 of them
    std::int64_t context_length = 1;  ///< L_C ≥ 1: all past steps that can influence a window's gradient
    std::int64_t forecast_length = 1;  ///< L_F ≥ 1
    /// Λ ≥ 1: expected windows per step. Follows from `batches` or `rate` if one of them is given.
    std::int64_t batch_size = 1;
    std::int64_t subsequences_per_sequence = 1;  ///< λ, 1 ≤ λ ≤ Λ
    TopLevel top_level = TopLevel::without_replacement;
    BottomLevel bottom_level = BottomLevel::with_replacement;
    double context_noise = 0.0;  ///< σ_C ≥ 0, standard deviation in multiples of v
    double forecast_noise = 0.0;  ///< σ_F ≥ 0, likewise
    Record record = Record::window;
    Reshuffle reshuffle = Reshuffle::every_epoch;  ///< for shuffled batches
    Redraw redraw = Redraw::once;  ///< for balls in bins
    std::int64_t groups = 1;  ///< p of cyclic Poisson batches, 1 ≤ p ≤ T
    std::optional<std::int64_t> batches = {};  ///< T: steps of an epoch; for whole series, 1 ≤ T ≤ N
    std::optional<double> rate = {};  ///< q in (0, 1]: for Poisson batches of series
    /// B: series in a batch at most, at least the expected number; where coins or bins draw whole series. A batch with
    /// more is cut. None: as many as are drawn.
    std::optional<std::int64_t> largest_batch = {};
  };

  /// Throws UsageError or PrivacyError naming the condition that is broken.
  explicit SubsamplingScheme(Parameters parameters);

  [[nodiscard]] const Parameters& parameters() const noexcept { return parameters_; }
  /// N: series, or owners of series where there are some.
  [[nodiscard]] std::int64_t sequences() const noexcept { return parameters_.lengths.owners(); }
  /// N′ = min(N, ⌊Λ/λ⌋), or ⌈N/T⌉: series in a batch. Capped, since a sample without replacement has at most N. For
  /// Poisson batches and bins, the expected number, rounded.
  [[nodiscard]] std::int64_t sequences_per_batch() const noexcept;
  /// ρ: the chance that a series is in a batch: N′/N in a sample without replacement, 1/T in a bin. Poisson:
  /// min(1, Λ/(λN)), or the given rate, raised to a multiple of 2⁻⁵³, which is the chance that its coin has. Cyclic
  /// Poisson: the same, on average over steps.
  [[nodiscard]] double drawn_share() const noexcept;
  /// The chance that a series' coin shows heads: ρ of Poisson batches; min(1, pρ), raised likewise, of cyclic ones.
  [[nodiscard]] double coin() const noexcept;
  /// Expected number of series per step: N′; for Poisson and bins, ρ N. A fixed batch with ghosts in it counts as N′.
  [[nodiscard]] double expected_sequences() const noexcept;
  /// Whether coins or bins decide how many series a batch has.
  [[nodiscard]] bool draws_each_series() const noexcept {
    return parameters_.top_level == TopLevel::poisson || parameters_.top_level == TopLevel::cyclic_poisson ||
           parameters_.top_level == TopLevel::balls_in_bins;
  }
  /// T: as given, or max(1, ⌊N λ/Λ⌋). For fixed batches of whole series ⌈N/N′⌉, for a Poisson rate max(1, ⌊1/q⌋).
  [[nodiscard]] std::int64_t steps_per_epoch() const noexcept;
  [[nodiscard]] NewKey new_key() const noexcept;
  /// T = L − L_F + 1 of one series: the number of its windows. Of an owner: of all their series together.
  [[nodiscard]] std::int64_t windows_of(std::int64_t sequence) const;
  /// V.
  [[nodiscard]] std::int64_t variables() const noexcept { return parameters_.lengths.variables(); }
  /// Whether a record may have several windows, which are clipped as one.
  [[nodiscard]] bool joins_windows() const noexcept { return parameters_.record == Record::series || variables() > 1; }
  /// A window of the data: the number of its series, and the place of its first forecast value (0 ≤ place ≤ L − L_F).
  struct Window {
    std::int64_t series;
    std::int64_t place;
  };
  /// Window `number` (0 ≤ number < windows_of) of a sequence. An owner's windows are counted series by series.
  [[nodiscard]] Window window_of(std::int64_t sequence, std::int64_t number) const;
  /// Expected number of windows a step, rounded up, those of all variables; the divisor of the noisy sum of windows is
  /// Λ nevertheless.
  [[nodiscard]] std::int64_t expected_windows() const noexcept;
  /// Windows of a step on average, those of all variables counted once: what a reader is told.
  [[nodiscard]] double mean_windows() const noexcept;
  /// The most windows that a step can have, λ V of each of its series; none if only chance limits them.
  [[nodiscard]] std::optional<std::int64_t> most_windows() const noexcept;
  /// What the noisy sum of the records of a step is divided by: Λ for windows; for series, their expected number.
  [[nodiscard]] double divisor() const noexcept {
    return parameters_.record == Record::window ? static_cast<double>(parameters_.batch_size) : expected_sequences();
  }
  /// What the sum of a record's windows is multiplied by: 1/V, and 1/(λV) for series.
  [[nodiscard]] double record_scale() const noexcept {
    const auto windows = parameters_.record == Record::window ? 1 : parameters_.subsequences_per_sequence;
    return 1.0 / static_cast<double>(windows * variables());
  }
  [[nodiscard]] bool has_noise_on_data() const noexcept {
    return parameters_.context_noise > 0.0 || parameters_.forecast_noise > 0.0;
  }

  /// Parts of a drawn series' windows, each of which is expected to hold at most 64; with V > 1 variables at most
  /// ⌈64/V⌉ V, which is below 128 for V < 64, and V for more.
  [[nodiscard]] std::int64_t parts_of_a_series() const noexcept;
  /// Places of a batch: the parts of each of its series, or of every series there is if coins or bins draw them. A
  /// window's place is public, as it depends on no other window. If records are series, a place holds one.
  [[nodiscard]] std::int64_t places() const noexcept {
    return (draws_each_series() ? sequences() : sequences_per_batch()) * parts_of_a_series();
  }
  /// Whether every place holds the same number of windows in every batch of neighbouring data; if not, the number
  /// depends on coins or on whether a series is there.
  [[nodiscard]] bool has_fixed_windows() const noexcept {
    return parameters_.record == Record::window && has_bounded_windows();
  }
  /// Whether no place ever holds more windows than are expected.
  [[nodiscard]] bool has_bounded_windows() const noexcept {
    return !draws_each_series() && parameters_.bottom_level == BottomLevel::with_replacement;
  }

 private:
  void check_series() const;
  void check_groups() const;

  Parameters parameters_;
};

}  // namespace tsdp::privacy
