// Batches of a known largest size, from the configuration to what is stated, verified and totalled.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

class LargestBatch : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    std::string rows;
    for (int t = 0; t < 40; ++t) {
      for (int s = 0; s < 300; ++s) rows += (s > 0 ? "," : "") + std::to_string(5 + s % 50 + (t * (s + 3)) % 11);
      rows += "\n";
    }
    write("meters.txt", rows);
    write("config.yaml",
          "dataset: {path: meters.txt, format: lstnet, start: \"2020-01-01\", frequency: 1h, prediction_length: 3,\n"
          "  season_length: 4, split: last, test_windows: 2, validation_length: 6}\n"
          "model: {name: simple_ff, context_length: 6, width: 4, start: fresh, prior: none}\n"
          "sampling: {top_level: poisson, batch_size: 30, largest_batch: auto}\n"
          "privacy: {relation: series, noise_multiplier: auto, delta: 1.0e-4, target_epsilon: 2}\n"
          "training: {max_epochs: 3, validate_every: 1000, trainable: all}\n"
          "optimizer: {learning_rate: 0.01}\n");
  }
};

TEST_F(LargestBatch, IsChosenPaidForAndStated) {
  const auto plan = answer("tsdp-train", {"--config", "config.yaml", "--dry-run", "--quiet", "--json"});
  make_run("bounded");
  make_run("unbounded", {"--set", "sampling.largest_batch=null"});
  const auto ledger = ledger_of("bounded");
  const auto largest = ledger["mechanism"]["largest_batch"].get<int>();
  EXPECT_GT(largest, 45);
  EXPECT_LT(largest, 80);
  EXPECT_EQ(plan["most_windows_per_step"], largest);
  EXPECT_NE(ledger["certificate"]["upper"].get<std::string>().find("records (tsdp docs/proofs/bounded-batches.md)"),
            std::string::npos);
  EXPECT_LE(ledger["epsilon"]["upper"].get<double>(), 2.0);
  EXPECT_FALSE(ledger_of("unbounded")["mechanism"].contains("largest_batch"));
  EXPECT_GE(ledger["noise_multiplier"].get<double>(), ledger_of("unbounded")["noise_multiplier"].get<double>());
  EXPECT_EQ(run("tsdp-account", {"verify", "bounded"}).exit_code, 0);
  const auto hidden = [&] {
    auto changed = ledger;
    changed["mechanism"].erase("largest_batch");
    return changed;
  }();
  write("hidden.json", hidden.dump());
  EXPECT_EQ(run("tsdp-account", {"verify", "hidden.json"}).exit_code, 4);
  const auto config = (path("bounded") / "config.yaml").string();
  EXPECT_NE(content_of(config).find("largest_batch: " + std::to_string(largest)), std::string::npos);
  EXPECT_EQ(answer("tsdp-account", {"epsilon", "--config", config, "--epochs", "3", "--json"})["epsilon"]["upper"],
            ledger["epsilon"]["upper"]);
  const auto total = answer("tsdp-account", {"total", "bounded", "unbounded", "--delta", "1e-4", "--json"});
  EXPECT_GT(total["epsilon"]["upper"].get<double>(), ledger["epsilon"]["upper"].get<double>());
  EXPECT_NE(content_of(path("bounded/private/report.html")).find("at most " + std::to_string(largest) + " a step"),
            std::string::npos);
}

TEST_F(LargestBatch, IsNotChargedToABudget) {
  ASSERT_EQ(run("tsdp-account", {"budget", "budget.json", "--epsilon", "9", "--delta", "1e-4"}).exit_code, 0);
  expect_failure(
      run("tsdp-train", {"--config", "config.yaml", "--output", "run", "--quiet", "--budget", "budget.json"}),
      "tsdp-train", 4, {"--budget: found sampling.largest_batch", "expected null"});
}

// A batch that is cut is one that the whole draw would not have been: so few stay that it shows in the steps.
TEST_F(LargestBatch, CutsWhatTrainingDraws) {
  const auto score = [&](const std::string& name, const std::string& largest) {
    make_run(name, {"--set", "privacy.enabled=false", "--set", "training.reproducible=true", "--set",
                    "sampling.largest_batch=" + largest});
    return answer("tsdp-evaluate", {"--run", name, "--json", "--quiet", "--threads", "1"})["metrics"];
  };
  const auto all = score("all", "300");
  EXPECT_FALSE(all.empty());
  EXPECT_EQ(score("none", "null"), all);
  EXPECT_NE(score("few", "30"), all);
}

}  // namespace
}  // namespace tsdp::cli_test
