// tsdp-audit from outside.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"

namespace tsdp::cli_test {
namespace {

constexpr const char* audit = "tsdp-audit";

class Audit : public CommandTest {
 protected:
  std::string config() const {
    std::string rows;
    for (int i = 0; i < 40; ++i) rows += "1,2,3,4\n";
    write("series.txt", rows);
    return write(
        "small.yaml",
        "dataset: {path: series.txt, format: lstnet, frequency: 1h, start: \"2015-01-01\", prediction_length: 2,\n"
        "  season_length: 2, split: last, test_windows: 2, validation_length: 4}\n"
        "model: {context_length: 3}\n"
        "sampling: {batch_size: 2}\n"
        "privacy: {noise_multiplier: 2.0, target_epsilon: 20, delta: 1.0e-5}\n"
        "training: {max_epochs: 10}\n");
  }
};

TEST_F(Audit, PrintsOneObject) {
  const auto outcome =
      run(audit, {"--config", config(), "--trials", "300", "--confidence", "0.99999", "--json", "--quiet"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["theorem"], "4.4");
  EXPECT_EQ(json["trials"], 300);
  EXPECT_EQ(json["uses"], 20);
  EXPECT_EQ(json["confidence"], 0.99999);
  EXPECT_EQ(json["mode"], "canary");
  EXPECT_FALSE(json["contradicted"].get<bool>());
  EXPECT_LE(json["epsilon"]["lower"].get<double>(), json["epsilon"]["upper"].get<double>());
  EXPECT_GT(json["epsilon"]["lower"].get<double>(), 0.0);
}

TEST_F(Audit, AttacksWholeSeries) {
  const auto attack = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--config", config(), "--trials", "300", "--confidence", "0.99999", "--json", "--quiet",
                               "--set", "privacy.relation=series", "--set", "sampling.top_level=cyclic_poisson"});
    return run(audit, more);
  };
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{},
        {"--set", "privacy.noise.mechanism=bsr", "--set", "privacy.noise.bands=2", "--set", "sampling.batch_size=1"}}) {
    const auto outcome = attack(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json["theorem"], "series.cyclic_poisson");
    EXPECT_EQ(json["uses"], 20);
    EXPECT_GT(json["epsilon"]["lower"].get<double>(), 0.0);
    EXPECT_NEAR(json["drawn"]["scheme"].get<double>(), 0.5, 1e-12);
  }
}

TEST_F(Audit, AttacksTheConfiguredForecasterToo) {
  const auto outcome = run(audit, {"--config", config(), "--trials", "200", "--confidence", "0.99999", "--mode", "data",
                                   "--set", "model.name=dlinear"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("mode data (dlinear)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("nothing measured contradicts what is certified"), std::string::npos) << outcome.out;
}

// Of a run whose steps are composed adaptively, too: a single use is attacked.
TEST_F(Audit, AttacksTheForecasterOfARunThatComposesAdaptively) {
  const auto outcome = run(audit, {"--config", config(), "--trials", "200", "--confidence", "0.99999", "--mode", "data",
                                   "--set", "model.name=dlinear", "--set", "privacy.composition=adaptive"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("nothing measured contradicts what is certified"), std::string::npos) << outcome.out;
}

// Cuts of large batches cost something, in a single use as in a whole run.
TEST_F(Audit, CertifiesAUseWithItsCuts) {
  const auto outcome = run(audit, {"--config",     config(),
                                   "--trials",     "200",
                                   "--confidence", "0.99999",
                                   "--json",       "--quiet",
                                   "--set",        "privacy.relation=series",
                                   "--set",        "sampling.top_level=poisson",
                                   "--set",        "sampling.rate=0.3",
                                   "--set",        "sampling.batch_size=null",
                                   "--set",        "sampling.largest_batch=3",
                                   "--set",        "privacy.delta=0.1",
                                   "--set",        "training.max_epochs=1",
                                   "--set",        "privacy.target_epsilon=50",
                                   "--set",        "privacy.noise_multiplier=1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto found = nlohmann::json::parse(outcome.out);
  const auto use = run("tsdp-account", {"epsilon", "--relation", "series", "--top-level", "poisson", "--sampling-rate",
                                        "0.3", "--steps", "1", "--noise-multiplier", "1", "--delta", "0.1",
                                        "--num-sequences", "4", "--largest-batch", "3", "--json"});
  ASSERT_EQ(use.exit_code, 0) << use.err;
  EXPECT_NEAR(found["one_use"]["epsilon"]["upper"].get<double>(),
              nlohmann::json::parse(use.out)["epsilon"]["upper"].get<double>(), 1e-9);
  EXPECT_GT(found["one_use"]["epsilon"]["upper"].get<double>(), 0.0);
}

TEST_F(Audit, AttacksReleasedModelsForAHousehold) {
  const auto file = config();
  const auto attack = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--config", file, "--mode", "membership", "--models", "8", "--quiet"});
    return run(audit, more);
  };
  const auto outcome = attack({"--target", "2", "--json", "--set", "privacy.relation=series"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["mode"], "membership");
  EXPECT_EQ(json["target"], "2");
  EXPECT_EQ(json["tried"], 4);
  EXPECT_LT(json["bound"].get<double>(), 1.0);
  EXPECT_LE(json["advantage"]["lower"].get<double>(), json["advantage"]["found"].get<double>());
  EXPECT_FALSE(json["contradicted"].get<bool>());
  // What protects values says nothing of a household.
  const auto of_values = attack({});
  EXPECT_NE(of_values.out.find("nothing protects whether a series was there"), std::string::npos) << of_values.out;
  EXPECT_NE(of_values.out.find("no epsilon covers this"), std::string::npos) << of_values.out;
  expect_failure(attack({"--target", "nobody"}), audit, 2, {"--target: found 'nobody'", "4 series"});
  expect_failure(attack({"--theorem", "4.4"}), audit, 2, {"--theorem", "membership"});
  expect_failure(attack({"--trials", "300"}), audit, 2, {"--trials", "--models"});
  expect_failure(run(audit, {"--config", file, "--models", "8"}), audit, 2, {"--models", "--mode membership"});
  // The bound says what it leaves out.
  EXPECT_TRUE(json["bound_does_not_count"].is_null());
  EXPECT_EQ(json["bound_without_the_seed"], false);
  ASSERT_EQ(
      run("tsdp-train", {"--config", file, "--set", "privacy.enabled=false", "--output", "open", "--quiet"}).exit_code,
      0);
  const auto from_open = attack({"--set", "privacy.relation=series", "--set", "model.start=open/model.pt", "--set",
                                 "training.reproducible=true"});
  EXPECT_NE(from_open.out.find("by the run's epsilon, of whoever does not know the seed; not counted: "),
            std::string::npos)
      << from_open.out;
  expect_failure(run(audit, {"--config", file, "--target", "2"}), audit, 2, {"--target", "--mode membership"});
  expect_failure(run(audit, {"--config", file, "--mode", "membership", "--models", "9"}), audit, 2,
                 {"--models: found 9", "multiple of 4"});
}

TEST_F(Audit, RefusesInOneLine) {
  const auto file = config();
  expect_failure(run(audit, {}), audit, 2, {"--config"});
  expect_failure(run(audit, {"--config", file, "--confidence", "1"}), audit, 2, {"--confidence", "found 1", "below 1"});
  expect_failure(run(audit, {"--config", file, "--trials", "1"}), audit, 2, {"--trials"});
  expect_failure(run(audit, {"--config", file, "--trials", "-1"}), audit, 2, {"--trials", "'-1'"});
  expect_failure(run(audit, {"--config", file, "--mode", "other"}), audit, 2, {"--mode"});
  for (const std::string mode : {"data", "membership"})
    expect_failure(run(audit, {"--config", file, "--mode", mode, "--set", "training.trainable=mixture", "--set",
                               "model.candidates=[last_value_bands]"}),
                   audit, 2, {"training.trainable: found mixture", "--mode " + mode, "expected --mode canary"});
  expect_failure(run(audit, {"--config", file, "--set", "privacy.enabled=false"}), audit, 2,
                 {"privacy.enabled", "true"});
  expect_failure(run(audit, {"--config", file, "--set", "privacy.target_epsilon=1e-4"}), audit, 4,
                 {"privacy.target_epsilon"});
  const auto of_series = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--config", file, "--set", "privacy.relation=series"});
    return run(audit, more);
  };
  expect_failure(of_series({"--set", "sampling.top_level=balls_in_bins"}), audit, 4,
                 {"sampling.top_level", "balls_in_bins", "independent uses"});
  expect_failure(of_series({"--mode", "data"}), audit, 2, {"--mode", "privacy.relation series", "expected canary"});
  expect_failure(run(audit, {"--config", file, "--theorem", "F.7", "--trials", "2", "--quiet"}), audit, 4,
                 {"F.7", "lower bound"});
  expect_failure(run(audit, {"--config", file, "--theorem", "E.8", "--trials", "2", "--quiet"}), audit, 4, {"E.8"});
}

}  // namespace
}  // namespace tsdp::cli_test
