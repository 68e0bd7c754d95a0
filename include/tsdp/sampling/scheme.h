// The subsampling scheme as one value. Two things are made from it and nothing else: the sampler that draws the
// batches (sampler.h) and the mechanism that the accountant composes (mechanism.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tsdp::sampling {

/// Largest length and count that is accepted anywhere.
inline constexpr std::int64_t largest_count = 1'000'000'000;

/// `shuffled` (in turn, in a new order every epoch) is for runs without privacy: no row of the theorem table has it.
enum class TopLevel { deterministic, without_replacement, shuffled };
enum class BottomLevel { with_replacement, poisson };
enum class Relation { event, user };

[[nodiscard]] const char* name(TopLevel value);     // "deterministic", "wor", "shuffled"
[[nodiscard]] const char* name(BottomLevel value);  // "wr", "poisson"
[[nodiscard]] const char* name(Relation value);     // "event", "user"

/// What two neighbouring data sets may differ in (paper §1): one series, in w consecutive places (event) or in any w
/// places (user), each value by at most v if v is given.
struct PrivacyUnit {
  Relation relation = Relation::event;
  std::int64_t w = 1;
  std::optional<double> v;
};

/// Structured subsampling (paper, Algorithms 1–6): first whole series, then windows inside them.
class SubsamplingScheme {
 public:
  struct Parameters {
    std::vector<std::int64_t> lengths;          ///< L of every training series; N = lengths.size() ≥ 1; public
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
  [[nodiscard]] std::int64_t sequences() const noexcept { return static_cast<std::int64_t>(parameters_.lengths.size()); }
  /// N′ = min(N, ⌊Λ/λ⌋): series in a batch. Capped, since a sample without replacement has at most N.
  [[nodiscard]] std::int64_t sequences_per_batch() const noexcept;
  /// max(1, ⌊N λ/Λ⌋). Under deterministic iteration the series after the last full batch are not used.
  [[nodiscard]] std::int64_t steps_per_epoch() const noexcept;
  /// T = L − L_F + 1 of one series: the number of its windows.
  [[nodiscard]] std::int64_t windows_of(std::int64_t series) const;
  /// Expected number of windows a step; the divisor of the noisy sum is Λ nevertheless.
  [[nodiscard]] double expected_windows() const;

 private:
  Parameters parameters_;
};

}  // namespace tsdp::sampling
