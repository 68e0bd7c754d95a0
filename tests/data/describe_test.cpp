#include "data/describe.h"

#include <gtest/gtest.h>

#include <string>

#include "support/series.h"
#include "tsdp/base/text.h"

namespace tsdp::data {
namespace {

using test::missing;

Dataset demo() {
  Dataset data;
  data.name = "demo";
  data.frequency = Frequency::parse("1D");
  data.series = {{"rising", 0, {1, 2, 3, 4, 5, 6, 7, 8}},
                 {"flat", 86400, {3, 3, missing, 3}},
                 {"holes", 0, {-5, missing, missing, missing, missing, 7}}};
  return data;
}

std::vector<std::int64_t> places(const std::vector<Finding>& findings) {
  std::vector<std::int64_t> out;
  for (const auto& finding : findings) out.push_back(finding.series);
  return out;
}

using Places = std::vector<std::int64_t>;

TEST(Describe, CountsAndRanges) {
  const auto d = describe(demo(), {});
  EXPECT_EQ(d.shortest, 4);
  EXPECT_EQ(d.longest, 8);
  EXPECT_EQ(d.median_length, 6);
  EXPECT_EQ(d.places, 18);
  EXPECT_EQ(d.missing, 5);
  EXPECT_EQ(moment_text(d.first), "1970-01-01 00:00:00");
  EXPECT_EQ(moment_text(d.last), "1970-01-08 00:00:00");
  EXPECT_EQ(d.least, -5);
  EXPECT_EQ(d.greatest, 8);
  EXPECT_EQ(d.least_length, 1);
  EXPECT_TRUE(d.too_short.empty());
  EXPECT_EQ(places(d.constant), (Places{1}));
  EXPECT_EQ(d.constant[0].number, 3);
  EXPECT_EQ(places(d.mostly_missing), (Places{2}));
  EXPECT_NEAR(d.mostly_missing[0].number, 4.0 / 6, 1e-15);
  EXPECT_TRUE(d.without_season.empty());
}

TEST(Describe, MedianOfAnEvenNumberLiesBetween) {
  auto data = demo();
  data.series.push_back({"one", 0, {1}});
  EXPECT_EQ(describe(data, {}).median_length, 5);
}

TEST(Describe, HalfMissingIsNotMostlyMissing) {
  Dataset data;
  data.series = {{"a", 0, {1, missing, missing, 2}}};
  EXPECT_TRUE(describe(data, {}).mostly_missing.empty());
  data.series[0].values.insert(data.series[0].values.begin() + 1, missing);
  EXPECT_EQ(describe(data, {}).mostly_missing.size(), 1U);
}

TEST(Describe, ContextAndForecastMustFit) {
  DescribeOptions options;
  options.prediction_length = 2;
  options.context_length = 4;
  options.season_length = 5;
  const auto d = describe(demo(), options);
  EXPECT_EQ(d.least_length, 6);
  EXPECT_EQ(places(d.too_short), (Places{1}));
  EXPECT_EQ(d.too_short[0].number, 4);
  EXPECT_EQ(places(d.without_season), (Places{1, 2}));  // 2 and 4 values before the range to forecast
  EXPECT_EQ(d.without_season[1].number, 4);
}

TEST(Describe, TheSplitMustFit) {
  DescribeOptions options;
  options.split = SplitOptions{SplitKind::last, 1, 3, 2};
  options.season_length = 3;
  const auto d = describe(demo(), options);
  EXPECT_EQ(d.least_length, 6);
  EXPECT_EQ(places(d.too_short), (Places{1}));
  EXPECT_EQ(places(d.without_season), (Places{1}));
  EXPECT_EQ(d.without_season[0].number, 1);
}

TEST(Describe, JsonHoldsEveryFinding) {
  Dataset data = demo();
  for (int i = 0; i < 30; ++i) data.series.push_back({"flat " + std::to_string(i), 0, {1, 1}});
  DescribeOptions options;
  options.prediction_length = 3;
  const auto json = description_json(data, describe(data, options));
  EXPECT_EQ(json["series"], 33);
  EXPECT_EQ(json["frequency"], "1D");
  EXPECT_EQ(json["length"]["min"], 2);
  EXPECT_EQ(json["values"], 13 + 60);
  EXPECT_EQ(json["constant"].size(), 31U);
  EXPECT_EQ(json["constant"][30]["series"], "flat 29");
  EXPECT_EQ(json["constant"][30]["index"], 32);
  EXPECT_EQ(json["constant"][30]["value"], 1.0);
  EXPECT_EQ(json["too_short"].size(), 30U);
  EXPECT_EQ(json["too_short"][0]["length"], 2);
  EXPECT_EQ(json["seasonal_naive"], false);
  EXPECT_EQ(json["without_season"][0]["known_values"], 0);
}

TEST(Describe, NamesValuesFarFromAllOthers) {
  Dataset data;
  data.name = "meters";
  data.frequency = Frequency::parse("1h");
  std::vector<float> values(500);
  for (std::size_t t = 0; t < values.size(); ++t) values[t] = 10.0F + static_cast<float>(t % 24);
  data.series.push_back({"usual", 0, values});
  // The median is 21, and 99 % lie within 12 of it; a missing value is no outlier.
  values[30] = std::numeric_limits<float>::quiet_NaN();
  values[40] = 21.0F + 119.0F;
  values[50] = 21.0F - 126.0F;
  values[60] = 9e6F;
  data.series.push_back({"wild", 0, values});
  std::vector<float> rare(500, 0.0F);
  rare[7] = 1000.0F;  // 99 % are the median: what is usual of the rest is not known
  data.series.push_back({"rare", 0, rare});
  data.series.push_back({"short", 0, std::vector<float>(values.begin(), values.begin() + 99)});
  EXPECT_EQ(outliers_of(data.series[1]), (std::vector<std::int64_t>{50, 60}));
  const auto d = describe(data, {});
  EXPECT_EQ(places(d.outlying), (Places{1}));
  EXPECT_EQ(description_json(data, d)["outlying"][0]["values"], 2);
  EXPECT_NE(description_text(data, d).find("series 'wild' (number 1): 2, such as 9e+06 at 1970-01-03 12:00:00"),
            std::string::npos)
      << description_text(data, d);
}

TEST(Describe, CountsMissingValuesThatAReaderCutOff) {
  Dataset data;
  data.frequency = Frequency::parse("1D");
  data.series = {{"late", 0, {6}, 4}, {"whole", 0, {1, 2, 3}, 0}};
  const auto d = describe(data, {});
  ASSERT_EQ(d.mostly_missing.size(), 1U);
  EXPECT_EQ(d.mostly_missing[0].series, 0);
  EXPECT_DOUBLE_EQ(d.mostly_missing[0].number, 0.8);
  EXPECT_EQ(d.places, 8);
  EXPECT_EQ(d.missing, 4);
}

TEST(Describe, TextNamesEveryOneOfAKind) {
  Dataset data = demo();
  for (int i = 0; i < 30; ++i)
    data.series.push_back({i == 5 ? "K\xC3\xB6ln\n" : "flat " + std::to_string(i), 0, {1, 1}});
  const auto text = description_text(data, describe(data, {}));
  EXPECT_NE(text.find("demo: 33 series, steps of 1D\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  constant: 31\n    series 'flat' (number 1): all values are 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    series 'K\xC3\xB6ln?' (number 8): all values are 1\n"), std::string::npos) << text;
  for (int i = 6; i < 30; ++i)
    EXPECT_NE(text.find(cat("    series 'flat ", i, "' (number ", i + 3, "): all values are 1\n")), std::string::npos)
        << i;
  EXPECT_NE(text.find("    series 'holes' (number 2): 66.6667 % are missing\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace tsdp::data
