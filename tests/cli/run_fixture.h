// A test with a small data set and the configuration that trains on it in a second.
#pragma once

#include <nlohmann/json.hpp>

#include "command.h"

namespace tsdp::cli_test {

class RunTest : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    write("series.txt", series_text(1));
    write("config.yaml",
          "dataset: {path: series.txt, format: lstnet, frequency: 1h, start: \"2015-01-01\", prediction_length: 4,\n"
          "  season_length: 24, split: last, test_windows: 2, validation_length: 8}\n"
          "model: {context_length: 8}\n"
          "sampling: {batch_size: 2}\n"
          "privacy: {noise_multiplier: 4.0, delta: 1.0e-7, composition: symmetrised}\n"
          "training: {max_epochs: 3}\n");
  }
  /// Two series of 200 values, daily and weekly; the first begins with `offset`.
  [[nodiscard]] static std::string series_text(int offset) {
    std::string out;
    for (int i = 0; i < 200; ++i) out += std::to_string(offset + i % 24) + "," + std::to_string(100 + i % 7) + "\n";
    return out;
  }
  void make_run(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"--config", "config.yaml", "--output", name, "--quiet", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = run("tsdp-train", arguments);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  [[nodiscard]] nlohmann::json ledger_of(const std::string& run) const {
    return nlohmann::json::parse(content_of(path(run) / "privacy.json"));
  }
  /// What a program answers with --json among its arguments.
  [[nodiscard]] nlohmann::json answer(const std::string& program, const std::vector<std::string>& arguments,
                                      const std::filesystem::path& where = {}) const {
    const auto outcome = run(program, arguments, where);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
};

}  // namespace tsdp::cli_test
