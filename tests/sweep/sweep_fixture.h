// A folder with a small base configuration, its data, and stand-ins for tsdp-train and tsdp-evaluate.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.h"
#include "sweep/plan.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"

namespace tsdp::sweep {

class SweepTest : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    write("base.yaml",
          "dataset: {path: data.txt, format: lstnet, frequency: 1h, start: \"2015-01-01\", prediction_length: 4, "
          "season_length: 24}\n"
          "model: {context_length: 8}\n"
          "sampling: {batch_size: 2}\n"
          "privacy: {noise_multiplier: 4.0}\n"
          "training: {max_epochs: 3}\n");
    write("data.txt", "1,2\n");
  }

  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << content;
  }
  void write_program(const std::string& name, const std::string& script) const {
    write("bin/" + name, "#!/bin/bash\n" + script);
    ::chmod(path("bin/" + name).c_str(), 0755);
  }

  SweepFile file(const std::string& text) const {
    write("sweep.yaml", text);
    return read_sweep_file(path("sweep.yaml"));
  }
  SweepPlan plan(const std::string& text, bool smoke = false) const {
    return make_plan(file(text), path("out"), smoke);
  }

  /// What a sweep file of this text is refused with.
  template <class Action>
  std::string refusal(Action action) const {
    try {
      action();
    } catch (const UsageError& error) { return error.what(); }
    return "not refused";
  }
  std::string refusal_of(const std::string& text) const {
    return refusal([&] { static_cast<void>(plan(text)); });
  }
};

/// Two models over two values of w, two seeds.
inline const std::string small_sweep =
    "title: Small\n"                                        // 1
    "config: base.yaml\n"                                   // 2
    "set: {privacy.target_epsilon: 2}\n"                    // 3
    "seeds: [1, 2]\n"                                       // 4
    "rows:\n"                                               // 5
    "  - {label: FF, set: {model.name: simple_ff}}\n"       // 6
    "  - label: DeepAR\n"                                   // 7
    "    set: {model.name: deepar, model.lags: [1, 24]}\n"  // 8
    "columns:\n"                                            // 9
    "  - {label: w = 1, set: {privacy.w: 1}}\n"             // 10
    "  - {label: w = 2, set: {privacy.w: 2}}\n"             // 11
    "baselines: {seasonal_naive: Seasonal}\n"               // 12
    "paper:\n"                                              // 13
    "  FF: [[0.50, 0.01], 0.6]\n"                           // 14
    "  Seasonal: [null, 0.9]\n";                            // 15

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return place == std::string::npos ? text : text.replace(place, from.size(), to);
}

}  // namespace tsdp::sweep
