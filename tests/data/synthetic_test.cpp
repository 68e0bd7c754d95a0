#include "data/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tsdp/base/error.h"

namespace tsdp::data {
namespace {

double mean_of(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float v : values) sum += static_cast<double>(v);
  return sum / static_cast<double>(values.size());
}

/// Correlation of a series with itself `lag` steps later.
double correlation(const std::vector<float>& values, std::size_t lag) {
  const double mean = mean_of(values);
  double both = 0.0;
  double square = 0.0;
  for (std::size_t t = 0; t < values.size(); ++t) {
    const double here = static_cast<double>(values[t]) - mean;
    square += here * here;
    if (t >= lag) both += here * (static_cast<double>(values[t - lag]) - mean);
  }
  return square > 0.0 ? both / square : 0.0;
}

TEST(Synthetic, HoldsManyKindsOfSeries) {
  for (const auto kind : {SyntheticKind::ten_minutes, SyntheticKind::hourly, SyntheticKind::daily,
                          SyntheticKind::business_daily, SyntheticKind::weekly, SyntheticKind::monthly}) {
    SCOPED_TRACE(name(kind));
    const auto data = generate_synthetic(kind, {200, 600, 7});
    ASSERT_EQ(data.series.size(), 200U);
    int positive = 0, signed_values = 0, whole = 0, with_zeros = 0, constant = 0, walks = 0;
    double least_level = 1e300, largest_level = 0.0;
    for (const auto& series : data.series) {
      ASSERT_EQ(series.values.size(), 600U);
      for (const float v : series.values) ASSERT_TRUE(std::isfinite(v)) << series.id;
      const auto [low, high] = std::minmax_element(series.values.begin(), series.values.end());
      const auto zeros = std::count(series.values.begin(), series.values.end(), 0.0F);
      positive += *low > 0.0F;
      signed_values += *low < 0.0F && *high > 0.0F;
      whole += std::all_of(series.values.begin(), series.values.end(),
                           [](float v) { return v == std::floor(v) && v >= 0.0F; });
      with_zeros += zeros > 60;
      constant += *low == *high;
      walks += correlation(series.values, 1) > 0.97;
      least_level = std::min(least_level, std::abs(mean_of(series.values)));
      largest_level = std::max(largest_level, std::abs(mean_of(series.values)));
    }
    EXPECT_GT(positive, 60);
    EXPECT_GT(signed_values, 20);
    EXPECT_GT(whole, 10);
    EXPECT_GT(with_zeros, 5);
    EXPECT_GT(walks, 10);
    EXPECT_LT(constant, 4);
    EXPECT_GT(largest_level / std::max(least_level, 1e-3), 1e4);
  }
}

TEST(Synthetic, HasItsSeasons) {
  const auto seasonal_share = [](SyntheticKind kind, std::size_t season) {
    int out = 0;
    const auto data = generate_synthetic(kind, {100, static_cast<std::int64_t>(8 * season), 3});
    for (const auto& series : data.series)
      out += correlation(series.values, season) > 0.2 &&
             correlation(series.values, season) > correlation(series.values, season / 2) + 0.1;
    return out;
  };
  EXPECT_GT(seasonal_share(SyntheticKind::hourly, 24), 40);
  EXPECT_GT(seasonal_share(SyntheticKind::ten_minutes, 144), 40);
  EXPECT_GT(seasonal_share(SyntheticKind::monthly, 12), 40);
}

TEST(Synthetic, FollowsFromItsOptions) {
  const auto one = generate_synthetic(SyntheticKind::hourly, {5, 300, 2});
  const auto more = generate_synthetic(SyntheticKind::hourly, {9, 300, 2});
  const auto other = generate_synthetic(SyntheticKind::hourly, {5, 300, 3});
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(one.series[i].values, more.series[i].values);
    EXPECT_NE(one.series[i].values, other.series[i].values);
  }
  EXPECT_EQ(one.frequency, (Frequency{1, Frequency::Unit::hour}));
  EXPECT_THROW(static_cast<void>(generate_synthetic(SyntheticKind::hourly, {0, 300, 2})), UsageError);
  EXPECT_THROW(static_cast<void>(generate_synthetic(SyntheticKind::hourly, {1'000'000, 1'000'000, 2})), UsageError);
}

}  // namespace
}  // namespace tsdp::data
