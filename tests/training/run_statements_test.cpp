// What a run states of its composition, made again from the parts that the theorems are about.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "privacy/adaptive/adaptive_curve.h"
#include "run/charged_for.h"
#include "run/checkpoint.h"
#include "training/model_setup.h"
#include "training/window_source.h"
#include "training_fixture.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::training {
namespace {

constexpr std::uint64_t seed = 7;

using RunStatements = TrainingFixture;

// What a run states is what its configured composition gives for the steps that it took; and adaptive is worth steps.
TEST_F(RunStatements, ARunIsComposedAsItsConfigurationSays) {
  std::map<privacy::StepComposition, std::uint64_t> steps;
  for (const auto composition : {privacy::StepComposition::symmetrised, privacy::StepComposition::adaptive}) {
    const std::string name = std::string("composition ") + std::string(tsdp::name(composition));
    auto config = small_training();
    config.privacy.noise_multiplier = 4.0;
    config.privacy.composition = composition;
    config.privacy.target_epsilon = 0.4;
    auto t = trainer(name, config);
    t->begin();
    EXPECT_TRUE(t->run({}));
    steps[composition] = t->step();
    const auto file = folder(name).ledger();
    const auto ledger = parse_json(read_file(file), file.string());
    // From the parts: half of the series, 12 of L − 3 windows.
    const double q = 0.5 * 12.0 / static_cast<double>(data_.split.training_length.front() - 3);
    const privacy::DominatingPair pair({{0.0, 1.0 - q}, {2.0, q}}, 4.0);
    auto expected = privacy::Accountant(pair).epsilon(1e-5, t->step());
    if (composition == privacy::StepComposition::adaptive) {
      EXPECT_EQ(ledger.at("composition"), "adaptive");
      EXPECT_EQ(ledger.at("bound"), "upper");  // what is tight is a single step
      expected = privacy::AdaptiveCurve(pair).epsilon(1e-5, t->step());
      EXPECT_GT(privacy::Accountant(pair).epsilon(1e-5, t->step()).lower, 0.4);
    } else {
      EXPECT_FALSE(ledger.contains("composition"));
      EXPECT_EQ(ledger.at("bound"), "tight");
    }
    EXPECT_NEAR(ledger.at("epsilon").at("upper").get<double>(), expected.upper, 1e-6);
    EXPECT_LE(ledger.at("epsilon").at("upper").get<double>(), 0.4);
    EXPECT_EQ(ledger.at("steps_taken"), t->step());
    t.reset();
    // The other composition is another statement.
    config.privacy.composition = composition == privacy::StepComposition::adaptive
                                     ? privacy::StepComposition::symmetrised
                                     : privacy::StepComposition::adaptive;
    t = trainer(name, config);
    EXPECT_THROW(t->resume(), UsageError);
  }
  EXPECT_GT(static_cast<double>(steps[privacy::StepComposition::adaptive]),
            1.1 * static_cast<double>(steps[privacy::StepComposition::symmetrised]));
}

// auto is one of the two, by the noise: the run's folder and ledger name it, what it states is that one's, and it goes
// on so.
TEST_F(RunStatements, AnAutomaticCompositionIsNamedAndKept) {
  for (const auto& [noise, expected] :
       {std::pair{4.0, privacy::StepComposition::adaptive}, std::pair{1.5, privacy::StepComposition::symmetrised}}) {
    const std::string name = "auto " + std::to_string(noise);
    auto config = small_training();
    config.privacy.noise_multiplier = noise;
    config.privacy.composition.reset();
    config.training.max_epochs = 20;
    auto t = trainer(name, config);
    t->begin();
    t->run({.most_steps = 10});
    t.reset();
    EXPECT_NE(read_file(folder(name).config()).find(cat("composition: ", tsdp::name(expected))), std::string::npos);
    const auto file = folder(name).ledger();
    const auto ledger = parse_json(read_file(file), file.string());
    EXPECT_EQ(ledger.contains("composition"), expected == privacy::StepComposition::adaptive);
    const double q = 0.5 * 12.0 / static_cast<double>(data_.split.training_length.front() - 3);
    const privacy::DominatingPair pair({{0.0, 1.0 - q}, {2.0, q}}, noise);
    const auto stated = ledger.at("epsilon").at("upper").get<double>();
    const auto taken = ledger.at("compositions").get<std::uint64_t>();
    EXPECT_NEAR(stated,
                expected == privacy::StepComposition::adaptive ? privacy::AdaptiveCurve(pair).epsilon(1e-5, taken).upper
                                                               : privacy::Accountant(pair).epsilon(1e-5, taken).upper,
                1e-6);
    config.privacy.composition = expected;
    t = trainer(name, config);
    t->resume();
    EXPECT_TRUE(t->run({}));
  }
}

// A ledger with the private choice of an earlier version is not that of a run of this one.
TEST_F(RunStatements, ALedgerWithAChoiceIsNotThisRuns) {
  const auto config = small_training();
  auto t = trainer("run", config);
  t->begin();
  t->run({.most_steps = 2});
  t.reset();
  const auto file = folder("run").ledger();
  auto ledger = parse_json(read_file(file), file.string());
  ledger["choice"] = {{"epsilon", 5.0}};
  write_file_atomically(file, json_text(ledger, 2));
  t = trainer("run", config);
  EXPECT_THROW(t->resume(), DataError);
}

TEST_F(RunStatements, ALedgerSaysOfTheCompositionWhatTheConfigurationSays) {
  auto config = small_training();
  config.privacy.composition = privacy::StepComposition::adaptive;
  config.training.max_epochs = 3;
  auto t = trainer("run", config);
  t->begin();
  t->run({.most_steps = 2});
  t.reset();
  const auto file = folder("run").ledger();
  auto ledger = parse_json(read_file(file), file.string());
  ledger.erase("composition");
  write_file_atomically(file, json_text(ledger, 2));
  t = trainer("run", config);
  EXPECT_THROW(t->resume(), DataError);
}

}  // namespace
}  // namespace tsdp::training
