// Forecasts after the end of series, and the privatised pasts that they are made from.
#include "evaluation/series_forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "data/calendar_features.h"
#include "models/forecaster.h"
#include "support/ledger.h"
#include "tsdp/base/error.h"
#include "tsdp/data/feature_store.h"
#include "tsdp/export/torchscript.h"

namespace tsdp::evaluation {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

data::Dataset dataset_of(std::vector<std::vector<float>> values, const char* frequency = "1h") {
  data::Dataset out;
  out.frequency = data::Frequency::parse(frequency);
  for (auto& series : values) out.series.push_back({std::to_string(out.series.size()), 0, std::move(series)});
  for (auto& series : out.series) series.exact.assign(series.values.begin(), series.values.end());
  return out;
}

std::vector<float> ramp(std::size_t length, float from = 1.0F) {
  std::vector<float> out(length);
  std::iota(out.begin(), out.end(), from);
  return out;
}

torch::jit::Module module_of(const std::string& name, models::ModelOptions options) {
  const auto model = models::make_model(name, options, at::kFloat);
  RandomStream stream(SecretKey::from_seed(9), "initial weights", 0);
  model->initialise(stream);
  return exporting::make_module(*model);
}

PrivateInference inference(double v, double keep, std::uint64_t seed = 4) {
  return {sampling::PrivateContext({1.0, 1e-4, v, 1, keep}), SecretKey::from_seed(seed), true};
}

TEST(SeriesForecast, IsTheModelsForecastOfTheLastValues) {
  auto module = module_of("simple_ff", {6, 3});
  auto dataset = dataset_of({ramp(20), ramp(4, 50.0F), ramp(9, -3.0F)});
  dataset.series[2].values[5] = nan;
  ForecastRequest request;
  request.levels = {0.5, 0.9};
  request.samples = 3;
  const auto found = forecast_series(module, dataset, request, at::kCPU);
  ASSERT_EQ(found.size(), 3U);
  // One by one, the last six values as they are: shorter pasts are padded by the module itself.
  for (std::size_t s = 0; s < 3; ++s) {
    const auto& values = dataset.series[s].values;
    const auto past = at::tensor(values, at::kFloat).unsqueeze(0);
    RandomStream draws(SecretKey::from_seed(0), "other", 0);
    const auto direct = forecast(module, past, at::ones_like(past), {}, request.levels, draws);
    for (std::size_t k = 0; k < 3; ++k) {
      // Four units in the last place of the largest value: a mean may be the small rest of large terms.
      EXPECT_NEAR(found[s].mean[k], direct.mean[0][static_cast<std::int64_t>(k)].item<double>(),
                  4 * 0x1p-23 * past.nan_to_num().abs().max().item<double>());
      for (std::size_t q = 0; q < 2; ++q)
        EXPECT_NEAR(found[s].quantiles[3 * q + k],
                    direct.quantiles[0][static_cast<std::int64_t>(q)][static_cast<std::int64_t>(k)].item<double>(),
                    1e-4);
      EXPECT_EQ(found[s].times[k], static_cast<data::Moment>(3600 * (values.size() + k)));
    }
    EXPECT_EQ(found[s].samples.size(), 9U);
  }
}

TEST(SeriesForecast, ReadsTheCalendarOfTheStepsToForecast) {
  const auto frequency = data::Frequency::parse("1h");
  auto module =
      module_of("deepar", {6, 3, {1, 2, 5}, static_cast<std::int64_t>(data::window_feature_names(frequency).size())});
  const auto dataset = dataset_of({ramp(20), ramp(4, 50.0F)});
  ForecastRequest request;
  const auto found = forecast_series(module, dataset, request, at::kCPU);
  // As a window inside a longer series, whose values to come are not looked at.
  auto longer = dataset_of({ramp(23), ramp(7, 50.0F)});
  const auto past_length = module.attr("past_length").toInt();
  const data::FeatureStore features(longer, past_length, 3);
  const data::WindowStore windows(longer, past_length, 3);
  const std::vector<data::WindowIndex> indices = {{0, 20}, {1, 4}};
  auto values = at::empty({2, past_length + 3}, at::kFloat);
  auto observed = at::empty_like(values);
  auto known = at::empty({2, past_length + 3, features.feature_count()}, at::kFloat);
  windows.gather(indices, values.data_ptr<float>(), observed.data_ptr<float>());
  features.gather(indices, known.data_ptr<float>());
  RandomStream draws(request.draws, "forecast", 0);
  const auto direct = forecast(module, values.narrow(1, 0, past_length), observed.narrow(1, 0, past_length), known,
                               request.levels, draws);
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t i = 0; i < found[s].quantiles.size(); ++i)
      EXPECT_EQ(
          found[s].quantiles[i],
          direct.quantiles[static_cast<std::int64_t>(s)].reshape({-1})[static_cast<std::int64_t>(i)].item<double>());
}

TEST(SeriesForecast, MonthsKeepTheirDay) {
  auto module = module_of("simple_ff", {2, 3});
  auto dataset = dataset_of({ramp(1)}, "1M");
  ASSERT_TRUE(data::parse_moment("2015-01-31", dataset.series[0].start));
  const auto found = forecast_series(module, dataset, {}, at::kCPU);
  EXPECT_EQ(data::moment_text(found[0].times[0]), "2015-02-28 00:00:00");
  EXPECT_EQ(data::moment_text(found[0].times[1]), "2015-03-31 00:00:00");
}

TEST(SeriesForecast, AlignedSeriesEndTogether) {
  auto dataset = dataset_of({ramp(10), ramp(7), ramp(3)});
  dataset.series[2].start = 3600 * 6;  // ends after 9 hours
  EXPECT_EQ(align_ends(dataset), 2);
  EXPECT_EQ(dataset.series[0].values.size(), 10U);
  ASSERT_EQ(dataset.series[1].values.size(), 10U);
  EXPECT_TRUE(std::isnan(dataset.series[1].values[7]));
  EXPECT_EQ(dataset.series[2].values.size(), 4U);
  for (const auto& series : dataset.series) {
    ASSERT_EQ(series.exact.size(), series.values.size());
    for (std::size_t t = 0; t < series.values.size(); ++t)
      EXPECT_EQ(std::isnan(series.exact[t]), std::isnan(series.values[t]));
  }
  EXPECT_EQ(align_ends(dataset), 0);
}

// One wrong year would make every other series as long as memory allows.
TEST(SeriesForecast, EndsThatLieTooFarApartAreNamed) {
  auto dataset = dataset_of({ramp(10), ramp(7)}, "1s");
  ASSERT_TRUE(data::parse_moment("2015-01-01", dataset.series[1].start));
  try {
    static_cast<void>(align_ends(dataset));
    ADD_FAILURE() << "1.4 thousand million missing values were made";
  } catch (const DataError& error) {
    const std::string line = error.what();
    for (const auto* part :
         {"series '0' ends before 1970-01-01 00:00:10", "another before 2015-01-01 00:00:07", "10001700"})
      EXPECT_NE(line.find(part), std::string::npos) << line;
  }
}

TEST(SeriesForecast, IdsThatCsvWouldReadOtherwiseAreQuoted) {
  SeriesForecast one;
  one.id = "a,\"b\"";
  one.times = {0};
  one.mean = {0.1};
  one.quantiles = {static_cast<double>(0.1F)};
  const std::vector<double> levels = {0.5};
  EXPECT_EQ(forecasts_as_csv(std::vector<SeriesForecast>{one}, levels),
            "item_id,timestamp,mean,0.5\n\"a,\"\"b\"\"\",1970-01-01 00:00:00,0.1,0.1\n");
}

TEST(PrivatePasts, ModelAndSeasonalNaiveReadOneRelease) {
  auto dataset = dataset_of({std::vector<float>(40, 100.0F), std::vector<float>(5, 100.0F)});
  dataset.series[0].values[37] = nan;
  dataset.series[0].exact[37] = static_cast<double>(nan);
  const auto privacy = inference(1.0, 0.5);
  PastSource pasts(dataset, 4, 10, &privacy);
  EXPECT_EQ(pasts.read_length(), 10);
  const std::vector<data::WindowIndex> indices = {{0, 40}, {1, 5}};
  // Several uses: among them those that keep nothing of a window or of a series, which is missing then.
  for (std::uint64_t use = 7; use < 107; use += 2) {
    pasts.gather(indices, use);
    // The release itself, drawn again.
    for (std::size_t i = 0; i < 2; ++i) {
      SCOPED_TRACE(testing::Message() << "use " << use << ", series " << i);
      std::vector<float> values(10, 100.0F);
      std::vector<float> marks(10, 1.0F);
      if (i == 0) values[7] = marks[7] = 0.0F;
      if (i == 1) std::fill_n(values.begin(), 5, 0.0F), std::fill_n(marks.begin(), 5, 0.0F);
      const auto observed = marks;
      RandomStream coins(privacy.key, sampling::context_coins_purpose, use + i);
      const std::vector<double> exact(values.begin(), values.end());
      privacy.mechanism.release(coins, RandomStream(privacy.key, sampling::context_noise_purpose, use + i), exact,
                                values, marks);
      // What place j then holds where the mean of the places from `from` on stands in; NaN where it is missing.
      const auto released = [&](std::size_t from, std::size_t j) {
        double sum = 0.0;
        double count = 0.0;
        for (std::size_t k = from; k < 10; ++k)
          if (marks[k] != 0.0F) sum += static_cast<double>(values[k]), count += 1.0;
        if (observed[j] == 0.0F || count == 0.0) return nan;
        return marks[j] != 0.0F ? values[j] : static_cast<float>(sum / count);
      };
      for (std::size_t j = 6; j < 10; ++j) {
        const auto at = static_cast<std::int64_t>(j - 6);
        const float expected = released(6, j);
        EXPECT_EQ(pasts.target()[static_cast<std::int64_t>(i)][at].item<float>(),
                  std::isnan(expected) ? 0.0F : expected)
            << j;
        EXPECT_EQ(pasts.observed()[static_cast<std::int64_t>(i)][at].item<float>(), std::isnan(expected) ? 0.0F : 1.0F)
            << j;
      }
      const auto naive = pasts.naive_past(i);
      ASSERT_EQ(naive.size(), i == 0 ? 10U : 5U);
      for (std::size_t j = 10 - naive.size(); j < 10; ++j) {
        const float found = naive[j - (10 - naive.size())];
        const float expected = released(0, j);
        EXPECT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected)))
            << j << ": " << found << ", " << expected;
      }
    }
  }
}

TEST(PrivatePasts, NoiseMeetsValuesInDoublePrecision) {
  // Floats lie 64 apart at 1e9: what they are is no matter, only what the doubles are.
  auto dataset = dataset_of({std::vector<float>(10, 1e9F)});
  std::fill(dataset.series[0].exact.begin(), dataset.series[0].exact.end(), 1000000031.0);
  const auto privacy = inference(2.0, 1.0);
  PastSource pasts(dataset, 10, 1, &privacy);
  const std::vector<data::WindowIndex> indices = {{0, 10}};
  int up = 0;
  for (std::uint64_t use = 0; use < 50; ++use) {
    pasts.gather(indices, use);
    std::vector<double> normals(10);
    RandomStream(privacy.key, sampling::context_noise_purpose, use).normals(0, normals);
    for (std::int64_t j = 0; j < 10; ++j) {
      const double y = 1000000031.0 + privacy.mechanism.noise() * normals[static_cast<std::size_t>(j)];
      EXPECT_EQ(pasts.target()[0][j].item<float>(), y > 1000000032.0 ? 1000000064.0F : 1e9F) << y;
      up += y > 1000000032.0 ? 1 : 0;
    }
    EXPECT_EQ(pasts.naive_past(0)[9], pasts.target()[0][9].item<float>());
  }
  EXPECT_GT(up, 150);
  dataset.series[0].exact.clear();
  EXPECT_THROW(PastSource(dataset, 10, 1, &privacy), Error);
  EXPECT_NO_THROW(PastSource(dataset, 10, 1, nullptr));
}

TEST(PrivatePasts, NothingOfTheSeriesIsReadBesides) {
  // With noise far above the values, forecasts of other values in the same places are the same but for rounding.
  const auto privacy = inference(1e6, 0.75);
  for (const auto* name : {"simple_ff", "dlinear", "itransformer", "deepar"}) {
    SCOPED_TRACE(name);
    const auto frequency = data::Frequency::parse("1h");
    const bool deepar = std::string(name) == "deepar";
    auto module = module_of(name, {6, 3, deepar ? std::vector<std::int64_t>{1, 24} : std::vector<std::int64_t>{},
                                   static_cast<std::int64_t>(data::window_feature_names(frequency).size())});
    ForecastRequest request;
    request.season_length = 24;
    request.privacy = &privacy;
    const auto a = forecast_series(module, dataset_of({ramp(60)}), request, at::kCPU);
    const auto b = forecast_series(module, dataset_of({std::vector<float>(60, -0.5F)}), request, at::kCPU);
    double largest = 0.0;
    for (const double x : a[0].quantiles) largest = std::max(largest, std::abs(x));
    ASSERT_GT(largest, 1e4);
    for (std::size_t i = 0; i < a[0].quantiles.size(); ++i)
      EXPECT_NEAR(a[0].quantiles[i], b[0].quantiles[i], 2e-3 * largest);
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(a[0].seasonal_naive[k], b[0].seasonal_naive[k], 100.0);
  }
}

TEST(InferencePrivacy, StatesSumsRoundedUp) {
  auto privacy = inference(0.5, 1.0);
  // Noise of a seed protects nobody, whatever the model's own did.
  EXPECT_TRUE(with_training(privacy, test::ledger())["epsilon"].is_null());
  privacy.reproducible = false;
  const auto claim = inference_privacy(privacy, 3);
  EXPECT_EQ(claim["composition"]["epsilon"], 3.0);
  EXPECT_GE(claim["composition"]["delta"].get<double>(), 3 * 1e-4);
  const auto ledger = test::ledger();
  const double sum = 1.0 + ledger["epsilon"]["upper"].get<double>();
  const auto together = with_training(privacy, ledger);
  EXPECT_GE(together["epsilon"].get<double>(), sum);
  EXPECT_LE(together["epsilon"].get<double>(), sum * (1.0 + 1e-15));
  EXPECT_GE(together["delta"].get<double>(), 1e-4 + 1e-7);
  EXPECT_NE(together["text"].get<std::string>().find(ledger["statement"].get<std::string>()), std::string::npos);
  EXPECT_TRUE(with_training(privacy, test::ledger(false))["epsilon"].is_null());
  auto of_a_seed = ledger;
  of_a_seed["reproducible"] = true;
  EXPECT_TRUE(with_training(privacy, of_a_seed)["epsilon"].is_null());
}

}  // namespace
}  // namespace tsdp::evaluation
