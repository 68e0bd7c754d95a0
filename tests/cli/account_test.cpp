// tsdp-account from outside: its numbers, the shape of its JSON, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
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
  Outcome traffic(const std::string& command, const std::vector<std::pair<std::string, std::string>>& changes) {
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
    return run(account, arguments);
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
  EXPECT_EQ(answer["bound"], "tight");
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
  EXPECT_EQ(seven["epsilon"], of("9")["epsilon"]);
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
  const auto plain = answer_of(ask({}));
  for (const auto* option : {"--w=500", "--context-length=500", "--batch-size=8", "--relation=user"}) {
    const auto outcome = ask({option});
    if (outcome.exit_code == 0) {
      EXPECT_NE(answer_of(outcome)["epsilon"], plain["epsilon"]) << option;
    } else {
      const std::string text(option);
      expect_failure(outcome, account, 2, {text.substr(0, text.find('='))});
    }
  }
}

TEST_F(Account, RefusesATheoremForAnotherTopLevel) {
  expect_refused({{"--theorem", "4.2"}}, 4, {"Theorem 4.2", "top level", "it covers"});
  expect_refused({{"--theorem", "4.4"}, {"--top-level", "deterministic"}}, 4,
                 {"Theorem 4.4", "top level", "it covers"});
}

TEST_F(Account, RefusesAnUnknownTheorem) { expect_refused({{"--theorem", "9.9"}}, 4, {"'9.9'", "4.2", "4.4"}); }

TEST_F(Account, RefusesNoiseThatIsNotPositive) {
  for (const auto* sigma : {"0", "-1", "nan", "inf"})
    expect_refused({{"--noise-multiplier", sigma}}, 2, {"noise multiplier", sigma, "from 0.01 to 1e6"});
}

TEST_F(Account, RefusesNoiseTooSmallToAccountForByName) {
  const auto outcome = traffic("epsilon", {{"--noise-multiplier", "1e-3"}, {"--steps", "10"}, {"--delta", "1e-7"}});
  if (outcome.exit_code == 0) return;  // a proven bracket is as good
  expect_failure(outcome, account, outcome.exit_code, {"noise multiplier"});
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

TEST_F(Account, RefusesNoTheoremYetForPoissonAndForMoreWindows) {
  expect_refused({{"--bottom-level", "poisson"}}, 4, {"no theorem covers", "poisson"});
  expect_refused({{"--subsequences-per-sequence", "2"}}, 4, {"no theorem covers", "2 subsequences per sequence"});
  expect_refused({{"--context-noise", "1"}}, 4, {"--v"});
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
  expect_failure(run(account, {"--json"}), account, 2, {"--help"});
}

TEST_F(Account, RefusesUnknownOptionsAndFiles) {
  expect_refused({{"--sigma", "4"}}, 2, {"--sigma"});
  expect_refused({{"--config", "absent.yaml"}}, 2, {"--config", "absent.yaml", "looked for"});
}

}  // namespace
}  // namespace tsdp::cli_test
