// tsdp-account --relation series from outside: its numbers, the shape of its JSON, its warning, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "command.h"

namespace tsdp::cli_test {
namespace {

using Json = nlohmann::json;
constexpr const char* account = "tsdp-account";

class SeriesAccount : public CommandTest {
 protected:
  Outcome ask(const std::string& command, std::vector<std::string> more) {
    std::vector<std::string> arguments = {command, "--relation", "series"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(account, arguments);
  }
  Json json_of(const std::string& command, std::vector<std::string> more) {
    more.emplace_back("--json");
    const auto outcome = ask(command, more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    auto answer = Json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(answer.is_object()) << outcome.out;
    return answer.is_object() ? answer : Json::object();
  }
};

TEST_F(SeriesAccount, AnswersForEverySamplerWithItsCertificate) {
  // Published: Chua et al. (2024), figure 5, T = 1000, sigma 0.7, delta 1e-5. Balls in bins: an independent program has
  // delta 1.89e-5 at epsilon 0.5 and 7.8e-7 at 1.
  const std::map<std::string, std::pair<double, double>> within = {{"deterministic", {6.6524, 6.6526}},
                                                                   {"shuffled", {6.528, 6.6526}},
                                                                   {"poisson", {0.6, 0.61}},
                                                                   {"balls_in_bins", {0.5, 1.0}}};
  for (const std::string sampler : {"deterministic", "shuffled", "poisson", "wor", "balls_in_bins"}) {
    SCOPED_TRACE(sampler);
    const auto answer = json_of("epsilon", {"--top-level", sampler, "--batches", "1000", "--epochs", "1",
                                            "--noise-multiplier", "0.7", "--delta", "1e-5"});
    EXPECT_EQ(answer["relation"], "series");
    EXPECT_EQ(answer["direction"], "both");
    EXPECT_EQ(answer["theorem"], "series." + sampler);
    EXPECT_EQ(answer["steps"], 1000);
    EXPECT_EQ(answer["epochs"], 1);
    EXPECT_TRUE(answer["certificate"]["upper"].is_string());
    EXPECT_TRUE(answer["certificate"]["assumptions"].is_array());
    EXPECT_GT(answer["substitution"]["epsilon"].get<double>(), 0.0);
    const double upper = answer["epsilon"]["upper"];
    if (sampler == "wor") {
      EXPECT_TRUE(answer["epsilon"]["lower"].is_null());
      EXPECT_TRUE(answer["certificate"]["lower"].is_null());
      EXPECT_EQ(answer["substitution"]["epsilon"], upper);
    } else {
      EXPECT_GE(answer["epsilon"]["lower"].get<double>(), within.at(sampler).first);
      EXPECT_LE(upper, within.at(sampler).second);
      EXPECT_TRUE(answer["certificate"]["lower"].is_string());
    }
  }
}

TEST_F(SeriesAccount, WarnsThatPoissonNumbersDoNotApplyToShuffledBatches) {
  const auto outcome = ask("epsilon", {"--top-level", "shuffled", "--batches", "10000", "--epochs", "1",
                                       "--noise-multiplier", "0.5", "--delta", "1e-6"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("Poisson numbers do not apply: epsilon is between 10.994 and 10.998"), std::string::npos)
      << outcome.err;
  const auto poisson = ask("epsilon", {"--top-level", "poisson", "--batches", "10000", "--epochs", "1",
                                       "--noise-multiplier", "0.5", "--delta", "1e-6"});
  EXPECT_EQ(poisson.err, "");
}

TEST_F(SeriesAccount, CommandsAgreeWithEachOther) {
  for (const std::string sampler : {"deterministic", "shuffled", "poisson", "balls_in_bins"}) {
    SCOPED_TRACE(sampler);
    const std::vector<std::string> law = {"--top-level", sampler, "--batches", "50"};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), law.begin(), law.end());
      return more;
    };
    const auto epsilon = json_of("epsilon", with({"--epochs", "3", "--noise-multiplier", "2", "--delta", "1e-6"}));
    const double upper = epsilon["epsilon"]["upper"];
    const auto delta =
        json_of("delta", with({"--epochs", "3", "--noise-multiplier", "2", "--epsilon", std::to_string(upper)}));
    EXPECT_NEAR(delta["delta"]["upper"].get<double>() / 1e-6, 1.0, 1e-2);
    const auto steps = json_of(
        "steps", with({"--noise-multiplier", "2", "--delta", "1e-6", "--epsilon", std::to_string(upper * 1.001)}));
    EXPECT_GE(steps["steps"].get<std::int64_t>(), 150);
    EXPECT_LE(steps["steps"].get<std::int64_t>(), 152);
    const auto sigma = json_of("sigma", with({"--epochs", "3", "--delta", "1e-6", "--epsilon", std::to_string(upper)}));
    EXPECT_NEAR(sigma["noise_multiplier"].get<double>(), 2.0, 2e-3);
    const auto profile =
        json_of("profile", with({"--epochs", "3", "--noise-multiplier", "2", "--epsilons", "0,0.5,1"}));
    EXPECT_EQ(profile["profile"].size(), 3U);
    EXPECT_LT(profile["profile"][2]["delta"]["upper"], profile["profile"][0]["delta"]["upper"]);
  }
}

TEST_F(SeriesAccount, TakesOneDirectionARateAndAnOrder) {
  const std::vector<std::string> poisson = {"--top-level", "poisson", "--sampling-rate",    "0.01",
                                            "--steps",     "300",     "--noise-multiplier", "1",
                                            "--delta",     "1e-6"};
  const auto both = json_of("epsilon", poisson);
  EXPECT_EQ(both["steps"], 300);
  auto one = poisson;
  one.insert(one.end(), {"--direction", "add"});
  const auto add = json_of("epsilon", one);
  EXPECT_EQ(add["direction"], "add");
  EXPECT_LT(add["epsilon"]["upper"], both["epsilon"]["lower"]);
  one.back() = "remove";
  EXPECT_EQ(json_of("epsilon", one)["epsilon"]["upper"], both["epsilon"]["upper"]);
  // The same order in every epoch tells more.
  const std::vector<std::string> shuffled = {"--top-level", "shuffled",           "--batches", "100",     "--epochs",
                                             "5",           "--noise-multiplier", "2",         "--delta", "1e-6"};
  auto once = shuffled;
  once.insert(once.end(), {"--reshuffle", "once"});
  // So do bins that are drawn once; drawn anew in every epoch they cost about what coins do.
  auto bins = shuffled;
  bins[1] = "balls_in_bins";
  auto redrawn = bins;
  redrawn.insert(redrawn.end(), {"--redraw", "every_epoch"});
  auto coins = bins;
  coins[1] = "poisson";
  const auto anew = json_of("epsilon", redrawn);
  EXPECT_EQ(anew["theorem"], "series.bins_redrawn");
  EXPECT_LT(anew["epsilon"]["upper"], 1.01 * json_of("epsilon", coins)["epsilon"]["upper"].get<double>());
  EXPECT_LT(anew["epsilon"]["upper"], 0.7 * json_of("epsilon", bins)["epsilon"]["lower"].get<double>());
  EXPECT_GT(json_of("epsilon", once)["epsilon"]["lower"], json_of("epsilon", shuffled)["epsilon"]["lower"]);
}

TEST_F(SeriesAccount, OneDirectionAloneIsNoGuarantee) {
  const std::vector<std::string> law = {"--top-level", "poisson", "--batches", "6", "--delta", "1e-3"};
  for (const auto& [command, more] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"epsilon", {"--noise-multiplier", "3", "--epochs", "4"}},
           {"sigma", {"--epsilon", "1", "--epochs", "4"}},
           {"steps", {"--epsilon", "1", "--noise-multiplier", "3"}}}) {
    auto arguments = law;
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(ask(command, arguments).out.find("no guarantee"), std::string::npos) << command;
    arguments.insert(arguments.end(), {"--direction", "add"});
    const auto one = ask(command, arguments).out;
    EXPECT_NE(one.find("of the direction add alone: no guarantee"), std::string::npos) << one;
    EXPECT_EQ(one.find("replaced by another"), std::string::npos) << one;
    EXPECT_FALSE(json_of(command, arguments).contains("substitution"));
  }
}

// Correlated noise is made for a number of epochs, so there is no "most steps" of it.
TEST_F(SeriesAccount, StepsOfCorrelatedNoiseAreRefusedInOneLine) {
  expect_failure(ask("steps", {"--top-level", "balls_in_bins", "--batches", "6", "--mechanism", "bsr",
                               "--noise-multiplier", "3", "--epsilon", "2", "--delta", "1e-3"}),
                 account, 2, {"--mechanism", "planned for a number of epochs", "sigma or epsilon, with --epochs"});
}

TEST_F(SeriesAccount, ComparesAllSamplers) {
  const std::vector<std::string> question = {"compare", "--batches", "1000", "--epochs", "1", "--noise-multiplier",
                                             "0.8",     "--delta",   "1e-6"};
  auto with_json = question;
  with_json.insert(with_json.end(), {"--json", "--plot", path("samplers.svg").string()});
  const auto outcome = run(account, with_json);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto answer = Json::parse(outcome.out);
  std::map<std::string, double> upper;
  std::set<std::string> redraws;
  for (const auto& row : answer["compare"]) {
    upper[row["top_level"]] = row["epsilon"]["upper"];
    if (row.contains("redraw")) redraws.insert(row["redraw"]);
    EXPECT_TRUE(row["certificate"]["upper"].is_string());
  }
  EXPECT_EQ(upper.size(), 5U);
  EXPECT_EQ(redraws, (std::set<std::string>{"once", "every_epoch"}));
  EXPECT_LT(upper["balls_in_bins"], upper["poisson"]);
  EXPECT_LT(upper["poisson"], 0.1 * upper["shuffled"]);
  EXPECT_EQ(upper["shuffled"], upper["deterministic"]);
  EXPECT_NE(content_of(path("samplers.svg")).find("balls_in_bins"), std::string::npos);
  const auto table = run(account, question);
  for (const auto* word :
       {"deterministic", "shuffled, once", "poisson", "not known", "balls_in_bins, once", "balls_in_bins, every_epoch"})
    EXPECT_NE(table.out.find(word), std::string::npos) << word;
  expect_failure(run(account, {"compare", "--batches", "10", "--epochs", "1", "--delta", "1e-6"}), account, 2,
                 {"--noise-multiplier", "not given"});
  expect_failure(run(account, {"compare", "--batches", "10", "--epochs", "1", "--noise-multiplier", "1", "--delta",
                               "1e-6", "--w", "2"}),
                 account, 2, {"--w: not used by compare"});
  auto of_events = question;
  of_events.insert(of_events.end(), {"--relation", "event"});
  expect_failure(run(account, of_events), account, 2, {"--relation: found event", "about whole series"});
  // Where no lower end is known, the text says so, as JSON does.
  const std::vector<std::string> wor = {"--relation", "series", "--top-level",        "wor",
                                        "--batches",  "20",     "--noise-multiplier", "2"};
  const auto with = [&](const char* command, const std::vector<std::string>& more) {
    std::vector<std::string> all = {command};
    all.insert(all.end(), wor.begin(), wor.end());
    all.insert(all.end(), more.begin(), more.end());
    return run(account, all).out;
  };
  EXPECT_NE(with("steps", {"--epsilon", "3", "--delta", "1e-5"}).find(": spends epsilon at most "), std::string::npos);
  EXPECT_NE(with("profile", {"--steps", "3", "--epsilons", "1"}).find("\n1\tnot known\t"), std::string::npos)
      << with("profile", {"--steps", "3", "--epsilons", "1"});
}

TEST_F(SeriesAccount, CurveAndPlotAreTwoFiles) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"figure", "B1"},
                                                    {"profile", "--relation", "series", "--top-level", "poisson",
                                                     "--batches", "20", "--noise-multiplier", "2", "--steps", "3"}}) {
    auto all = arguments;
    all.insert(all.end(), {"--csv", "x.svg", "--plot", "./x.svg"});
    expect_failure(run(account, all), account, 2, {"--plot: found './x.svg', the file of --csv"});
  }
}

TEST_F(SeriesAccount, DrawsTheFiguresOfBatchSamplers) {
  const auto outcome =
      run(account, {"figure", "B2", "--csv", path("b2.csv").string(), "--plot", path("b2.svg").string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(content_of(path("b2.csv")).find("B2,,deterministic,series.deterministic,tight,0,"), std::string::npos);
  EXPECT_NE(content_of(path("b2.svg")).find("Figure B2"), std::string::npos);
  expect_failure(run(account, {"figure", "B8"}), account, 2, {"figure: found 'B8'", "B1, B2"});
}

TEST_F(SeriesAccount, RefusesWhatSaysNothingOfWholeSeries) {
  const std::vector<std::string> base = {"--top-level",        "poisson", "--batches", "100", "--epochs", "1",
                                         "--noise-multiplier", "1",       "--delta",   "1e-6"};
  const auto refused = [&](std::vector<std::string> more, const std::vector<std::string>& parts) {
    more.insert(more.begin(), base.begin(), base.end());
    expect_failure(ask("epsilon", more), account, 2, parts);
  };
  refused({"--w", "2"}, {"--w: not used with --relation series"});
  refused({"--v", "2"}, {"--v: not used with --relation series"});
  refused({"--context-length", "96"}, {"--context-length: not used with --relation series"});
  refused({"--bottom-level", "wr"}, {"--bottom-level: not used with --relation series"});
  refused({"--theorem", "4.4"}, {"--theorem: not used with --relation series"});
  refused({"--num-records", "5"}, {"--num-records"});
  refused({"--sampling-rate", "0"}, {"sampling rate: found 0", "above 0 and at most 1"});
  refused({"--sampling-rate", "1.01"}, {"sampling rate: found 1.01"});
  refused({"--reshuffle", "once"}, {"reshuffle: found once with top level poisson"});
  refused({"--redraw", "every_epoch"}, {"redraw: found every_epoch with top level poisson"});
  refused({"--direction", "sideways"}, {"--direction"});
  const auto other = [&](std::vector<std::string> arguments, int code, const std::vector<std::string>& parts) {
    expect_failure(run(account, arguments), account, code, parts);
  };
  other({"epsilon", "--relation", "series", "--epochs", "1", "--noise-multiplier", "1", "--delta", "1e-6"}, 2,
        {"--top-level: not given", "balls_in_bins"});
  other({"epsilon", "--relation", "series", "--top-level", "shuffled", "--epochs", "1", "--noise-multiplier", "1",
         "--delta", "1e-6"},
        2, {"--batches"});
  other({"epsilon", "--relation", "series", "--top-level", "bins", "--epochs", "1"}, 2, {"--top-level", "bins"});
  other({"epsilon", "--relation", "series", "--top-level", "poisson", "--sampling-rate", "0.1", "--epochs", "2",
         "--noise-multiplier", "1", "--delta", "1e-6"},
        2, {"--epochs: given without --batches"});
  other({"profile", "--relation", "series", "--top-level", "deterministic", "--noise-multiplier", "1", "--epsilons",
         "-1"},
        2, {"--epsilons: found -1"});
  // What belongs to whole series says nothing of values.
  const std::vector<std::string> values = {
      "epsilon", "--num-sequences",   "100",  "--sequence-length", "500", "--context-length",
      "10",      "--forecast-length", "5",    "--batch-size",      "10",  "--noise-multiplier",
      "1",       "--delta",           "1e-6", "--steps",           "10"};
  const auto valued = [&](std::vector<std::string> more, int code, const std::vector<std::string>& parts) {
    more.insert(more.begin(), values.begin(), values.end());
    other(more, code, parts);
  };
  valued({"--batches", "3"}, 2, {"--batches: used with --relation series alone"});
  valued({"--direction", "add"}, 2, {"--direction: used with --relation series alone"});
  valued({"--top-level", "balls_in_bins"}, 4, {"no theorem covers", "top level balls_in_bins"});
  valued({"--top-level", "shuffled", "--context-noise", "1", "--forecast-noise", "1", "--v", "1"}, 4,
         {"no theorem covers", "top level shuffled"});
}

Json answered(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  auto answer = Json::parse(outcome.out, nullptr, false);
  EXPECT_TRUE(answer.is_object()) << outcome.out;
  return answer.is_object() ? answer : Json::object();
}

TEST_F(SeriesAccount, LargestBatches) {
  const auto asked = [&](const std::string& command, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {command,     "--relation", "series",   "--top-level", "poisson",
                                          "--batches", "20",         "--epochs", "5",           "--json"};
    if (command != "profile") arguments.insert(arguments.end(), {"--delta", "1e-5"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(account, arguments);
  };
  const auto without = answered(asked("epsilon", {"--noise-multiplier", "2"}));
  const auto loose =
      answered(asked("epsilon", {"--noise-multiplier", "2", "--largest-batch", "110", "--num-sequences", "1000"}));
  const auto tight =
      answered(asked("epsilon", {"--noise-multiplier", "2", "--largest-batch", "97", "--num-sequences", "1000"}));
  EXPECT_GT(loose["epsilon"]["upper"].get<double>(), without["epsilon"]["upper"].get<double>());
  EXPECT_LT(loose["epsilon"]["upper"].get<double>(), 1.01 * without["epsilon"]["upper"].get<double>());
  EXPECT_GT(tight["epsilon"]["upper"].get<double>(), 1.01 * loose["epsilon"]["upper"].get<double>());
  EXPECT_EQ(loose["largest_batch"], 110);
  EXPECT_EQ(loose["num_sequences"], 1000);
  EXPECT_EQ(loose["bound"], "upper");
  EXPECT_NE(loose["certificate"]["upper"].get<std::string>().find("batches cut to at most 110 of 1000 records"),
            std::string::npos);
  // The grid of a profile ends where little but cuts is left.
  const auto profile =
      answered(asked("profile", {"--noise-multiplier", "2", "--largest-batch", "110", "--num-sequences", "1000"}));
  EXPECT_LT(profile["profile"].back()["epsilon"].get<double>(), 20.0);
  // What sigma answers keeps within the target.
  const auto sigma = answered(asked("sigma", {"--epsilon", "1", "--largest-batch", "110", "--num-sequences", "1000"}));
  const auto back = answered(asked("epsilon", {"--noise-multiplier", sigma["noise_multiplier"].dump(),
                                               "--largest-batch", "110", "--num-sequences", "1000"}));
  EXPECT_LE(back["epsilon"]["upper"].get<double>(), 1.0);
  EXPECT_GT(back["epsilon"]["upper"].get<double>(), 0.99);
  const auto refused = [&](const std::vector<std::string>& more, int code, const std::vector<std::string>& parts) {
    expect_failure(asked("epsilon", more), account, code, parts);
  };
  refused({"--noise-multiplier", "2", "--largest-batch", "110"}, 2, {"--num-sequences: not given", "how many series"});
  refused({"--noise-multiplier", "2", "--num-sequences", "110"}, 2, {"--num-sequences", "--largest-batch alone"});
  refused({"--noise-multiplier", "2", "--largest-batch", "60", "--num-sequences", "1000"}, 4,
          {"delta: found 1e-05, less than what cuts of large batches cost",
           "expected a larger largest batch, or a larger delta"});
  expect_failure(asked("sigma", {"--epsilon", "1", "--largest-batch", "60", "--num-sequences", "1000"}), account, 4,
                 {"less than what cuts of large batches cost", "expected a larger largest batch"});
  refused({"--noise-multiplier", "2", "--largest-batch", "1001", "--num-sequences", "1000"}, 2,
          {"largest batch: found 1001 of 1000", "at most as many as there are"});
  refused({"--noise-multiplier", "2", "--largest-batch", "0", "--num-sequences", "1000"}, 2,
          {"largest batch, or number of series: found 0"});
  // One bin holds everybody: nothing is cut.
  const auto one_bin = answered(run(account, {"epsilon", "--relation", "series", "--top-level", "balls_in_bins",
                                              "--batches", "1", "--epochs", "1", "--noise-multiplier", "2", "--delta",
                                              "1e-3", "--num-sequences", "30", "--largest-batch", "30", "--json"}));
  EXPECT_GT(one_bin["epsilon"]["upper"].get<double>(), 1.0);
  expect_failure(
      run(account, {"epsilon", "--relation", "series", "--top-level", "wor", "--batches", "20", "--noise-multiplier",
                    "2", "--delta", "1e-5", "--epochs", "1", "--largest-batch", "110", "--num-sequences", "1000"}),
      account, 2, {"largest batch: found 110 with top level wor, whose batches have one size"});
  expect_failure(
      run(account, {"epsilon",     "--relation",         "series", "--top-level", "balls_in_bins", "--batches",
                    "20",          "--epochs",           "2",      "--mechanism", "bsr",           "--method",
                    "monte_carlo", "--noise-multiplier", "8",      "--delta",     "1e-5",          "--largest-batch",
                    "110",         "--num-sequences",    "1000"}),
      account, 2, {"--largest-batch: not used with an estimate"});
}

TEST_F(SeriesAccount, CorrelatedNoise) {
  const std::vector<std::string> base = {"epsilon", "--relation",         "series", "--batches", "20",   "--epochs",
                                         "2",       "--noise-multiplier", "8",      "--delta",   "1e-5", "--json"};
  const auto answer = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return answered(run(account, more));
  };
  const auto bins = answer({"--top-level", "balls_in_bins", "--mechanism", "bsr"});
  EXPECT_EQ(bins["theorem"], "series.matrix");
  EXPECT_EQ(bins["noise"]["mechanism"], "bsr");
  EXPECT_EQ(bins["noise"]["planned_steps"], 40);
  EXPECT_EQ(bins["noise"]["coefficients"], (std::vector<double>{1.0, 0.5, 0.375, 0.3125}));
  const auto fixed = answer({"--top-level", "deterministic", "--mechanism", "bsr"});
  // Fixed batches are exact, and bins cost less.
  EXPECT_NEAR(fixed["epsilon"]["lower"].get<double>(), fixed["epsilon"]["upper"].get<double>(), 1e-9);
  EXPECT_LT(bins["epsilon"]["upper"].get<double>(), fixed["epsilon"]["upper"].get<double>());
  const auto once = answer({"--top-level", "shuffled", "--reshuffle", "once", "--mechanism", "bsr"});
  EXPECT_TRUE(once["epsilon"]["lower"].is_null());
  EXPECT_EQ(once["epsilon"]["upper"], fixed["epsilon"]["upper"]);
  // Orders, or bins, of every epoch's own: parts of a series may come together, which costs more.
  const auto own = answer({"--top-level", "shuffled", "--mechanism", "bsr"});
  EXPECT_GT(own["epsilon"]["upper"].get<double>(), 1.1 * fixed["epsilon"]["upper"].get<double>());
  EXPECT_TRUE(own["epsilon"]["lower"].is_null());
  const auto redrawn = answer({"--top-level", "balls_in_bins", "--redraw", "every_epoch", "--mechanism", "bsr"});
  EXPECT_EQ(redrawn["epsilon"]["upper"], own["epsilon"]["upper"]);
  // Every method by itself is no better than all of them.
  for (const std::string method : {"renyi", "conditional", "gram", "deterministic"})
    EXPECT_LE(bins["epsilon"]["upper"].get<double>(),
              answer({"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method", method})["epsilon"]["upper"]
                      .get<double>() *
                  1.005)
        << method;
  // The first column in a file; σ and c together decide.
  write("c.json", "[2, 1, 0.75, 0.625]");
  auto scaled = base;
  scaled[8] = "16";
  scaled.insert(scaled.end(), {"--top-level", "balls_in_bins", "--mechanism", "file", "--coefficients", "c.json"});
  EXPECT_NEAR(answered(run(account, scaled))["epsilon"]["upper"].get<double>(), bins["epsilon"]["upper"].get<double>(),
              1e-3);
  const auto refused = [&](std::vector<std::string> more, int code, const std::vector<std::string>& parts) {
    more.insert(more.begin(), base.begin(), base.end());
    expect_failure(run(account, more), account, code, parts);
  };
  refused({"--top-level", "poisson", "--mechanism", "bsr"}, 4,
          {"correlated noise with top level poisson", "not implemented", "cyclic_poisson"});
  refused({"--top-level", "wor", "--mechanism", "bsr"}, 4,
          {"correlated noise with top level wor", "no theorem is known"});
  refused({"--top-level", "balls_in_bins", "--mechanism", "bsr", "--buffers", "2"}, 2,
          {"--buffers: not used by mechanism bsr"});
  refused({"--top-level", "balls_in_bins", "--mechanism", "blt", "--bands", "2"}, 2,
          {"--bands: not used by mechanism blt"});
  refused({"--top-level", "balls_in_bins", "--mechanism", "file"}, 2, {"--coefficients: not given"});
  refused({"--top-level", "balls_in_bins", "--coefficients", "c.json"}, 2,
          {"--coefficients: given without --mechanism file"});
  write("signed.json", "[1, -0.5]");
  refused({"--top-level", "balls_in_bins", "--mechanism", "file", "--coefficients", "signed.json"}, 4,
          {"negative entries", "deterministic"});
  write("bad.json", "{\"c\": 1}");
  refused({"--top-level", "balls_in_bins", "--mechanism", "file", "--coefficients", "bad.json"}, 3,
          {"bad.json", "first column of C"});
  // Signed: the absolute values stand in for the numbers, and no lower end is known.
  const auto with_signs =
      answer({"--top-level", "deterministic", "--mechanism", "file", "--coefficients", "signed.json"});
  EXPECT_TRUE(with_signs["epsilon"]["lower"].is_null());
}

// A configuration names its mechanism; options for the same one give the same answer.
TEST_F(SeriesAccount, AConfigurationsNoiseIsAccountedFor) {
  const auto epsilon = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"epsilon", "--noise-multiplier", "8", "--epochs", "2", "--delta", "1e-5", "--json"});
    return answered(run(account, more, source_folder()))["epsilon"];
  };
  for (const std::string mechanism : {"identity", "bsr", "bisr", "band_mf", "blt"}) {
    const auto configured =
        epsilon({"--config", "configs/exchange_rate.yaml", "--set", "privacy.relation=series", "--set",
                 "sampling.top_level=balls_in_bins", "--set", "sampling.batch_size=null", "--set", "sampling.batches=3",
                 "--set", "training.max_epochs=2", "--set", "privacy.noise.mechanism=" + mechanism});
    const auto by_options =
        epsilon({"--relation", "series", "--top-level", "balls_in_bins", "--batches", "3", "--mechanism", mechanism});
    EXPECT_NEAR(configured["upper"].get<double>(), by_options["upper"].get<double>(), 1e-9) << mechanism;
    EXPECT_NEAR(configured["lower"].get<double>(), by_options["lower"].get<double>(), 1e-9) << mechanism;
  }
  expect_failure(
      run(account,
          {"epsilon", "--config", "configs/exchange_rate.yaml", "--noise-multiplier", "8", "--epochs", "2", "--delta",
           "1e-5", "--set", "privacy.relation=series", "--set", "sampling.top_level=balls_in_bins", "--set",
           "privacy.noise_multiplier=auto", "--set", "privacy.noise.mechanism=auto"},
          source_folder()),
      account, 2, {"privacy.noise.mechanism: found auto"});
  expect_failure(run(account,
                     {"epsilon", "--config", "configs/exchange_rate.yaml", "--noise-multiplier", "8", "--epochs", "2",
                      "--delta", "1e-5", "--set", "privacy.relation=series", "--set", "sampling.top_level=auto",
                      "--set", "privacy.noise_multiplier=auto", "--set", "privacy.noise.mechanism=identity"},
                     source_folder()),
                 account, 2, {"sampling.top_level: found auto", "expected --set sampling.top_level=NAME"});
}

// All that stands beside an answer, not the number alone.
TEST_F(SeriesAccount, AConfigurationAnswersAsTheOptionsDo) {
  const std::vector<std::string> asked = {"--noise-multiplier", "8", "--epochs", "2", "--delta", "1e-5"};
  const auto of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "epsilon");
    arguments.insert(arguments.end(), asked.begin(), asked.end());
    return run(account, arguments, source_folder());
  };
  for (const std::string sampler : {"poisson", "shuffled", "deterministic", "balls_in_bins"}) {
    std::vector<std::string> configured = {"--config", "configs/exchange_rate.yaml",
                                           "--set",    "privacy.relation=series",
                                           "--set",    "sampling.top_level=" + sampler,
                                           "--set",    "sampling.batch_size=null",
                                           "--set",    "sampling.batches=4",
                                           "--set",    "training.max_epochs=2"};
    std::vector<std::string> by_options = {"--relation", "series", "--top-level", sampler, "--batches", "4"};
    EXPECT_EQ(of(configured).out, of(by_options).out) << sampler;
    EXPECT_EQ(of(configured).err.find("Poisson numbers do not apply") != std::string::npos, sampler == "shuffled")
        << of(configured).err;
    configured.emplace_back("--json");
    by_options.emplace_back("--json");
    auto by_configuration = answered(of(configured));
    auto by_command = answered(of(by_options));
    for (auto* one : {&by_configuration, &by_command})
      for (const auto* end : {"/epsilon/lower", "/epsilon/upper", "/substitution/epsilon"})
        if (auto& number = (*one)[Json::json_pointer(end)]; number.is_number())
          number = std::round(number.get<double>() * 1e8);  // rates differ in their last digits
    EXPECT_EQ(by_configuration, by_command) << sampler;
  }
}

// Zeros at the end of a file of coefficients are no bands, for whoever asks.
TEST_F(SeriesAccount, CyclicCoinsHaveOneNumberOfGroups) {
  write("coefficients.json", "[1, 0.5, 0, 0]");
  const auto file = path("coefficients.json").string();
  const auto of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "epsilon");
    arguments.insert(arguments.end(), {"--noise-multiplier", "3", "--epochs", "2", "--delta", "1e-5", "--json"});
    return answered(run(account, arguments, source_folder()));
  };
  const auto configured = of({"--config", "configs/exchange_rate.yaml", "--set", "privacy.relation=series", "--set",
                              "sampling.top_level=cyclic_poisson", "--set", "sampling.batch_size=null", "--set",
                              "sampling.batches=4", "--set", "training.max_epochs=2", "--set",
                              "privacy.noise.mechanism=file", "--set", "privacy.noise.coefficients=" + file});
  const auto by_options = of({"--relation", "series", "--top-level", "cyclic_poisson", "--batches", "4", "--mechanism",
                              "file", "--coefficients", file});
  EXPECT_EQ(by_options["groups"], 2);
  EXPECT_NEAR(configured["epsilon"]["upper"].get<double>(), by_options["epsilon"]["upper"].get<double>(), 1e-9);
}

// An estimate is no end of a bracket, and says so; exact is refused where nothing exact is known.
TEST_F(SeriesAccount, EstimatesAreNoBounds) {
  const auto asked = [](const std::string& command, std::vector<std::string> more) {
    more.insert(more.begin(), {command, "--relation", "series", "--batches", "10", "--epochs", "2", "--delta", "1e-2"});
    return more;
  };
  const auto json = [&](const std::string& command, std::vector<std::string> more) {
    more.insert(more.end(), {"--noise-multiplier", "2", "--json"});
    return answered(run(account, asked(command, more)));
  };
  const auto exact = json("epsilon", {"--top-level", "balls_in_bins", "--mechanism", "identity", "--method", "exact"});
  const auto drawn = json("epsilon", {"--top-level", "balls_in_bins", "--mechanism", "identity", "--method",
                                      "monte_carlo", "--samples", "50000"});
  EXPECT_TRUE(drawn["epsilon"]["upper"].is_null());
  EXPECT_TRUE(drawn["epsilon"]["lower"].is_null());
  EXPECT_NEAR(drawn["epsilon"]["estimate"].get<double>(), exact["epsilon"]["upper"].get<double>(), 0.05);
  EXPECT_FALSE(drawn.contains("certificate"));
  const auto bracket = json("epsilon", {"--top-level", "balls_in_bins", "--mechanism", "bsr"});
  const auto estimate =
      json("epsilon", {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method", "monte_carlo", "--seed", "3"});
  EXPECT_LT(estimate["epsilon"]["estimate"].get<double>(), bracket["epsilon"]["upper"].get<double>());
  EXPECT_GT(estimate["epsilon"]["estimate"].get<double>(), bracket["epsilon"]["lower"].get<double>());
  const auto published =
      json("epsilon", {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method", "estimate"});
  EXPECT_TRUE(published["epsilon"]["upper"].is_null());
  EXPECT_GT(published["epsilon"]["estimate"].get<double>(), 0.0);
  const auto text = run(account, asked("epsilon", {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method",
                                                   "estimate", "--noise-multiplier", "2"}));
  EXPECT_NE(text.out.find("no bound"), std::string::npos) << text.out;
  const auto fixed = json("epsilon", {"--top-level", "deterministic", "--mechanism", "bsr", "--method", "exact"});
  EXPECT_NEAR(fixed["epsilon"]["lower"].get<double>(), fixed["epsilon"]["upper"].get<double>(), 1e-9);
  const auto refused = [&](const std::string& command, std::vector<std::string> more, int code,
                           const std::vector<std::string>& parts) {
    expect_failure(run(account, asked(command, more)), account, code, parts);
  };
  refused("epsilon",
          {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method", "exact", "--noise-multiplier", "2"}, 4,
          {"--method exact: no exact profile of mechanism bsr", "--method auto"});
  refused("epsilon", {"--top-level", "shuffled", "--method", "exact", "--noise-multiplier", "2"}, 4,
          {"--method exact: no exact profile of top level shuffled"});
  refused("sigma", {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method", "monte_carlo", "--epsilon", "1"},
          2, {"--method monte_carlo: an estimate, which sigma cannot rest on"});
  refused("epsilon",
          {"--top-level", "deterministic", "--mechanism", "bsr", "--method", "monte_carlo", "--noise-multiplier", "2"},
          4, {"only balls_in_bins is estimated"});
  refused("epsilon",
          {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--samples", "100", "--noise-multiplier", "2"}, 2,
          {"--samples: used by --method monte_carlo alone"});
  // The published rule needs a delta to share, even where delta is asked for.
  const auto of_delta = run(account, asked("delta", {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method",
                                                     "estimate", "--noise-multiplier", "2", "--epsilon", "2"}));
  EXPECT_EQ(of_delta.exit_code, 0) << of_delta.err;
  refused("epsilon",
          {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method", "monte_carlo", "--samples", "100",
           "--noise-multiplier", "2"},
          2, {"--samples: found 100 for delta 0.01", "expected at least 1000"});
  refused("epsilon",
          {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method", "monte_carlo", "--sampling-rate", "0.5",
           "--noise-multiplier", "2"},
          2, {"sampling rate: found 0.5"});
  refused(
      "epsilon",
      {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method", "monte_carlo", "--noise-multiplier", "1e-200"},
      2, {"noise multiplier: found 1e-200"});
  refused("epsilon",
          {"--top-level", "balls_in_bins", "--mechanism", "bsr", "--method", "monte_carlo", "--samples", "1",
           "--noise-multiplier", "2"},
          2, {"--samples: found 1 "});
}

TEST_F(SeriesAccount, DrawsTheFiguresOfCorrelatedNoise) {
  const auto outcome =
      run(account, {"figure", "C4", "--csv", path("c4.csv").string(), "--plot", path("c4.svg").string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(content_of(path("c4.csv")).find("published,none,estimate"), std::string::npos);
  EXPECT_NE(content_of(path("c4.svg")).find("Figure C4"), std::string::npos);
  expect_failure(run(account, {"figure", "C9"}), account, 2, {"figure: found 'C9'", "C1, C2"});
}

TEST_F(SeriesAccount, StrategiesSideBySide) {
  const auto rows = answered(run(account, {"strategy", "--steps", "100", "--json"}))["strategy"];
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0]["mechanism"], "identity");
  EXPECT_NEAR(rows[0]["mean_error"].get<double>(), 50.5, 1e-9);
  EXPECT_NEAR(rows[1]["mean_error"].get<double>(), 11.307097804464602, 1e-9);
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i]["objective"].get<double>(), 50.5) << i;
  EXPECT_TRUE(rows[0]["noise_multiplier"].is_null());
  // With a target every sampler is priced, the least total error first.
  // Half a minute of two idle cores.
  const auto priced = answered(
      run(account, {"strategy", "--steps", "40", "--epochs", "4", "--epsilon", "1", "--delta", "1e-5", "--json"}, {},
          std::chrono::seconds(240)))["strategy"];
  std::set<std::string> samplers;
  double before = 0.0;
  for (const auto& row : priced) {
    samplers.insert(row["top_level"].get<std::string>() + row.value("redraw", "") + row.value("reshuffle", ""));
    EXPECT_GE(row["total_error"].get<double>(), before) << row["top_level"];
    before = row["total_error"];
    const double sigma = row["noise_multiplier"];
    EXPECT_NEAR(row["total_error"].get<double>(), sigma * sigma * row["mean_error"].get<double>(), 1e-6 * before);
  }
  EXPECT_EQ(samplers, (std::set<std::string>{"wor", "deterministic", "shuffledevery_epoch", "shuffledonce", "poisson",
                                             "cyclic_poisson", "balls_in_binsonce", "balls_in_binsevery_epoch"}));
  EXPECT_EQ(priced.size(), 4 * 6U + 3U + 3 * 2U);  // and 2, 4 and 8 groups of ten steps
  expect_failure(run(account, {"strategy", "--steps", "100", "--epochs", "3"}), account, 2,
                 {"--epochs: found 3 for 100 steps"});
  expect_failure(run(account, {"strategy", "--steps", "100", "--epsilon", "1"}), account, 2, {"--delta: not given"});
  expect_failure(run(account, {"strategy", "--steps", "100", "--w", "2"}), account, 2, {"--w: not used by strategy"});
}

}  // namespace
}  // namespace tsdp::cli_test
