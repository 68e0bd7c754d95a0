// Every entry of evaluation.json and baselines.json, enumerated at run time.
#include <unistd.h>

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "data/calendar_features.h"
#include "models/forecaster.h"
#include "support/golden.h"
#include "tsdp/base/text.h"
#include "tsdp/data/readers.h"
#include "tsdp/data/windows.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"

namespace tsdp {
namespace {

using nlohmann::json;
using test::golden_number;

/// Entries that the product does not have yet.
const std::set<std::string> not_yet = {};
/// Of another program: what scripts/auto_ets.py and its --check are compared with, not the product.
const std::set<std::string> for_comparison = {"auto_ets"};
/// Tested in tests/data/golden_calendar_test.cpp, as are the windows of DeepAR.
const std::set<std::string> elsewhere = {"time_features"};
const std::set<std::string> known = {"metrics", "seasonal_naive", "windows", "lstnet", "tsf",  "student_t",
                                     "gluonts", "numpy",          "pandas",  "torch",  "note", "quantile_levels"};
/// Metrics that the product does not have yet. (OWA is NaN in all records: GluonTS computes it only when asked to.)
const std::set<std::string> metrics_not_yet = {};

std::vector<double> numbers(const json& array) {
  std::vector<double> out;
  for (const auto& value : array) out.push_back(golden_number(value));
  return out;
}

/// Our name of one of GluonTS's metrics, as a path into `Metrics::json()`; empty if it is not there.
json found_metric(const nlohmann::ordered_json& ours, const std::string& name) {
  static const std::map<std::string, std::string> names = {
      {"mean_wQuantileLoss", "mean_weighted_quantile_loss"},
      {"mean_absolute_QuantileLoss", "mean_absolute_quantile_loss"},
      {"MAE_Coverage", "MAE_coverage"}};
  const auto bracket = name.find('[');
  if (bracket == std::string::npos) {
    const auto renamed = names.contains(name) ? names.at(name) : name;
    return ours.contains(renamed) ? json(ours[renamed]) : json();
  }
  const auto level = name.substr(bracket + 1, name.size() - bracket - 2);
  const auto kind = name.substr(0, bracket);
  const auto group = kind == "Coverage"       ? "coverage"
                     : kind == "QuantileLoss" ? "quantile_loss"
                                              : "weighted_quantile_loss";
  return json(ours[group].value(level, json()));
}

void expect_metrics(const nlohmann::ordered_json& ours, const json& expected, double tolerance,
                    const std::set<std::string>& left_out = {}) {
  // Where targets are masked, the reference's MAE_Coverage need not be mean |Coverage[q] − q| of its own Coverage[q]
  // (0.5 instead of 0.139 in the first case). Ours is that mean, so it is compared only where the reference's is too;
  // the coverages themselves always are.
  double by_definition = 0.0;
  for (const double q : evaluation::default_levels())
    by_definition += std::abs(golden_number(expected.at(cat("Coverage[", q, "]"))) - q) / 9.0;
  const bool artefact = std::abs(golden_number(expected.at("MAE_Coverage")) - by_definition) > 1e-3;
  for (const auto& [name, value] : expected.items()) {
    if (metrics_not_yet.contains(name) || left_out.contains(name) || (artefact && name == "MAE_Coverage")) continue;
    const auto found = found_metric(ours, name);
    if (!std::isfinite(golden_number(value))) {
      EXPECT_TRUE(found.is_null()) << name;
      continue;
    }
    ASSERT_TRUE(found.is_number()) << "no metric " << name;
    EXPECT_NEAR(found.get<double>(), golden_number(value), tolerance * (1e-3 + std::abs(golden_number(value)))) << name;
  }
}

// What another golden folder lacks is skipped; the shipped one lacks nothing.
TEST(GoldenEvaluation, TheShippedFilesHaveEveryEntry) {
  test::expect_own_entries("evaluation.json", {{"/metrics", 9},
                                               {"/seasonal_naive", 5},
                                               {"/windows/univariate", 6},
                                               {"/lstnet", 5},
                                               {"/tsf/series", 2},
                                               {"/student_t/torch.float64/y", 1},
                                               {"/student_t/torch.float32/y", 1},
                                               {"/auto_ets/series", 1}});
  for (const auto* name : {"exchange_rate", "electricity", "traffic", "solar-energy"})
    test::expect_own_entries("evaluation.json", {{std::string("/lstnet/") + name + "/steps", 1}});
  test::expect_own_entries("baselines.json", {{"/cases", 5}});
}

TEST(GoldenEvaluation, NoUnknownEntries) {
  const auto all = test::golden_json("evaluation.json");
  TSDP_GOLDEN_OR_LEAVE(all, "evaluation.json");
  for (const auto& [name, unused] : all->items()) {
    EXPECT_TRUE(known.contains(name) || elsewhere.contains(name) || for_comparison.contains(name) ||
                not_yet.contains(name))
        << "unknown entry " << name;
    if (for_comparison.contains(name)) std::cout << name << ": for comparison only\n";
    if (not_yet.contains(name)) std::cout << name << ": not available yet, skipped\n";
  }
}

/// The methods of exported models, at work in quantiles of samples and of the Student-t distribution.
torch::jit::Module exported_methods(at::ScalarType type = at::kDouble) {
  return exporting::make_module(*models::make_model("simple_ff", {1, 1}, at::TensorOptions(type)));
}

at::Tensor tensor_of(const json& nested, std::vector<std::int64_t> shape) {
  std::vector<double> flat;
  const std::function<void(const json&)> walk = [&](const json& value) {
    if (!value.is_array()) return flat.push_back(golden_number(value));
    for (const auto& part : value) walk(part);
  };
  walk(nested);
  return at::tensor(flat, at::kDouble).view(shape);
}

struct Quantiles {
  at::Tensor values;  ///< (levels, H)
  at::Tensor magnitude;  ///< of the terms that each is a sum of; 0 where values are picked and not computed
};

/// Quantiles of one series of a case by the product's own code, where the case says what they are of.
std::optional<Quantiles> own_quantiles(const json& c, std::size_t series, const std::vector<double>& levels) {
  const auto horizon = c["prediction_length"].get<std::int64_t>();
  auto methods = exported_methods();
  if (c.contains("samples")) {
    const auto samples = tensor_of(c["samples"][series], {1, c["num_samples"], horizon});
    const auto values =
        methods.run_method("order_statistics", samples, at::tensor(levels, at::kDouble)).toTensor().squeeze(0);
    return Quantiles{values, at::zeros_like(values)};
  }
  if (!c.contains("parameters")) return std::nullopt;
  const auto& p = c["parameters"][series];
  const auto row = [&](const char* name) { return tensor_of(p[name], {1, horizon}); };
  // GluonTS asks for quantiles of forecasts at levels in single precision, and rounds them.
  const auto asked = at::tensor(levels, at::kDouble).to(at::kFloat).to(at::kDouble);
  const auto spread = row("scale") * methods.run_method("student_t_quantiles", row("df"), asked).toTensor().squeeze(0);
  const auto affine_scale = tensor_of(p["affine_scale"], {1});
  return Quantiles{affine_scale * (row("loc") + spread), affine_scale * (row("loc").abs() + spread.abs())};
}

TEST(GoldenEvaluation, Metrics) {
  const auto golden = test::golden_entry("evaluation.json", "/metrics");
  TSDP_GOLDEN_OR_LEAVE(golden, "entry metrics of evaluation.json");
  const std::vector<double> ends = {0.025, 0.975};
  int number = 0;
  int with_ends = 0;
  for (const auto& c : *golden) {
    SCOPED_TRACE("case " + std::to_string(number++) + ", " + c["kind"].get<std::string>());
    const auto horizon = c["prediction_length"].get<std::size_t>();
    const auto frequency = data::Frequency::parse(c["freq"].get<std::string>());
    // GluonTS's season of days and weeks is 1.
    const bool of_days = frequency.unit == data::Frequency::Unit::day || frequency.unit == data::Frequency::Unit::week;
    const auto season = !c["seasonality"].is_null() ? c["seasonality"].get<std::int64_t>()
                        : of_days                   ? 1
                                                    : data::usual_season_length(frequency);
    // Where only nine quantiles are given, GluonTS extrapolates those of MSIS, which is for comparison only.
    const bool has_ends = own_quantiles(c, 0, ends).has_value();
    with_ends += has_ends ? 1 : 0;
    evaluation::Metrics metrics(evaluation::default_levels(), has_ends ? ends : std::vector<double>());
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
      if (const auto own = own_quantiles(c, i, evaluation::default_levels())) {
        const auto given = at::tensor(quantiles, at::kDouble).view(own->values.sizes());
        // Samples are picked. The distribution's are computed, by GluonTS in the precision of the case.
        const double tolerance = c.value("dtype", "") == "torch.float32" ? 2e-6 : 2e-7;
        EXPECT_TRUE((own->values - given).abs().le(tolerance * own->magnitude).all().item<bool>()) << "series " << i;
      }
      if (has_ends) {
        const auto outer = own_quantiles(c, i, ends)->values.contiguous();
        quantiles.insert(quantiles.end(), outer.data_ptr<double>(), outer.data_ptr<double>() + outer.numel());
      }
      metrics.add({target, quantiles, mean, evaluation::seasonal_error(past, season)});
    }
    expect_metrics(metrics.json(), c["expected"]["aggregate"], 1e-6,
                   has_ends ? std::set<std::string>() : std::set<std::string>{"MSIS"});
  }
  EXPECT_TRUE(number == 0 || with_ends > 0) << "no case with an MSIS that could be compared";
}

// From raw outputs of the head to parameters, log-density and quantiles, at extreme arguments.
TEST(GoldenEvaluation, StudentT) {
  const auto golden = test::golden_entry("evaluation.json", "/student_t");
  TSDP_GOLDEN_OR_LEAVE(golden, "entry student_t of evaluation.json");
  for (const auto& [name, c] : golden->items()) {
    SCOPED_TRACE(name);
    const auto type = name == "torch.float64" ? at::kDouble : at::kFloat;
    const auto count = static_cast<std::int64_t>(c["raw_df"].size());
    const auto column = [&](const char* key) { return tensor_of(c[key], {count}); };
    const auto raw = at::stack({column("raw_df"), column("raw_loc"), column("raw_scale")}, -1).unsqueeze(1).to(type);
    const auto affine_scale = at::full({count, 1}, c["affine_scale"].get<double>(), type);
    const auto found = models::student_t_of(raw, affine_scale);
    const auto expect_near = [&](const char* key, const at::Tensor& values, double relative, double absolute) {
      const auto expected = column(key);
      for (std::int64_t i = 0; i < count; ++i) {
        const double e = expected[i].item<double>();
        EXPECT_NEAR(values.reshape({-1})[i].to(at::kDouble).item<double>(), e, relative * std::abs(e) + absolute)
            << key << " " << i;
      }
    };
    const bool precise = type == at::kDouble;
    expect_near("df", found.df, precise ? 1e-10 : 2e-6, 0.0);
    expect_near("loc", found.loc, precise ? 1e-10 : 1e-5, 0.0);
    expect_near("scale", found.scale, precise ? 1e-10 : 2e-6, 0.0);
    const auto y = column("y").unsqueeze(1).to(type);
    const auto loss = models::student_t_loss(raw, y, affine_scale, at::ones({count, 1}, raw.options())).losses;
    expect_near("log_prob", loss.neg(), precise ? 1e-10 : 2e-6, 0.0);

    auto methods = exported_methods(type);
    for (std::size_t q = 0; q < evaluation::default_levels().size(); ++q) {
      SCOPED_TRACE(evaluation::default_levels()[q]);
      const auto level = at::full({1}, evaluation::default_levels()[q], at::kDouble);
      const auto t = methods.run_method("student_t_quantiles", found.df, level).toTensor().squeeze(1);
      const auto spread = found.scale * t.to(type);
      const auto quantiles = affine_scale * (found.loc + spread);
      // Relative to the two terms that each is a sum of. GluonTS's own quantiles in single precision are off by 7e-7.
      const auto magnitude = affine_scale * (found.loc.abs() + spread.abs());
      const auto expected = tensor_of(c["quantiles"][q], {count});
      for (std::int64_t i = 0; i < count; ++i)
        EXPECT_NEAR(quantiles[i][0].to(at::kDouble).item<double>(), expected[i].item<double>(),
                    (precise ? 1e-9 : 2e-6) * magnitude[i][0].to(at::kDouble).item<double>())
            << i;
    }
  }
}

TEST(GoldenEvaluation, SeasonalNaive) {
  const auto golden = test::golden_entry("evaluation.json", "/seasonal_naive");
  TSDP_GOLDEN_OR_LEAVE(golden, "entry seasonal_naive of evaluation.json");
  for (const auto& c : *golden) {
    std::vector<float> target;
    for (const double x : numbers(c["target"])) target.push_back(static_cast<float>(x));
    const auto found = evaluation::seasonal_naive(target, c["season_length"], c["prediction_length"]);
    const auto expected = numbers(c["forecast"]);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], expected[k], 1e-6 * std::abs(expected[k]));
  }
}

TEST(GoldenEvaluation, WindowsOfAPlainModel) {
  const auto golden = test::golden_entry("evaluation.json", "/windows");
  TSDP_GOLDEN_OR_LEAVE(golden, "entry windows of evaluation.json");
  const auto& entry = *golden;
  TSDP_GOLDEN_OR_LEAVE(test::golden_entry("evaluation.json", "/windows/univariate"),
                       "entry windows/univariate of evaluation.json");
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
  const auto golden = test::golden_entry("evaluation.json", "/lstnet");
  TSDP_GOLDEN_OR_LEAVE(golden, "entry lstnet of evaluation.json");
  for (const auto& [name, c] : golden->items()) {
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
  const auto golden = test::golden_entry("evaluation.json", "/tsf");
  TSDP_GOLDEN_OR_LEAVE(golden, "entry tsf of evaluation.json");
  const auto& c = *golden;
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
  const auto golden = test::golden_entry("baselines.json", "/cases");
  TSDP_GOLDEN_OR_LEAVE(golden, "cases of baselines.json");
  for (const auto& c : *golden) {
    const auto name = c["file"].get<std::string>();
    SCOPED_TRACE(name);
    const auto file = std::filesystem::path(TSDP_SOURCE_DIR) / "data" / name;
    if (!std::filesystem::exists(file)) {
      test::say_absent("data/" + name);
      continue;
    }
    const bool tsf = name.find(".tsf") != std::string::npos;
    data::ReadOptions options{tsf ? data::Format::tsf : data::Format::lstnet,
                              data::Frequency::parse(c["frequency"].get<std::string>()), data::Moment{0}};
    const auto dataset = data::read_dataset(file, options);
    const auto horizon = c["prediction_length"].get<std::int64_t>();
    const auto windows = c.value("test_windows", std::int64_t{1});
    const auto split =
        data::split_dataset(dataset, {tsf ? data::SplitKind::last : data::SplitKind::lstnet, horizon, windows, 0});
    EXPECT_EQ(static_cast<std::int64_t>(split.test.size()), c["entries"].get<std::int64_t>());
    if (c.contains("train_length") && c["train_length"].is_number()) {
      EXPECT_EQ(split.training_length[0], c["train_length"].get<std::int64_t>());
    }
    const auto metrics = evaluation::backtest_baseline(evaluation::Baseline::seasonal_naive, dataset, split.test,
                                                       horizon, c["season_length"]);
    expect_metrics(metrics.json(), c["metrics"], 2e-5);
  }
}

}  // namespace
}  // namespace tsdp
