// Sweeps with the programs themselves: every shipped one as a smoke run, a killed one, and what is refused.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "command.h"

namespace tsdp::cli_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* sweep = "tsdp-sweep";
constexpr auto limit = 300s;  // of many processes, on a machine that may be busy

std::vector<std::string> shipped_sweeps() {
  std::vector<std::string> out;
  for (const auto* folder : {"paper", "sweeps"})
    for (const auto& entry : std::filesystem::directory_iterator(source_folder() / "configs" / folder))
      // (paper/ holds the configurations that its sweeps begin with, too.)
      if (entry.path().extension() == ".yaml" && content_of(entry.path()).find("\nrows:") != std::string::npos)
        out.push_back(std::string(folder) + "/" + entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

class PaperSweeps : public CommandTest, public testing::WithParamInterface<std::string> {};

TEST_P(PaperSweeps, RunOnLookAlikeData) {
  const auto outcome =
      run(sweep, {"--config", GetParam() + ".yaml", "--smoke", "--output", "out", "--jobs", "1", "--json", "--quiet"},
          {}, limit);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto table = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(table["smoke"].get<bool>());
  std::vector<int> in_column(table["columns"].size(), 0);
  for (const auto& row : table["rows"]) {
    int in_row = 0;
    for (std::size_t c = 0; c < row["cells"].size(); ++c)
      for (const auto& score : row["cells"][c]["scores"]) {
        EXPECT_TRUE(std::isfinite(score["score"].get<double>()));
        ++in_row;
        in_column[c] += row["baseline"].get<bool>() ? 0 : 1;
      }
    // Forecasts of AutoETS and AutoARIMA come from another program and are given by hand.
    EXPECT_TRUE(in_row > 0 || row["label"].get<std::string>().starts_with("Auto")) << row["label"];
  }
  for (std::size_t c = 0; c < in_column.size(); ++c) EXPECT_GT(in_column[c], 0) << table["columns"][c];
  const auto page = content_of(path("out/private/table.md"));
  EXPECT_NE(page.find("smoke: look-alike data, a few steps; no claim about forecasts"), std::string::npos) << page;
}

INSTANTIATE_TEST_SUITE_P(Shipped, PaperSweeps, testing::ValuesIn(shipped_sweeps()), [](const auto& about) {
  std::string name = about.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

const std::string small_sweep =
    "config: exchange_rate.yaml\n"
    "set: {training.max_epochs: 300, training.reproducible: true, training.checkpoint_seconds: 0.2, "
    "privacy.composition: symmetrised}\n"
    "seeds: [1]\n"
    "rows:\n"
    "  - {label: FF, set: {model.name: simple_ff}}\n"
    "  - {label: DLinear, set: {model.name: dlinear}}\n"
    "columns:\n"
    "  - {label: tight, set: {privacy.target_epsilon: 1.0e-6}}\n"
    "  - {label: wide, set: {privacy.target_epsilon: 8}}\n"
    "baselines: {seasonal_naive: Seasonal}\n";

class Sweep : public CommandTest {};

// A run without budget is a cell without a score; the others have theirs.
TEST_F(Sweep, EndsInATableWithTheReasonsOfWhatFailed) {
  write("sweep.yaml", small_sweep);
  const auto outcome = run(sweep, {"--config", "sweep.yaml", "--output", "out", "--json"}, {}, limit);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const auto table = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(table["rows"][0]["cells"][0]["n"], 0);
  const auto reason = table["rows"][0]["cells"][0]["missing"][0].get<std::string>();
  EXPECT_NE(reason.find("privacy.target_epsilon"), std::string::npos) << reason;
  EXPECT_EQ(table["rows"][0]["cells"][1]["n"], 1);
  EXPECT_GT(table["rows"][0]["cells"][1]["mean"].get<double>(), 0.0);
  EXPECT_EQ(table["rows"][0]["cells"][1]["ended_by"], "max_epochs");
  EXPECT_LE(table["rows"][0]["cells"][1]["epsilon"]["upper"].get<double>(), 8.0);
  EXPECT_EQ(table["rows"][2]["cells"][1]["n"], 1);
  // What all models cost together is no guarantee where noise follows from a seed.
  ASSERT_EQ(table["joint"].size(), 1U);
  EXPECT_EQ(table["joint"][0]["models"], 2);
  EXPECT_EQ(table["joint"][0]["reproducible"], true);
  EXPECT_TRUE(table["joint"][0]["epsilon"].is_null());
  EXPECT_NE(content_of(path("out/private/table.md")).find("nothing is stated; total: run"), std::string::npos);
  const auto last = lines_of(outcome.err).back();
  EXPECT_EQ(last.rfind("tsdp-sweep: 2 of 4 runs failed: ", 0), 0U) << last;
}

// Models of one data set cost together what they cost, by whatever names the sweep calls its file; and so does one with
// those that it started from.
TEST_F(Sweep, FilesOfTheSameBytesAreOneDataSet) {
  std::string series;
  for (int i = 0; i < 200; ++i) series += std::to_string(1 + i % 24) + "," + std::to_string(100 + i % 7) + "\n";
  for (const auto* name : {"a.txt", "b.txt"}) write(name, series);
  std::string other_bytes = series;  // of the same values
  other_bytes.insert(other_bytes.find(','), ".0");
  write("c.txt", other_bytes);
  write("config.yaml",
        "dataset: {path: a.txt, format: lstnet, frequency: 1h, start: \"2015-01-01\", prediction_length: 4, "
        "season_length: 24, split: last, test_windows: 1, validation_length: 0}\nmodel: {context_length: 8}\nsampling: "
        "{batch_size: 2}\nprivacy: {noise_multiplier: 8.0, delta: 1.0e-6, target_epsilon: 4.0, composition: "
        "symmetrised}\ntraining: {max_epochs: 5}\n");
  const auto table_of = [&](const std::string& rows, const std::string& output, std::size_t statements = 1) {
    write("sweep.yaml", "config: config.yaml\nseeds: [1]\nrows:\n" + rows + "columns:\n  - {label: all}\n");
    const auto outcome = run(sweep, {"--config", "sweep.yaml", "--output", output, "--json", "--quiet"}, {}, limit);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    auto table = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(table["joint"].size(), statements) << outcome.out;
    return table;
  };
  const auto joint = table_of(
      "  - {label: one, set: {dataset.path: a.txt}}\n  - {label: two, set: {dataset.path: ./a.txt}}\n  - {label: "
      "three, set: {dataset.path: b.txt}}\n"
      "  - {label: four, set: {dataset.path: c.txt, privacy.v: 1.0, augmentation.context_noise: 1.0}}\n  - {label: "
      "open, set: {privacy.enabled: false}}\n",
      "out")["joint"];
  ASSERT_EQ(joint.size(), 1U);
  EXPECT_EQ(joint[0]["models"], 4);
  EXPECT_EQ(joint[0]["models_without_privacy"], 1);
  EXPECT_EQ(joint[0]["relation"], "event with w = 1, v = 1");
  EXPECT_NE(content_of(path("out/private/table.md")).find(" at delta 1e-06, for relation event with w = 1, v = 1"),
            std::string::npos)
      << content_of(path("out/private/table.md"));
  EXPECT_EQ(joint[0]["reproducible"], false);
  EXPECT_NE(content_of(path("out/private/table.md")).find("; not counted: 1 model without privacy"), std::string::npos);
  std::vector<std::string> total = {"total", "--delta", "1e-6", "--json"};
  std::string of_one, beside;
  for (const auto& folder : std::filesystem::directory_iterator(path("out/runs")))
    if (const auto ledger = nlohmann::json::parse(content_of(folder.path() / "privacy.json"));
        ledger["private"] == true) {
      total.push_back(folder.path().string());
      if (ledger["relation"]["v"].is_null()) of_one = total.back();
      if (total.back().find("path_b.txt") != std::string::npos) beside = total.back();
    }
  const auto exact = run("tsdp-account", total);
  ASSERT_EQ(exact.exit_code, 0) << exact.err;
  EXPECT_NEAR(joint[0]["epsilon"]["upper"].get<double>(),
              nlohmann::json::parse(exact.out)["epsilon"]["upper"].get<double>(), 0.02);
  // One private model, but for what it started from.
  std::filesystem::copy_file(of_one + "/model.pt", path("start.pt"));
  const auto second = table_of("  - {label: one, set: {model.start: start.pt}}\n", "second");
  ASSERT_EQ(second["joint"].size(), 1U);
  EXPECT_GT(second["joint"][0]["epsilon"]["upper"].get<double>(),
            1.2 * second["rows"][0]["cells"][0]["epsilon"]["upper"].get<double>());
  // Models of an earlier sweep file stay in the folder, and whoever saw them knows more, though a ledger is gone.
  std::filesystem::remove(beside + "/privacy.json");
  const auto rest = table_of("  - {label: one, set: {dataset.path: a.txt}}\n", "out")["joint"];
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_TRUE(rest[0]["epsilon"].is_null());
  EXPECT_NE(rest[0]["why"].get<std::string>().find("runs/ holds 4 runs that the sweep file no longer has"),
            std::string::npos)
      << rest[0]["why"];
  // Noise of a seed is no privacy, for the model or for one that starts from it.
  const auto third = table_of("  - {label: one, set: {training.reproducible: true}}\n", "third")["joint"];
  EXPECT_EQ(third[0]["reproducible"], true);
  EXPECT_TRUE(third[0]["epsilon"].is_null());
  EXPECT_NE(third[0]["why"].get<std::string>().find("noise that follows from a seed"), std::string::npos)
      << third[0]["why"];
  std::filesystem::copy_file(std::filesystem::directory_iterator(path("third/runs"))->path() / "model.pt",
                             path("seed.pt"));
  const auto none = table_of("  - {label: one, set: {model.start: seed.pt}}\n", "fourth")["joint"];
  ASSERT_EQ(none.size(), 1U);
  EXPECT_TRUE(none[0]["epsilon"].is_null());
  EXPECT_NE(none[0]["why"].get<std::string>().find("noise that follows from a seed"), std::string::npos)
      << none[0]["why"];
  // What a ledger states has to follow from its terms.
  auto damaged = nlohmann::json::parse(
      content_of(std::filesystem::directory_iterator(path("second/runs"))->path() / "privacy.json"));
  damaged["epsilon"] = {{"lower", 0.01}, {"upper", 0.02}};
  write(std::filesystem::relative(std::filesystem::directory_iterator(path("second/runs"))->path(), path("")).string() +
            "/privacy.json",
        damaged.dump());
  const auto less = table_of("  - {label: one, set: {model.start: start.pt}}\n", "second")["joint"];
  ASSERT_EQ(less.size(), 1U);
  EXPECT_TRUE(less[0]["epsilon"].is_null());
  EXPECT_NE(less[0]["why"].get<std::string>().find("follows from its terms"), std::string::npos) << less[0]["why"];
  // Which data a run is of, its own folder tells: where it no longer does, all models count together.
  write("d.txt", other_bytes.substr(other_bytes.find('\n') + 1) + "1,100\n");
  const std::string apart =
      "  - {label: one, set: {dataset.path: a.txt}}\n  - {label: two, set: {dataset.path: d.txt}}\n";
  static_cast<void>(table_of(apart, "fifth", 0));
  std::filesystem::remove(std::filesystem::directory_iterator(path("fifth/runs"))->path() /
                          "private/checkpoints/config.yaml");
  EXPECT_EQ(table_of(apart, "fifth")["joint"][0]["models"], 2);
  // Which of the files that {rank} stands for another model has read, no digest tells.
  write("site0.txt", series);
  const auto ranks = table_of(
      "  - {label: one, set: {dataset.path: a.txt}}\n  - {label: two, set: {dataset.path: \"site{rank}.txt\", "
      "dataset.files: 1}}\n",
      "sixth");
  ASSERT_EQ(ranks["joint"].size(), 1U);
  EXPECT_EQ(ranks["joint"][0]["models"], 2);
}

// A sweep killed in the middle of training ends in the very numbers of one that was not.
TEST_F(Sweep, KilledItGoesOnToTheSameNumbers) {
  auto text = small_sweep;
  const std::string tight = "  - {label: tight, set: {privacy.target_epsilon: 1.0e-6}}\n";
  text.erase(text.find(tight), tight.size());
  write("sweep.yaml", text);
  const auto whole = run(sweep, {"--config", "sweep.yaml", "--output", "whole", "--json", "--quiet"}, {}, limit);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;

  const auto program = program_path(sweep).string();
  const auto file = path("sweep.yaml").string();
  const auto out = path("killed").string();
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    ::dup2(nowhere, 1);
    ::dup2(nowhere, 2);
    ::execl(program.c_str(), program.c_str(), "--config", file.c_str(), "--output", out.c_str(), nullptr);
    ::_exit(127);
  }
  const auto training = [&] {
    std::error_code ignored;
    for (const auto& run : std::filesystem::directory_iterator(path("killed/runs"), ignored))
      if (const auto lines = lines_of(content_of(run.path() / "private/checkpoints/charged"));
          !lines.empty() && lines[0] != "0")
        return true;
    return false;
  };
  for (int i = 0; i < 4000 && !training(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(training());
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto resumed = run(sweep, {"--config", "sweep.yaml", "--output", "killed", "--json", "--quiet"}, {}, limit);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const auto a = nlohmann::json::parse(whole.out);
  const auto b = nlohmann::json::parse(resumed.out);
  EXPECT_EQ(a["rows"], b["rows"]);
  EXPECT_EQ(a["rows"][1]["cells"][0]["n"], 1);
}

TEST_F(Sweep, DryRunPrintsWhatAUserCouldType) {
  const auto outcome = run(sweep, {"--config", "paper/table11.yaml", "--output", "out", "--dry-run", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  const auto plan = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(plan["runs"].size(), 15U);  // three models of five seeds; columns and rates differ in scoring alone
  for (const auto& run : plan["runs"]) {
    EXPECT_EQ(run["state"], "begin");
    EXPECT_EQ(run["commands"].size(), 1U + 15U);
    EXPECT_EQ(run["commands"][0][0], "tsdp-train");
    EXPECT_EQ(run["commands"][1][0], "tsdp-evaluate");
  }
  const auto text = run(sweep, {"--config", "table2.yaml", "--dry-run"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("--set privacy.target_epsilon=0.25"), std::string::npos);
}

TEST_F(Sweep, MistakesAreOneLine) {
  expect_failure(run(sweep, {"--config", "absent.yaml"}), sweep, 2, {"'absent.yaml'", "looked for"});
  expect_failure(run(sweep, {}), sweep, 2, {"--config"});
  expect_failure(run(sweep, {"--config", "traffic.yaml"}), sweep, 2, {"a training configuration"});
  write("sweep.yaml",
        "config: exchange_rate.yaml\nseeds: [1]\nrows: [{label: a, set: {privacy.ww: 1}}]\ncolumns: [{label: b}]\n");
  expect_failure(run(sweep, {"--config", "sweep.yaml"}), sweep, 2, {"sweep.yaml:3: ", "privacy.ww", "'privacy.w'"});
  write("sweep.yaml",
        "config: exchange_rate.yaml\nset: {dataset.path: absent.txt}\nseeds: [1]\nrows: [{label: a}]\ncolumns: "
        "[{label: b}]\n");
  expect_failure(run(sweep, {"--config", "sweep.yaml", "--output", "out"}), sweep, 3, {"dataset.path", "'absent.txt'"});
  expect_failure(run(sweep, {"--config", "paper/table2.yaml", "--jobs", "-1"}), sweep, 2, {"--jobs"});
}

}  // namespace
}  // namespace tsdp::cli_test
