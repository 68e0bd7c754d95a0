#include "tsdp/data/feature_store.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "data/calendar_features.h"

namespace tsdp::data {
namespace {

Moment at(const std::string& text) {
  Moment moment = 0;
  EXPECT_TRUE(parse_moment(text, moment)) << text;
  return moment;
}

Dataset made(const std::string& frequency, const std::vector<std::pair<std::string, std::size_t>>& starts) {
  Dataset dataset;
  dataset.frequency = Frequency::parse(frequency);
  for (const auto& [start, length] : starts)
    dataset.series.push_back({std::to_string(dataset.series.size()), at(start), std::vector<float>(length, 1.0F)});
  return dataset;
}

/// Features of a window, place by place from their definition.
std::vector<float> expected_window(const Dataset& dataset, const WindowIndex& index, std::int64_t past,
                                   std::int64_t future) {
  const auto count = calendar_feature_names(dataset.frequency).size();
  std::vector<float> out;
  for (std::int64_t place = index.start - past; place < index.start + future; ++place) {
    std::vector<double> row(count, 0.0);
    if (place >= 0) {
      const auto start = dataset.series[static_cast<std::size_t>(index.series)].start;
      calendar_features(advance(start, dataset.frequency, place), dataset.frequency, row);
    }
    for (const double value : row) out.push_back(static_cast<float>(value));
    out.push_back(place >= 0 ? age(place) : 0.0F);
  }
  return out;
}

std::vector<float> gathered(const FeatureStore& store, const std::vector<WindowIndex>& indices) {
  const auto width = static_cast<std::size_t>(store.window_length() * store.feature_count());
  std::vector<float> out(indices.size() * width, 9.0F);
  store.gather(indices, out.data());
  return out;
}

TEST(FeatureStore, NamesAgeLast) {
  const FeatureStore store(made("D", {{"2015-01-01", 3}}), 2, 1);
  EXPECT_EQ(store.names(), (std::vector<std::string>{"day_of_week", "day_of_month", "day_of_year", "age"}));
  EXPECT_EQ(store.feature_count(), 4);
  EXPECT_EQ(store.window_length(), 3);
  EXPECT_EQ(store.series_count(), 1);
  EXPECT_EQ(FeatureStore(made("Y", {{"2015-01-01", 3}}), 2, 1).names(), (std::vector<std::string>{"age"}));
}

TEST(FeatureStore, PadsWithZerosAndGoesOnBeyondTheEnd) {
  // Friday, Monday | Tuesday, Wednesday: two values, then two places that no value has yet.
  const FeatureStore store(made("B", {{"1990-01-05", 2}}), 3, 2);
  const auto day = [](double weekday, double of_month, double of_year, float at_age) {
    return std::vector<float>{static_cast<float>(weekday / 6 - 0.5), static_cast<float>(of_month / 30 - 0.5),
                              static_cast<float>(of_year / 365 - 0.5), at_age};
  };
  std::vector<float> expected(4, 0.0F);
  for (const auto& row : {day(4, 4, 4, age(0)), day(0, 7, 7, age(1)), day(1, 8, 8, age(2)), day(2, 9, 9, age(3))})
    expected.insert(expected.end(), row.begin(), row.end());
  EXPECT_EQ(gathered(store, {{0, 2}}), expected);
  const auto first = gathered(store, {{0, 0}});
  EXPECT_EQ(std::vector<float>(first.begin(), first.begin() + 12), std::vector<float>(12, 0.0F));
}

TEST(FeatureStore, AgreesWithTheDefinitionForEveryUnit) {
  for (const char* frequency : {"1s", "10min", "h", "5h", "D", "B", "2B", "W", "M", "Q", "Y"}) {
    SCOPED_TRACE(frequency);
    // Starts on a weekend, on a last of a month, before a leap day and before a year's end; lengths differ.
    const auto dataset = made(frequency, {{"2016-02-27 22:30", 40}, {"2015-12-31 23:40", 3}, {"2015-01-31", 60}});
    const FeatureStore store(dataset, 7, 4);
    std::vector<WindowIndex> indices;
    std::vector<float> expected;
    for (std::int64_t series = 2; series >= 0; --series) {
      const auto length = static_cast<std::int64_t>(dataset.series[static_cast<std::size_t>(series)].values.size());
      for (std::int64_t start = 0; start <= length; ++start) {
        indices.push_back({series, start});
        const auto window = expected_window(dataset, indices.back(), 7, 4);
        expected.insert(expected.end(), window.begin(), window.end());
        const auto from = store.values().begin() + store.offset(indices.back());
        ASSERT_EQ(std::vector<float>(from, from + static_cast<std::ptrdiff_t>(window.size())), window);
      }
    }
    EXPECT_EQ(gathered(store, indices), expected);
  }
}

TEST(FeatureStore, SharesRowsOfSeriesThatStartTogether) {
  const auto dataset = made("h", {{"2015-01-01", 5}, {"2015-01-02", 4}, {"2015-01-01", 50}, {"2015-01-01", 1}});
  const FeatureStore store(dataset, 3, 2);
  EXPECT_EQ(store.offset({0, 4}), store.offset({2, 4}));
  EXPECT_EQ(store.offset({0, 0}), store.offset({3, 0}));
  EXPECT_NE(store.offset({0, 0}), store.offset({1, 0}));
  // Two starts: 3 + 50 + 2 and 3 + 4 + 2 rows of five features.
  EXPECT_EQ(store.values().size(), static_cast<std::size_t>(55 + 9) * 5);
  EXPECT_EQ(gathered(store, {{2, 50}}), expected_window(dataset, {2, 50}, 3, 2));
  EXPECT_EQ(gathered(store, {{1, 4}}), expected_window(dataset, {1, 4}, 3, 2));
}

TEST(FeatureStore, FollowsTheWindowsOfAWindowStore) {
  const auto dataset = made("D", {{"2015-01-01", 9}, {"2015-01-05", 6}});
  const FeatureStore features(dataset, 4, 2);
  const WindowStore values(dataset, 4, 2);
  EXPECT_EQ(features.window_length(), values.window_length());
  EXPECT_EQ(features.series_count(), values.series_count());
  std::vector<float> window(6);
  std::vector<float> observed(6);
  for (std::int64_t start = 0; start <= 4; ++start) {
    const std::vector<WindowIndex> index{{1, start}};
    values.gather(index, window.data(), observed.data());
    const auto rows = gathered(features, index);
    // Every value is there, so that a place has an age where it is observed.
    for (std::size_t place = 0; place < 6; ++place) EXPECT_EQ(rows[place * 4 + 3] > 0, observed[place] > 0);
  }
}

TEST(FeatureStore, HoldsNothingOfAnEmptyDataset) {
  const FeatureStore store(Dataset{}, 3, 2);
  EXPECT_TRUE(store.values().empty());
  EXPECT_EQ(store.series_count(), 0);
}

}  // namespace
}  // namespace tsdp::data
