// What leaves a run is what its statement says: identity of files, edited ledgers, unfinished runs, and what stands
// beside an epsilon in the programs' answers.
#include <stdlib.h>

#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

constexpr const char* train = "tsdp-train";
constexpr const char* evaluate = "tsdp-evaluate";
constexpr const char* account = "tsdp-account";

class Release : public RunTest {
 protected:
  /// The exit code of a run that got SIGINT right after its beginning.
  int interrupted_run(const std::string& name) const {
    const auto command = "cd " + folder().string() + " && { " + program_path(train).string() +
                         " --config config.yaml --output " + name +
                         " --quiet --threads 1 --set training.max_epochs=1000000 --set privacy.noise_multiplier=1000 "
                         "2>err & pid=$!; while kill -0 $pid && [ ! -e " +
                         name + "/privacy.json ]; do sleep 0.01; done; cp " + name +
                         "/privacy.json begun.json; sleep 0.3; kill -INT $pid; wait $pid; }";
    const int status = std::system(("bash -c '" + command + "'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void replace(const std::string& file, const std::string& what, const std::string& by) const {
    auto text = content_of(path(file));
    const auto place = text.find(what);
    ASSERT_NE(place, std::string::npos) << what;
    write(file, text.replace(place, what.size(), by));
  }
};

TEST_F(Release, VerifyDerivesWhatIsStated) {
  make_run("run");
  for (const auto* what : {"run", "run/privacy.json", "run/model.pt"}) {
    const auto found = answer(account, {"verify", what, "--json"});
    EXPECT_EQ(found["agrees"], true) << what;
    EXPECT_LE(found["epsilon"]["lower"], found["stated"]["upper"]);
    EXPECT_EQ(found["delta"], 1e-7);
    EXPECT_EQ(found["statement"], nlohmann::json::parse(content_of(path("run/privacy.json")))["statement"]);
    EXPECT_EQ(found["differences"], nlohmann::json::array());
  }
  EXPECT_NE(run(account, {"verify", "run"}).out.find("agrees"), std::string::npos);
  expect_failure(run(account, {"verify", "nowhere"}), account, 2, {"nowhere"});
  expect_failure(run(account, {"verify", "run/config.yaml"}), account, 3, {"config.yaml"});
  expect_failure(run(account, {"verify", "run", "--delta", "1e-5"}), account, 2, {"--delta", "verify"});
}

// The card beside model.pt may be released with it: the same as its statement, and no score of true values.
TEST_F(Release, TheCardOfAModelHasScoresOnlyWhereAskedFor) {
  make_run("run");
  const auto card = content_of(path("run/model_card.md"));
  const std::string statement = nlohmann::json::parse(content_of(path("run/privacy.json")))["statement"];
  EXPECT_NE(card.find("**" + statement + "**"), std::string::npos) << card;
  EXPECT_NE(card.find("None stand here"), std::string::npos) << card;
  EXPECT_EQ(card.find("| this model |"), std::string::npos) << card;
  const auto scores = answer(evaluate, {"--run", "run", "--card", "card.md", "--json"});
  const auto scored = content_of(path("card.md"));
  const auto row = scored.find("| this model | 0.");
  ASSERT_NE(row, std::string::npos) << scored;
  EXPECT_NEAR(std::stod(scored.substr(row + 15)), scores["metrics"]["mean_weighted_quantile_loss"].get<double>(), 1e-4);
  EXPECT_NE(scored.find("No epsilon covers them"), std::string::npos);
  EXPECT_NE(scored.find(" test windows of "), std::string::npos) << scored;
  EXPECT_EQ(scored.substr(0, scored.find("## Scores")), card.substr(0, card.find("## Scores")));
  expect_failure(
      run(evaluate, {"--run", "run", "--card", "c.md", "--private", "--epsilon", "1", "--delta", "1e-5", "--v", "1"}),
      evaluate, 2, {"--card", "--private", "expected one of them"});
  for (const auto* file : {"run/model.pt", "run/model_card.md", "run/privacy.json", "run"}) {
    const bool is_file = std::filesystem::is_regular_file(path(file));
    const auto before = is_file ? content_of(path(file)) : std::string();
    expect_failure(run(evaluate, {"--run", "run", "--card", file}), evaluate, 2, {"--card: found", file, "expected"});
    EXPECT_EQ(is_file ? content_of(path(file)) : std::string(), before);
  }
  std::filesystem::remove(path("run/model.pt"));
  expect_failure(run(evaluate, {"--run", "run", "--card", "c.md"}), evaluate, 2,
                 {"--card", "run/model.pt", "finished"});
  EXPECT_FALSE(std::filesystem::exists(path("c.md")));
}

TEST_F(Release, AnEditedLedgerNeitherVerifiesNorIsExported) {
  make_run("run");
  replace("run/privacy.json", "\"noise_multiplier\": 4.0", "\"noise_multiplier\": 8.0");
  const auto found = run(account, {"verify", "run", "--json"});
  EXPECT_EQ(found.exit_code, 4);
  EXPECT_EQ(nlohmann::json::parse(found.out)["agrees"], false);
  EXPECT_EQ(lines_of(found.err).size(), 1U) << found.err;
  expect_failure(run("tsdp-export", {"--run", "run", "--output", "model.pt"}), "tsdp-export", 3,
                 {"privacy.json", "noise_multiplier", "says 4"});
  EXPECT_FALSE(std::filesystem::exists(path("model.pt")));
}

// The ledger of another mechanism, whole and true in itself, under this run's identity.
TEST_F(Release, ALedgerOfOtherTermsIsNotThisRuns) {
  make_run("run");
  make_run("big", {"--set", "privacy.noise_multiplier=8"});
  auto ledger = nlohmann::ordered_json::parse(content_of(path("big/privacy.json")));
  ledger["run"] = nlohmann::ordered_json::parse(content_of(path("run/privacy.json")))["run"];
  write("run/privacy.json", ledger.dump(2));
  expect_failure(run("tsdp-export", {"--run", "run", "--output", "model.pt"}), "tsdp-export", 3,
                 {"privacy.json", "noise_multiplier", "8"});
  expect_failure(run(train, {"--resume", "run", "--quiet"}), train, 3, {"privacy.json", "noise_multiplier"});
}

// A calibrated noise multiplier is kept as the number it is, by the run and by its export.
TEST_F(Release, ARunWithCalibratedNoiseEndsInAModel) {
  make_run("run", {"--set", "privacy.noise_multiplier=auto"});
  EXPECT_TRUE(std::filesystem::exists(path("run/model.pt")));
  EXPECT_EQ(answer(account, {"verify", "run", "--json"})["agrees"], true);
}

// Two statements in one file: readers differ in which of two equal keys they take.
TEST_F(Release, AKeyThatStandsTwiceIsRefused) {
  make_run("run");
  replace("run/privacy.json", "{\n", "{\n  \"statement\": \"(0.01, 1e-12)-differential privacy\",\n");
  expect_failure(run(account, {"verify", "run"}), account, 3, {"'statement' twice"});
}

TEST_F(Release, AnUnderstatedEpsilonNeitherVerifiesNorIsExported) {
  make_run("run");
  const auto ledger = nlohmann::json::parse(content_of(path("run/privacy.json")));
  const auto upper = ledger["epsilon"]["upper"].dump();
  replace("run/privacy.json", "\"upper\": " + upper, "\"upper\": 0.0001");
  EXPECT_EQ(run(account, {"verify", "run"}).exit_code, 4);
  expect_failure(run("tsdp-export", {"--run", "run", "--output", "model.pt"}), "tsdp-export", 4,
                 {"privacy.json", "epsilon"});
}

TEST_F(Release, WeightsOfAnotherRunDoNotGetItsStatement) {
  make_run("run");
  make_run("open", {"--set", "privacy.enabled=false"});
  std::filesystem::copy_file(path("open/private/checkpoints/last.pt"), path("run/private/checkpoints/last.pt"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_failure(run("tsdp-export", {"--run", "run", "--output", "model.pt"}), "tsdp-export", 3,
                 {"last.pt", "belongs to run"});
  expect_failure(run(train, {"--resume", "run", "--quiet"}), train, 3, {"last.pt", "belongs to run"});
  EXPECT_FALSE(std::filesystem::exists(path("model.pt")));
}

TEST_F(Release, AnUnfinishedRunIsExportedOnlyWhenAskedFor) {
  EXPECT_EQ(interrupted_run("run"), 130);
  expect_failure(run("tsdp-export", {"--run", "run", "--output", "model.pt"}), "tsdp-export", 4,
                 {"not finished", "--unfinished"});
  EXPECT_FALSE(std::filesystem::exists(path("model.pt")));
  EXPECT_EQ(run("tsdp-export", {"--run", "run", "--output", "model.pt", "--unfinished"}).exit_code, 0);
  const auto document = nlohmann::json::parse(content_of(path("run/privacy.json")));
  // Every program says that it is, and of which step; all the others are.
  const auto says = [&](const std::string& program, std::vector<std::string> arguments, bool expected) {
    const auto text = run(program, arguments);
    EXPECT_EQ(text.out.find("NOT FINISHED: these are the weights after step ") != std::string::npos, expected)
        << text.out << text.err;
    arguments.emplace_back("--json");
    const auto unfinished = answer(program, arguments)["unfinished"];
    EXPECT_EQ(unfinished.is_object(), expected) << program;
    if (!expected) return;
    EXPECT_EQ(unfinished["of"], document["steps_planned"]);
    EXPECT_LE(unfinished["step"], document["steps_taken"]);
  };
  make_run("whole");
  for (const bool is_unfinished : {true, false}) {
    const std::string model = is_unfinished ? "model.pt" : "whole/model.pt";
    says(evaluate, {"--run", is_unfinished ? "run" : "whole", "--threads", "1"}, is_unfinished);
    says(evaluate, {"--model", model, "--config", "config.yaml", "--threads", "1"}, is_unfinished);
    const auto verified = run(account, {"verify", model}).out;
    EXPECT_EQ(verified.find("The run is not finished: ") != std::string::npos, is_unfinished) << verified;
  }
  // Scored with other windows than it was made for.
  EXPECT_EQ(run(evaluate, {"--run", "run", "--set", "dataset.test_windows=1", "--threads", "1"}).exit_code, 0);
  EXPECT_EQ(answer(account, {"verify", "model.pt", "--json"})["state"], "interrupted");
}

// A run that was killed wrote its ledger before its last checkpoint: the exported ledger counts the steps of the
// weights beside it.
TEST_F(Release, AKilledRunIsExportedWithTheStepsOfItsWeights) {
  EXPECT_EQ(interrupted_run("run"), 130);
  const auto taken = nlohmann::json::parse(content_of(path("run/privacy.json")))["steps_taken"].get<std::int64_t>();
  ASSERT_GT(taken, 0);
  const auto begun = content_of(path("begun.json"));
  write("run/privacy.json", begun);
  const auto exported = answer("tsdp-export", {"--run", "run", "--output", "model.pt", "--unfinished", "--json"});
  EXPECT_EQ(exported["model"]["unfinished"]["step"], taken);
  EXPECT_EQ(exported["privacy"]["steps_taken"], taken);
  EXPECT_GE(exported["privacy"]["steps_charged"], taken);
  EXPECT_EQ(exported["privacy"]["state"], "running");
  EXPECT_EQ(exported["privacy"]["epsilon"], nlohmann::json::parse(begun)["epsilon"]);  // of the whole plan
  EXPECT_EQ(run(account, {"verify", "model.pt"}).exit_code, 0);
}

TEST_F(Release, WeightsAreNotChosenByLossesInPrivateRuns) {
  expect_failure(run(train, {"--config", "config.yaml", "--output", "run", "--set", "training.checkpoint=best"}), train,
                 4, {"training.checkpoint", "best", "set training.checkpoint to last"});
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  make_run("run");
  expect_failure(run("tsdp-export", {"--run", "run", "--checkpoint", "best", "--output", "model.pt"}), "tsdp-export", 4,
                 {"best"});
}

TEST_F(Release, ProductsOfFewerDigitsAreRefused) {
  for (const auto* variable : {"NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"}) {
    ASSERT_EQ(::setenv(variable, "1", 1), 0);
    const auto outcome = run(train, {"--config", "config.yaml", "--output", "run", "--quiet"});
    ::unsetenv(variable);
    expect_failure(outcome, train, 4, {variable, "unset it"});
  }
}

// Every epsilon in an answer says what it covers, and what beside it it does not.
TEST_F(Release, EveryEpsilonSaysWhatItCovers) {
  make_run("run", {"--set", "training.reproducible=true"});
  const auto covers_the_model = [](const nlohmann::json& answer, const nlohmann::json& beside) {
    EXPECT_EQ(answer["epsilon_covers"], nlohmann::json::array({"model"}));
    EXPECT_EQ(answer["epsilon_does_not_cover"], beside);
  };
  const auto scores = answer(evaluate, {"--run", "run", "--json", "--threads", "1"});
  covers_the_model(scores, {"metrics", "baselines", "best_free"});
  EXPECT_EQ(scores["reproducible"], true);
  EXPECT_NE(scores["statement"].get<std::string>().find("NOT FOR RELEASE"), std::string::npos);
  const auto text = run(evaluate, {"--run", "run", "--threads", "1"}).out;
  EXPECT_NE(text.find("no epsilon covers them"), std::string::npos) << text;
  EXPECT_NE(text.find("NOT FOR RELEASE"), std::string::npos) << text;
  const auto forecasts =
      answer("tsdp-forecast", {"--model", "run/model.pt", "--input", "series.txt", "--format", "lstnet", "--start",
                               "2015-01-01", "--output", "out.csv", "--json", "--threads", "1"});
  covers_the_model(forecasts, nlohmann::json::array({"output"}));
  EXPECT_EQ(forecasts["reproducible"], true);
  const auto again =
      run(train, {"--config", "config.yaml", "--output", "other", "--quiet", "--json", "--threads", "1"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  covers_the_model(nlohmann::json::parse(again.out), {"metrics", "baselines", "best_free"});
}

TEST_F(Release, TheCardOfATrainedMixtureSaysWhatWasTrained) {
  const std::vector<std::string> mixture = {"--set", "model.prior=last_value",
                                            "--set", "model.candidates=[last_value_bands]",
                                            "--set", "privacy.noise_multiplier=400"};
  auto trained = mixture;
  trained.insert(trained.end(), {"--set", "training.trainable=mixture"});
  make_run("network", mixture);
  make_run("mixed", trained);
  const auto of_network = content_of(path("network/model_card.md"));
  const auto card = content_of(path("mixed/model_card.md"));
  EXPECT_EQ(of_network.find("numbers that were trained on the data"), std::string::npos) << of_network;
  for (const auto* words : {"weights, those of its start.", "and by numbers that were trained on the data",
                            "changed how forecasts are mixed, no weight of the network."}) {
    EXPECT_NE(card.find(words), std::string::npos) << card;
    EXPECT_EQ(of_network.find(words), std::string::npos) << of_network;
  }
  auto plan = trained;
  plan.insert(plan.begin(), {"--config", "config.yaml", "--dry-run", "--json", "--quiet"});
  const auto planned = answer(train, plan);
  EXPECT_GT(planned["parameters"], 100);
  EXPECT_EQ(planned["trained_parameters"], 3 * 2 + 1);
  // A run begins with the network of a start, not with its mixture, and says so.
  auto next = mixture;
  next.insert(next.begin(), {"--config", "config.yaml", "--output", "next", "--set", "model.start=mixed/model.pt",
                             "--set", "model.candidates=[last_value_bands]"});
  const auto begun = run(train, next);
  EXPECT_EQ(begun.exit_code, 0) << begun.err;
  EXPECT_NE(begun.err.find("its mixture was trained, too; a run begins with the network alone"), std::string::npos)
      << begun.err;
}

// With an epsilon of which e to its power is no number, a factor would say nothing.
TEST_F(Release, AHugeEpsilonPromisesNothing) {
  make_run("run", {"--set", "privacy.noise_multiplier=0.01", "--set", "privacy.target_epsilon=1e6"});
  const auto card = content_of(path("run/model_card.md"));
  EXPECT_NE(card.find("so large that it promises nothing"), std::string::npos) << card;
  EXPECT_EQ(card.find(" inf "), std::string::npos) << card;
}

// Python that ends with an exit code was ended by no signal.
TEST_F(Release, APythonThatFailsIsSaidToHaveFailed) {
  make_run("run");
  write("failing", "#!/bin/sh\nexit 1\n");
  std::filesystem::permissions(path("failing"), std::filesystem::perms::owner_all);
  ::setenv("TSDP_PYTHON", path("failing").c_str(), 1);
  const auto outcome = run("tsdp-export", {"--run", "run", "--output", "model.onnx"});
  ::unsetenv("TSDP_PYTHON");
  expect_failure(outcome, "tsdp-export", 1, {"--format onnx", "ended with exit code 1"});
}

TEST_F(Release, PlotsAndTablesOverwriteNothingThatIsRead) {
  const auto before = content_of(path("config.yaml"));
  expect_failure(run(account, {"profile", "--config", "config.yaml", "--csv", "config.yaml"}), account, 2,
                 {"--csv", "which is read, too"});
  EXPECT_EQ(content_of(path("config.yaml")), before);
  expect_failure(run(account, {"profile", "--config", "config.yaml", "--csv", "p.svg", "--plot", "p.svg"}), account, 2,
                 {"--plot", "--csv"});
}

// Nothing of the data is in such a model, and its ledger says so.
TEST_F(Release, ATargetOfZeroReleasesTheStart) {
  make_run("run", {"--set", "privacy.target_epsilon=0", "--set", "privacy.noise_multiplier=auto", "--set",
                   "model.prior=last_value"});
  const auto ledger = nlohmann::json::parse(content_of(path("run/privacy.json")));
  EXPECT_EQ(ledger["state"], "finished");
  EXPECT_EQ(ledger["steps_planned"], 0);
  EXPECT_EQ(ledger["epsilon"]["lower"], 0.0);
  EXPECT_EQ(ledger["epsilon"]["upper"], 0.0);
  const auto found = answer(account, {"verify", "run", "--json"});
  EXPECT_EQ(found["agrees"], true) << found;
  EXPECT_EQ(found["epsilon"]["upper"], 0.0);
  const auto scores = answer(evaluate, {"--run", "run", "--json", "--threads", "1"});
  EXPECT_EQ(scores["metrics"], scores["baselines"]["start"]);
  EXPECT_EQ(run("tsdp-export", {"--run", "run", "--output", "model.pt"}).exit_code, 0);
  const auto ended = run(train, {"--resume", "run", "--quiet"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(content_of(path("run/privacy.json"))), ledger);
  const auto total = answer(account, {"total", "run", "--delta", "1e-4", "--json"});
  EXPECT_EQ(total["epsilon"]["upper"], 0.0) << total;
  const auto plan = answer(train, {"--config", "config.yaml", "--dry-run", "--json", "--set",
                                   "privacy.target_epsilon=0", "--set", "model.prior=last_value"});
  EXPECT_EQ(plan["steps"], 0) << plan;
  EXPECT_NE(content_of(path("run/private/report.html")).find("no step was taken"), std::string::npos);
  expect_failure(run(train, {"--config", "config.yaml", "--dry-run", "--set", "privacy.target_epsilon=0"}), train, 2,
                 {"random weights", "expected another model.start or a model.prior"});
}

TEST_F(Release, AFinishedRunTakenUpAgainChangesNothing) {
  make_run("run");
  const auto ledger = content_of(path("run/privacy.json"));
  EXPECT_EQ(run(train, {"--resume", "run", "--quiet"}).exit_code, 0);
  EXPECT_EQ(content_of(path("run/privacy.json")), ledger);
  EXPECT_EQ(answer(account, {"verify", "run", "--json"})["agrees"], true);
}

}  // namespace
}  // namespace tsdp::cli_test
