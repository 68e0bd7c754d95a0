#include "tsdp/data/feature_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "data/calendar_features.h"
#include "data/covariates.h"

namespace tsdp::data {

std::vector<std::string> window_feature_names(const Frequency& frequency, const std::vector<std::string>& covariates) {
  const auto calendar = calendar_feature_names(frequency);
  std::vector<std::string> names(calendar.begin(), calendar.end());
  names.insert(names.end(), covariates.begin(), covariates.end());
  names.emplace_back("age");
  return names;
}

FeatureStore::FeatureStore(const Dataset& dataset, std::int64_t past_length, std::int64_t future_length)
    : past_length_(past_length),
      future_length_(future_length),
      names_(window_feature_names(dataset.frequency, dataset.covariates.names)) {
  const auto& frequency = dataset.frequency;
  const auto& known = dataset.covariates;
  const auto known_count = known.names.size();
  const std::size_t calendar_count = names_.size() - known_count - 1;  // the age comes last

  struct Block {
    std::int64_t length = 0;
    std::int64_t first = 0;
    std::int64_t known_row = 0;  // of the first place
  };
  using Calendar = std::pair<Moment, int>;  // start and day of the month
  const auto calendar_of = [](const Series& series) { return Calendar{series.start, series.month_day}; };
  std::map<Calendar, Block> blocks;
  for (const auto& series : dataset.series) {
    auto& block = blocks[calendar_of(series)];
    block.length = std::max(block.length, static_cast<std::int64_t>(series.values.size()));
    if (known_count > 0) block.known_row = first_row_of(series, dataset).value();
  }
  std::int64_t total = 0;
  for (auto& [calendar, block] : blocks) {
    block.first = total;
    total += (past_length + block.length + future_length) * feature_count();
  }
  for (const auto& series : dataset.series) first_.push_back(blocks.at(calendar_of(series)).first);

  values_.assign(static_cast<std::size_t>(total), 0.0F);
  std::array<double, most_calendar_features> row{};
  for (const auto& [calendar, block] : blocks) {
    float* to = values_.data() + block.first + past_length * feature_count();
    for (std::int64_t place = 0; place < block.length + future_length; ++place) {
      calendar_features(advance(calendar.first, frequency, place, calendar.second), frequency,
                        std::span(row).first(calendar_count));
      for (std::size_t i = 0; i < calendar_count; ++i) *to++ = static_cast<float>(row[i]);
      const auto known_row = block.known_row + place;
      const bool is_known = known_row >= 0 && known_row < known.rows();
      for (std::size_t i = 0; i < known_count; ++i)
        *to++ = is_known ? known.values[static_cast<std::size_t>(known_row) * known_count + i] : 0.0F;
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
