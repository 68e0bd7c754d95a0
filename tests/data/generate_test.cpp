#include "data/generate.h"

#include <gtest/gtest.h>

#include <limits>

#include "tsdp/base/error.h"

namespace tsdp::data {
namespace {

TEST(Generate, LooksLikeTraffic) {
  const auto data = generate_traffic_like({.series = 20, .length = 17544, .seed = 3});
  EXPECT_EQ(data.frequency, Frequency::parse("1h"));
  ASSERT_EQ(data.series.size(), 20U);
  EXPECT_EQ(moment_text(data.series[0].start), "2015-01-01 00:00:00");
  double rush = 0;
  double night = 0;
  double sunday = 0;
  std::size_t outages = 0;
  for (const auto& series : data.series) {
    ASSERT_EQ(series.values.size(), 17544U);
    bool quiet = false;
    for (std::size_t t = 0; t < series.values.size(); ++t) {
      const float value = series.values[t];
      ASSERT_TRUE(value >= 0 && value <= 1) << value;
      const std::size_t day = (t / 24 + 3) % 7;  // 0 is Monday; the first day is a Thursday
      if (day < 5 && t % 24 == 17) rush += value / 5;
      if (day < 5 && t % 24 == 3) night += value / 5;
      if (day == 6 && t % 24 == 17) sunday += value;
      if (value == 0 && !quiet) ++outages;
      quiet = value == 0;
    }
  }
  EXPECT_GT(rush, 3 * night);
  EXPECT_GT(rush, 1.3 * sunday);
  EXPECT_GT(sunday, 2 * night);
  EXPECT_GT(outages, 20U);
  EXPECT_NE(data.series[0].values, data.series[1].values);
}

TEST(Generate, IsAFunctionOfItsOptions) {
  const auto once = generate_traffic_like({.series = 3, .length = 500, .seed = 7});
  const auto again = generate_traffic_like({.series = 3, .length = 500, .seed = 7});
  const auto other = generate_traffic_like({.series = 3, .length = 500, .seed = 8});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(once.series[i].values, again.series[i].values);
    EXPECT_NE(once.series[i].values, other.series[i].values);
  }
  // A series does not depend on how many there are.
  EXPECT_EQ(generate_traffic_like({.series = 1, .length = 500, .seed = 7}).series[0].values, once.series[0].values);
}

TEST(Generate, RefusesImpossibleSizes) {
  EXPECT_THROW((void)generate_traffic_like({.series = 0, .length = 5, .seed = 1}), UsageError);
  EXPECT_THROW((void)generate_traffic_like({.series = 5, .length = -1, .seed = 1}), UsageError);
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW((void)generate_traffic_like({.series = huge, .length = 5, .seed = 1}), UsageError);
}

}  // namespace
}  // namespace tsdp::data
