#include "tsdp/data/windows.h"

#include <cmath>
#include <cstring>

namespace tsdp::data {

WindowStore::WindowStore(const Dataset& dataset, std::int64_t past_length, std::int64_t future_length)
    : past_length_(past_length), future_length_(future_length) {
  std::size_t total = 0;
  for (const auto& series : dataset.series) {
    first_.push_back(static_cast<std::int64_t>(total));
    lengths_.push_back(static_cast<std::int64_t>(series.values.size()));
    total += static_cast<std::size_t>(past_length) + series.values.size();
  }
  total += static_cast<std::size_t>(future_length);  // so that a window at the very end of the last series can be read
  values_.assign(total, 0.0F);
  observed_.assign(total, 0.0F);
  for (std::size_t s = 0; s < dataset.series.size(); ++s) {
    auto place = static_cast<std::size_t>(first_[s] + past_length);
    for (const float value : dataset.series[s].values) {
      const bool missing = std::isnan(value);
      has_missing_ = has_missing_ || missing;
      values_[place] = missing ? 0.0F : value;
      observed_[place] = missing ? 0.0F : 1.0F;
      ++place;
    }
  }
}

void WindowStore::gather(std::span<const WindowIndex> indices, float* values, float* observed) const {
  const auto width = static_cast<std::size_t>(window_length());
  for (const auto& index : indices) {
    const auto from = static_cast<std::size_t>(offset(index));
    std::memcpy(values, values_.data() + from, width * sizeof(float));
    std::memcpy(observed, observed_.data() + from, width * sizeof(float));
    values += width;
    observed += width;
  }
}

}  // namespace tsdp::data
