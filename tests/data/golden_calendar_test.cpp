// The entries of evaluation.json on calendar features, and its windows with them.
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "data/calendar_features.h"
#include "support/golden.h"
#include "tsdp/base/text.h"
#include "tsdp/data/feature_store.h"
#include "tsdp/data/windows.h"

namespace tsdp::data {
namespace {

using nlohmann::json;
using test::golden_number;

std::vector<float> floats(const json& array) {
  std::vector<float> out;
  for (const auto& value : array) out.push_back(static_cast<float>(golden_number(value)));
  return out;
}

/// The rows of both parts one after the other, flat.
std::vector<float> flat_rows(const json& past, const json& future) {
  std::vector<float> out;
  for (const auto* part : {&past, &future})
    for (const auto& row : *part)
      for (const float value : floats(row)) out.push_back(value);
  return out;
}

std::vector<float> joined(const json& past, const json& future) {
  auto out = floats(past);
  for (const float value : floats(future)) out.push_back(value);
  return out;
}

Moment moment_of(const json& text) {
  Moment moment = 0;
  EXPECT_TRUE(parse_moment(text.get<std::string>(), moment)) << text;
  return moment;
}

/// Whether two numbers are equal but for 2 units in the last place. The reference's ages are float32 logarithms of
/// NumPy, which are not correctly rounded (log10 of 100 comes out above 2): exact agreement is not to be had.
bool is_same_age(float found, float expected) {
  const float unit = std::nextafter(expected, std::numeric_limits<float>::infinity()) - expected;
  return std::abs(found - expected) <= 2 * unit;
}

void expect_keys(const json& object, const std::set<std::string>& known) {
  for (const auto& [name, unused] : object.items()) EXPECT_TRUE(known.contains(name)) << "unknown key " << name;
}

/// One row of a frequency: consecutive time stamps, and each feature at all of them.
void expect_row(const json& row, const Frequency& frequency, std::size_t features) {
  expect_keys(row, {"timestamps", "features_by_name_then_time", "as_float32"});
  const Moment start = moment_of(row["timestamps"].at(0));
  ASSERT_EQ(row["features_by_name_then_time"].size(), features);
  ASSERT_EQ(row["as_float32"].size(), features);
  std::vector<double> values(features);
  for (std::size_t t = 0; t < row["timestamps"].size(); ++t) {
    SCOPED_TRACE(row["timestamps"][t].get<std::string>());
    const Moment moment = moment_of(row["timestamps"][t]);
    EXPECT_EQ(moment, advance(start, frequency, static_cast<std::int64_t>(t)));
    calendar_features(moment, frequency, values);
    for (std::size_t i = 0; i < features; ++i) {
      EXPECT_EQ(values[i], golden_number(row["features_by_name_then_time"][i].at(t)));
      EXPECT_EQ(static_cast<float>(values[i]), static_cast<float>(golden_number(row["as_float32"][i].at(t))));
    }
  }
}

// Sections that another golden folder lacks are skipped; the shipped one lacks none.
TEST(GoldenCalendar, TheShippedFileHasEverySection) {
  test::expect_own_entries("evaluation.json", {{"/time_features", 7},
                                               {"/time_features/age/values", 9},
                                               {"/windows/deepar", 6},
                                               {"/windows/deepar_prediction", 6}});
  for (const auto* frequency : {"h", "10min", "D", "B", "1B", "30min"})
    test::expect_own_entries("evaluation.json", {{std::string("/time_features/") + frequency + "/rows", 1}});
}

TEST(GoldenCalendar, FeaturesAndSeasonsOfFrequencies) {
  const auto entries = test::golden_entry("evaluation.json", "/time_features");
  TSDP_GOLDEN_OR_LEAVE(entries, "entry time_features of evaluation.json");
  for (const auto& [name, entry] : entries->items()) {
    if (name == "age") continue;
    SCOPED_TRACE(name);
    expect_keys(entry, {"names", "default_lags", "seasonality", "rows"});
    const auto frequency = Frequency::parse(name);
    const auto names = calendar_feature_names(frequency);
    EXPECT_EQ(std::vector<std::string>(names.begin(), names.end()), entry["names"].get<std::vector<std::string>>());
    // GluonTS's season of days and weeks is 1; ours is a week and a year.
    if (frequency.unit != Frequency::Unit::day && frequency.unit != Frequency::Unit::week) {
      EXPECT_EQ(usual_season_length(frequency), entry["seasonality"].get<std::int64_t>());
    }
    for (const auto& row : entry["rows"]) expect_row(row, frequency, names.size());
  }
}

TEST(GoldenCalendar, Age) {
  const auto found = test::golden_entry("evaluation.json", "/time_features/age");
  TSDP_GOLDEN_OR_LEAVE(found, "entry time_features/age of evaluation.json");
  const auto& entry = *found;
  expect_keys(entry, {"formula", "positions", "values"});
  ASSERT_EQ(entry["positions"].size(), entry["values"].size());
  for (std::size_t i = 0; i < entry["values"].size(); ++i)
    EXPECT_PRED2(is_same_age, age(entry["positions"][i].get<std::int64_t>()),
                 static_cast<float>(golden_number(entry["values"][i])));
}

class GoldenWindows : public testing::Test {
 protected:
  void SetUp() override {
    const auto entry = test::golden_entry("evaluation.json", "/windows");
    TSDP_GOLDEN_OR_LEAVE(entry, "entry windows of evaluation.json");
    entry_ = *entry;
    dataset_.frequency = Frequency::parse(entry_["freq"].get<std::string>());
    dataset_.series.push_back({"0", moment_of(entry_["start"]), floats(entry_["target"])});
  }

  /// Compares one window, forecast from place `start` on.
  void expect_window(const json& window, std::int64_t start, bool with_future) const {
    const auto past = static_cast<std::int64_t>(window["past_target"].size());
    const auto future = static_cast<std::int64_t>(window["future_time_feat"].size());
    EXPECT_EQ(advance(dataset_.series[0].start, dataset_.frequency, start), moment_of(window["forecast_start"]));
    const WindowStore store(dataset_, past, future);
    const FeatureStore features(dataset_, past, future);
    const std::vector<WindowIndex> index{{0, start}};
    const auto width = static_cast<std::size_t>(store.window_length());
    std::vector<float> values(width);
    std::vector<float> observed(width);
    std::vector<float> rows(width * static_cast<std::size_t>(features.feature_count()));
    store.gather(index, values.data(), observed.data());
    features.gather(index, rows.data());
    if (!with_future) {
      values.resize(static_cast<std::size_t>(past));
      observed.resize(static_cast<std::size_t>(past));
    }
    const auto none = json::array();
    EXPECT_EQ(values, joined(window["past_target"], with_future ? window["future_target"] : none));
    EXPECT_EQ(observed, joined(window["past_observed_values"], with_future ? window["future_observed_values"] : none));
    const auto expected = flat_rows(window["past_time_feat"], window["future_time_feat"]);
    ASSERT_EQ(rows.size(), expected.size());
    const auto count = static_cast<std::size_t>(features.feature_count());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      SCOPED_TRACE(cat("row ", i / count, ", ", features.names()[i % count]));
      if (i % count == count - 1) {
        EXPECT_PRED2(is_same_age, rows[i], expected[i]);
      } else {
        EXPECT_EQ(rows[i], expected[i]);
      }
    }
    const auto padded = floats(window["past_is_pad"]);
    for (std::int64_t k = 0; k < past; ++k)
      EXPECT_EQ(padded[static_cast<std::size_t>(k)] != 0, start - past + k < 0) << k;
  }

  json entry_;
  Dataset dataset_;
};

TEST_F(GoldenWindows, OfDeepAR) {
  expect_keys(entry_, {"target", "start", "freq", "univariate", "deepar", "deepar_prediction"});
  TSDP_GOLDEN_OR_LEAVE(test::golden_entry("evaluation.json", "/windows/deepar"),
                       "entry windows/deepar of evaluation.json");
  for (const auto& window : entry_["deepar"]) {
    SCOPED_TRACE(window["t"].get<std::int64_t>());
    const auto lags = window["lags_seq"].get<std::vector<std::int64_t>>();
    EXPECT_EQ(window["past_length"], window["context_length"].get<std::int64_t>() + lags.back() - 1);
    EXPECT_EQ(window["past_length"].get<std::size_t>(), window["past_target"].size());
    EXPECT_EQ(window["prediction_length"].get<std::size_t>(), window["future_time_feat"].size());
    expect_window(window, window["t"], true);
  }
}

TEST_F(GoldenWindows, OfDeepARForPrediction) {
  TSDP_GOLDEN_OR_LEAVE(test::golden_entry("evaluation.json", "/windows/deepar_prediction"),
                       "entry windows/deepar_prediction of evaluation.json");
  expect_window(entry_["deepar_prediction"], static_cast<std::int64_t>(dataset_.series[0].values.size()), false);
}

}  // namespace
}  // namespace tsdp::data
