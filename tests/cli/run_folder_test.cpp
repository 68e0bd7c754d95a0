// A run's folder as the programs find it: threads, data and files that belong to it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

constexpr const char* train = "tsdp-train";
constexpr const char* evaluate = "tsdp-evaluate";
constexpr const char* account = "tsdp-account";

class RunFolders : public RunTest {};

// Rounding may depend on the number of threads: with another one, steps that are charged could not be replayed.
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
  const auto abroad =
      answer(evaluate, {"--run", path("run").string(), "--json", "--threads", "1"}, path("elsewhere/deeper"));
  EXPECT_EQ(abroad["metrics"], at_home["metrics"]);
  const auto resumed = run(train, {"--resume", path("run").string()}, path("elsewhere/deeper"));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(RunFolders, ExportsOverwriteNothingThatTheRunNeeds) {
  make_run("run");
  for (const auto* file : {"run/config.yaml", "run/privacy.json", "run/private/checkpoints/last.pt",
                           "run/private/checkpoints/charged", "run/private/checkpoints/config.yaml"}) {
    const auto before = content_of(path(file));
    expect_failure(run("tsdp-export", {"--run", "run", "--output", file}), "tsdp-export", 2,
                   {file, "expected another one"});
    EXPECT_EQ(content_of(path(file)), before) << file;
  }
}

// Nor do cards: files that the configuration reads are the run's, too.
TEST_F(RunFolders, CardsOverwriteNothingThatIsRead) {
  make_run("first");
  make_run("run", {"--set", "model.start=first/model.pt"});
  const auto start = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(path("run")))
      if (entry.path().extension() == ".safetensors") return "run/" + entry.path().filename().string();
    return std::string("none");
  }();
  write("flat.jsonl", "{}\n");
  for (const auto& file : {start, std::string("series.txt"), std::string("run/model.pt"), std::string("flat.jsonl")}) {
    const auto before = content_of(path(file));
    ASSERT_FALSE(before.empty()) << file;
    expect_failure(run(evaluate, {"--run", "run", "--card", file, "--baseline", "flat=flat.jsonl", "--quiet"}),
                   evaluate, 2, {file, "expected another one"});
    EXPECT_EQ(content_of(path(file)), before) << file;
    if (file == "run/model.pt" || file == "flat.jsonl") continue;
    expect_failure(run("tsdp-export", {"--run", "run", "--output", file}), "tsdp-export", 2,
                   {file, "expected another one"});
    EXPECT_EQ(content_of(path(file)), before) << file;
  }
  expect_failure(run(evaluate, {"--run", "run", "--card", "none/card.md"}), evaluate, 2, {"--card", "no folder none"});
  expect_failure(run("tsdp-export", {"--run", "run", "--output", "none/m.pt"}), "tsdp-export", 2,
                 {"--output", "no folder none"});
}

// Whatever a configuration names is read: all files of a path with {rank}, and weights it begins with or mixes in.
TEST_F(RunFolders, NorDoCardsOverwriteFilesOfAConfigurationByItself) {
  make_run("run");
  std::string part0, part1;
  for (int i = 0; i < 200; ++i) {
    part0 += std::to_string(i % 24) + "\n";
    part1 += std::to_string(50 + i % 7) + "\n";
  }
  write("part0.txt", part0);
  write("part1.txt", part1);
  write("start.safetensors", "weights");
  write("other.safetensors", "weights");
  write("ranked.yaml",
        "dataset: {path: \"part{rank}.txt\", format: lstnet, frequency: 1h, start: \"2015-01-01\", prediction_length: "
        "4,\n  season_length: 24, split: last, test_windows: 2, validation_length: 8}\n"
        "model: {context_length: 8, prior: auto, start: start.safetensors, candidates: [start, other.safetensors]}\n"
        "sampling: {batch_size: 2}\nprivacy: {noise_multiplier: 4.0, delta: 1.0e-7}\n");
  for (const auto* file : {"part0.txt", "part1.txt", "start.safetensors", "other.safetensors"}) {
    const auto before = content_of(path(file));
    expect_failure(run(evaluate, {"--model", "run/model.pt", "--config", "ranked.yaml", "--card", file, "--quiet"}),
                   evaluate, 2, {file, "expected another one"});
    EXPECT_EQ(content_of(path(file)), before) << file;
  }
}

// Settings that do less than they say are told of before anything is spent, by advice as well.
TEST_F(RunFolders, PlansTellOfSettingsThatDoLessThanTheySay) {
  for (const auto* how : {"--dry-run", "--advise"}) {
    const auto told = run(train, {"--config", "config.yaml", how, "--set", "dataset.validation_length=3", "--set",
                                  "sampling.batch_size=99"});
    EXPECT_EQ(told.exit_code, 0) << told.err;
    EXPECT_NE(told.err.find("dataset.validation_length: found 3, which holds no window of 4 steps"), std::string::npos)
        << told.err;
    EXPECT_NE(told.err.find("sampling.batch_size: found 99, by which every step is divided"), std::string::npos)
        << told.err;
  }
}

// What stands beside the scores is of the folder's run, so the model has to be, too.
TEST_F(RunFolders, AnotherRunsModelIsNotScored) {
  make_run("run");
  make_run("other", {"--set", "privacy.noise_multiplier=9"});
  std::filesystem::copy_file(path("other/model.pt"), path("run/model.pt"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_failure(run(evaluate, {"--run", "run", "--report", "--quiet", "--threads", "1"}), evaluate, 3,
                 {"run/model.pt: belongs to run ", "put its own file back"});
}

// A report states how its run was trained, whatever the run is scored with.
TEST_F(RunFolders, TheReportStatesTheFactsOfItsRun) {
  make_run("run");
  const auto facts = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--run", "run", "--report", "--quiet", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = run(evaluate, arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto page = content_of(path("run/private/report.html"));
    const auto at = page.find("Trained on");
    EXPECT_NE(at, std::string::npos);
    std::map<std::string, std::string> out;
    for (const std::string name : {"Trained on", "Batches", "Steps", "Optimizer", "Clip norm"}) {
      const auto begin = page.find(name, at);
      EXPECT_NE(begin, std::string::npos) << name;
      out[name] = page.substr(begin, page.find("</tr>", begin) - begin);
    }
    return out;
  };
  const auto own = facts({});
  EXPECT_NE(own.at("Trained on").find("2 series, one value each 1h; 184 steps of each"), std::string::npos)
      << own.at("Trained on");
  EXPECT_NE(own.at("Batches").find("2 windows expected a step"), std::string::npos) << own.at("Batches");
  write("one.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n23\n24\n25\n26\n");
  EXPECT_EQ(facts({"--set", "optimizer.learning_rate=1", "--set", "sampling.batch_size=1", "--set",
                   "sampling.top_level=deterministic", "--set", "dataset.validation_length=4", "--set",
                   "dataset.path=one.txt"}),
            own);
}

TEST_F(RunFolders, WindowsThatWereTrainedOnAreToldOf) {
  make_run("run");
  const auto remarks = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--run", "run", "--json", "--quiet", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return answer(evaluate, arguments)["remarks"].dump();
  };
  EXPECT_EQ(remarks({}).find("was trained"), std::string::npos) << remarks({});
  EXPECT_EQ(remarks({"--split", "validation"}).find("was trained"), std::string::npos);
  EXPECT_NE(remarks({"--set", "dataset.test_windows=5"})
                .find("2 of the 10 windows begin within the first 184 values of their series, and on as many the model "
                      "was trained"),
            std::string::npos)
      << remarks({"--set", "dataset.test_windows=5"});
  // Nor are windows unseen that the start was trained on.
  make_run("second", {"--set", "model.start=run/model.pt", "--set", "dataset.test_windows=5"});
  const auto found = answer(evaluate, {"--run", "second", "--json", "--quiet", "--threads", "1"})["remarks"];
  const auto told = found.dump();
  EXPECT_NE(told.find("2 of the 10 windows begin within the first 184 values of their series, and on as many its start "
                      "was trained"),
            std::string::npos)
      << told;
  EXPECT_EQ(told.find("the model was trained"), std::string::npos) << told;
  EXPECT_EQ(found, answer(train, {"--config", "config.yaml", "--output", "third", "--quiet", "--threads", "1", "--json",
                                  "--set", "model.start=run/model.pt", "--set", "dataset.test_windows=5"})["remarks"]);
}

// What a run keeps of its start may be released with it, so weights of a run that did not begin must not lie there.
TEST_F(RunFolders, OfRunsThatDidNotBeginNothingStays) {
  make_run("first");
  EXPECT_EQ(run(account, {"budget", "budget.json", "--epsilon", "0.001", "--delta", "1e-7"}).exit_code, 0);
  const std::vector<std::string> begin = {
      "--config", "config.yaml", "--output", "run", "--quiet", "--threads", "1", "--set", "model.start=first/model.pt"};
  auto refused = begin;
  refused.insert(refused.end(), {"--budget", "budget.json"});
  EXPECT_EQ(run(train, refused).exit_code, 4);
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  std::filesystem::create_directory(path("run"));
  for (const auto* file : {"run/start.safetensors", "run/start.safetensors.part", "run/coefficients.json"}) {
    write(file, "of another run");
    expect_failure(run(train, begin), train, 2, {file, "is there already", "expected a new folder"});
    std::filesystem::remove(path(file));
  }
  EXPECT_TRUE(std::filesystem::is_empty(path("run")));
}

// Nothing observed is no zero, in scores or in the loss that training watches.
TEST_F(RunFolders, PartsOfWhichNothingIsKnownHaveNoScore) {
  const auto without = [&](int begin, int end) {
    std::string out;
    for (int i = 0; i < 200; ++i)
      out +=
          i >= begin && i < end ? "nan,nan\n" : std::to_string(1 + i % 24) + "," + std::to_string(100 + i % 7) + "\n";
    return out;
  };
  write("series.txt", without(158, 172));
  const auto test =
      run(train, {"--config", "config.yaml", "--output", "test", "--threads", "1", "--set", "dataset.split=lstnet"});
  EXPECT_EQ(test.exit_code, 0) << test.err;
  EXPECT_NE(test.err.find("no CRPS, which is a share of the true values: none of them was observed"), std::string::npos)
      << test.err;
  EXPECT_EQ(test.err.find("all of them are 0"), std::string::npos) << test.err;
  write("series.txt", without(184, 192));
  make_run("validation");
  const auto metrics = content_of(path("validation/private/metrics.jsonl"));
  EXPECT_EQ(metrics.find("\"validation_loss\":0.0"), std::string::npos) << metrics;
}

TEST_F(RunFolders, ANewRunOverwritesNothing) {
  const auto before = content_of(path("config.yaml"));
  expect_failure(run(train, {"--config", "config.yaml", "--output", ".", "--quiet", "--threads", "1"}), train, 2,
                 {"config.yaml", "is there already", "expected a new folder"});
  EXPECT_EQ(content_of(path("config.yaml")), before);
  EXPECT_FALSE(std::filesystem::exists(path("private")));
}

TEST_F(RunFolders, ExportsWhatTheRunExported) {
  make_run("run", {"--set", "training.checkpoint=best", "--set", "training.validate_every=1", "--set",
                   "privacy.enabled=false"});
  ASSERT_EQ(run("tsdp-export", {"--run", "run", "--output", "again.pt"}).exit_code, 0);
  const auto score = [&](const std::string& model) {
    return answer(evaluate, {"--model", model, "--config", "config.yaml", "--json", "--threads", "1"})["metrics"];
  };
  EXPECT_EQ(score("again.pt"), score("run/model.pt"));
}

// A plan says what a run would take of a budget, and charges nothing; one that does not fit is refused as the run would
// be.
TEST_F(RunFolders, APlanSaysWhatABudgetWouldPay) {
  ASSERT_EQ(run("tsdp-account", {"budget", "budget.json", "--epsilon", "9", "--delta", "1e-5"}).exit_code, 0);
  const auto before = content_of(path("budget.json"));
  const std::vector<std::string> plan = {"--config", "config.yaml", "--budget", "budget.json", "--dry-run"};
  auto as_json = plan;
  as_json.emplace_back("--json");
  const auto spent = answer(train, as_json)["budget"]["share_spent"].get<double>();
  EXPECT_GT(spent, 0.0);
  EXPECT_NE(run(train, plan).out.find("; of the budget budget.json "), std::string::npos);
  EXPECT_EQ(content_of(path("budget.json")), before);
  make_run("run", {"--budget", "budget.json"});
  const auto charged = answer("tsdp-account", {"budget", "budget.json", "--json"});
  EXPECT_EQ(charged["share_spent"].get<double>(), spent) << charged;
  EXPECT_GT(answer(train, as_json)["budget"]["share_spent"].get<double>(), spent);
  ASSERT_EQ(run("tsdp-account", {"budget", "small.json", "--epsilon", "0.01", "--delta", "1e-5"}).exit_code, 0);
  expect_failure(run(train, {"--config", "config.yaml", "--budget", "small.json", "--dry-run", "--quiet"}), train, 4,
                 {"small.json: the run would pass the budget of epsilon 0.01"});
  expect_failure(run(train, {"--config", "config.yaml", "--budget", "budget.json", "--advise"}), train, 2,
                 {"--budget: found with --advise", "expected --dry-run"});
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
      for (const auto* level : {"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"})
        quantiles[level] = {1, 2, 3, 4};
      lines +=
          nlohmann::json{{"item_id", id}, {"forecast_start", start}, {"quantiles", quantiles}, {"mean", {1, 2, 3, 4}}}
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

// Each row of the report's scores holds the scores of what it names. Without privacy and at a high rate, the model is
// far from its start.
TEST_F(RunFolders, TheReportShowsEachForecastersOwnScores) {
  make_run("run", {"--set", "privacy.enabled=false", "--set", "optimizer.learning_rate=0.3"});
  const auto outcome = run(evaluate, {"--run", "run", "--report", "--json", "--quiet", "--threads", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto answer = nlohmann::json::parse(outcome.out);
  const auto page = content_of(path("run/private/report.html"));
  const auto row_of = [&](const std::string& name) {
    const auto at = page.find("<tr><th scope=\"row\">" + name);
    EXPECT_NE(at, std::string::npos) << name;
    return page.substr(at, page.find("</tr>", at) - at);
  };
  // To the four digits that the page shows.
  const auto shows = [&](const std::string& name, const nlohmann::json& metrics) {
    const auto row = row_of(name);
    for (const auto& [label, metric] : {std::pair{"CRPS", "mean_weighted_quantile_loss"}, std::pair{"ND", "ND"}}) {
      const auto cell = std::string("data-label=\"") + label + "\">";
      const auto at = row.find(cell);
      ASSERT_NE(at, std::string::npos) << row;
      const double expected = metrics[metric].get<double>();
      EXPECT_NEAR(std::stod(row.substr(at + cell.size())), expected, 1e-3 * std::abs(expected))
          << name << ": " << label;
    }
  };
  const auto& start = answer["baselines"]["start"];
  ASSERT_GT(std::abs(start["ND"].get<double>() - answer["metrics"]["ND"].get<double>()),
            2e-3 * start["ND"].get<double>());
  shows("its start", start);
  shows("seasonal naive<", answer["baselines"]["seasonal_naive"]);
  shows("seasonal naive bands", answer["baselines"]["seasonal_naive_bands"]);
  shows("seasonal quantiles", answer["baselines"]["seasonal_quantiles"]);
  // The best that is free is the least of them.
  const auto crps = [](const nlohmann::json& of) { return of["mean_weighted_quantile_loss"].get<double>(); };
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [name, metrics] : answer["baselines"].items()) least = std::min(least, crps(metrics));
  EXPECT_EQ(crps(answer["best_free"]), least);
  EXPECT_EQ(crps(answer["baselines"][answer["best_free"]["name"].get<std::string>()]), least);
  shows(answer["model"].get<std::string>(), answer["metrics"]);
}

// Weights that were trained on data are no public forecast, and no model of epsilon 0.
TEST_F(RunFolders, AStartThatWasTrainedOnDataIsNoCandidate) {
  make_run("first", {"--set", "model.prior=last_value"});
  for (const auto* is_private : {"true", "false"}) {
    SCOPED_TRACE(is_private);
    make_run(std::string("open-") + is_private,
             {"--set", "model.prior=last_value", "--set", std::string("privacy.enabled=") + is_private});
  }
  for (const std::string from : {"open-true", "open-false"}) {
    SCOPED_TRACE(from);
    const std::vector<std::string> given = {"--set", "model.prior=last_value", "--set",
                                            "model.start=" + from + "/model.pt"};
    make_run(from + "-next", given);
    const auto config = content_of(path(from + "-next/config.yaml"));
    EXPECT_NE(config.find("last_value_bands"), std::string::npos) << config;
    EXPECT_EQ(config.find("candidates: [start"), std::string::npos) << config;
    for (const std::string setting : {"privacy.target_epsilon=0", "model.candidates=[start]", "training.trainable=head",
                                      "training.trainable=mixture"}) {
      std::vector<std::string> asked = {"--config", "config.yaml", "--dry-run", "--set", setting};
      asked.insert(asked.end(), given.begin(), given.end());
      const auto refused = run(train, asked);
      EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;
      EXPECT_NE(refused.err.find("trained on data"), std::string::npos) << refused.err;
    }
  }
  // Fresh weights are one.
  EXPECT_NE(content_of(path("first/config.yaml")).find("auto"), std::string::npos);
}

// Nobody asked for a mixture: where it cannot be trained, `auto` trains weights.
TEST_F(RunFolders, AStartThatWasTrainedOnDataIsTrainedOnWithManySeries) {
  const std::vector<std::string> mixed = {"--set", "model.prior=last_value", "--set",
                                          "model.candidates=[last_value_bands]"};
  make_run("first", mixed);
  std::string many;
  for (int i = 0; i < 200; ++i) {
    for (int series = 0; series < 200; ++series) many += std::to_string(series + i % 24) + (series < 199 ? "," : "\n");
  }
  write("many.txt", many);
  auto settings = mixed;
  for (const std::string setting : {"dataset.path=many.txt", "training.max_epochs=auto", "optimizer.learning_rate=auto",
                                    "privacy.target_epsilon=8"})
    settings.insert(settings.end(), {"--set", setting});
  const auto plan = [&](const std::string& start) {
    std::vector<std::string> asked = {"--config", "config.yaml", "--dry-run", "--json", "--quiet", "--device", "cpu"};
    asked.insert(asked.end(), settings.begin(), settings.end());
    asked.insert(asked.end(), {"--set", "model.start=" + start});
    return answer(train, asked);
  };
  EXPECT_EQ(plan("fresh")["trained_parameters"], 3 * 2 + 1);
  for (const std::string mode : {"data", "membership"}) {
    std::vector<std::string> asked = {"--config", "config.yaml", "--mode", mode};
    asked.insert(asked.end(), settings.begin(), settings.end());
    expect_failure(run("tsdp-audit", asked), "tsdp-audit", 2,
                   {"training.trainable: found auto, which takes the mixture here", "--mode " + mode, "expected"});
  }
  const auto further = plan("first/model.pt");
  EXPECT_EQ(further["trained_parameters"], further["parameters"]);
}

// A start that was trained on data is no "epsilon 0", wherever a score of it stands, and a budget pays for no such run
// that it does not know.
TEST_F(RunFolders, AStartThatWasTrainedOnDataIsSaidToBe) {
  make_run("first");
  make_run("second", {"--set", "model.start=first/model.pt"});
  for (const auto& [set, words] :
       {std::pair<std::vector<std::string>, std::string>{{"--set", "model.start=first/model.pt"},
                                                         "trained on data before, at a cost of its own"},
        std::pair<std::vector<std::string>, std::string>{{"--set", "model.start=open/model.pt"},
                                                         "trained on data before, without privacy"}}) {
    const bool is_private = words.find("without") == std::string::npos;
    if (!is_private) make_run("open", {"--set", "privacy.enabled=false"});
    const std::string name = is_private ? "second" : "third";
    if (!is_private) make_run(name, set);
    const auto told = run(evaluate, {"--run", name, "--report", "--threads", "1"});
    ASSERT_EQ(told.exit_code, 0) << told.err;
    EXPECT_NE(told.out.find(words), std::string::npos) << told.out;
    const auto page = content_of(path(name + "/private/report.html"));
    EXPECT_NE(page.find(words), std::string::npos);
    for (const auto* nothing_spent : {"epsilon 0", "eps 0", "ε = 0", "before any of your data"}) {
      EXPECT_EQ(told.out.find(nothing_spent), std::string::npos) << told.out;
      EXPECT_EQ(page.find(nothing_spent), std::string::npos);
    }
    const auto ledger = nlohmann::json::parse(content_of(path(name + "/privacy.json")));
    EXPECT_EQ(ledger["start"]["origin"], is_private ? "trained" : "trained_without_privacy");
    EXPECT_EQ(ledger["warnings"].size(), 1U);
    // So do plans, before anything is trained.
    const auto start = "model.start=" + std::string(is_private ? "first" : "open") + "/model.pt";
    for (const auto& [program, more] :
         {std::pair<std::string, std::vector<std::string>>{train, {"--dry-run", "--quiet"}},
          {train, {"--advise", "--quiet"}},
          {account, {"epsilon", "--steps", "3"}}}) {
      auto arguments = more;
      for (const auto& one : {std::string("--config"), std::string("config.yaml"), std::string("--set"), start})
        arguments.push_back(one);
      const auto plan = run(program, arguments);
      ASSERT_EQ(plan.exit_code, 0) << plan.err;
      EXPECT_NE((plan.out + plan.err).find("start.trained"), std::string::npos) << program << plan.out << plan.err;
    }
    // A forecast's sum counts every run behind the model.
    const auto forecast =
        run("tsdp-forecast", {"--model", name + "/model.pt", "--input", "series.txt", "--start", "2015-01-01",
                              "--output", name + ".jsonl", "--private", "--epsilon", "1", "--delta", "1e-4", "--v", "1",
                              "--json", "--quiet", "--threads", "1"});
    ASSERT_EQ(forecast.exit_code, 0) << forecast.err;
    const auto together = nlohmann::json::parse(forecast.out)["with_training"];
    const auto scores =
        nlohmann::json::parse(run(evaluate, {"--run", name, "--json", "--quiet", "--threads", "1"}).out);
    EXPECT_EQ(scores["epsilon_does_not_cover"].back(), "start");
    if (is_private) {
      const auto first = nlohmann::json::parse(content_of(path("first/privacy.json")));
      const auto total = run(account, {"total", name, "--delta", "1e-4"});
      EXPECT_NE(total.out.find("1 run and the runs that their weights came from (" +
                               first["run"]["id"].get<std::string>() + ")"),
                std::string::npos)
          << total.out << total.err;
      EXPECT_GE(together["epsilon"].get<double>(),
                1.0 + ledger["epsilon"]["upper"].get<double>() + first["epsilon"]["upper"].get<double>());
    } else {
      EXPECT_TRUE(together["epsilon"].is_null());
    }
  }
}

TEST_F(RunFolders, AResultThatCannotBeWrittenIsAFailure) {
  const auto program = program_path("tsdp-account").string();
  const auto status = std::system((program + " figure 2 > /dev/full 2> " + path("err").string()).c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(content_of(path("err")).find("stdout"), std::string::npos);
}

// What max_epochs leaves of the target is said by the plan, in words and as JSON, and at the end; the numbers that are
// said use it.
TEST_F(RunFolders, WhatIsLeftOfTheTargetIsSaid) {
  const auto plan_of = [&](const std::vector<std::string>& set) {
    std::vector<std::string> arguments = {"--config",  "config.yaml", "--set", "privacy.noise_multiplier=20",
                                          "--dry-run", "--json"};
    arguments.insert(arguments.end(), set.begin(), set.end());
    return answer("tsdp-train", arguments);
  };
  const auto plan = plan_of({});
  ASSERT_FALSE(plan["unused"].is_null()) << plan;
  EXPECT_DOUBLE_EQ(plan["unused"]["epsilon"].get<double>(),
                   plan["target_epsilon"].get<double>() - plan["epsilon"]["upper"].get<double>());
  const auto epochs = std::to_string(plan["unused"]["max_epochs"].get<std::int64_t>());
  const auto said = "of the target epsilon 1 unused: training.max_epochs=" + epochs + " or privacy.noise_multiplier=";
  const auto text =
      run("tsdp-train", {"--config", "config.yaml", "--set", "privacy.noise_multiplier=20", "--dry-run"}).out;
  const auto at = text.find(said);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find(" would use it", at), std::string::npos) << text;
  const auto noise = text.substr(at + said.size(), text.find(' ', at + said.size()) - at - said.size());
  // The composition that it was found for, which auto might not choose.
  EXPECT_EQ(text.find(" with privacy.composition=" + plan["composition"].get<std::string>() + " would use it", at),
            at + said.size() + noise.size())
      << text;
  for (const auto& set : {"training.max_epochs=" + epochs, "privacy.noise_multiplier=" + noise,
                          std::string("privacy.noise_multiplier=auto")}) {
    const auto other = plan_of({"--set", set});
    EXPECT_TRUE(other["unused"].is_null()) << set << ": " << other;
    EXPECT_EQ(other["ends_by"], "max_epochs") << set;
  }
  const auto whole = run("tsdp-train", {"--config", "config.yaml", "--set", "privacy.noise_multiplier=20", "--output",
                                        "run", "--threads", "1"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(whole.err.find("training.max_epochs ended the run, which leaves "), std::string::npos) << whole.err;
  EXPECT_NE(whole.err.find("would have used it (a further run on these data adds its own cost)"), std::string::npos)
      << whole.err;
}

}  // namespace
}  // namespace tsdp::cli_test
