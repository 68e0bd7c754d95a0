// Metrics by hand. What GluonTS makes of whole series stands in golden_evaluation_test.cpp.
#include "tsdp/evaluation/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/random/random.h"

namespace tsdp::evaluation {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Two windows of two steps, quantiles 0.1, 0.5, 0.9 and the ends 0.025, 0.975.
TEST(Metrics, IntervalsAndMsisByHand) {
  Metrics metrics({0.1, 0.5, 0.9}, {0.025, 0.975});
  metrics.add({std::vector<double>{1.0, nan}, std::vector<double>{0.5, 0, 1.0, 0, 2.0, 0, 0.0, 0, 3.0, 0},
               std::vector<double>{1.0, 0.0}, 2.0});
  metrics.add({std::vector<double>{-4.0, 6.0},
               std::vector<double>{-3.0, 0.0, -2.0, 1.0, 1.0, 4.0, -3.5, -1.0, 2.0, 5.0},
               std::vector<double>{-2.0, 1.0}, 0.5});
  const auto out = metrics.json();
  // 80 %: widths 1.5; 4, 4. Inside: yes; no, no. 95 %: 3; 5.5, 6. Σ|y| = 11.
  const auto& narrow = out["intervals"]["0.8"];
  EXPECT_DOUBLE_EQ(narrow["mean_width"].get<double>(), (1.5 + 4.0) / 2.0);
  EXPECT_DOUBLE_EQ(narrow["relative_width"].get<double>(), 9.5 / 11.0);
  EXPECT_DOUBLE_EQ(narrow["coverage"].get<double>(), 0.5);
  const auto& wide = out["intervals"]["0.95"];
  EXPECT_DOUBLE_EQ(wide["mean_width"].get<double>(), (3.0 + 5.75) / 2.0);
  EXPECT_DOUBLE_EQ(wide["relative_width"].get<double>(), 14.5 / 11.0);
  EXPECT_EQ(out["intervals"].size(), 2U);
  // Interval scores: 3; 5.5 + 40 · 0.5 and 6 + 40 · 1. Over seasonal errors 2 and 0.5.
  EXPECT_DOUBLE_EQ(out["MSIS"].get<double>(), (3.0 / 2.0 + (25.5 + 46.0) / 2.0 / 0.5) / 2.0);
  // The further levels enter intervals alone.
  EXPECT_EQ(out["quantile_loss"].size(), 3U);
  EXPECT_EQ(out["coverage"].size(), 3U);
  // 2 |(x - y) ([y <= x] - q)| at the three observed places, in the order of time.
  const double low = 0.1 + 1.8 + 1.2;
  const double middle = 0.0 + 2.0 + 5.0;
  const double high = 0.2 + 1.0 + 3.6;
  EXPECT_DOUBLE_EQ(out["quantile_loss"]["0.1"].get<double>(), low);
  EXPECT_DOUBLE_EQ(out["quantile_loss"]["0.5"].get<double>(), middle);
  EXPECT_DOUBLE_EQ(out["quantile_loss"]["0.9"].get<double>(), high);
  EXPECT_DOUBLE_EQ(out["weighted_quantile_loss"]["0.1"].get<double>(), low / 11.0);
  EXPECT_DOUBLE_EQ(out["weighted_quantile_loss"]["0.9"].get<double>(), high / 11.0);
  EXPECT_DOUBLE_EQ(out["mean_absolute_quantile_loss"].get<double>(), (low + middle + high) / 3.0);
  EXPECT_DOUBLE_EQ(out["mean_weighted_quantile_loss"].get<double>(), (low + middle + high) / 33.0);
  EXPECT_DOUBLE_EQ(metrics.mean_weighted_quantile_loss(), (low + middle + high) / 33.0);
  // Shares of covered values, a window at a time: 0 and 1/2; 1 and 1/2; 1 and 1/2.
  EXPECT_DOUBLE_EQ(out["coverage"]["0.1"].get<double>(), 0.25);
  EXPECT_DOUBLE_EQ(out["coverage"]["0.5"].get<double>(), 0.75);
  EXPECT_DOUBLE_EQ(out["coverage"]["0.9"].get<double>(), 0.75);
  EXPECT_NEAR(out["MAE_coverage"].get<double>(), (0.15 + 0.25 + 0.15) / 3.0, 1e-15);
}

TEST(Metrics, WithoutItsLevelsMsisIsNull) {
  Metrics metrics({0.1, 0.5, 0.9});
  metrics.add({std::vector<double>{1.0}, std::vector<double>{0.0, 1.0, 2.0}, std::vector<double>{1.0}, 1.0});
  EXPECT_TRUE(metrics.json()["MSIS"].is_null());
  EXPECT_EQ(metrics.json()["intervals"].size(), 1U);
}

TEST(Metrics, NothingObservedHasNoValue) {
  Metrics metrics({0.5}, {0.025, 0.975});
  metrics.add({std::vector<double>{nan, std::numeric_limits<double>::infinity()}, std::vector<double>(6, 1.0),
               std::vector<double>(2, 1.0), 1.0});
  const auto out = metrics.json();
  for (const auto* name : {"mean_weighted_quantile_loss", "ND", "MASE", "sMAPE", "MAPE", "MSIS", "RMSE"})
    EXPECT_TRUE(out[name].is_null()) << name;
  EXPECT_TRUE(out["intervals"]["0.95"]["mean_width"].is_null());
  EXPECT_EQ(out["num_masked_target_values"], 2);
}

// Those of other windows, told as numbers, count as if the windows had been added here.
TEST(Metrics, SumsOfPartsAreThoseOfAll) {
  const std::vector<double> levels = {0.1, 0.5, 0.9}, further = {0.025, 0.975};
  Metrics all(levels, further), first(levels, further), second(levels, further);
  RandomStream draws(SecretKey::from_seed(3), "windows", 0);
  for (int window = 0; window < 7; ++window) {
    std::vector<double> target(4), mean(4), quantiles;
    for (auto& y : target) y = 10.0 * draws.uniform() - 2.0;
    if (window % 3 == 0) target[1] = nan;
    for (const double at : {2.0, 4.0, 6.0, 1.0, 7.0})
      for (int step = 0; step < 4; ++step) quantiles.push_back(at + draws.uniform());
    const WindowForecast forecast{target, quantiles, mean, window == 2 ? nan : 0.5 + draws.uniform()};
    all.add(forecast);
    (window < 3 ? first : second).add(forecast);
  }
  first.add(second.sums());
  EXPECT_EQ(first.windows(), 7);
  const auto found = first.json().flatten(), expected = all.json().flatten();
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [place, value] : expected.items()) {
    ASSERT_TRUE(value.is_number()) << place;
    EXPECT_NEAR(found[place].get<double>(), value.get<double>(), 1e-12 * std::abs(value.get<double>())) << place;
  }
  EXPECT_THROW(first.add(Metrics(levels).sums()), Error);
  for (const double count : {-1.0, nan, 1e300}) {
    auto wrong = second.sums();
    wrong[1] = count;  // of masked values
    EXPECT_THROW(first.add(wrong), Error);
    EXPECT_EQ(first.windows(), 7);
  }
}

TEST(Metrics, WhatDataDidToAScore) {
  EXPECT_EQ(what_data_did(0.79, 1.0), "your data took 21 % off the start's");
  EXPECT_EQ(what_data_did(1.03, 1.0), "training made it 3 % worse than its start");
  EXPECT_EQ(what_data_did(0.9995, 1.0), "your data made no difference");
  EXPECT_EQ(what_data_did(1.0005, 1.0), "your data made no difference");
  EXPECT_EQ(what_data_did(78.04, 1.0), "training made its CRPS 78 times its start's");
  EXPECT_EQ(what_data_did(std::nan(""), 1.0), "");
  const auto band = [](nlohmann::ordered_json coverage, double width = 1.0) {
    return nlohmann::ordered_json{{"intervals", {{"0.8", {{"coverage", std::move(coverage)}, {"mean_width", width}}}}}};
  };
  EXPECT_EQ(band_in_words(band(0.769)), "too narrow");
  EXPECT_EQ(band_in_words(band(0.771)), "");
  EXPECT_EQ(band_in_words(band(0.831)), "too wide");
  EXPECT_EQ(band_in_words(band(0.3, 0.0)), "");  // a forecaster without bands
  EXPECT_EQ(band_in_words(band(nullptr)), "");
  EXPECT_EQ(band_in_words({{"coverage", {}}}), "");
  EXPECT_EQ(share_in_band(band(0.5)), 0.5);
}

TEST(Metrics, ForecastsThatAreNoNumbersAreErrors) {
  Metrics metrics({0.1, 0.5});
  EXPECT_THROW(metrics.add({std::vector<double>{1.0}, std::vector<double>{nan, 1.0}, std::vector<double>{1.0}, 1.0}),
               Error);
  EXPECT_THROW(metrics.add({std::vector<double>{1.0}, std::vector<double>{1.0, 1.0}, std::vector<double>{nan}, 1.0}),
               Error);
  EXPECT_THROW(metrics.add({std::vector<double>{1.0}, std::vector<double>{1.0}, std::vector<double>{1.0}, 1.0}), Error);
  EXPECT_THROW(Metrics({0.1, 0.9}), UsageError);
}

}  // namespace
}  // namespace tsdp::evaluation
