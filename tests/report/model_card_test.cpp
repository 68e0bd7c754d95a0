#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "report/model_card.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::exporting {
namespace {

ModelMetadata metadata() {
  return {nlohmann::ordered_json::parse(R"json({
    "program": "tsdp 0", "name": "dlinear", "past_length": 500, "prediction_length": 24, "frequency": "1h",
    "parameters": 321, "covariates": ["heat"],
    "sizes": {"lower_bound": 0.5, "upper_bound": null, "mixture": {
      "members": [{"method": "seasonal_quantiles"}, {"method": "seasonal_quantiles"}, {"method": "start"}],
      "networks": [{"name": "a`b|c"}], "external": ["chronos"]}}})json"),
          nlohmann::ordered_json::parse(R"json({
    "state": "finished", "private": true, "bound": "tight", "delta": 1e-7, "steps_taken": 400,
    "mechanism": {"num_sequences": 20, "shortest_sequence": 100, "longest_sequence": 300, "batch_size": 7},
    "relation": {"kind": "event", "w": 1, "v": null},
    "epsilon": {"lower": 0.99961, "upper": 0.99993},
    "attack": {"advantage": 0.1234, "false_positive_rate": 0.001, "true_positive_rate": 0.00231},
    "not_covered": ["everything under private/"], "warnings": ["few series"],
    "statement": "(1, 1e-07)-differential privacy."})json")};
}

bool holds(const std::string& card, std::string_view text) { return card.find(text) != std::string::npos; }

TEST(ModelCard, SaysWhatTheModelIsAndWhatItPromises) {
  const auto card = model_card(metadata());
  EXPECT_EQ(card.rfind("---\nlibrary_name: tsdp\n", 0), 0U);
  for (const auto* text :
       {"# A forecaster of 24 steps of 1h\n",
        "The network is `dlinear` with 321 weights",
        "The model forecasts the next 24 steps of 1h of a series, mean and quantiles, from the series' last 500 values",
        "(`seasonal_quantiles`, `start`, `` a`b|c ``)",
        "None of these was trained on data.",
        "other models and programs: `chronos`",
        ".with_covariates(known).predict(frame)",
        "differential-privacy]\n",
        "No forecast is below 0.5.",
        "needs the covariates `heat`",
        "**(1, 1e-07)-differential privacy.**",
        "**any single value of any one series**",
        "at most **56.17 of 100**",
        "- few series\n",
        "- everything under private/\n",
        "20 series of 100 to 300 steps of 1h",
        "400 steps of 7 windows",
        "began with random weights",
        "None stand here",
        "tsdp-account verify"})
    EXPECT_TRUE(holds(card, text)) << text << "\n" << card;
  for (const auto* text : {"No forecast is above", "not finished", "CRPS"}) EXPECT_FALSE(holds(card, text)) << text;
  EXPECT_TRUE(holds(card, "tsdp-forecast --private"));
  // Batches larger than what there is, and variables that are forecast one by one.
  auto other = metadata();
  other.privacy["mechanism"]["batch_size"] = 64;
  other.privacy["mechanism"]["variables"] = 2;
  EXPECT_TRUE(holds(model_card(other), "400 steps of 20 windows"));
  EXPECT_FALSE(holds(model_card(other), "tsdp-forecast --private"));
  other.privacy["mechanism"]["subsequences_per_sequence"] = 4;
  EXPECT_TRUE(holds(model_card(other), "400 steps of 64 windows"));
  // Noise of this run's own protects nobody from the weights that it began with.
  other.privacy["start"] = {{"origin", "trained_without_privacy"}};
  EXPECT_FALSE(holds(model_card(other), "differential-privacy]"));
}

// What a reader is told of a run's batches is the same everywhere, for every way of making them.
TEST(ModelCard, CountsWindowsAsTheSchemeDoes) {
  using privacy::SubsamplingScheme;
  using privacy::TopLevel;
  struct Case {
    privacy::Record record;
    TopLevel top;
    std::optional<std::int64_t> batches;
    std::optional<double> rate;
    double windows;
  };
  constexpr auto series = privacy::Record::series;
  constexpr auto window = privacy::Record::window;
  for (const auto& c :
       {Case{series, TopLevel::balls_in_bins, 7, {}, 2.0 * 8.0 / 7.0},
        Case{series, TopLevel::poisson, {}, 0.13, 2.0 * 1.04}, Case{series, TopLevel::poisson, 3, {}, 2.0 * 8.0 / 3.0},
        Case{series, TopLevel::cyclic_poisson, 4, {}, 4.0},
        Case{series, TopLevel::deterministic, 3, {}, 2.0 * 8.0 / 3.0},
        Case{series, TopLevel::without_replacement, {}, {}, 6.0},
        Case{series, TopLevel::without_replacement, 3, {}, 6.0},
        Case{window, TopLevel::without_replacement, {}, {}, 6.0}, Case{window, TopLevel::deterministic, {}, {}, 6.0},
        Case{window, TopLevel::poisson, {}, {}, 7.0}}) {
    SubsamplingScheme::Parameters p;
    p.lengths = privacy::SeriesLengths::equal(8, 100);
    p.context_length = 4;
    p.forecast_length = 2;
    p.batch_size = 7;  // three series of two windows
    p.subsequences_per_sequence = 2;
    p.record = c.record;
    p.top_level = c.top;
    p.batches = c.batches;
    p.rate = c.rate;
    const SubsamplingScheme scheme(p);
    EXPECT_NEAR(scheme.mean_windows(), c.windows, 1e-8);
    auto other = metadata();
    other.privacy["mechanism"] = mechanism::terms(mechanism::TrainingMethod(scheme));
    const auto text = cat("400 steps of ", rounded(c.windows, 4), " windows on average");
    EXPECT_TRUE(holds(model_card(other), text)) << text << "\n" << model_card(other);
  }
}

TEST(ModelCard, ScoresComeWithTheWordThatNothingCoversThem) {
  evaluation::BacktestResult scores{.model = evaluation::Metrics({0.1, 0.5, 0.9}), .by_series = {}, .baselines = {}};
  scores.others["a|b"] = {{"mean_weighted_quantile_loss", 0.0321}};
  const auto card = model_card(metadata(), CardScores{scores, "validation", "loads"});
  for (const auto* text :
       {"| this model | – |", "0 validation windows of `loads`", "| `a\\|b` | 0.0321 |", "**No epsilon covers them**"})
    EXPECT_TRUE(holds(card, text)) << text << "\n" << card;
  EXPECT_FALSE(holds(card, "None stand here"));
}

TEST(ModelCard, SaysWhatDoesNotProtect) {
  auto open = metadata();
  open.privacy = {{"state", "interrupted"},
                  {"private", false},
                  {"mechanism", {{"num_sequences", 3}}},
                  {"statement", "No privacy."}};
  const auto card = model_card(open);
  for (const auto* text : {"**No privacy.**", "its ledger says `interrupted`", "should not get the model either"})
    EXPECT_TRUE(holds(card, text)) << text << "\n" << card;
  EXPECT_FALSE(holds(card, "What it does not cover"));
  EXPECT_FALSE(holds(card, "differential-privacy]"));
  open.privacy["synthetic_data"] = {{"series", 3}};
  EXPECT_TRUE(holds(model_card(open), "**synthetic series alone**"));
  EXPECT_FALSE(holds(model_card(open), "should not get"));
  open.privacy["start"] = {{"origin", "trained_without_privacy"}};
  EXPECT_TRUE(holds(model_card(open), "Of these, `start` was trained on data."));
  EXPECT_FALSE(holds(model_card(open), "None of these"));
  EXPECT_TRUE(
      holds(model_card(open), "**The weights that this run started from were trained on data without privacy."));
}

TEST(ModelCard, SaysThatNoiseOfASeedProtectsNobodyWhoKnowsIt) {
  auto seeded = metadata();
  seeded.privacy["reproducible"] = true;
  seeded.privacy["statement"] = "<b>*x*";
  const auto card = model_card(seeded);
  const auto word = card.find("**Not for release: the randomness follows from the seed.**");
  ASSERT_NE(word, std::string::npos) << card;
  EXPECT_LT(word, card.find("Think of two versions"));
  EXPECT_FALSE(holds(card, "differential-privacy]"));
  EXPECT_TRUE(holds(card, "**&lt;b>\\*x\\***")) << card;
}

TEST(ModelCard, OfNothingTrainedPromisesAllOfIt) {
  auto untrained = metadata();
  untrained.privacy["epsilon"] = {{"lower", 0.0}, {"upper", 0.0}};
  untrained.privacy["steps_taken"] = 0;
  const auto card = model_card(untrained);
  EXPECT_TRUE(holds(card, "No step of training was taken")) << card;
  EXPECT_FALSE(holds(card, "protected less")) << card;
}

}  // namespace
}  // namespace tsdp::exporting
