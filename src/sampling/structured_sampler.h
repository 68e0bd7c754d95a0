// Draws the windows of a step, exactly as the scheme says that the accountant reads: first whole series, then windows
// inside them (paper, Algorithms 3–6).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tsdp/data/windows.h"
#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/random/random.h"

namespace tsdp::sampling {

/// Purpose names of the streams that samplers draw from.
inline constexpr const char* sampling_purpose = "sampling";
inline constexpr const char* order_purpose = "order of an epoch";
inline constexpr const char* bins_purpose = "bins";

/// The windows of a step. Where series have V variables, entry s V + v of the data set is variable v of series s, and
/// of a window that is drawn the V variables' follow each other.
struct Draw {
  std::vector<data::WindowIndex> windows;
  /// For each window its place in the batch, 0 … SubsamplingScheme::places() − 1, ascending. It tells the place of its
  /// series among those drawn (among all, if coins or bins draw them), and which part of the series' windows it is
  /// from. Some places may hold no window. A window's place does not depend on which others were drawn, so it is the
  /// same in neighbouring data sets. If records are whole series, the windows of one place are one record.
  std::vector<std::int64_t> places;
};

/// The batches of one scheme. A batch is a function of (key, step) only.
///
/// Top level (N′ series): deterministic: series b N′ … b N′ + N′ − 1, b = step mod steps per epoch, so that no series
/// occurs twice in an epoch; shuffled: the same places of a uniform order of the N series, either the epoch's own or
/// one for all; without replacement: a fresh uniform N′-subset for every step; Poisson: every series independently with
/// probability ρ; cyclic Poisson: of the series s with s mod p = step mod p every one, with probability pρ; balls in
/// bins: the series whose bin, uniform and drawn once or for the epoch, is b. Ghosts take the places beyond the last
/// series, which no order moves. Of a batch with more series than its largest size the first ones stay. Bottom level in
/// each of them, with T windows: with replacement: λ independent uniform windows; Poisson: every window independently
/// with probability min(1, λ/T). All laws are exact up to the uniform bits, except that Poisson skips are computed in
/// double precision (a window's probability p is off by at most 2e-16/p of itself: below 1e-11 for up to 50,000
/// windows).
class StructuredSampler {
 public:
  explicit StructuredSampler(privacy::SubsamplingScheme scheme);

  [[nodiscard]] const privacy::SubsamplingScheme& scheme() const noexcept { return scheme_; }
  /// The windows of step `step` (0-based, over all epochs), from streams (key, purpose, step or epoch) of purposes that
  /// no other part of a run draws from.
  [[nodiscard]] Draw draw(const SecretKey& key, std::uint64_t step);

 private:
  /// The series of a step.
  [[nodiscard]] std::vector<std::int64_t> series_of(std::uint64_t step, RandomStream& stream, const SecretKey& key);
  /// A uniform subset of `count` series, in uniform order.
  [[nodiscard]] std::vector<std::int64_t> fresh_subset(std::size_t count, RandomStream& choices);
  /// Prepares what the batches of epoch `epoch` are cut from under `key`: all series in order, and where each batch
  /// begins.
  void arrange(const SecretKey& key, std::uint64_t epoch);

  privacy::SubsamplingScheme scheme_;
  std::vector<std::int64_t> identity_;  // in order between calls
  // The last arrangement, kept because drawing it again for every step would take long; what is drawn does not depend
  // on it.
  std::optional<SecretKey> arranged_by_;
  std::uint64_t arranged_epoch_ = 0;
  std::vector<std::int64_t> order_;
  std::vector<std::size_t> begins_;
};

}  // namespace tsdp::sampling
