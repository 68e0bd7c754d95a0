// Draws the windows of a step, exactly as the scheme says that the accountant reads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tsdp/data/windows.h"
#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/random/random.h"

namespace tsdp::sampling {

/// Purpose names of the streams that samplers draw from.
inline constexpr const char* sampling_purpose = "sampling";
inline constexpr const char* order_purpose = "order of an epoch";
inline constexpr const char* bins_purpose = "bins";

/// The windows of a step.
struct Draw {
  std::vector<data::WindowIndex> windows;
  /// For each window its place in the batch, 0 … SubsamplingScheme::places() − 1, ascending: the place of its series among those
  /// drawn (where coins or bins draw them, among all), and which part of the series' windows it is from. Places with no window occur.
  /// A window's place does not depend on which others were drawn: neighbouring data sets have it in common. Where records are whole
  /// series, windows of one place are a record's.
  std::vector<std::int64_t> places;
};

/// The batches of one scheme. A batch is a function of (key, step) alone; there is no state between steps.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;

  [[nodiscard]] virtual const privacy::SubsamplingScheme& scheme() const noexcept = 0;
  /// The windows of step `step` (0-based, over all epochs), from streams (key, purpose, step or epoch) of purposes that no
  /// other part of a run draws from.
  [[nodiscard]] virtual Draw draw(const SecretKey& key, std::uint64_t step) = 0;
};

/// The sampler of a scheme: the only one there is of it.
[[nodiscard]] std::unique_ptr<BatchSampler> sampler_of(const privacy::SubsamplingScheme& scheme);

}  // namespace tsdp::sampling
