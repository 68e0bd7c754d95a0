#include "tsdp/data/windows.h"

#include <gtest/gtest.h>

#include <limits>

#include "tsdp/base/error.h"

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
  EXPECT_EQ(values, (std::vector<float>{0, 0, 0, 1, 2, 1, 2, 3, 4, 5, 0, 0, 10, 0, 30, 0, 10, 0, 30, 40}));
  EXPECT_EQ(observed, (std::vector<float>{0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1}));
}

TEST(WindowStore, NeverReadsANeighbouringSeries) {
  const WindowStore store(two_series(), 4, 1);
  std::vector<float> values(5);
  std::vector<float> observed(5);
  const std::vector<WindowIndex> first = {{1, 0}};
  store.gather(first, values.data(), observed.data());
  EXPECT_EQ(values, (std::vector<float>{0, 0, 0, 0, 10}));
}

// Windows of complete series are not read from the observation marks but worked out: the same must come of both.
TEST(WindowStore, MarksOfCompleteSeriesAreThoseOfTheBuffer) {
  Dataset d = two_series();
  d.series.push_back({"c", 0, {7}});
  for (const std::int64_t past : {1, 3, 9})
    for (const std::int64_t future : {1, 2, 4}) {
      const WindowStore store(d, past, future);
      const auto width = static_cast<std::size_t>(past + future);
      std::vector<WindowIndex> indices;
      for (std::int64_t s = 0; s < store.series_count(); ++s)
        for (std::int64_t start = 0; start <= store.series_length(s); ++start)
          if (start + future <= store.series_length(s) || start == store.series_length(s))
            indices.push_back({s, start});
      std::vector<float> values(indices.size() * width, -1.0F);
      std::vector<float> observed(indices.size() * width, -1.0F);
      store.gather(indices, values.data(), observed.data());
      for (std::size_t i = 0; i < indices.size(); ++i)
        for (std::int64_t j = 0; j < past + future; ++j) {
          const bool is_future = j >= past;
          if (is_future && indices[i].start == store.series_length(indices[i].series)) continue;  // not to be read
          const auto place = static_cast<std::size_t>(store.offset(indices[i]) + j);
          EXPECT_EQ(observed[i * width + static_cast<std::size_t>(j)], store.observed()[place]) << i << " " << j;
          EXPECT_EQ(values[i * width + static_cast<std::size_t>(j)], store.values()[place]) << i << " " << j;
        }
    }
}

TEST(WindowStore, HasWindowsInDoublePrecisionWhereSeriesDo) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  auto d = two_series();
  EXPECT_FALSE(WindowStore(d, 3, 2).has_exact());
  d.series[0].exact = {1.0000000001, 2, 3, 4, 5e9 + 1};
  EXPECT_FALSE(WindowStore(d, 3, 2).has_exact());  // only one of them
  d.series[1].exact = {10, none, 30.1, 40};
  const WindowStore store(d, 3, 2);
  ASSERT_TRUE(store.has_exact());
  const std::vector<WindowIndex> indices = {{0, 0}, {0, 3}, {1, 1}, {1, 2}};
  std::vector<double> values(20, -1.0);
  std::vector<float> observed(20, -1.0F);
  store.gather(indices, values.data(), observed.data());
  EXPECT_EQ(values, (std::vector<double>{0,    0,
                                         0,    1.0000000001,
                                         2,    1.0000000001,
                                         2,    3,
                                         4,    5e9 + 1,  //
                                         0,    0,
                                         10,   0,
                                         30.1, 0,
                                         10,   0,
                                         30.1, 40}));
  std::vector<float> single(20);
  std::vector<float> marks(20);
  store.gather(indices, single.data(), marks.data());
  EXPECT_EQ(observed, marks);
  d.series[1].exact.pop_back();
  EXPECT_THROW(WindowStore(d, 3, 2), Error);
  d.series[1].exact.clear();
  EXPECT_THROW(WindowStore(d, 3, 2).gather(indices, values.data(), observed.data()), Error);
}

TEST(Split, LeastLengthIsTheLeastThatIsAccepted) {
  for (const auto kind : {SplitKind::lstnet, SplitKind::last})
    for (const std::int64_t horizon : {1, 2, 5, 24})
      for (const std::int64_t windows : {1, 2, 7})
        for (const std::int64_t validation : {0, 1, 3, 30, 120}) {
          const SplitOptions options{kind, horizon, windows, validation};
          const auto least = least_length(options);
          Dataset d;
          d.series = {{"a", 0, std::vector<float>(static_cast<std::size_t>(least), 1.0F)}};
          const auto split = split_dataset(d, options);
          EXPECT_GE(split.training_length[0], horizon);
          EXPECT_LE(split.test.back().forecast_start + horizon, least);
          EXPECT_EQ(split.test.front().forecast_start, first_test_place(least, options));
          d.series[0].values.pop_back();
          EXPECT_THROW(static_cast<void>(split_dataset(d, options)), DataError);
          // One value less would indeed leave too little to train on or to test.
          const auto training = first_test_place(least - 1, options);
          EXPECT_TRUE(training - validation < horizon || training + windows * horizon > least - 1) << least;
        }
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
    EXPECT_NE(std::string(error.what()).find("more are needed: at least 25"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tsdp::data
