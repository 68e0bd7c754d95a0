// Noise found by sampling, from the configuration to what is stated and verified.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

class SampledNoise : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    std::string rows;
    for (int t = 0; t < 60; ++t) {
      for (int s = 0; s < 40; ++s) rows += (s > 0 ? "," : "") + std::to_string(5 + s + (t * (s + 3)) % 11);
      rows += "\n";
    }
    write("meters.txt", rows);
    write("config.yaml",
          "dataset: {path: meters.txt, format: lstnet, start: \"2020-01-01\", frequency: 1h, prediction_length: 3,\n"
          "  season_length: 4, split: last, test_windows: 2, validation_length: 6}\n"
          "model: {name: simple_ff, context_length: 6, width: 4, start: fresh, prior: none}\n"
          "sampling: {top_level: balls_in_bins, batches: 20}\n"
          "privacy: {relation: series, noise_multiplier: auto, delta: 1.0e-2, target_epsilon: 2,\n"
          "  noise: {mechanism: bsr, bands: 2, sampled: auto}}\n"
          "training: {max_epochs: 3, validate_every: 1000, trainable: all}\n"
          "optimizer: {learning_rate: 0.01}\n");
  }
};

TEST_F(SampledNoise, IsStatedTestedAndVerified) {
  make_run("sampled");
  const auto ledger = ledger_of("sampled");
  const auto claim = ledger["noise"]["sampled"];
  EXPECT_EQ(claim["epsilon"], 2.0);
  EXPECT_EQ(claim["delta"], 1e-2);
  EXPECT_EQ(claim["key"].get<std::string>().size(), 64U);
  EXPECT_EQ(ledger["epsilon"]["upper"], 2.0);
  const auto why = ledger["certificate"].dump();
  EXPECT_NE(why.find("sampled-noise.md"), std::string::npos) << why;
  EXPECT_NE(why.find("of at most a thousand tests"), std::string::npos) << why;
  EXPECT_LT(ledger["noise_multiplier"].get<double>(), 1.33);  // 1.361 is certified without
  EXPECT_EQ(run("tsdp-account", {"verify", "sampled"}).exit_code, 0);
  // A test of one epsilon says nothing of a whole curve.
  EXPECT_TRUE(ledger.contains("attack"));
  EXPECT_FALSE(ledger.contains("gaussian"));
  auto with_mu = ledger;
  with_mu["gaussian"] = {{"mu", 100.0}, {"delta", 1.0}, {"regret", 1.0}, {"meaning", ""}};
  write("mu.json", with_mu.dump());
  const auto of_mu = run("tsdp-account", {"verify", "mu.json"});
  EXPECT_EQ(of_mu.exit_code, 4);
  EXPECT_NE(of_mu.err.find("gaussian: found with noise that passed a test by sampling"), std::string::npos)
      << of_mu.err;

  // Another key is another test, of noise or of a target that does not pass it.
  const auto verified = [&](const std::string& what, const nlohmann::json& with) {
    auto changed = ledger;
    for (const auto& [name, value] : with.items())
      (name == "noise_multiplier" ? changed[name] : changed["noise"]["sampled"][name]) = value;
    write(what + ".json", changed.dump());
    return run("tsdp-account", {"verify", what + ".json"}).exit_code;
  };
  EXPECT_EQ(verified("noise", {{"noise_multiplier", 0.8 * ledger["noise_multiplier"].get<double>()}}), 4);
  EXPECT_EQ(verified("target", {{"epsilon", 0.5}}), 4);
  EXPECT_EQ(verified("delta", {{"delta", 1e-3}}), 4);
  EXPECT_EQ(verified("key", {{"key", "12"}}), 3);

  // A run keeps its noise and its test; the accountant repeats the test of a configuration that names one.
  const auto config = (path("sampled") / "config.yaml").string();
  EXPECT_NE(content_of(config).find(claim["key"].get<std::string>()), std::string::npos);
  EXPECT_EQ(answer("tsdp-account", {"epsilon", "--config", config, "--epochs", "3", "--json"})["epsilon"]["upper"],
            ledger["epsilon"]["upper"]);
  EXPECT_GT(answer("tsdp-account",
                   {"epsilon", "--config", config, "--epochs", "3", "--delta", "1e-3", "--json"})["epsilon"]["upper"]
                .get<double>(),
            2.0);
  const auto again = run("tsdp-train", {"--config", config, "--output", "again", "--quiet"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(ledger_of("again")["noise"], ledger["noise"]);
}

TEST_F(SampledNoise, IsRefusedWhereItIsNotCovered) {
  const auto refused = [&](const std::vector<std::string>& settings, int code, const std::vector<std::string>& parts) {
    SCOPED_TRACE(settings.front());
    std::vector<std::string> arguments = {"--config", "config.yaml", "--dry-run", "--quiet"};
    for (const auto& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    expect_failure(run("tsdp-train", arguments), "tsdp-train", code, parts);
  };
  refused({"privacy.noise.sampled=yes"}, 2, {"privacy.noise.sampled: found yes", "64 hexadecimal digits"});
  refused({"privacy.noise_multiplier=5"}, 2, {"privacy.noise.sampled: found auto beside privacy.noise_multiplier 5"});
  refused({"privacy.noise.sampled=" + std::string(64, 'a')}, 2, {"without the noise that passed its test"});
  refused({"privacy.noise.mechanism=identity"}, 2, {"privacy.noise.sampled: found auto", "balls_in_bins"});
  refused({"privacy.noise.mechanism=auto"}, 2, {"privacy.noise.sampled: found auto", "by name"});
  refused({"sampling.top_level=deterministic"}, 2, {"privacy.noise.sampled: found auto", "balls_in_bins"});
  refused({"sampling.redraw=every_epoch", "privacy.noise.mechanism=identity"}, 2,
          {"privacy.noise.sampled: found auto"});
  refused({"privacy.delta=1e-12"}, 4, {"noise by sampling", "expected a larger delta"});
  const std::vector<std::string> bins = {"sigma",     "--relation", "series",   "--top-level", "balls_in_bins",
                                         "--batches", "20",         "--epochs", "3",           "--epsilon",
                                         "2",         "--delta",    "1e-2",     "--sampled"};
  expect_failure(run("tsdp-account", bins), "tsdp-account", 2, {"--sampled: expected with", "identity"});
  expect_failure(run("tsdp-account", {"sigma", "--config", "config.yaml", "--epsilon", "1"}), "tsdp-account", 2,
                 {"privacy.noise.sampled: found auto", "--dry-run"});
  auto with = bins;
  with.insert(with.end(), {"--mechanism", "bsr", "--bands", "2", "--json"});
  const auto found = answer("tsdp-account", with);
  EXPECT_EQ(found["sampled"]["key"].get<std::string>().size(), 64U);
  EXPECT_LE(found["epsilon"]["upper"].get<double>(), 2.0);
}

}  // namespace
}  // namespace tsdp::cli_test
