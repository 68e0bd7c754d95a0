#include "sweep/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "sweep/sweep_fixture.h"
#include "sweep/table_text.h"

namespace tsdp::sweep {
namespace {

class TableTest : public SweepTest {
 protected:
  void SetUp() override {
    SweepTest::SetUp();
    plan_ = plan(small_sweep);
  }

  /// Leaves what a finished run leaves: DeepAR's is not private, FF's ended by the budget at w = 2 alone. Both ends of
  /// epsilon are nearest to 1.234 and are shown as 1.233 and 1.235: outwards.
  void finish(std::size_t cell, std::size_t seed, const std::string& score) const {
    const auto source = plan_.cells[cell].sources[seed];
    const auto& run = plan_.runs[source.run];
    const auto folder = "out/runs/" + run.name + "/";
    const auto steps = run.config.privacy.w == 1 ? "3000" : "2999";  // of 3 epochs of 1000
    write(
        folder + "privacy.json",
        run.config.model.name == "deepar"
            ? R"({"state": "finished", "private": false})"
            : std::string(R"({"state": "finished", "private": true, "epsilon": {"lower": 1.2338, "upper": 1.2342},)") +
                  R"( "delta": 1e-7, "target_epsilon": 2.0, "mechanism": {"steps_per_epoch": 1000}, "steps_planned": )" +
                  steps + "}");
    write(folder + "private/scores/" + run.scores[source.score].hash + ".json",
          R"({"metrics": {"mean_weighted_quantile_loss": )" + score +
              R"(}, "baselines": {"seasonal_naive": {"mean_weighted_quantile_loss": 0.75}}})");
  }

  SweepPlan plan_;
};

TEST_F(TableTest, MeanAndStandardDeviation) {
  TableCell cell;
  for (const double x : {1.0, 2.0, 4.0}) cell.scores.push_back({1, x});
  EXPECT_DOUBLE_EQ(cell.mean(), 7.0 / 3.0);
  // Squared distances 16/9, 1/9, 25/9 over n − 1 = 2.
  EXPECT_DOUBLE_EQ(*cell.std(), std::sqrt(42.0 / 9.0 / 2.0));
  cell.scores.resize(1);
  EXPECT_EQ(cell.mean(), 1.0);
  EXPECT_FALSE(cell.std().has_value());
}

TEST_F(TableTest, GoldenText) {
  finish(0, 0, "0.5");
  finish(0, 1, "0.52");
  finish(1, 0, "0.01234");
  finish(2, 0, "12.5");
  finish(2, 1, "13.5");
  const auto failed = plan_.cells[3].sources;
  const auto table = read_table(plan_, {{failed[0].run, "no budget"}, {failed[1].run, "no budget"}});
  EXPECT_EQ(markdown(table), R"(# Small

mean_weighted_quantile_loss, lower is better; mean ± standard deviation (n − 1) over the seeds 1, 2. Lines marked *paper* are what the paper prints.

|  | w = 1 | w = 2 |
| --- | --- | --- |
| FF | 0.5100 ± 0.0141 | 0.01234 (1 of 2) |
| FF, *paper* | 0.50 ± 0.01 | 0.6 |
| DeepAR | 13.000 ± 0.707 | – |
| Seasonal | 0.7500 | 0.7500 (1 of 2) |
| Seasonal, *paper* | – | 0.9 |

## Epsilon that training spent

Brackets hold the epsilons of the runs behind a cell, each by itself; where max_epochs ended training with more than 1 % of the target left, a star stands behind them.

|  | w = 1 | w = 2 |
| --- | --- | --- |
| FF | [1.233, 1.235] * | [1.233, 1.235] |
| DeepAR | not private | – |

## What is missing

- FF (w = 2): not finished
- DeepAR (w = 2): no budget

## What epsilon does not cover

The scores are computed from test data, which no epsilon above covers. Each model's epsilon is its own: whoever releases several of them, or chooses one by its scores, releases more than its epsilon says. So this page lies under private/.

For private models together nothing is stated here: some runs have not ended, or no two of them share a file or training values.
)");
  EXPECT_EQ(csv(table),
            "row,column,mean,std,n,scores,paper_mean,paper_std,epsilon_lower,epsilon_upper,delta,target_epsilon,ended_"
            "by,missing\n"
            "FF,w = 1,0.51,0.014142135623730963,2,0.5 0.52,0.50,0.01,1.2338,1.2342,1e-07,2,max_epochs,\n"
            "FF,w = 2,0.01234,,1,0.01234,0.6,,1.2338,1.2342,1e-07,2,target_epsilon,not finished\n"
            "DeepAR,w = 1,13,0.7071067811865476,2,12.5 13.5,,,,,,,,\n"
            "DeepAR,w = 2,,,0,,,,,,,,,no budget\n"
            "Seasonal,w = 1,0.75,0,2,0.75 0.75,,,,,,,,\n"
            "Seasonal,w = 2,0.75,,1,0.75,0.9,,,,,,,\n");
  const auto parsed = nlohmann::json::parse(json(table));
  EXPECT_EQ(parsed["rows"].size(), 3U);
  const auto& cell = parsed["rows"][0]["cells"][0];
  EXPECT_EQ(cell["mean"], 0.51);
  EXPECT_EQ(cell["n"], 2);
  EXPECT_EQ(cell["scores"][1]["seed"], 2);
  EXPECT_EQ(cell["scores"][1]["score"], 0.52);
  EXPECT_EQ(cell["paper"]["mean"], 0.5);
  EXPECT_EQ(cell["epsilon"]["lower"], 1.2338);
  EXPECT_EQ(cell["epsilon"]["upper"], 1.2342);
  EXPECT_EQ(cell["ended_by"], "max_epochs");
  EXPECT_TRUE(parsed["rows"][1]["cells"][1]["mean"].is_null());
  EXPECT_EQ(parsed["rows"][1]["cells"][1]["missing"][0], "no budget");
}

// Where the sweep file leaves max_epochs to the run, the run's configuration says which of the two ended it.
TEST_F(TableTest, MaxEpochsOfTheRunCount) {
  finish(0, 0, "0.5");
  auto with_auto = plan_;
  auto& run = with_auto.runs[with_auto.cells[0].sources[0].run];
  run.config.training.max_epochs.reset();
  const auto config = [&](int max_epochs) {
    write("out/runs/" + run.name + "/config.yaml",
          replaced(read_file(path("base.yaml")), "max_epochs: 3", cat("max_epochs: ", max_epochs)));
    return read_table(with_auto, {}).rows[0].cells[0].by_max_epochs;
  };
  // 3,000 steps of 1,000 an epoch were planned.
  EXPECT_FALSE(config(1'000'000));
  EXPECT_TRUE(config(3));
}

TEST_F(TableTest, StepsThatWereGivenUpAreSaid) {
  finish(0, 0, "0.5");
  finish(0, 1, "0.52");
  const auto& run = plan_.runs[plan_.cells[0].sources[1].run];
  const auto ledger = path("out/runs/" + run.name + "/privacy.json");
  const auto text = read_file(ledger);
  write("out/runs/" + run.name + "/privacy.json",
        replaced(text, "\"steps_planned\"", "\"steps_taken\": 17, \"steps_planned\""));
  const auto table = read_table(plan_, {});
  EXPECT_EQ(table.rows[0].cells[0].scores.size(), 2U);
  EXPECT_EQ(table.rows[0].cells[0].missing,
            (std::vector<std::string>{
                "seed 2: 17 of 3000 steps taken; the others were charged and could not be taken again"}));
  EXPECT_NE(markdown(table).find("- FF (w = 1): seed 2: 17 of 3000 steps taken"), std::string::npos);
}

TEST_F(TableTest, WithoutAnyScoreEverythingIsMissing) {
  const auto table = read_table(plan_, {});
  for (const auto& row : table.rows)
    for (const auto& cell : row.cells) {
      EXPECT_TRUE(cell.scores.empty());
      EXPECT_EQ(cell.missing, (std::vector<std::string>{"not finished"}));
    }
  EXPECT_EQ(markdown(table).find("Epsilon that training spent"), std::string::npos);
}

TEST_F(TableTest, AMetricOrBaselineThatIsNotThereIsNamed) {
  plan_ = plan(replaced(small_sweep, "seasonal_naive: Seasonal", "auto_ets: Seasonal") + "metric: ND\n");
  finish(0, 0, "0.5");
  const auto table = read_table(plan_, {});
  EXPECT_NE(table.rows[0].cells[0].missing.front().find("no ND"), std::string::npos);
  EXPECT_NE(table.rows[2].cells[0].missing.front().find("'auto_ets'"), std::string::npos);
}

TEST_F(TableTest, LabelsDoNotBreakTheTables) {
  plan_ = plan(replaced(replaced(small_sweep, "label: FF", "label: 'a|b,\"c\"'"), "  FF: [[0.50, 0.01], 0.6]\n", ""));
  const auto table = read_table(plan_, {});
  EXPECT_NE(markdown(table).find("| a\\|b,\"c\" |"), std::string::npos);
  EXPECT_NE(csv(table).find("\"a|b,\"\"c\"\"\",w = 1,"), std::string::npos);
}

TEST_F(TableTest, SmokeAndPrivateModelsAreSaid) {
  const auto smoke = make_plan(file(small_sweep), path("out"), true);
  const auto text = markdown(read_table(smoke, {}));
  EXPECT_NE(text.find("smoke: look-alike data, a few steps; no claim about forecasts"), std::string::npos);
  EXPECT_NE(text.find("For private models together nothing is stated here: some runs have not ended, or no two of them "
                      "share a file or training values"),
            std::string::npos);
  EXPECT_NE(text.find("left out of a smoke run"), std::string::npos);
}

TEST_F(TableTest, FilesAreTheOwnersAlone) {
  std::filesystem::create_directories(path("out/private"));
  write_table(plan_, read_table(plan_, {}));
  for (const auto* name : {"table.md", "table.csv", "table.json"})
    EXPECT_EQ(std::filesystem::status(path(std::string("out/private/") + name)).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace
}  // namespace tsdp::sweep
