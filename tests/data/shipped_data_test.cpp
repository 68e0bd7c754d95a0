#include "readers_fixture.h"

namespace tsdp::data {
namespace {

std::filesystem::path shipped(const char* name) { return std::filesystem::path(TSDP_SOURCE_DIR) / "data" / name; }

TEST(ShippedData, ExchangeRate) {
  const auto data =
      read_dataset(shipped("exchange_rate.txt.gz"), {Format::lstnet, Frequency::parse("1B"), at("1990-01-01")});
  EXPECT_EQ(data.name, "exchange_rate");
  ASSERT_EQ(data.series.size(), 8U);
  for (const auto& series : data.series) ASSERT_EQ(series.values.size(), 7588U);
  EXPECT_EQ(data.series[0].values[0], 0.7855F);
  EXPECT_EQ(data.series[0].values[6070], 1.025347F);
  EXPECT_EQ(data.series[0].values[6071], 1.026905F);
  EXPECT_EQ(data.series[7].values[7587], 0.690942F);
}

TEST(ShippedData, GefcomHasEightMissingWeeks) {
  const auto data =
      read_dataset(shipped("gefcom2012_load.txt.gz"), {Format::lstnet, Frequency::parse("1h"), at("2004-01-01")});
  ASSERT_EQ(data.series.size(), 20U);
  for (const auto& series : data.series) {
    ASSERT_EQ(series.values.size(), 39414U);
    EXPECT_EQ(series.start, at("2004-01-01"));
    std::size_t weeks = 0;
    std::size_t run = 0;
    for (const float value : series.values) {
      run = std::isnan(value) ? run + 1 : 0;
      if (run == 168) ++weeks;
      ASSERT_LE(run, 168U);
    }
    EXPECT_EQ(weeks, 8U);
    EXPECT_EQ(std::count_if(series.values.begin(), series.values.end(), [](float value) { return std::isnan(value); }),
              8 * 168);
  }
}

TEST(ShippedData, M4Hourly) {
  const auto data = read_dataset(shipped("m4_hourly.tsf.gz"), {Format::tsf, Frequency::parse("1h"), std::nullopt});
  EXPECT_EQ(data.name, "m4_hourly");
  ASSERT_EQ(data.series.size(), 414U);
  EXPECT_EQ(data.series[0].id, "H1");
  EXPECT_EQ(data.series[413].id, "H414");
  EXPECT_EQ(data.series[0].values[0], 605);
  std::size_t of_748 = 0;
  std::size_t of_1008 = 0;
  for (const auto& series : data.series) {
    of_748 += series.values.size() == 748 ? 1 : 0;
    of_1008 += series.values.size() == 1008 ? 1 : 0;
    EXPECT_EQ(series.start, 0);
  }
  EXPECT_EQ(of_748, 169U);
  EXPECT_EQ(of_1008, 245U);
}

TEST(ShippedData, MetrLaAndOneSensor) {
  const auto week =
      read_dataset(shipped("metr_la_week_10min.txt.gz"), {Format::lstnet, Frequency::parse("10min"), at("2012-03-01")});
  ASSERT_EQ(week.series.size(), 207U);
  for (const auto& series : week.series) ASSERT_EQ(series.values.size(), 1008U);
  EXPECT_EQ(moment_text(advance(week.series[0].start, week.frequency, 1007)), "2012-03-07 23:50:00");
  const auto sensor =
      read_dataset(shipped("sf_traffic_one_sensor.txt.gz"), {Format::lstnet, Frequency::parse("1h"), at("2015-01-01")});
  ASSERT_EQ(sensor.series.size(), 1U);
  ASSERT_EQ(sensor.series[0].values.size(), 17544U);
  for (const float value : sensor.series[0].values) ASSERT_TRUE(value >= 0 && value <= 1);
}

}  // namespace
}  // namespace tsdp::data
