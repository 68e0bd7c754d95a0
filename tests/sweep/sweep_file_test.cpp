#include "sweep/sweep_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sweep/sweep_fixture.h"

namespace tsdp::sweep {
namespace {

using SweepFileTest = SweepTest;

TEST_F(SweepFileTest, HoldsWhatWasWritten) {
  const auto read = file(small_sweep + "metric: ND\nsmoke: {set: {training.max_epochs: 1}}\n");
  EXPECT_EQ(read.title, "Small");
  EXPECT_EQ(read.config, path("base.yaml"));
  EXPECT_EQ(read.set, (std::vector<Setting>{{"privacy.target_epsilon", "2"}}));
  EXPECT_EQ(read.seeds, (std::vector<std::int64_t>{1, 2}));
  ASSERT_EQ(read.rows.size(), 2U);
  EXPECT_EQ(read.rows[1].label, "DeepAR");
  EXPECT_EQ(read.rows[1].line, 7);
  EXPECT_EQ(read.rows[1].set, (std::vector<Setting>{{"model.name", "deepar"}, {"model.lags", "[1, 24]"}}));
  ASSERT_EQ(read.columns.size(), 2U);
  EXPECT_EQ(read.baselines.front().label, "Seasonal");
  EXPECT_EQ(read.metric, "ND");
  EXPECT_EQ(read.smoke, (std::vector<Setting>{{"training.max_epochs", "1"}}));
  ASSERT_EQ(read.paper.at("FF").size(), 2U);
  EXPECT_EQ(read.paper.at("FF")[0]->mean, "0.50");  // as printed
  EXPECT_EQ(read.paper.at("FF")[0]->std, "0.01");
  EXPECT_EQ(read.paper.at("FF")[1]->std, "");
  EXPECT_FALSE(read.paper.at("Seasonal")[0].has_value());
}

TEST_F(SweepFileTest, QuotedTextStaysText) {
  const auto read = file(replaced(small_sweep, "privacy.target_epsilon: 2", "dataset.start: \"2015-01-02 00:00\""));
  EXPECT_EQ(read.set.front().value, "\"2015-01-02 00:00\"");
}

TEST_F(SweepFileTest, EveryMistakeNamesItsLineAndWhatWouldDo) {
  struct Case {
    std::string from, to;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {"title: Small", "titel: Small", {"sweep.yaml:1: ", "unknown key 'titel'", "'title'"}},
      {"title: Small", "title: [1]", {"sweep.yaml:1: title: ", "found a list", "text"}},
      {"title: Small", "title: Small\ntitle: Small", {"sweep.yaml:2: ", "duplicate key 'title'"}},
      {"seeds: [1, 2]", "seeds: [1, 2", {"sweep.yaml:", "not YAML"}},
      {"config: base.yaml", "config: absent.yaml", {"sweep.yaml:2: config: ", "'absent.yaml'", "configs/"}},
      {"config: base.yaml\n", "", {"sweep.yaml: config: not given"}},
      {"seeds: [1, 2]", "seeds: [1, 1]", {"sweep.yaml:4: seeds: ", "1 again"}},
      {"seeds: [1, 2]", "seeds: [-1]", {"sweep.yaml:4: seeds: ", "'-1'", "at least 0"}},
      {"seeds: [1, 2]", "seeds: []", {"sweep.yaml:4: seeds: ", "an empty list"}},
      {"privacy.target_epsilon: 2",
       "privacy.target_epsilom: 2",
       {"sweep.yaml:3: ", "unknown key 'privacy.target_epsilom'", "'privacy.target_epsilon'"}},
      {"privacy.target_epsilon: 2",
       "privacy.target_epsilon: many",
       {"sweep.yaml:3: privacy.target_epsilon: ", "'many'", "at least 0"}},
      {"privacy.target_epsilon: 2", "training.seed: 2", {"sweep.yaml:3: training.seed: ", "seeds"}},
      {"privacy.target_epsilon: 2", "privacy.w: {a: 1}", {"sweep.yaml:3: privacy.w: ", "a section"}},
      {"{label: FF, set", "{lable: FF, set", {"sweep.yaml:6: ", "unknown key 'lable'", "'label'"}},
      {"{label: FF, set: {model.name: simple_ff}}",
       "{set: {model.name: simple_ff}}",
       {"sweep.yaml:6: rows: ", "without label"}},
      {"label: DeepAR", "label: FF", {"sweep.yaml:7: rows.label: ", "'FF' again"}},
      {"model.name: deepar", "model.name: depar", {"sweep.yaml:8: model.name: ", "'depar'", "deepar"}},
      {"label: w = 1, set", "label: w = 1, baseline: x, set", {"sweep.yaml:10: ", "unknown key 'baseline'"}},
      {"label: w = 1, set",
       "label: w = 1, evaluate: {keep_probabilty: 1}, set",
       {"sweep.yaml:10: ", "unknown key 'keep_probabilty'", "'keep_probability'"}},
      {"label: w = 1, set",
       "label: w = 1, evaluate: {keep_probability: 1.5}, set",
       {"sweep.yaml:10: evaluate.keep_probability: ", "'1.5'", "at most 1"}},
      {"label: w = 1, set", "label: w = 1, evaluate: {delta: 1}, set", {"sweep.yaml:10: evaluate.delta: ", "below 1"}},
      {"label: w = 1, set",
       "label: w = 1, evaluate: {private: 1}, set",
       {"sweep.yaml:10: evaluate.private: ", "true or false"}},
      {"seasonal_naive: Seasonal", "seasonal_naive: FF", {"baselines: ", "'FF'"}},
      {"FF: [[0.50", "FG: [[0.50", {"sweep.yaml:14: ", "unknown key 'FG'", "'FF'"}},
      {"[[0.50, 0.01], 0.6]", "[0.6]", {"sweep.yaml:14: paper.FF: ", "1 entries", "2 columns"}},
      {"[[0.50, 0.01], 0.6]", "[[0.50, 0.01, 1], 0.6]", {"sweep.yaml:14: paper: ", "a list of 3", "[mean, std]"}},
      {"[[0.50, 0.01], 0.6]", "[good, 0.6]", {"sweep.yaml:14: paper: ", "'good'"}},
      {"title: Small", "metric: CRPS", {"sweep.yaml:1: metric: ", "'CRPS'", "mean_weighted_quantile_loss"}},
      {"title: Small", "smoke: {steps: 1}", {"sweep.yaml:1: ", "unknown key 'steps'", "'set'"}},
      {"title: Small",
       "baseline_forecasts: {auto_ets: absent.jsonl}",
       {"sweep.yaml:1: baseline_forecasts.auto_ets: ", "'absent.jsonl'", "a file"}},
  };
  for (const auto& c : cases) {
    const auto line = refusal([&] { static_cast<void>(file(replaced(small_sweep, c.from, c.to))); });
    for (const auto& part : c.parts)
      EXPECT_NE(line.find(part), std::string::npos) << "no '" << part << "' in: " << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

TEST_F(SweepFileTest, RefusesASecondDocument) {
  const auto line = refusal([&] { static_cast<void>(file(small_sweep + "---\nseeds: [3]\n")); });
  EXPECT_NE(line.find("sweep.yaml:16: found a second YAML document"), std::string::npos) << line;
}

TEST_F(SweepFileTest, BoundsItsLists) {
  std::string seeds = "0";
  for (int seed = 1; seed <= 10000; ++seed) seeds.append(",").append(std::to_string(seed));
  const auto refused = [&](const std::string& with) {
    return refusal([&] { static_cast<void>(file(replaced(small_sweep, "seeds: [1, 2]", "seeds: [" + with + "]"))); });
  };
  const auto list = refused(seeds);
  EXPECT_NE(list.find("sweep.yaml:4: seeds: found a list of 10001; expected at most 10000"), std::string::npos) << list;
  const auto runs = refused(seeds.substr(0, seeds.find(",2501")));
  EXPECT_NE(runs.find("sweep.yaml: found 2 rows, 2 columns and 2501 seeds; expected at most 10000 runs"),
            std::string::npos)
      << runs;
}

TEST_F(SweepFileTest, TellsATrainingConfigurationFromASweep) {
  const auto line = refusal([&] { static_cast<void>(read_sweep_file(path("base.yaml"))); });
  EXPECT_NE(line.find("a training configuration"), std::string::npos) << line;
}

// The sweeps of the shipped sets are called like the sets' configurations.
TEST_F(SweepFileTest, ASweepMayBearTheNameOfItsBase) {
  write("exchange_rate.yaml", replaced(small_sweep, "base.yaml", "exchange_rate.yaml"));
  EXPECT_EQ(read_sweep_file(path("exchange_rate.yaml")).config,
            std::filesystem::path(TSDP_SOURCE_DIR) / "configs/exchange_rate.yaml");
}

TEST_F(SweepFileTest, FileThatIsNotThereIsNamed) {
  EXPECT_NE(refusal([&] { static_cast<void>(read_sweep_file(path("absent.yaml"))); }).find("absent.yaml"),
            std::string::npos);
  EXPECT_NE(refusal([&] { static_cast<void>(find_sweep_file("absent_for_sure.yaml")); }).find("looked for"),
            std::string::npos);
}

}  // namespace
}  // namespace tsdp::sweep
