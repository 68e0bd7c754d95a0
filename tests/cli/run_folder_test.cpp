// A run's folder as the programs find it: threads, data and files that belong to it.
#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

constexpr const char* train = "tsdp-train";
constexpr const char* evaluate = "tsdp-evaluate";

class RunFolders : public RunTest {};

// Rounding may hang on the number of threads: with another one, steps that are charged could not be replayed.
TEST_F(RunFolders, AResumedRunKeepsItsThreads) {
  make_run("run");
  const auto same = run(train, {"--resume", "run"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(same.err.find("cannot be replayed"), std::string::npos) << same.err;
}

TEST_F(RunFolders, ItsDataAreThoseItWasMadeOf) {
  make_run("run");
  const auto at_home = answer(evaluate, {"--run", "run", "--json", "--threads", "1"});
  // From a folder in which the run's own words for the data (../series.txt) are another file.
  std::filesystem::create_directories(path("elsewhere/deeper"));
  write("elsewhere/series.txt", series_text(5000));
  const auto abroad = answer(evaluate, {"--run", path("run").string(), "--json", "--threads", "1"}, path("elsewhere/deeper"));
  EXPECT_EQ(abroad["metrics"], at_home["metrics"]);
  const auto resumed = run(train, {"--resume", path("run").string()}, path("elsewhere/deeper"));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(RunFolders, ExportsOverwriteNothingThatTheRunNeeds) {
  make_run("run");
  for (const auto* file : {"run/config.yaml", "run/privacy.json", "run/private/checkpoints/last.pt",
                           "run/private/checkpoints/charged", "run/private/checkpoints/config.yaml"}) {
    const auto before = content_of(path(file));
    expect_failure(run("tsdp-export", {"--run", "run", "--output", file}), "tsdp-export", 2, {file, "expected another one"});
    EXPECT_EQ(content_of(path(file)), before) << file;
  }
}

TEST_F(RunFolders, ANewRunOverwritesNothing) {
  const auto before = content_of(path("config.yaml"));
  expect_failure(run(train, {"--config", "config.yaml", "--output", ".", "--quiet", "--threads", "1"}), train, 2,
                 {"config.yaml", "is there already", "expected a new folder"});
  EXPECT_EQ(content_of(path("config.yaml")), before);
  EXPECT_FALSE(std::filesystem::exists(path("private")));
}

TEST_F(RunFolders, ExportsWhatTheRunExported) {
  make_run("run", {"--set", "training.checkpoint=best", "--set", "training.validate_every=1", "--set", "privacy.enabled=false"});
  ASSERT_EQ(run("tsdp-export", {"--run", "run", "--output", "again.pt"}).exit_code, 0);
  const auto score = [&](const std::string& model) {
    return answer(evaluate, {"--model", model, "--config", "config.yaml", "--json", "--threads", "1"})["metrics"];
  };
  EXPECT_EQ(score("again.pt"), score("run/model.pt"));
}

TEST_F(RunFolders, ChangedSettingsAreNamedBeforeAnythingIsPlanned) {
  make_run("run");
  auto text = content_of(path("run/config.yaml"));
  const auto place = text.find("noise_multiplier: 4");
  ASSERT_NE(place, std::string::npos);
  write("run/config.yaml", text.replace(place, 19, "noise_multiplier: 0.1"));
  expect_failure(run(train, {"--resume", "run", "--quiet"}), train, 2,
                 {"noise_multiplier: 0.1", "the run began with 'noise_multiplier: 4'"});
}

// The ledger names the text of the configuration: one that means the same in other words is put back.
TEST_F(RunFolders, AConfigurationInOtherWordsIsPutBack) {
  make_run("run");
  const auto before = content_of(path("run/config.yaml"));
  auto text = before + "# a note\n";
  const auto place = text.find("noise_multiplier: 4");
  ASSERT_NE(place, std::string::npos);
  write("run/config.yaml", text.replace(place, 19, "noise_multiplier: 4.0"));
  ASSERT_EQ(run(train, {"--resume", "run", "--quiet"}).exit_code, 0);
  EXPECT_EQ(content_of(path("run/config.yaml")), before);
  EXPECT_EQ(run("tsdp-account", {"verify", "run"}).exit_code, 0);
}

TEST_F(RunFolders, AModelOfAnotherFrequencyIsNotScored) {
  make_run("run");
  expect_failure(run(evaluate, {"--model", "run/model.pt", "--config", "config.yaml", "--set", "dataset.frequency=1D",
                                "--json", "--threads", "1"}),
                 evaluate, 2, {"dataset.frequency", "1D", "trained on series of 1h"});
}

TEST_F(RunFolders, TheReportShowsBaselinesAndSeriesThatWereNamed) {
  make_run("run");
  std::string lines;
  for (const int start : {192, 196})
    for (const auto* id : {"0", "1"}) {
      nlohmann::json quantiles;
      for (const auto* level : {"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"}) quantiles[level] = {1, 2, 3, 4};
      lines += nlohmann::json{{"item_id", id}, {"forecast_start", start}, {"quantiles", quantiles}, {"mean", {1, 2, 3, 4}}}
                   .dump() +
               "\n";
    }
  write("flat.jsonl", lines);
  const auto outcome = run(evaluate, {"--run", "run", "--report", "--baseline", "counting=flat.jsonl", "--series", "1",
                                      "--json", "--quiet", "--threads", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto page = content_of(path("run/private/report.html"));
  EXPECT_NE(page.find("counting"), std::string::npos);
  EXPECT_NE(page.find("Series 1"), std::string::npos);
  EXPECT_EQ(page.find("Series 0"), std::string::npos);
  EXPECT_NE(page.find("those that were asked for"), std::string::npos);
  expect_failure(run(evaluate, {"--run", "run", "--report", "--series", "7", "--quiet", "--threads", "1"}), evaluate, 2,
                 {"--series", "'7'"});
  expect_failure(run(evaluate, {"--run", "run", "--series", "1"}), evaluate, 2, {"--series", "--report"});
}

TEST_F(RunFolders, AResultThatCannotBeWrittenIsAFailure) {
  const auto program = program_path("tsdp-account").string();
  const auto status = std::system((program + " figure 2 > /dev/full 2> " + path("err").string()).c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(content_of(path("err")).find("stdout"), std::string::npos);
}

}  // namespace
}  // namespace tsdp::cli_test
