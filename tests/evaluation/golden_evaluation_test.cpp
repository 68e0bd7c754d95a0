// Every entry of evaluation.json and baselines.json, enumerated at run time.
#include <unistd.h>

#include <map>
#include <set>

#include "support/golden.h"
#include "tsdp/core/text.h"
#include "tsdp/data/calendar_features.h"
#include "tsdp/data/readers.h"
#include "tsdp/data/split.h"
#include "tsdp/data/windows.h"
#include "tsdp/evaluation/backtest.h"

namespace tsdp {
namespace {

using nlohmann::json;
using test::golden_number;

/// Entries that the product does not have yet, or that its other tests read.
const std::set<std::string> not_yet = {"student_t", "auto_ets"};
/// Tested in tests/data/golden_calendar_test.cpp, as are the windows of DeepAR.
const std::set<std::string> elsewhere = {"time_features"};
const std::set<std::string> known = {"metrics", "seasonal_naive", "windows", "lstnet", "tsf",
                                     "gluonts", "numpy",          "pandas",  "torch",  "quantile_levels", "note"};
/// Metrics that the product does not have yet.
const std::set<std::string> metrics_not_yet = {"MSIS", "OWA"};

std::vector<double> numbers(const json& array) {
  std::vector<double> out;
  for (const auto& value : array) out.push_back(golden_number(value));
  return out;
}

/// Our name of one of GluonTS's metrics, as a path into `Metrics::json()`; empty if it is not there.
json found_metric(const nlohmann::ordered_json& ours, const std::string& name) {
  static const std::map<std::string, std::string> names = {{"mean_wQuantileLoss", "mean_weighted_quantile_loss"},
                                                           {"MAE_Coverage", "MAE_coverage"}};
  const auto bracket = name.find('[');
  if (bracket == std::string::npos) {
    const auto renamed = names.contains(name) ? names.at(name) : name;
    return ours.contains(renamed) ? json(ours[renamed]) : json();
  }
  const auto level = name.substr(bracket + 1, name.size() - bracket - 2);
  const auto kind = name.substr(0, bracket);
  const auto group = kind == "Coverage" ? "coverage" : "weighted_quantile_loss";
  auto value = json(ours[group].value(level, json()));
  if (kind == "QuantileLoss" && value.is_number()) value = value.get<double>() * ours["abs_target_sum"].get<double>();
  return value;
}

void expect_metrics(const nlohmann::ordered_json& ours, const json& expected, double tolerance) {
  // Where targets are masked, the reference's MAE_Coverage need not be mean |Coverage[q] − q| of its own Coverage[q]
  // (0.5 instead of 0.139 in the first case). Ours is that mean, so it is compared only where the reference's is too; the
  // coverages themselves always are.
  double by_definition = 0.0;
  for (const double q : evaluation::default_levels())
    by_definition += std::abs(golden_number(expected.at(cat("Coverage[", q, "]"))) - q) / 9.0;
  const bool artefact = std::abs(golden_number(expected.at("MAE_Coverage")) - by_definition) > 1e-3;
  for (const auto& [name, value] : expected.items()) {
    if (metrics_not_yet.contains(name) || (artefact && name == "MAE_Coverage")) continue;
    auto found = found_metric(ours, name);
    if (name == "mean_absolute_QuantileLoss")
      found = ours["mean_weighted_quantile_loss"].get<double>() * ours["abs_target_sum"].get<double>();
    if (!std::isfinite(golden_number(value))) {
      EXPECT_TRUE(found.is_null()) << name;
      continue;
    }
    ASSERT_TRUE(found.is_number()) << "no metric " << name;
    EXPECT_NEAR(found.get<double>(), golden_number(value), tolerance * (1e-3 + std::abs(golden_number(value)))) << name;
  }
}

TEST(GoldenEvaluation, NoUnknownEntries) {
  const auto all = test::golden_json("evaluation.json");
  if (!all) GTEST_SKIP() << "no evaluation.json";
  for (const auto& [name, unused] : all->items()) {
    EXPECT_TRUE(known.contains(name) || elsewhere.contains(name) || not_yet.contains(name)) << "unknown entry " << name;
    if (not_yet.contains(name)) std::cout << name << ": not available yet, skipped\n";
  }
}

TEST(GoldenEvaluation, Metrics) {
  const auto all = test::golden_json("evaluation.json");
  if (!all || !all->contains("metrics")) GTEST_SKIP() << "no entry metrics";
  int number = 0;
  for (const auto& c : (*all)["metrics"]) {
    SCOPED_TRACE("case " + std::to_string(number++) + ", " + c["kind"].get<std::string>());
    const auto horizon = c["prediction_length"].get<std::size_t>();
    const auto frequency = data::Frequency::parse(c["freq"].get<std::string>());
    const auto season =
        c["seasonality"].is_null() ? data::default_season_length(frequency) : c["seasonality"].get<std::int64_t>();
    evaluation::Metrics metrics(evaluation::default_levels());
    for (std::size_t i = 0; i < c["series"].size(); ++i) {
      const auto values = numbers(c["series"][i]["values"]);
      const std::vector<double> target(values.end() - static_cast<std::ptrdiff_t>(horizon), values.end());
      const std::vector<double> past(values.begin(), values.end() - static_cast<std::ptrdiff_t>(horizon));
      std::vector<double> quantiles;
      std::vector<double> mean;
      if (c.contains("quantile_forecasts")) {
        for (const auto& level : c["quantile_forecasts"][i])
          for (const double x : numbers(level)) quantiles.push_back(x);
        mean = numbers(c["mean_forecasts"][i]);
      } else {
        mean = numbers(c["mean_then_quantiles"][i][0]);
        for (std::size_t q = 1; q < c["mean_then_quantiles"][i].size(); ++q)
          for (const double x : numbers(c["mean_then_quantiles"][i][q])) quantiles.push_back(x);
      }
      metrics.add({target, quantiles, mean, evaluation::seasonal_error(past, season)});
    }
    expect_metrics(metrics.json(), c["expected"]["aggregate"], 1e-6);
  }
}

TEST(GoldenEvaluation, SeasonalNaive) {
  const auto all = test::golden_json("evaluation.json");
  if (!all || !all->contains("seasonal_naive")) GTEST_SKIP() << "no entry seasonal_naive";
  for (const auto& c : (*all)["seasonal_naive"]) {
    std::vector<float> target;
    for (const double x : numbers(c["target"])) target.push_back(static_cast<float>(x));
    const auto found = evaluation::seasonal_naive(target, c["season_length"], c["prediction_length"]);
    const auto expected = numbers(c["forecast"]);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], expected[k], 1e-6 * std::abs(expected[k]));
  }
}

TEST(GoldenEvaluation, WindowsOfAPlainModel) {
  const auto all = test::golden_json("evaluation.json");
  if (!all || !all->contains("windows")) GTEST_SKIP() << "no entry windows";
  const auto& entry = (*all)["windows"];
  data::Dataset dataset;
  data::Series series;
  for (const double x : numbers(entry["target"])) series.values.push_back(static_cast<float>(x));
  dataset.series.push_back(series);
  for (const auto& w : entry["univariate"]) {
    SCOPED_TRACE(w["t"].get<std::int64_t>());
    const data::WindowStore store(dataset, w["L_C"], w["L_F"]);
    const auto width = static_cast<std::size_t>(store.window_length());
    std::vector<float> values(width);
    std::vector<float> observed(width);
    const std::vector<data::WindowIndex> index = {{0, w["t"]}};
    store.gather(index, values.data(), observed.data());
    std::vector<float> expected_values;
    std::vector<float> expected_observed;
    for (const auto* part : {"past_target", "future_target"})
      for (const double x : numbers(w[part])) expected_values.push_back(static_cast<float>(x));
    for (const auto* part : {"past_observed_values", "future_observed_values"})
      for (const double x : numbers(w[part])) expected_observed.push_back(static_cast<float>(x));
    EXPECT_EQ(values, expected_values);
    EXPECT_EQ(observed, expected_observed);
  }
}

TEST(GoldenEvaluation, LstnetSplits) {
  const auto all = test::golden_json("evaluation.json");
  if (!all || !all->contains("lstnet")) GTEST_SKIP() << "no entry lstnet";
  for (const auto& [name, c] : (*all)["lstnet"].items()) {
    if (!c.is_object() || !c.contains("steps")) continue;
    SCOPED_TRACE(name);
    data::Dataset dataset;
    dataset.series.push_back({"0", 0, std::vector<float>(c["steps"].get<std::size_t>(), 1.0F)});
    const auto horizon = c["prediction_length"].get<std::int64_t>();
    const auto split = data::split_dataset(dataset, {data::SplitKind::lstnet, horizon, c["windows"], 0});
    EXPECT_EQ(split.training_length[0], c["train_length"].get<std::int64_t>());
    std::vector<std::int64_t> lengths;
    for (const auto& range : split.test) lengths.push_back(range.forecast_start + horizon);
    EXPECT_EQ(lengths, c["test_lengths"].get<std::vector<std::int64_t>>());
  }
}

TEST(GoldenEvaluation, TsfText) {
  const auto all = test::golden_json("evaluation.json");
  if (!all || !all->contains("tsf")) GTEST_SKIP() << "no entry tsf";
  const auto& c = (*all)["tsf"];
  const auto file = std::filesystem::temp_directory_path() / ("tsdp_golden_" + std::to_string(::getpid()) + ".tsf");
  std::ofstream(file) << c["text"].get<std::string>();
  const auto dataset = data::read_dataset(file, {data::Format::tsf, data::Frequency::parse("10min"), {}});
  std::filesystem::remove(file);
  ASSERT_EQ(dataset.series.size(), c["series"].size());
  for (std::size_t s = 0; s < dataset.series.size(); ++s) {
    // Trailing missing values are cut off here; the others must agree.
    const auto expected = numbers(c["series"][s]["target"]);
    const auto& found = dataset.series[s].values;
    for (std::size_t t = 0; t < expected.size(); ++t) {
      if (t >= found.size() || std::isnan(expected[t])) {
        EXPECT_TRUE(std::isnan(expected[t]) && (t >= found.size() || std::isnan(found[t])));
      } else {
        EXPECT_EQ(found[t], static_cast<float>(expected[t]));
      }
    }
  }
}

// Seasonal naive end to end on the shipped files: reading, splitting, forecasting and scoring at once.
TEST(GoldenEvaluation, BaselinesOfTheShippedFiles) {
  const auto all = test::golden_json("baselines.json");
  if (!all) GTEST_SKIP() << "no baselines.json";
  for (const auto& c : (*all)["cases"]) {
    const auto name = c["file"].get<std::string>();
    SCOPED_TRACE(name);
    const auto file = std::filesystem::path(TSDP_SOURCE_DIR) / "data" / name;
    if (!std::filesystem::exists(file)) {
      std::cout << name << ": not shipped, skipped\n";
      continue;
    }
    const bool tsf = name.find(".tsf") != std::string::npos;
    data::ReadOptions options{tsf ? data::Format::tsf : data::Format::lstnet,
                              data::Frequency::parse(c["frequency"].get<std::string>()), data::Moment{0}};
    const auto dataset = data::read_dataset(file, options);
    const auto horizon = c["prediction_length"].get<std::int64_t>();
    const auto windows = c.value("test_windows", std::int64_t{1});
    const auto split = data::split_dataset(
        dataset, {tsf ? data::SplitKind::last : data::SplitKind::lstnet, horizon, windows, 0});
    EXPECT_EQ(static_cast<std::int64_t>(split.test.size()), c["entries"].get<std::int64_t>());
    if (c.contains("train_length") && c["train_length"].is_number()) {
      EXPECT_EQ(split.training_length[0], c["train_length"].get<std::int64_t>());
    }
    const auto metrics = evaluation::backtest_seasonal_naive(dataset, split.test, horizon, c["season_length"]);
    expect_metrics(metrics.json(), c["metrics"], 2e-5);
  }
}

}  // namespace
}  // namespace tsdp
