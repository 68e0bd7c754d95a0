// Forecasts that are free: each against its definition, and which of them is the best.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tsdp/evaluation/backtest.h"

namespace tsdp::evaluation {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
const std::vector<double> levels = {0.1, 0.5, 0.9};

/// Quantile q of step k.
double at(const BaselineForecast& forecast, std::size_t q, std::size_t k) {
  return forecast.quantiles.at(q * forecast.mean.size() + k);
}

TEST(Baselines, ReadFourWeeksOfDaysOrEightSeasons) {
  const auto count = [](const char* step, std::int64_t season) {
    return seasons_of(data::Frequency::parse(step), season).count;
  };
  EXPECT_EQ(count("1h", 24), 28);
  EXPECT_EQ(count("1h", 168), 8);
  EXPECT_EQ(count("15min", 96), 28);
  EXPECT_EQ(count("10min", 145), 8);
  EXPECT_EQ(count("1D", 1), 28);
  EXPECT_EQ(count("1D", 7), 8);
  EXPECT_EQ(count("B", 5), 8);
  EXPECT_EQ(count("1M", 12), 8);
}

// Season of 3: the places hold 0, 10, 20, … and 100, 110, … and 200, 210, ….
TEST(Baselines, SeasonalQuantilesAreThoseOfTheSamePlace) {
  std::vector<float> past;
  for (int season = 0; season < 6; ++season)
    for (int place = 0; place < 3; ++place) past.push_back(100.0F * place + 10.0F * season);
  const auto found = baseline_forecast(Baseline::seasonal_quantiles, past, {3, 5}, 4, levels);
  // The last five seasons have 10, 20, 30, 40, 50 at the first place: order statistics 0.4, 2 and 3.6.
  for (const std::size_t k : {0U, 3U}) {
    EXPECT_DOUBLE_EQ(at(found, 0, k), 14.0) << k;
    EXPECT_DOUBLE_EQ(at(found, 1, k), 30.0) << k;
    EXPECT_DOUBLE_EQ(at(found, 2, k), 46.0) << k;
    EXPECT_DOUBLE_EQ(found.mean[k], 30.0) << k;
  }
  EXPECT_DOUBLE_EQ(at(found, 1, 1), 130.0);
  EXPECT_DOUBLE_EQ(at(found, 1, 2), 230.0);
  // A past that does not end with a season begins where it ends; with fewer seasons, all there are.
  const auto later = baseline_forecast(Baseline::seasonal_quantiles, std::span(past).first(4), {3, 5}, 3, levels);
  EXPECT_DOUBLE_EQ(at(later, 1, 0), 100.0);
  EXPECT_DOUBLE_EQ(at(later, 1, 1), 200.0);
  EXPECT_DOUBLE_EQ(at(later, 1, 2), 5.0);
}

TEST(Baselines, SeasonalQuantilesLeaveMissingValuesOut) {
  std::vector<float> past = {1.0F, nan, 3.0F, nan, 5.0F, nan};
  const auto found = baseline_forecast(Baseline::seasonal_quantiles, past, {2, 3}, 2, levels);
  EXPECT_DOUBLE_EQ(at(found, 1, 0), 3.0);
  // Nothing was observed at the second place: all values of these seasons.
  EXPECT_DOUBLE_EQ(at(found, 0, 1), 1.4);
  EXPECT_DOUBLE_EQ(at(found, 2, 1), 4.6);
  // Nothing in the last season: the values before it.
  past.insert(past.end(), {nan, nan});
  EXPECT_DOUBLE_EQ(at(baseline_forecast(Baseline::seasonal_quantiles, past, {2, 1}, 1, levels), 1, 0), 3.0);
  for (const auto& [baseline, name] : names_of(Baseline{}))
    for (const auto& none : {std::vector<float>{}, std::vector<float>{nan, nan, nan}}) {
      const auto nothing = baseline_forecast(baseline, none, {2, 3}, 3, levels);
      EXPECT_EQ(nothing.quantiles, std::vector<double>(9, 0.0)) << name;
      EXPECT_EQ(nothing.mean, std::vector<double>(3, 0.0)) << name;
    }
}

TEST(Baselines, BandsOfSeasonalNaiveAreItsOwnErrors) {
  // Season of 2; errors of one season apart: 1, 2, 3, 4, 5, 6, of two apart: 4, 6, 8, 10.
  const std::vector<float> past = {0.0F, 0.0F, 1.0F, 2.0F, 4.0F, 6.0F, 9.0F, 12.0F};
  const auto found = baseline_forecast(Baseline::seasonal_naive_bands, past, {2, 10}, 3, levels);
  EXPECT_DOUBLE_EQ(at(found, 0, 0), 9.0 + 1.5);
  EXPECT_DOUBLE_EQ(at(found, 1, 1), 12.0 + 3.5);
  EXPECT_DOUBLE_EQ(at(found, 1, 2), 9.0 + 7.0);
  EXPECT_DOUBLE_EQ(found.mean[2], 9.0 + 7.0);
  // Of the last season alone: 5 and 6.
  EXPECT_DOUBLE_EQ(at(baseline_forecast(Baseline::seasonal_naive_bands, past, {2, 1}, 1, levels), 1, 0), 14.5);
  const auto naive = baseline_forecast(Baseline::seasonal_naive, past, {2, 10}, 3, levels);
  for (std::size_t q = 0; q < 3; ++q) EXPECT_DOUBLE_EQ(at(naive, q, 2), 9.0);
}

TEST(Baselines, TheBestThatIsFreeHasTheLeastScore) {
  const char* crps = "mean_weighted_quantile_loss";
  using mechanism::StartOrigin;
  EXPECT_FALSE(best_free(nlohmann::ordered_json::object(), StartOrigin::fresh));
  EXPECT_FALSE(best_free({{"a", {{crps, nullptr}}}}, StartOrigin::fresh));
  const nlohmann::ordered_json scores = {
      {"a", {{crps, 0.3}}}, {"b", {{crps, 0.2}}}, {"c", {{crps, nullptr}}}, {"start", {{crps, 0.1}}}};
  for (const auto origin : {StartOrigin::fresh, StartOrigin::synthetic})
    EXPECT_EQ(best_free(scores, origin)->name, "start");
  // A start that rests on data is not free, however good it is.
  EXPECT_EQ(best_free(scores, StartOrigin::trained_without_privacy)->name, "b");
  const auto best = best_free(scores, StartOrigin::trained);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->name, "b");
  EXPECT_EQ(best->crps, 0.2);
}

TEST(Baselines, AScoreBesideWhatIsFreeInWords) {
  EXPECT_EQ(beside_free(0.08, 0.1), "the model is 20 % better than what is free");
  EXPECT_EQ(beside_free(0.12, 0.1), "the model is 20 % worse than what is free");
  EXPECT_EQ(beside_free(0.26, 0.1), "the model is 160 % worse than what is free");
  EXPECT_EQ(beside_free(7.8, 0.1), "the model's CRPS is 78 times that of what is free");
  EXPECT_EQ(beside_free(0.1004, 0.1), "the model is as good as what is free");
  EXPECT_EQ(beside_free(0.1, std::numeric_limits<double>::quiet_NaN()), "");
}

}  // namespace
}  // namespace tsdp::evaluation
