// tsdp-account from outside: its numbers, the shape of its JSON, and what it refuses.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "command.h"

namespace tsdp::cli_test {
namespace {

using Json = nlohmann::json;
constexpr const char* account = "tsdp-account";

class Account : public CommandTest {
 protected:
  /// `command` on the paper's traffic data set with `changes`, pairs of option and value; an empty value takes the
  /// option away.
  /// A game of adaptive steps takes a minute under sanitizers.
  static constexpr std::chrono::seconds played = std::chrono::seconds(240);

  Outcome traffic(const std::string& command, const std::vector<std::pair<std::string, std::string>>& changes,
                  std::chrono::seconds limit = std::chrono::seconds(50)) {
    std::vector<std::pair<std::string, std::string>> options = {
        {"--num-sequences", "862"},  {"--sequence-length", "13916"}, {"--context-length", "96"},
        {"--forecast-length", "24"}, {"--batch-size", "256"},        {"--noise-multiplier", "4"}};
    for (const auto& change : changes) {
      bool found = false;
      for (auto& option : options)
        if (option.first == change.first) {
          option.second = change.second;
          found = true;
        }
      if (!found) options.push_back(change);
    }
    std::vector<std::string> arguments = {command, "--json"};
    for (const auto& [option, value] : options)
      if (!value.empty()) arguments.push_back(option + "=" + value);
    return run(account, arguments, {}, limit);
  }

  /// The answer as one JSON object that is all of stdout.
  static Json answer_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    auto answer = Json::parse(outcome.out, nullptr, false);  // the parser refuses text after the object
    EXPECT_TRUE(answer.is_object()) << outcome.out;
    return answer.is_object() ? answer : Json::object();
  }

  void expect_refused(const std::vector<std::pair<std::string, std::string>>& changes, int exit_code,
                      const std::vector<std::string>& parts) {
    std::vector<std::pair<std::string, std::string>> all = {{"--steps", "100"}, {"--delta", "1e-7"}};
    all.insert(all.end(), changes.begin(), changes.end());
    expect_failure(traffic("epsilon", all), account, exit_code, parts);
  }
};

void expect_interval(const Json& interval) {
  ASSERT_TRUE(interval.is_object()) << interval;
  EXPECT_EQ(interval.size(), 2U) << interval;
  ASSERT_TRUE(interval["lower"].is_number()) << interval;
  ASSERT_TRUE(interval["upper"].is_number()) << interval;
  EXPECT_LE(interval["lower"].get<double>(), interval["upper"].get<double>());
}

/// Keys and types that every answer has, and Theorem 4.4 with its unit.
void expect_answer_for_steps(const Json& answer) {
  std::set<std::string> keys;
  for (const auto& [key, value] : answer.items()) keys.insert(key);
  for (const auto* key : {"epsilon", "delta", "noise_multiplier", "steps", "epochs", "theorem", "bound",
                          "composition_unit", "compositions"})
    ASSERT_TRUE(keys.contains(key)) << key << " is not in " << answer;
  EXPECT_TRUE(answer["noise_multiplier"].is_number());
  EXPECT_TRUE(answer["steps"].is_number_integer());
  EXPECT_TRUE(answer["epochs"].is_number());
  EXPECT_EQ(answer["theorem"], "4.4");
  EXPECT_EQ(answer["bound"], answer.contains("composition") ? "upper" : "tight");  // composed adaptively
  EXPECT_EQ(answer["composition_unit"], "step");
  EXPECT_TRUE(answer["compositions"].is_number_integer());
  EXPECT_EQ(answer["compositions"], answer["steps"]);
}

// The paper's setting; the reference bracket is [0.7395791, 0.7395952].
TEST_F(Account, EpsilonOfTrafficMatchesTheReference) {
  const auto answer = answer_of(traffic("epsilon", {{"--steps", "10000"}, {"--delta", "1e-7"}}));
  expect_answer_for_steps(answer);
  expect_interval(answer["epsilon"]);
  EXPECT_LE(answer["epsilon"]["lower"].get<double>(), 0.7395952);
  EXPECT_GE(answer["epsilon"]["upper"].get<double>(), 0.7395791);
  EXPECT_LE(answer["epsilon"]["upper"].get<double>(), 0.7395952 * 1.002);
  EXPECT_EQ(answer["delta"].get<double>(), 1e-7);
  EXPECT_EQ(answer["noise_multiplier"].get<double>(), 4.0);
  EXPECT_EQ(answer["steps"], 10000);
}

TEST_F(Account, EpsilonIsNarrowerWhereAsked) {
  const auto answer =
      answer_of(traffic("epsilon", {{"--steps", "10000"}, {"--delta", "1e-7"}, {"--precision", "2e-5"}}));
  const auto lower = answer["epsilon"]["lower"].get<double>();
  const auto upper = answer["epsilon"]["upper"].get<double>();
  EXPECT_LE(lower, 0.7395952);
  EXPECT_GE(upper, 0.7395791);
  EXPECT_LE(upper - lower, 2e-5 * upper);
}

// delta and epsilon are inverse to each other, so each bracket must hold the other's truth.
TEST_F(Account, DeltaAgreesWithEpsilon) {
  const auto answer = answer_of(traffic("delta", {{"--steps", "10000"}, {"--epsilon", "0.739587"}}));
  expect_answer_for_steps(answer);
  EXPECT_EQ(answer["epsilon"].get<double>(), 0.739587);
  expect_interval(answer["delta"]);
  EXPECT_LE(answer["delta"]["lower"].get<double>(), 1.003e-7);
  EXPECT_GE(answer["delta"]["upper"].get<double>(), 0.997e-7);
}

TEST_F(Account, StepsOfTrafficMatchTheReference) {
  const auto answer = answer_of(traffic("steps", {{"--epsilon", "1"}, {"--delta", "1e-7"}}));
  expect_answer_for_steps(answer);
  EXPECT_GE(answer["steps"].get<double>(), 17653 * 0.999);
  EXPECT_LE(answer["steps"].get<double>(), 17654);
  EXPECT_EQ(answer["epochs"], answer["steps"].get<int>() / 3);  // 862 series by 256 a step
  expect_interval(answer["epsilon"]);
  EXPECT_LE(answer["epsilon"]["upper"].get<double>(), 1.0);
}

TEST_F(Account, SigmaIsEnoughAndNotMuchMore) {
  const auto answer = answer_of(traffic("sigma", {{"--noise-multiplier", ""},
                                                  {"--steps", "10000"},
                                                  {"--epsilon", "0.739587"},
                                                  {"--delta", "1e-7"},
                                                  {"--precision", "0.01"}}));
  expect_answer_for_steps(answer);
  expect_interval(answer["epsilon"]);
  EXPECT_LE(answer["epsilon"]["upper"].get<double>(), 0.739587);
  EXPECT_NEAR(answer["noise_multiplier"].get<double>(), 4.0, 0.04);
  EXPECT_GE(answer["noise_multiplier"].get<double>(), 3.999);
}

TEST_F(Account, EpochsCountAsTheirSteps) {
  const auto by_epochs = answer_of(traffic("epsilon", {{"--epochs", "100"}, {"--delta", "1e-7"}}));
  const auto by_steps = answer_of(traffic("epsilon", {{"--steps", "300"}, {"--delta", "1e-7"}}));
  EXPECT_EQ(by_epochs, by_steps);
}

TEST_F(Account, OneEpochNeedsNeitherSeriesNorBatchSize) {
  const auto answer = answer_of(traffic("epsilon", {{"--num-sequences", ""},
                                                    {"--batch-size", ""},
                                                    {"--top-level", "deterministic"},
                                                    {"--epochs", "10"},
                                                    {"--delta", "1e-7"}}));
  EXPECT_EQ(answer["theorem"], "4.2");
  EXPECT_EQ(answer["bound"], "tight");
  EXPECT_EQ(answer["composition_unit"], "epoch");
  EXPECT_EQ(answer["compositions"], 10);
  EXPECT_EQ(answer["epochs"], 10);
  expect_interval(answer["epsilon"]);
  EXPECT_GT(answer["epsilon"]["lower"].get<double>(), 0.0);
}

TEST_F(Account, StepsOfDeterministicIterationAreRoundedUpToEpochs) {
  const auto of = [&](const char* steps) {
    return answer_of(traffic("epsilon", {{"--top-level", "deterministic"}, {"--steps", steps}, {"--delta", "1e-7"}}));
  };
  const auto seven = of("7");  // three steps an epoch
  EXPECT_EQ(seven["composition_unit"], "epoch");
  EXPECT_EQ(seven["compositions"], 3);
  EXPECT_EQ(seven["epochs"], 3);
  EXPECT_EQ(seven["epsilon"]["upper"], of("9")["epsilon"]["upper"]);
  // From below only the two that are complete count.
  EXPECT_EQ(seven["epsilon"]["lower"], of("6")["epsilon"]["lower"]);
  EXPECT_FALSE(seven.contains("precision_reached"));
}

TEST_F(Account, NothingTakenCostsNothing) {
  const auto answer = answer_of(traffic("epsilon", {{"--steps", "0"}, {"--delta", "1e-7"}}));
  EXPECT_EQ(answer["epsilon"]["lower"].get<double>(), 0.0);
  EXPECT_EQ(answer["epsilon"]["upper"].get<double>(), 0.0);
}

TEST_F(Account, WithoutJsonTheAnswerIsALine) {
  const auto outcome =
      run(account, {"epsilon", "--sequence-length=200", "--context-length=8", "--forecast-length=4",
                    "--top-level=deterministic", "--noise-multiplier=4", "--epochs=1", "--delta=1e-5"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(lines_of(outcome.out).size(), 1U) << outcome.out;
  EXPECT_NE(outcome.out.find("4.2"), std::string::npos) << outcome.out;
}

std::string option_of(const std::string& name, const std::string& value) { return name + "=" + value; }

/// The numbers of `text` behind `mark`: of "[a, b]" both, of anything else the first.
std::vector<double> numbers_behind(const std::string& text, const std::string& mark) {
  const auto place = text.find(mark);
  if (place == std::string::npos) {
    ADD_FAILURE() << "no '" << mark << "' in: " << text;
    return {};
  }
  const char* at = text.c_str() + place + mark.size();
  std::vector<double> out;
  const bool bracket = *at == '[';
  if (bracket) ++at;
  char* end = nullptr;
  out.push_back(std::strtod(at, &end));
  EXPECT_NE(end, at) << text;
  if (bracket) {
    EXPECT_EQ(std::string(end, 2), ", ") << text;
    out.push_back(std::strtod(end + 2, &end));
    EXPECT_EQ(*end, ']') << text;
  }
  return out;
}

/// How often numbers rounded to the nearest of so many digits would have lain on the wrong side.
struct OutwardRounding {
  int lower_matters = 0;
  int upper_matters = 0;

  static double nearest(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return std::strtod(text, nullptr);
  }
  /// A number for people is never above (below) what it stands for, and not by more than a unit of its last digit.
  void expect_below(double shown, double exact, int digits, const std::string& where) {
    EXPECT_LE(shown, exact) << where;
    EXPECT_GE(shown, exact - unit(exact, digits)) << where;
    lower_matters += nearest(exact, digits) > exact ? 1 : 0;
  }
  void expect_above(double shown, double exact, int digits, const std::string& where) {
    EXPECT_GE(shown, exact) << where;
    EXPECT_LE(shown, exact + unit(exact, digits)) << where;
    upper_matters += nearest(exact, digits) < exact ? 1 : 0;
  }
  void expect_around(const std::vector<double>& shown, const Json& exact, int digits, const std::string& where) {
    ASSERT_EQ(shown.size(), 2U) << where;
    expect_below(shown[0], exact.at("lower"), digits, where);
    expect_above(shown[1], exact.at("upper"), digits, where);
  }

 private:
  static double unit(double value, int digits) {
    return value == 0.0 ? 0.0 : 1.0001 * std::pow(10.0, std::floor(std::log10(std::abs(value))) - digits + 1);
  }
};

// What people read is rounded away from the truth: lower ends down, upper ends and noise up, what is left of a budget
// down. The JSON of the same question has the exact numbers.
TEST_F(Account, TextRoundsOutwards) {
  struct Pair {
    Json exact;
    std::string text;
  };
  const auto ask = [&](std::vector<std::string> words) {
    for (const auto* option : {"--theorem=4.2", "--sequence-length=200", "--context-length=8", "--forecast-length=4"})
      words.emplace_back(option);
    const auto text = run(account, words);
    EXPECT_EQ(text.exit_code, 0) << text.err;
    words.emplace_back("--json");
    return Pair{answer_of(run(account, words)), text.out};
  };
  OutwardRounding epsilon, delta, steps, sigma, profile, noise, left;
  for (const auto* multiplier : {"1.00000003", "2.12345671", "3.3333333333", "4.7", "5.98765432", "7.00000049"}) {
    const auto with_noise = option_of("--noise-multiplier", multiplier);
    auto found = ask({"epsilon", with_noise, "--epochs=3", "--delta=1e-5"});
    epsilon.expect_around(numbers_behind(found.text, "epsilon in "), found.exact["epsilon"], 7, found.text);
    noise.expect_above(numbers_behind(found.text, "noise multiplier ").at(0), found.exact["noise_multiplier"], 7,
                       found.text);

    found = ask({"delta", with_noise, "--epochs=3", "--epsilon=0.3"});
    delta.expect_around(numbers_behind(found.text, "delta in "), found.exact["delta"], 7, found.text);

    found = ask({"steps", with_noise, "--epsilon=30", "--delta=1e-5"});
    steps.expect_around(numbers_behind(found.text, "spends epsilon in "), found.exact["epsilon"], 7, found.text);
    left.expect_below(numbers_behind(found.text, "leaves epsilon ").at(0), found.exact["budget_left"], 4, found.text);

    found = ask({"sigma", option_of("--epsilon", multiplier), "--epochs=3", "--delta=1e-5", "--precision=0.01"});
    noise.expect_above(numbers_behind(found.text, "noise multiplier ").at(0), found.exact["noise_multiplier"], 7,
                       found.text);
    sigma.expect_around(numbers_behind(found.text, "spends epsilon in "), found.exact["epsilon"], 7, found.text);

    found = ask({"profile", with_noise, "--epochs=2", "--epsilons=-0.7,-0.1,0,0.1,0.4,1"});
    const auto lines = lines_of(found.text);
    ASSERT_EQ(lines.size(), 2 + found.exact["profile"].size()) << found.text;
    for (std::size_t i = 0; i + 2 < lines.size(); ++i) {
      const auto& line = lines[i + 2];
      const auto tab = line.find('\t');
      const auto second = line.find('\t', tab + 1);
      ASSERT_NE(second, std::string::npos) << line;
      profile.expect_around({std::stod(line.substr(tab + 1)), std::stod(line.substr(second + 1))},
                            found.exact["profile"][i]["delta"], 7, line);
    }
  }
  // Each of them met numbers that rounding to the nearest puts on the wrong side.
  for (const auto& [name, met] : {std::pair{"epsilon", epsilon}, std::pair{"delta", delta}, std::pair{"steps", steps},
                                  std::pair{"sigma", sigma}, std::pair{"profile", profile}}) {
    EXPECT_GT(met.lower_matters, 0) << name;
    EXPECT_GT(met.upper_matters, 0) << name;
  }
  EXPECT_GT(noise.upper_matters, 0);
  EXPECT_GT(left.lower_matters, 0);
}

// The cost of one use in a refusal, and the bracket in a warning, are rounded outwards too.
TEST_F(Account, RefusalsAndWarningsRoundOutwards) {
  OutwardRounding cost, wide;
  for (const auto* multiplier : {"1.1", "2.3", "3.7", "4.9", "6.1"}) {
    const auto outcome =
        traffic("steps", {{"--noise-multiplier", multiplier}, {"--epsilon", "1e-6"}, {"--delta", "1e-7"}});
    EXPECT_EQ(outcome.exit_code, 4);
    const auto exact =
        answer_of(traffic("epsilon", {{"--noise-multiplier", multiplier}, {"--steps", "1"}, {"--delta", "1e-7"}}));
    cost.expect_above(numbers_behind(outcome.err, "it costs epsilon ").at(0), exact["epsilon"]["upper"], 6,
                      outcome.err);

    const auto warned =
        traffic("delta", {{"--noise-multiplier", multiplier}, {"--steps", "10000"}, {"--epsilon", "60"}});
    EXPECT_EQ(warned.exit_code, 0) << warned.err;
    wide.expect_around(numbers_behind(warned.err, "the bracket "), Json::parse(warned.out)["delta"], 7, warned.err);
  }
  EXPECT_GT(cost.upper_matters, 0);
  EXPECT_GT(wide.upper_matters, 0);
}

TEST_F(Account, ConfigurationOfTheExchangeRates) {
  const auto outcome =
      run(account, {"epsilon", "--config", "configs/exchange_rate.yaml", "--steps", "10", "--json"}, source_folder());
  const auto answer = answer_of(outcome);
  expect_answer_for_steps(answer);
  expect_interval(answer["epsilon"]);
  EXPECT_EQ(answer["delta"].get<double>(), 1e-7);
  EXPECT_EQ(answer["noise_multiplier"].get<double>(), 4.0);
}

// Options beside a configuration are honoured or refused: an answer for another mechanism than asked for is neither.
TEST_F(Account, OptionsBesideAConfigurationAreNotIgnored) {
  const auto ask = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"epsilon", "--config", "configs/exchange_rate.yaml",
                                          "--steps", "10",       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(account, arguments, source_folder());
  };
  // What names the mechanism is refused by its name, whether or not the value is the configuration's own.
  for (const auto* option :
       {"--num-sequences=8", "--sequence-length=4000", "--context-length=500", "--lags-length=1",
        "--forecast-length=30", "--batch-size=8", "--subsequences-per-sequence=1", "--top-level=deterministic",
        "--bottom-level=poisson", "--context-noise=1", "--forecast-noise=1", "--relation=user", "--w=500", "--v=1"}) {
    const std::string text(option);
    expect_failure(ask({option}), account, 2, {text.substr(0, text.find('=')) + ": given beside --config", "--set"});
  }
  expect_failure(ask({"--num-records=10"}), account, 2, {"--num-records", "--theorem C.1"});
  // --set does what they would have done, and options of the question itself count.
  const auto plain = answer_of(ask({}));
  for (const auto* setting : {"privacy.w=500", "model.context_length=500", "sampling.batch_size=8",
                              "privacy.relation=user", "sampling.top_level=deterministic"}) {
    const auto epsilon = answer_of(ask({"--set", setting}))["epsilon"];
    if (std::string(setting) == "privacy.relation=user") {
      EXPECT_EQ(epsilon, plain["epsilon"]) << "with w = 1 both relations are one";
    } else {
      EXPECT_GT(epsilon["lower"].get<double>(), plain["epsilon"]["upper"].get<double>()) << setting;
    }
  }
  const auto more_noise = answer_of(ask({"--noise-multiplier=8"}));
  EXPECT_EQ(more_noise, answer_of(ask({"--set", "privacy.noise_multiplier=8"})));
  EXPECT_LT(more_noise["epsilon"]["upper"].get<double>(), plain["epsilon"]["lower"].get<double>());
  const auto larger_delta = answer_of(ask({"--delta=1e-5"}));
  EXPECT_EQ(larger_delta, answer_of(ask({"--set", "privacy.delta=1e-5"})));
  EXPECT_LT(larger_delta["epsilon"]["upper"].get<double>(), plain["epsilon"]["lower"].get<double>());
}

TEST_F(Account, TheTheoremTellsTheLevels) {
  for (const auto& [theorem, unit] : std::vector<std::pair<const char*, const char*>>{
           {"4.2", "epoch"}, {"E.8", "epoch"}, {"F.2", "step"}, {"F.8b", "step"}, {"4.4", "step"}}) {
    const auto answer = answer_of(traffic("profile", {{"--theorem", theorem}, {"--epsilons", "0.01"}}));
    EXPECT_EQ(answer["theorem"], theorem);
    EXPECT_EQ(answer["composition_unit"], unit);
    EXPECT_EQ(answer["compositions"], 1);
  }
}

TEST_F(Account, RefusesATheoremForAnotherTopLevel) {
  expect_refused({{"--theorem", "4.2"}, {"--top-level", "wor"}}, 4, {"Theorem 4.2", "top level", "it covers"});
  expect_refused({{"--theorem", "4.4"}, {"--top-level", "deterministic"}}, 4,
                 {"Theorem 4.4", "top level", "it covers"});
  expect_refused({{"--theorem", "E.8"}, {"--bottom-level", "wr"}}, 4, {"Theorem E.8", "bottom level", "it covers"});
}

TEST_F(Account, RowsOfOneEpochNeedNeitherSeriesNorBatchSize) {
  for (const auto* theorem : {"4.2", "4.3", "E.1", "E.8", "tsdp.2"}) {
    const auto answer = answer_of(traffic(
        "profile", {{"--num-sequences", ""}, {"--batch-size", ""}, {"--theorem", theorem}, {"--epsilons", "0.01"}}));
    EXPECT_EQ(answer["theorem"], theorem);
    EXPECT_EQ(answer["epochs"], 1);
  }
  // A step is an epoch unless both numbers say how many there are: never too little.
  const auto answer = answer_of(
      traffic("epsilon", {{"--batch-size", ""}, {"--theorem", "4.2"}, {"--steps", "7"}, {"--delta", "1e-7"}}));
  EXPECT_EQ(answer["compositions"], 7);
}

TEST_F(Account, ProfileOverAGridOfBothSigns) {
  const auto with_equals = answer_of(traffic("profile", {{"--epsilons", "-1,0,0.5"}}));
  const auto apart =
      answer_of(run(account, {"profile", "--json", "--epsilons", "-1,0,0.5", "--num-sequences", "862",
                              "--sequence-length", "13916", "--context-length", "96", "--forecast-length", "24",
                              "--batch-size", "256", "--noise-multiplier", "4"}));
  EXPECT_EQ(with_equals, apart);
  const auto& profile = apart["profile"];
  ASSERT_EQ(profile.size(), 3U);
  EXPECT_EQ(profile[0]["epsilon"], -1.0);
  for (const auto& point : profile) expect_interval(point["delta"]);
  const double at_zero = 862.0 / 256.0 * 13893.0 / 120.0;  // 1/(ρ r); δ(0) = ρ r (2Φ(1/σ) − 1)
  EXPECT_NEAR(profile[1]["delta"]["upper"].get<double>() * at_zero, std::erf(0.25 / std::sqrt(2.0)), 1e-8);
  EXPECT_NEAR(profile[0]["delta"]["lower"].get<double>(), 1.0 - std::exp(-1.0), 1e-12);
  EXPECT_EQ(apart["compositions"], 1);
  EXPECT_EQ(apart["theorem"], "4.4");
}

TEST_F(Account, ProfileOfACompositionAgreesWithDelta) {
  const auto answer = answer_of(traffic("profile", {{"--steps", "1000"}, {"--epsilons", "-0.2,0.2"}}));
  const auto single = answer_of(traffic("delta", {{"--steps", "1000"}, {"--epsilon", "0.2"}}));
  const auto& profile = answer["profile"];
  EXPECT_EQ(profile[1]["delta"], single["delta"]);
  EXPECT_EQ(answer["compositions"], 1000);
  // δ(−ε) = 1 − e^{−ε} + e^{−ε} δ(ε), with the ends where they belong.
  for (const auto* end : {"lower", "upper"}) {
    const double expected = 1.0 - std::exp(-0.2) * (1.0 - profile[1]["delta"][end].get<double>());
    EXPECT_NEAR(profile[0]["delta"][end].get<double>(), expected, 1e-14) << end;
  }
}

TEST_F(Account, ProfileChoosesAGrid) {
  const auto answer = answer_of(traffic("profile", {}));
  ASSERT_GT(answer["profile"].size(), 10U);
  EXPECT_EQ(answer["profile"].front()["epsilon"], 0.0);
  EXPECT_LT(answer["profile"].back()["delta"]["upper"].get<double>(), 1e-12);
  const auto text = run(account, {"profile", "--theorem=4.2", "--sequence-length=200", "--context-length=8",
                                  "--forecast-length=4", "--noise-multiplier=4"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_GT(lines_of(text.out).size(), 10U) << text.out;
}

TEST_F(Account, OptimisticCompositionsAreNotRigorous) {
  const auto once = answer_of(traffic("profile", {{"--theorem", "F.7"}, {"--epsilons", "0.1"}}));
  EXPECT_EQ(once["bound"], "optimistic_lower");
  EXPECT_FALSE(once.contains("rigorous"));
  const auto often = answer_of(traffic("delta", {{"--theorem", "F.7"}, {"--steps", "10"}, {"--epsilon", "0.01"}}));
  EXPECT_EQ(often["rigorous"], false);
  EXPECT_FALSE(answer_of(traffic("delta", {{"--steps", "10"}, {"--epsilon", "0.01"}})).contains("rigorous"));
}

TEST_F(Account, FlatDataSets) {
  const std::vector<std::string> flat = {"--json", "--num-records=10000", "--batch-size=1000", "--noise-multiplier=1",
                                         "--epsilons=0,0.5"};
  const auto ask = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"profile"};
    words.insert(words.end(), flat.begin(), flat.end());
    words.insert(words.end(), more.begin(), more.end());
    return run(account, words);
  };
  const auto c1 = answer_of(ask({"--theorem=C.1"}));
  EXPECT_EQ(c1["theorem"], "C.1");
  EXPECT_EQ(c1["bound"], "tight");
  EXPECT_EQ(c1["valid_for_time_series"], false);
  EXPECT_NEAR(c1["profile"][0]["delta"]["upper"].get<double>(), 0.1 * std::erf(1.0 / std::sqrt(2.0)), 1e-9);
  const auto c2 = answer_of(ask({"--theorem=C.2", "--window-length=32"}));
  EXPECT_EQ(c2["bound"], "optimistic_lower");
  EXPECT_GT(c2["profile"][1]["delta"]["lower"], c1["profile"][1]["delta"]["upper"]);
  expect_failure(ask({"--theorem=C.2"}), account, 2, {"--window-length"});
  expect_failure(ask({"--theorem=C.2", "--window-length=10001"}), account, 2, {"window length", "10001", "10000"});
  expect_failure(ask({"--theorem=C.1", "--sequence-length=5"}), account, 2,
                 {"--sequence-length", "C.1", "--num-records"});
  expect_failure(ask({}), account, 2, {"--num-records", "C.1"});
  const auto more_than_all =
      run(account, {"profile", "--theorem=C.1", "--num-records=10", "--batch-size=11", "--noise-multiplier=1"});
  expect_failure(more_than_all, account, 2, {"batch size", "11", "number of records 10"});
}

TEST_F(Account, NoiseOnTheData) {
  const auto theorem = [&](std::vector<std::pair<std::string, std::string>> changes) {
    changes.insert(changes.end(), {{"--v", "0.1"}, {"--epsilons", "0.01"}});
    const auto answer = answer_of(traffic("profile", changes));
    return std::pair(answer["theorem"].get<std::string>(), answer["profile"][0]["delta"]["upper"].get<double>());
  };
  const auto equal = theorem({{"--context-noise", "2"}, {"--forecast-noise", "2"}});
  EXPECT_EQ(equal.first, "4.5");
  // 4.5 means equal noises, so that one of them names both.
  EXPECT_EQ(theorem({{"--theorem", "4.5"}, {"--forecast-noise", "2"}}), equal);
  EXPECT_EQ(theorem({{"--forecast-noise", "2"}}).first, "G.1");
  const auto ours = theorem({{"--theorem", "tsdp.1"}, {"--forecast-noise", "2"}, {"--w", "3"}});
  EXPECT_EQ(ours.first, "tsdp.1");
  EXPECT_LT(ours.second, theorem({{"--w", "3"}}).second);
}

TEST_F(Account, SaysHowMuchOfTheBudgetIsLeft) {
  const auto answer =
      answer_of(traffic("steps", {{"--top-level", "deterministic"}, {"--epsilon", "1"}, {"--delta", "1e-7"}}));
  EXPECT_EQ(answer["budget_left"].get<double>(), 1.0 - answer["epsilon"]["upper"].get<double>());
  const auto text = run(account, {"steps", "--theorem=4.2", "--sequence-length=200", "--context-length=8",
                                  "--forecast-length=4", "--noise-multiplier=4", "--epsilon=2", "--delta=1e-5"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("leaves epsilon"), std::string::npos) << text.out;
}

// A value far below what rounding can resolve: the bracket holds, but is wide, and the answer says so.
TEST_F(Account, SaysWherePrecisionIsNotReached) {
  const auto outcome = traffic("delta", {{"--steps", "10000"}, {"--epsilon", "60"}});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto answer = Json::parse(outcome.out);
  EXPECT_GT(answer["delta"]["upper"].get<double>(), 1.001 * answer["delta"]["lower"].get<double>());
  EXPECT_EQ(answer["precision_reached"], false);
  EXPECT_NE(outcome.err.find("precision"), std::string::npos) << outcome.err;
}

TEST_F(Account, RefusesAnUnknownTheorem) { expect_refused({{"--theorem", "9.9"}}, 4, {"'9.9'", "4.2", "4.4"}); }

TEST_F(Account, RefusesNoiseThatIsNotPositive) {
  for (const auto* sigma : {"0", "-1", "nan", "inf"})
    expect_refused({{"--noise-multiplier", sigma}}, 2, {"noise multiplier", sigma, "from 0.01 to 1e6"});
}

TEST_F(Account, RefusesNoiseTooSmallToAccountForByName) {
  // Below the range whatever the mechanism; and within it, where a use's loss is beyond what a transform can hold.
  for (const auto* sigma : {"1e-3", "0.00999"})
    expect_refused({{"--noise-multiplier", sigma}, {"--steps", "10"}}, 2, {"noise multiplier", "from 0.01 to 1e6"});
  expect_refused({{"--noise-multiplier", "0.01"}, {"--batch-size", "862"}, {"--subsequences-per-sequence", "100"}}, 4,
                 {"noise multiplier: found 0.01", "beyond what is accounted for"});
  const auto answer =
      answer_of(traffic("epsilon", {{"--noise-multiplier", "0.01"}, {"--steps", "10"}, {"--delta", "1e-7"}}));
  expect_interval(answer["epsilon"]);
  EXPECT_GT(answer["epsilon"]["lower"].get<double>(), 1e4);
}

TEST_F(Account, RefusesMoreWindowsOfASeriesThanInABatch) {
  expect_refused({{"--subsequences-per-sequence", "257"}}, 2, {"257", "256", "lambda <= Lambda"});
}

TEST_F(Account, RefusesSeriesShorterThanTheForecast) {
  expect_refused({{"--sequence-length", "23"}}, 4, {"23", "24", "L >= L_F"});
}

TEST_F(Account, RefusesMorePlacesThanASeriesHas) {
  expect_refused({{"--w", "13917"}}, 4, {"w: ", "13917", "w <= L"});
  expect_refused({{"--w", "0"}}, 2, {"w: ", "0", "from 1 to"});
}

TEST_F(Account, RefusesDeltaOutsideOfItsRange) {
  for (const auto* delta : {"1", "2", "0", "-1e-7", "nan"})
    expect_refused({{"--delta", delta}}, 2, {"--delta", "from 1e-25 to below 1"});
}

TEST_F(Account, RefusesMoreStepsThanItCounts) {
  for (const auto* steps : {"99999999999999999999", "1000000000000", "1e12"})
    expect_refused({{"--steps", steps}}, 2, {"--steps"});
  expect_refused({{"--steps", "1e30"}}, 2, {"--steps", "1e30", "from 0 to"});
  expect_refused({{"--steps", ""}, {"--epochs", "9223372036854775807"}}, 2, {"--epochs", "from 0 to"});
}

TEST_F(Account, RefusesStepsThatAreNoCount) {
  for (const auto* steps : {"-1", "1.5", "many"}) expect_refused({{"--steps", steps}}, 2, {"--steps", steps});
}

// Sums of such lengths do not fit into 64 bits; a wrapped sum would understate epsilon.
TEST_F(Account, RefusesLengthsThatOverflow) {
  expect_refused({{"--context-length", "9223372036854775807"}}, 2, {"--context-length"});
  expect_refused({{"--context-length", "9223372036854775807"}, {"--lags-length", "9"}}, 2,
                 {"length", "9223372036854775807"});
  const auto outcome = traffic("epsilon", {{"--sequence-length", "9223372036854775807"},
                                           {"--context-length", "9223372036854775807"},
                                           {"--forecast-length", "4611686018427387904"},
                                           {"--w", "4611686018427387910"},
                                           {"--steps", "10000"},
                                           {"--delta", "1e-7"}});
  // All windows are touched here, so epsilon is far from 0.
  if (outcome.exit_code == 0) {
    EXPECT_GT(answer_of(outcome)["epsilon"]["upper"].get<double>(), 1.0);
  } else {
    expect_failure(outcome, account, 2, {"length"});
  }
}

TEST_F(Account, RefusesWhatThePaperIsSilentAbout) {
  const std::vector<std::pair<std::string, std::string>> noise = {
      {"--context-noise", "1"}, {"--forecast-noise", "1"}, {"--v", "0.5"}};
  const auto with = [&](std::vector<std::pair<std::string, std::string>> more) {
    more.insert(more.begin(), noise.begin(), noise.end());
    return more;
  };
  expect_refused({{"--context-noise", "1"}}, 4, {"--v"});
  expect_refused(with({{"--bottom-level", "poisson"}}), 4, {"no theorem covers", "poisson", "F.2"});
  expect_refused(with({{"--subsequences-per-sequence", "2"}}), 4,
                 {"no theorem covers", "2 subsequences per sequence", "F.1"});
  expect_refused(with({{"--top-level", "deterministic"}}), 4,
                 {"no theorem covers", "top level deterministic", "tsdp.2"});
  expect_refused({{"--forecast-noise", "1"}, {"--v", "0.5"}, {"--w", "2"}}, 4,
                 {"no theorem covers", "unequal noise", "w = 2", "4.5", "tsdp.1"});
  expect_refused({{"--forecast-noise", "1"}, {"--v", "0.5"}, {"--sequence-length", "142"}}, 4,
                 {"no theorem covers", "unequal noise", "119 windows", "120", "T < L_C + L_F"});
}

TEST_F(Account, RefusesABudgetBelowOneStep) {
  expect_failure(traffic("steps", {{"--epsilon", "1e-6"}, {"--delta", "1e-7"}}), account, 4,
                 {"epsilon 1e-06", "not even one step"});
}

TEST_F(Account, RefusesQuestionsWithoutTheirNumbers) {
  expect_refused({{"--num-sequences", ""}}, 2, {"--num-sequences", "--config"});
  expect_refused({{"--noise-multiplier", ""}}, 2, {"--noise-multiplier"});
  expect_refused({{"--delta", ""}}, 2, {"--delta"});
  expect_refused({{"--steps", ""}}, 2, {"--steps", "--epochs"});
  expect_refused({{"--epochs", "1"}}, 2, {"--steps", "--epochs", "both"});
  expect_refused({{"--epsilons", "1"}}, 2,
                 {"--epsilons: not used by epsilon, but by profile", "account epsilon --help"});
  expect_refused({{"--epsilon", "1"}}, 2, {"--epsilon: not used by epsilon"});
  expect_failure(traffic("delta", {{"--epsilon", "1"}, {"--steps", "4"}, {"--delta", "0.1"}}), account, 2,
                 {"--delta: not used by delta"});
  expect_failure(traffic("steps", {{"--epsilon", "1"}, {"--delta", "1e-7"}, {"--steps", "4"}}), account, 2,
                 {"--steps: not used by steps"});
  expect_failure(run(account, {"epsilom"}), account, 2,
                 {"'epsilom'", "epsilon, delta, steps, sigma, profile, theorems"});
  expect_failure(traffic("profile", {{"--epsilon", "1"}}), account, 2,
                 {"--epsilon: not used by profile, but by delta, steps, sigma", "the nearest option is --epsilons"});
  for (const auto* grid : {"1,,2", "1;2", "nan", "1e7", "-"})
    expect_failure(traffic("profile", {{"--epsilons", grid}}), account, 2, {"--epsilons", "numbers from -1e6 to 1e6"});
  expect_failure(run(account, {"--json"}), account, 2, {"--help"});
  expect_failure(run(account, {"figure", "2", "--num-sequences", "3"}), account, 2,
                 {"--num-sequences: not used by figure, but by epsilon", "tsdp-account figure --help"});
}

TEST_F(Account, RefusesUnknownOptionsAndFiles) {
  expect_refused({{"--sigma", "4"}}, 2, {"--sigma"});
  expect_refused({{"--config", "absent.yaml"}}, 2, {"--config", "absent.yaml", "looked for"});
}

TEST_F(Account, AdaptiveCompositionIsLessAndSaysWhatItRestsOn) {
  const auto plain = answer_of(traffic("epsilon", {{"--steps", "60"}, {"--delta", "1e-7"}}));
  const auto adaptive =
      answer_of(traffic("epsilon", {{"--steps", "60"}, {"--delta", "1e-7"}, {"--composition", "adaptive"}}, played));
  EXPECT_FALSE(plain.contains("composition"));
  EXPECT_EQ(adaptive.at("composition"), "adaptive");
  EXPECT_EQ(adaptive.at("theorem"), "4.4");
  EXPECT_EQ(plain.at("bound"), "tight");
  EXPECT_EQ(adaptive.at("bound"), "upper");
  EXPECT_NE(adaptive.at("certificate").at("upper").get<std::string>().find("tsdp.6"), std::string::npos);
  EXPECT_LT(adaptive.at("epsilon").at("upper").get<double>(), 0.95 * plain.at("epsilon").at("upper").get<double>());
  EXPECT_LE(adaptive.at("epsilon").at("lower").get<double>(), adaptive.at("epsilon").at("upper").get<double>());
}

TEST_F(Account, AdaptiveCompositionIsRefusedWhereItIsNotProven) {
  expect_refused({{"--composition", "adaptive"}, {"--subsequences-per-sequence", "2"}}, 4,
                 {"composition: found adaptive with Theorem", "subsequences_per_sequence 1"});
  expect_refused({{"--composition", "adaptive"}, {"--bottom-level", "poisson"}}, 4,
                 {"composition: found adaptive with Theorem", "bottom level wr"});
  expect_refused({{"--composition", "adaptive"}, {"--theorem", "F.7"}}, 4, {"Theorem F.7"});
  expect_failure(run(account, {"epsilon", "--relation=series", "--top-level=poisson", "--batches=10",
                               "--noise-multiplier=1", "--epochs=1", "--delta=1e-5", "--composition=adaptive"}),
                 account, 2, {"--composition", "series", "symmetrised"});
  expect_refused({{"--composition", "both"}}, 2, {"--composition", "adaptive"});
}

}  // namespace
// What a command needs, in groups, and an example that runs.
TEST_F(Account, EveryCommandHasItsOwnHelp) {
  const std::string heading = "Example:\n  tsdp-account ";
  for (const auto* command : {"epsilon", "delta", "steps", "sigma", "profile", "compare", "strategy", "budget"}) {
    const auto help = run(account, {command, "--help"});
    ASSERT_EQ(help.exit_code, 0) << help.err;
    EXPECT_EQ(help.out.find("--epsilons") != std::string::npos, command == std::string("profile")) << help.out;
    EXPECT_EQ(help.out.find("Windows as records:") != std::string::npos,
              help.out.find("--num-sequences") != std::string::npos)
        << help.out;
    const auto at = help.out.find(heading);
    ASSERT_NE(at, std::string::npos) << help.out;
    std::istringstream words(help.out.substr(at + heading.size()));
    const std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
    const auto answer = run(account, arguments);
    EXPECT_EQ(answer.exit_code, 0) << command << ": " << answer.err;
  }
  EXPECT_NE(run(account, {"theorems"}).out.find("tsdp.4"), std::string::npos);
  EXPECT_GT(nlohmann::json::parse(run(account, {"theorems", "--json"}).out)["theorems"].size(), 15U);
}

}  // namespace tsdp::cli_test
