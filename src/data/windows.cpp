#include "tsdp/data/windows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::data {

WindowStore::WindowStore(const Dataset& dataset, std::int64_t past_length, std::int64_t future_length)
    : past_length_(past_length), future_length_(future_length) {
  std::size_t total = 0;
  has_exact_ = !dataset.series.empty();
  for (const auto& series : dataset.series) {
    if (!series.exact.empty() && series.exact.size() != series.values.size())
      throw Error(ExitCode::failure, cat("series '", series.id, "' has ", series.values.size(), " values and ",
                                         series.exact.size(), " in double precision"));
    has_exact_ = has_exact_ && series.exact.size() == series.values.size();
    first_.push_back(static_cast<std::int64_t>(total));
    lengths_.push_back(static_cast<std::int64_t>(series.values.size()));
    total += static_cast<std::size_t>(past_length) + series.values.size();
  }
  total += static_cast<std::size_t>(future_length);  // so that a window at the very end of the last series can be read
  values_.assign(total, 0.0F);
  observed_.assign(total, 0.0F);
  exact_.assign(has_exact_ ? total : 0, 0.0);
  for (std::size_t s = 0; s < dataset.series.size(); ++s) {
    auto place = static_cast<std::size_t>(first_[s] + past_length);
    bool complete = true;
    for (const float value : dataset.series[s].values) {
      const bool missing = std::isnan(value);
      complete = complete && !missing;
      values_[place] = missing ? 0.0F : value;
      observed_[place] = missing ? 0.0F : 1.0F;
      ++place;
    }
    if (has_exact_)
      std::transform(dataset.series[s].exact.begin(), dataset.series[s].exact.end(),
                     exact_.begin() + static_cast<std::ptrdiff_t>(first_[s] + past_length),
                     [](double value) { return std::isnan(value) ? 0.0 : value; });
    complete_.push_back(complete ? 1 : 0);
  }
}

template <class Number>
void WindowStore::prefetch(const Number* all, const WindowIndex& index) const {
  constexpr std::size_t line = 64 / sizeof(Number);
  const auto from = static_cast<std::size_t>(offset(index));
  const auto width = static_cast<std::size_t>(window_length());
  const bool complete = complete_[static_cast<std::size_t>(index.series)] != 0;
  for (std::size_t i = 0; i < width + line - 1; i += line) {
    const std::size_t place = from + std::min(i, width - 1);
    __builtin_prefetch(all + place);
    if (!complete) __builtin_prefetch(observed_.data() + place);
  }
}

void WindowStore::gather(std::span<const WindowIndex> indices, float* values, float* observed) const {
  gather_from(values_.data(), indices, values, observed);
}

void WindowStore::gather(std::span<const WindowIndex> indices, double* values, float* observed) const {
  if (!has_exact_) throw Error(ExitCode::failure, "these series were not read in double precision");
  gather_from(exact_.data(), indices, values, observed);
}

template <class Number>
void WindowStore::gather_from(const Number* all, std::span<const WindowIndex> indices, Number* values,
                              float* observed) const {
  const auto width = static_cast<std::size_t>(window_length());
  // Windows lie anywhere in memory that is far larger than the caches: without a head start, waiting for it takes most
  // of the time.
  constexpr std::size_t ahead = 4;
  for (std::size_t i = 0; i < std::min(ahead, indices.size()); ++i) prefetch(all, indices[i]);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + ahead < indices.size()) prefetch(all, indices[i + ahead]);
    const auto& index = indices[i];
    const auto from = static_cast<std::size_t>(offset(index));
    std::memcpy(values, all + from, width * sizeof(Number));
    if (complete_[static_cast<std::size_t>(index.series)] != 0) {
      // Every place of the series is observed, so what would be read is known.
      const auto place_of = [&](std::int64_t place) {
        return observed + std::clamp<std::int64_t>(past_length_ + place - index.start, 0, window_length());
      };
      float* const begin = place_of(0);
      float* const end = place_of(series_length(index.series));
      std::fill(observed, begin, 0.0F);
      std::fill(begin, end, 1.0F);
      std::fill(end, observed + width, 0.0F);
    } else {
      std::memcpy(observed, observed_.data() + from, width * sizeof(float));
    }
    values += width;
    observed += width;
  }
}

}  // namespace tsdp::data
