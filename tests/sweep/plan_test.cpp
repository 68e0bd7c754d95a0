#include "sweep/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sweep/sweep_fixture.h"

namespace tsdp::sweep {
namespace {

using PlanTest = SweepTest;

bool holds(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Three ways of scoring one training, over two epsilons.
const std::string private_scores =
    "config: base.yaml\n"                                                                // 1
    "set: {privacy.enabled: false}\n"                                                    // 2
    "evaluate: {private: true, delta: 1e-4, v: 0.1}\n"                                   // 3
    "seeds: [7]\n"                                                                       // 4
    "rows:\n"                                                                            // 5
    "  - {label: all, evaluate: {keep_probability: 1.0}}\n"                              // 6
    "  - {label: half, evaluate: {keep_probability: 0.5}}\n"                             // 7
    "  - {label: naive, baseline: seasonal_naive, evaluate: {keep_probability: 1.0}}\n"  // 8
    "columns:\n"                                                                         // 9
    "  - {label: one, evaluate: {epsilon: 1}}\n"                                         // 10
    "  - {label: two, evaluate: {epsilon: 2}}\n";                                        // 11

TEST_F(PlanTest, EveryCellHasARunASeed) {
  const auto made = plan(small_sweep);
  EXPECT_EQ(made.cells.size(), 4U);
  EXPECT_EQ(made.runs.size(), 8U);
  std::set<std::string> names;
  for (const auto& run : made.runs) {
    names.insert(run.name);
    EXPECT_EQ(run.config.training.seed, run.seed);
    EXPECT_EQ(run.config.privacy.target_epsilon, 2.0);
    EXPECT_TRUE(run.name.ends_with("-" + run.hash)) << run.name;
    ASSERT_EQ(run.scores.size(), 1U);
    EXPECT_TRUE(run.scores.front().arguments.empty());
  }
  EXPECT_EQ(names.size(), 8U);
  for (const auto& cell : made.cells) {
    ASSERT_EQ(cell.sources.size(), 2U);
    const auto& run = made.runs[cell.sources[1].run];
    EXPECT_EQ(run.config.model.name, cell.row == 0 ? "simple_ff" : "deepar");
    EXPECT_EQ(run.config.privacy.w, cell.column == 0 ? 1 : 2);
    EXPECT_EQ(run.seed, 2);
  }
  // Seed by seed; runs that differ in the seed alone are planned once.
  EXPECT_EQ(made.runs[3].seed, 1);
  EXPECT_EQ(made.runs[4].seed, 2);
  EXPECT_EQ(made.runs[0].plan, made.runs[4].plan);
  EXPECT_NE(made.runs[0].hash, made.runs[4].hash);
  EXPECT_EQ(made.runs[0].name.substr(0, 21), "simple_ff-w_1-seed_1-");
}

TEST_F(PlanTest, CellsThatAskForOneTrainingShareIt) {
  const auto made = plan(private_scores);
  EXPECT_EQ(made.cells.size(), 6U);
  ASSERT_EQ(made.runs.size(), 1U);
  EXPECT_EQ(made.runs[0].scores.size(), 4U);  // the baseline's scores are those of the first row
  const auto& score = made.runs[0].scores[made.cells[3].sources[0].score];
  EXPECT_EQ(score.arguments, (std::vector<std::string>{"--private", "--epsilon", "2", "--delta", "1e-04", "--v", "0.1",
                                                       "--keep-probability", "0.5", "--seed", "7"}));
  // Labels and the order of keys make no other run.
  const auto without_paper = small_sweep.substr(0, small_sweep.find("paper:"));
  const auto again = plan(replaced(without_paper, "label: FF, set: {model.name: simple_ff}",
                                   "label: F, set: {privacy.delta: 1.0e-7, model.name: simple_ff}"));
  EXPECT_EQ(again.runs[0].hash, plan(small_sweep).runs[0].hash);
}

TEST_F(PlanTest, BaselinesFromFilesAreScoredBesideTheModel) {
  write("ets.jsonl", "{}\n");
  const auto text = "baseline_forecasts: {auto_ets: ets.jsonl}\n" + small_sweep;
  const auto made = plan(text);
  EXPECT_EQ(made.runs[0].scores[0].arguments,
            (std::vector<std::string>{"--baseline", "auto_ets=" + path("ets.jsonl").string()}));
  write("ets.jsonl", "{} \n");  // other forecasts are other scores
  EXPECT_NE(plan(text).runs[0].scores[0].hash, made.runs[0].scores[0].hash);
}

TEST_F(PlanTest, ContradictionsNameRowColumnAndLine) {
  struct Case {
    std::string text;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {replaced(small_sweep, "model.name: simple_ff", "privacy.w: 3"),
       {"sweep.yaml:10: ", "privacy.w", "column 'w = 1'", "row 'FF' (line 6)"}},
      {replaced(small_sweep, ", model.lags: [1, 24]", ""),
       {"sweep.yaml:7: ", "row 'DeepAR', column 'w = 1'", "model.lags"}},
      {replaced(private_scores, "one, evaluate: {epsilon: 1}", "one, evaluate: {epsilon: 1, keep_probability: 1}"),
       {"sweep.yaml:10: ", "evaluate.keep_probability", "row 'all' (line 6)"}},
      {replaced(private_scores, "private: true, ", ""), {"sweep.yaml:6: ", "private: true"}},
      {replaced(private_scores, ", v: 0.1", ""), {"sweep.yaml:6: ", "evaluate.v: not given"}},
      {private_scores + "baselines: [seasonal_naive]\n", {"sweep.yaml:7: ", "baselines: ", "'half'"}},
      {replaced(small_sweep, "model.name: simple_ff", "dataset.season_length: 12"),
       {"sweep.yaml:6: ", "baselines: ", "'FF'"}},
  };
  for (const auto& c : cases) {
    const auto line = refusal_of(c.text);
    for (const auto& part : c.parts)
      EXPECT_NE(line.find(part), std::string::npos) << "no '" << part << "' in: " << line;
  }
}

TEST_F(PlanTest, SmokePutsEveryRowAndColumnToWorkOnLookAlikeData) {
  const auto text = replaced(small_sweep, "  - {label: w = 2, set: {privacy.w: 2}}\n",
                             "  - {label: w = 2, set: {privacy.w: 2}}\n  - {label: w = 4, set: {privacy.w: 4}}\n");
  const auto made = plan(text.substr(0, text.find("paper:")) + "smoke: {set: {training.max_epochs: 1}}\n", true);
  EXPECT_EQ(made.seeds, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(made.runs.size(), 3U);
  std::set<std::size_t> rows;
  std::set<std::size_t> columns;
  for (const auto& cell : made.cells)
    if (!cell.sources.empty()) {
      rows.insert(cell.row);
      columns.insert(cell.column);
    }
  EXPECT_EQ(rows.size(), 2U);
  EXPECT_EQ(columns.size(), 3U);
  ASSERT_TRUE(made.look_alike.has_value());
  // 80 % of it, less validation, must hold twice the windows of DeepAR: 8 + 24 past values and 4 to forecast.
  EXPECT_GE(made.look_alike->options.length * 4 / 5 - 20, 2 * (8 + 24 + 4));
  for (const auto& run : made.runs) {
    EXPECT_EQ(run.config.dataset.path, made.look_alike->file.string());
    EXPECT_EQ(run.config.training.max_epochs, 1);
    EXPECT_EQ(run.config.model.context_length, 8);
  }
}

TEST_F(PlanTest, TheDiskTellsWhatIsNext) {
  const auto made = plan(private_scores);
  const auto& run = made.runs.front();
  const auto need = [&] { return next_step(made, run).need; };
  const auto folder = "out/runs/" + run.name + "/";
  EXPECT_EQ(need(), Need::begin);
  write(folder + "config.yaml", "");  // a crash before the first step
  EXPECT_EQ(need(), Need::begin);
  write(folder + "private/checkpoints/charged", "0\nkey 1\n");
  EXPECT_EQ(need(), Need::begin);
  write(folder + "private/checkpoints/charged", "5\nkey 1\n");  // what was spent is not thrown away with a lost ledger
  EXPECT_EQ(need(), Need::resume);
  write(folder + "privacy.json", "{\"state\": \"running\"}");
  EXPECT_EQ(need(), Need::resume);
  write(folder + "privacy.json", "{\"state\": \"finished\"}");
  EXPECT_EQ(need(), Need::resume);  // a crash before the export
  write(folder + "model.pt", "");
  EXPECT_EQ(need(), Need::score);
  for (std::size_t i = 0; i < run.scores.size(); ++i) {
    EXPECT_EQ(next_step(made, run).score, i);
    write(folder + "private/scores/" + run.scores[i].hash + ".json", "{}");
    EXPECT_EQ(next_step(made, run).score, i);  // JSON, but no scores
    EXPECT_EQ(need(), Need::score);
    write(folder + "private/scores/" + run.scores[i].hash + ".json", R"({"metrics": {"ND": 0.5}})");
  }
  EXPECT_EQ(need(), Need::nothing);
  // The folder is found by its hash.
  std::filesystem::rename(path(folder), path("out/runs/renamed-" + run.hash));
  EXPECT_EQ(need(), Need::nothing);
  write("out/runs/renamed-" + run.hash + "/privacy.json", "{");
  EXPECT_THROW(static_cast<void>(next_step(made, run)), DataError);
}

TEST_F(PlanTest, CommandsAreThoseAUserWouldType) {
  const auto made = plan(private_scores);
  const auto& run = made.runs.front();
  const auto begin = command_of(made, run, {Need::begin, 0}, 2);
  EXPECT_EQ(begin[0], "tsdp-train");
  EXPECT_EQ(begin[2], path("base.yaml").string());
  EXPECT_TRUE(holds(begin, "privacy.enabled=false"));
  EXPECT_TRUE(holds(begin, "training.seed=7"));
  EXPECT_TRUE(holds(begin, path("out/runs/" + run.name).string()));
  const auto resume = command_of(made, run, {Need::resume, 0}, 2);
  EXPECT_EQ(resume,
            (std::vector<std::string>{"tsdp-train", "--resume", path("out/runs/" + run.name).string(), "--json"}));
  const auto score = command_of(made, run, {Need::score, 0}, 2);
  EXPECT_EQ(score[0], "tsdp-evaluate");
  EXPECT_TRUE(holds(score, "--private"));
  EXPECT_TRUE(holds(score, "--keep-probability"));
  EXPECT_EQ(score.back(), "--json");
}

/// The sweeps of a folder; paper/ holds the configurations that its sweeps begin with, too.
std::vector<std::filesystem::path> sweeps_of(const char* folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TSDP_SOURCE_DIR) / folder))
    if (read_file(entry.path()).find("\nrows:") != std::string::npos) out.push_back(entry.path());
  return out;
}

TEST(PaperSweepFiles, AllCellsResolve) {
  std::size_t count = 0;
  for (const auto* folder : {"configs/paper", "configs/sweeps"})
    for (const auto& file : sweeps_of(folder)) {
      ++count;
      SCOPED_TRACE(file);
      const auto made = make_plan(read_sweep_file(file), "unused", false);
      EXPECT_EQ(made.seeds.size(), 5U);
      EXPECT_FALSE(made.runs.empty());
    }
  EXPECT_GE(count, 17U);
}

// What docs/paper.md says of all of them.
TEST(PaperSweepFiles, HaveThePapersSettings) {
  const auto files = sweeps_of("configs/paper");
  EXPECT_EQ(files.size(), 14U);  // Tables 2 to 13, Figures 11 and 12
  for (const auto& file : files) {
    SCOPED_TRACE(file);
    const auto plan = make_plan(read_sweep_file(file), "unused", false);
    EXPECT_EQ(plan.file.config.parent_path(), file.parent_path());  // the paper's settings, not those recommended
    for (const auto& run : plan.runs) {
      const auto& c = run.config;
      EXPECT_EQ(c.model.prior, PriorKind::none);
      EXPECT_EQ(c.model.start, "fresh");
      EXPECT_EQ(c.model.missing_values, "zero");
      EXPECT_EQ(c.privacy.composition, privacy::StepComposition::symmetrised);
      EXPECT_EQ(c.optimizer.learning_rate, 1e-3);
      EXPECT_EQ(c.optimizer.plateau_looks, std::nullopt);  // the authors' code takes GluonTS's schedule for DeepAR away
      EXPECT_EQ(c.training.checkpoint, c.privacy.enabled ? ExportedWeights::last : ExportedWeights::best);
      EXPECT_EQ(c.optimizer.gradient_norm_bound, c.privacy.enabled ? std::nullopt : std::optional(10.0));
      EXPECT_EQ(c.training.validate_every, 10);
    }
  }
}

// Every model beside every way of choosing series, at one number of steps.
TEST(PaperSweepFiles, FiguresVaryTheTopLevelOfFourModels) {
  for (const auto* name : {"figure11.yaml", "figure12.yaml"}) {
    SCOPED_TRACE(name);
    const auto plan =
        make_plan(read_sweep_file(std::filesystem::path(TSDP_SOURCE_DIR) / "configs/paper" / name), "unused", false);
    std::map<std::string, std::set<privacy::TopLevel>> ways;
    for (const auto& run : plan.runs) {
      ways[run.config.model.name].insert(run.config.sampling.top_level);
      EXPECT_EQ(run.config.training.max_epochs.value() * run.config.sampling.subsequences_per_sequence, 4000);
    }
    EXPECT_EQ(ways.size(), 4U);
    for (const auto& [model, found] : ways)
      EXPECT_EQ(found, (std::set{privacy::TopLevel::deterministic, privacy::TopLevel::shuffled,
                                 privacy::TopLevel::without_replacement}))
          << model;
  }
}

}  // namespace
}  // namespace tsdp::sweep
