#include "tsdp/privacy/scheme.h"

#include <algorithm>
#include <cmath>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

SeriesLengths::SeriesLengths(std::vector<std::int64_t> each)
    : count_(static_cast<std::int64_t>(each.size())), distinct_(each), each_(std::move(each)) {
  std::sort(distinct_.begin(), distinct_.end());
  distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
}

SeriesLengths SeriesLengths::between(std::int64_t count, std::int64_t shortest, std::int64_t longest) {
  SeriesLengths out;
  out.count_ = count;
  if (count > 0) out.distinct_.push_back(shortest);
  if (count > 1 && longest != shortest) out.distinct_.push_back(longest);
  return out;
}

std::int64_t SeriesLengths::operator[](std::int64_t series) const {
  if (!each_.empty()) return each_.at(static_cast<std::size_t>(series));
  return series == count_ - 1 ? longest() : shortest();
}

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
  if (p.top_level == TopLevel::poisson || p.top_level == TopLevel::balls_in_bins)
    throw PrivacyError(cat("top level: found ", name(p.top_level), ", with which no run is made so far; expected wor, deterministic or "
                           "shuffled (tsdp-account --relation series answers for whole series)"));
  if (!(p.context_noise >= 0.0) || !std::isfinite(p.context_noise) || !(p.forecast_noise >= 0.0) ||
      !std::isfinite(p.forecast_noise))
    throw UsageError(cat("augmentation noise: found ", p.context_noise, " and ", p.forecast_noise,
                         "; finite numbers of at least 0 are expected"));
  for (const auto length : p.lengths.distinct()) at_least_one("sequence length", length);
  const auto shortest = p.lengths.shortest();
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
  return parameters_.lengths[series] - parameters_.forecast_length + 1;
}

std::int64_t SubsamplingScheme::expected_windows() const noexcept {
  // With replacement λ windows a series; Poisson T·min(1, λ/T) = min(T, λ), the same unless the series is tiny.
  return sequences_per_batch() * parameters_.subsequences_per_sequence;
}

}  // namespace tsdp::privacy
