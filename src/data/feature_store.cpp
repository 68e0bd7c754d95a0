#include "tsdp/data/feature_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

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
  const auto known_count = dataset.covariates.names.size();
  const std::size_t calendar_count = names_.size() - known_count - 1;  // the age comes last

  struct Block {
    std::int64_t length = 0;
    std::int64_t first = 0;
    std::size_t series = 0;  // one of those that share it
  };
  using Key = std::tuple<Moment, int, std::size_t>;  // start, day of the month, table of covariates
  const auto key_of = [&](std::size_t s) {
    return Key{dataset.series[s].start, dataset.series[s].month_day, dataset.covariates.table(s)};
  };
  std::map<Key, Block> blocks;
  for (std::size_t s = 0; s < dataset.series.size(); ++s) {
    auto& block = blocks[key_of(s)];
    block.length = std::max(block.length, static_cast<std::int64_t>(dataset.series[s].values.size()));
    block.series = s;
  }
  std::int64_t total = 0;
  for (auto& [key, block] : blocks) {
    block.first = total;
    total += (past_length + block.length + future_length) * feature_count();
  }
  for (std::size_t s = 0; s < dataset.series.size(); ++s) first_.push_back(blocks.at(key_of(s)).first);

  values_.assign(static_cast<std::size_t>(total), 0.0F);
  std::array<double, most_calendar_features> row{};
  for (const auto& [key, block] : blocks) {
    std::optional<KnownSteps> known;
    if (known_count > 0) known.emplace(dataset, block.series);
    float* to = values_.data() + block.first + past_length * feature_count();
    for (std::int64_t place = 0; place < block.length + future_length; ++place) {
      calendar_features(dataset.series[block.series].at(frequency, place), frequency,
                        std::span(row).first(calendar_count));
      for (std::size_t i = 0; i < calendar_count; ++i) *to++ = static_cast<float>(row[i]);
      const auto told = known ? known->at(place) : std::span<const float>();
      for (std::size_t i = 0; i < known_count; ++i) *to++ = told.empty() ? 0.0F : told[i];
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
