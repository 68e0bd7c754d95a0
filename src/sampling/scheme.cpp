#include "tsdp/sampling/scheme.h"

#include <algorithm>
#include <cmath>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::sampling {

const char* name(TopLevel value) {
  if (value == TopLevel::shuffled) return "shuffled";
  return value == TopLevel::deterministic ? "deterministic" : "wor";
}
const char* name(BottomLevel value) { return value == BottomLevel::with_replacement ? "wr" : "poisson"; }
const char* name(Relation value) { return value == Relation::event ? "event" : "user"; }

SubsamplingScheme::SubsamplingScheme(Parameters parameters) : parameters_(std::move(parameters)) {
  const auto& p = parameters_;
  // The upper end keeps every product and sum of two of them inside 64 bits.
  const auto at_least_one = [](const char* what, std::int64_t value) {
    if (value < 1 || value > largest_count)
      throw UsageError(cat(what, ": found ", value, "; an integer from 1 to ", largest_count, " is expected"));
  };
  at_least_one("number of sequences", sequences());
  at_least_one("context length", p.context_length);
  at_least_one("forecast length", p.forecast_length);
  at_least_one("batch size", p.batch_size);
  at_least_one("subsequences per sequence", p.subsequences_per_sequence);
  if (p.subsequences_per_sequence > p.batch_size)
    throw UsageError(cat("subsequences per sequence: found ", p.subsequences_per_sequence, " with batch size ",
                         p.batch_size, "; at most the batch size is expected (lambda <= Lambda)"));
  if (!(p.context_noise >= 0.0) || !std::isfinite(p.context_noise) || !(p.forecast_noise >= 0.0) ||
      !std::isfinite(p.forecast_noise))
    throw UsageError(cat("augmentation noise: found ", p.context_noise, " and ", p.forecast_noise,
                         "; finite numbers of at least 0 are expected"));
  for (const auto length : p.lengths) at_least_one("sequence length", length);
  const auto shortest = *std::min_element(p.lengths.begin(), p.lengths.end());
  if (shortest < p.forecast_length)
    throw PrivacyError(cat("sequence length: found ", shortest, " with forecast length ", p.forecast_length,
                           "; at least the forecast length is expected (L >= L_F)"));
}

std::int64_t SubsamplingScheme::sequences_per_batch() const noexcept {
  return std::min(sequences(), parameters_.batch_size / parameters_.subsequences_per_sequence);
}

std::int64_t SubsamplingScheme::steps_per_epoch() const noexcept {
  return std::max<std::int64_t>(1, sequences() * parameters_.subsequences_per_sequence / parameters_.batch_size);
}

std::int64_t SubsamplingScheme::windows_of(std::int64_t series) const {
  return parameters_.lengths[static_cast<std::size_t>(series)] - parameters_.forecast_length + 1;
}

double SubsamplingScheme::expected_windows() const {
  // With replacement λ windows a series; Poisson T·min(1, λ/T) = min(T, λ), the same unless the series is tiny.
  return static_cast<double>(sequences_per_batch() * parameters_.subsequences_per_sequence);
}

}  // namespace tsdp::sampling
