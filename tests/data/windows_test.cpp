#include "tsdp/data/windows.h"

#include <gtest/gtest.h>

#include <limits>

#include "tsdp/core/error.h"
#include "tsdp/data/split.h"

namespace tsdp::data {
namespace {

const float nan = std::numeric_limits<float>::quiet_NaN();

Dataset two_series() {
  Dataset d;
  d.name = "two";
  d.series = {{"a", 0, {1, 2, 3, 4, 5}}, {"b", 0, {10, nan, 30, 40}}};
  return d;
}

TEST(WindowStore, PadsInFrontAndMasksMissingValues) {
  const WindowStore store(two_series(), 3, 2);
  const std::vector<WindowIndex> indices = {{0, 0}, {0, 3}, {1, 1}, {1, 2}};
  std::vector<float> values(20);
  std::vector<float> observed(20);
  store.gather(indices, values.data(), observed.data());
  EXPECT_EQ(values, (std::vector<float>{0, 0, 0, 1, 2,  1, 2, 3, 4, 5,  0, 0, 10, 0, 30,  0, 10, 0, 30, 40}));
  EXPECT_EQ(observed, (std::vector<float>{0, 0, 0, 1, 1,  1, 1, 1, 1, 1,  0, 0, 1, 0, 1,  0, 1, 0, 1, 1}));
  EXPECT_TRUE(store.has_missing());
}

TEST(WindowStore, NeverReadsANeighbouringSeries) {
  const WindowStore store(two_series(), 4, 1);
  std::vector<float> values(5);
  std::vector<float> observed(5);
  const std::vector<WindowIndex> first = {{1, 0}};
  store.gather(first, values.data(), observed.data());
  EXPECT_EQ(values, (std::vector<float>{0, 0, 0, 0, 10}));
}

TEST(Split, LstnetTrainsOnTheFirstFourFifthsInclusive) {
  Dataset d;
  d.series = {{"a", 0, std::vector<float>(7588, 1.0F)}};
  // Exchange rate: e = ⌊0.8 · 7588⌋ = 6070, training 0 … 6070, five windows of 30 right after.
  const auto split = split_dataset(d, {SplitKind::lstnet, 30, 5, 150});
  EXPECT_EQ(split.training_length, (std::vector<std::int64_t>{6071 - 150}));
  ASSERT_EQ(split.test.size(), 5U);
  EXPECT_EQ(split.test.front().forecast_start, 6071);
  EXPECT_EQ(split.test.back().forecast_start, 6071 + 4 * 30);
  ASSERT_EQ(split.validation.size(), 5U);
  EXPECT_EQ(split.validation.front().forecast_start, 6071 - 150);
  EXPECT_EQ(split.validation.back().forecast_start, 6071 - 30);
}

TEST(Split, WindowsGoWindowByWindowThenSeriesBySeries) {
  Dataset d;
  d.series = {{"a", 0, std::vector<float>(50, 1.0F)}, {"b", 0, std::vector<float>(60, 1.0F)}};
  const auto split = split_dataset(d, {SplitKind::last, 10, 2, 0});
  ASSERT_EQ(split.test.size(), 4U);
  EXPECT_EQ(split.test[0].series, 0);
  EXPECT_EQ(split.test[0].forecast_start, 30);
  EXPECT_EQ(split.test[1].series, 1);
  EXPECT_EQ(split.test[1].forecast_start, 40);
  EXPECT_EQ(split.test[2].forecast_start, 40);
  EXPECT_EQ(split.training_length, (std::vector<std::int64_t>{30, 40}));
  EXPECT_TRUE(split.validation.empty());
}

TEST(Split, NamesASeriesThatIsTooShort) {
  Dataset d;
  d.name = "set";
  d.series = {{"long", 0, std::vector<float>(100, 1.0F)}, {"short", 0, std::vector<float>(20, 1.0F)}};
  try {
    const auto split = split_dataset(d, {SplitKind::last, 10, 1, 5});
    FAIL() << "accepted " << split.test.size();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("series 'short' of set: found 20 values"), std::string::npos);
  }
}

}  // namespace
}  // namespace tsdp::data
