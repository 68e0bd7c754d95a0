#include "tsdp/data/feature_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "tsdp/data/calendar_features.h"

namespace tsdp::data {

std::vector<std::string> window_feature_names(const Frequency& frequency) {
  const auto calendar = calendar_feature_names(frequency);
  std::vector<std::string> names(calendar.begin(), calendar.end());
  names.emplace_back("age");
  return names;
}

FeatureStore::FeatureStore(const Dataset& dataset, std::int64_t past_length, std::int64_t future_length)
    : past_length_(past_length), future_length_(future_length), names_(window_feature_names(dataset.frequency)) {
  const auto& frequency = dataset.frequency;
  const std::size_t calendar_count = names_.size() - 1;  // the age comes last

  struct Block {
    std::int64_t length = 0;
    std::int64_t first = 0;
  };
  std::map<Moment, Block> blocks;
  for (const auto& series : dataset.series) {
    auto& length = blocks[series.start].length;
    length = std::max(length, static_cast<std::int64_t>(series.values.size()));
  }
  std::int64_t total = 0;
  for (auto& [start, block] : blocks) {
    block.first = total;
    total += (past_length + block.length + future_length) * feature_count();
  }
  for (const auto& series : dataset.series) first_.push_back(blocks.at(series.start).first);

  values_.assign(static_cast<std::size_t>(total), 0.0F);
  std::array<double, most_calendar_features> row{};
  for (const auto& [start, block] : blocks) {
    float* to = values_.data() + block.first + past_length * feature_count();
    for (std::int64_t place = 0; place < block.length + future_length; ++place) {
      calendar_features(advance(start, frequency, place), frequency, std::span(row).first(calendar_count));
      for (std::size_t i = 0; i < calendar_count; ++i) *to++ = static_cast<float>(row[i]);
      *to++ = age(place);
    }
  }
}

void FeatureStore::gather(std::span<const WindowIndex> indices, float* out) const {
  const auto width = static_cast<std::size_t>(window_length() * feature_count());
  for (const auto& index : indices) {
    std::memcpy(out, values_.data() + offset(index), width * sizeof(float));
    out += width;
  }
}

}  // namespace tsdp::data
