// What a run states of its composition and of its private choice, made again from the parts that the theorems are
// about.
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

#include "mechanism/private_choice.h"
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

/// Three epochs that end with a choice of epsilon 50 `share`.
Config training_with_choice(double share) {
  auto config = small_training();
  config.model.prior = PriorKind::last_value;
  config.privacy.choice_share = share;
  config.training.max_epochs = 3;
  return config;
}

// Runs that end with a private choice, computed again: scores of the validation windows, odds, draw
// (docs/proofs/private-choice.md).
TEST_F(RunStatements, APrivateChoiceIsTheOneAccounted) {
  constexpr double choice = 0.5;
  std::set<bool> outcomes;
  for (std::int64_t own = 1; own <= 10; ++own) {
    SCOPED_TRACE(own);
    auto config = training_with_choice(choice / 50.0);
    config.training.reproducible = true;
    config.training.seed = own;
    double sum_of_run = 0.0;
    const auto run = [&](const std::string& name, std::uint64_t part) {
      auto t = trainer(name, config);
      t->begin();
      const auto start = t->model().parameters().values().clone();
      at::Tensor trained;
      while (!t->run({.most_steps = part,
                      .after_step = [&](std::uint64_t) { trained = t->model().parameters().values().clone(); }})) {
        t.reset();
        t = trainer(name, config);
        t->resume();
      }
      sum_of_run = 0.25 * static_cast<double>(t->choice()->sum) / static_cast<double>(mechanism::choice_unit);
      return std::array{start, trained, t->model().parameters().values().clone()};
    };
    const auto name = "choice " + std::to_string(own);
    const auto [start, trained, kept] = run(name, 1000);
    ASSERT_FALSE(at::equal(start, trained));

    const auto type = at::TensorOptions(at::kFloat);
    const auto model = model_of(config, type);
    const data::WindowStore store(data_.dataset, model->past_length(), config.dataset.prediction_length);
    WindowSource source(store, features_of(*model, data_.dataset), type);
    const auto losses = [&](const at::Tensor& weights) {
      model->parameters().values().copy_(weights);
      std::map<std::int64_t, std::vector<double>> out;
      for (const auto& range : data_.split.validation) {
        const std::vector<data::WindowIndex> one = {{range.series, range.forecast_start}};
        out[range.series].push_back(model->losses(source.gather(one)).item<double>());
      }
      return out;
    };
    const auto of_trained = losses(trained);
    const auto of_start = losses(start);
    double sum = 0.0;
    for (const auto& [series, found] : of_trained) {
      ASSERT_EQ(found.size(), 2U);
      const double more = (found[0] + found[1] - of_start.at(series)[0] - of_start.at(series)[1]) / 2.0;
      sum += std::clamp(more, -0.25, 0.25);
    }
    EXPECT_NEAR(sum_of_run, sum, 1e-4);
    EXPECT_NE(sum, 0.0);
    // A series speaks for ±0.25, so neighbours' sums differ by at most 0.5.
    const double odds = -choice * sum / 0.5;
    const bool keeps = RandomStream(SecretKey::from_seed(static_cast<std::uint64_t>(own)), "choice", 0).uniform() <
                       1.0 / (1.0 + std::exp(-odds));
    EXPECT_TRUE(at::equal(kept, keeps ? trained : start));
    outcomes.insert(keeps);

    const auto where = folder(name).ledger().string();
    const auto ledger = mechanism::read_ledger(parse_json(read_file(folder(name).ledger()), where), where);
    const auto& theorem = ledger.method.privacy()->theorem();
    EXPECT_EQ(ledger.method.privacy()->choice_epsilon(), choice);
    EXPECT_GE(ledger.cost->epsilon.upper,
              choice + privacy::Accountant(theorem.pair).epsilon(1e-5, ledger.accounted_uses()).upper * (1.0 - 1e-9));
    if (own > 3) continue;
    EXPECT_TRUE(at::equal(kept, run(name + " in parts", 1)[2]));
  }
  EXPECT_EQ(outcomes.size(), 2U);
}

// Runs of one seed, at even odds but for e^0.03 at most: that all 24 agree has a chance below 3e-7.
TEST_F(RunStatements, AChoicesCoinIsSecret) {
  std::set<bool> outcomes;
  for (int i = 0; i < 24; ++i) {
    auto t = trainer("coin " + std::to_string(i), training_with_choice(2e-4));
    t->begin();
    t->run({});
    outcomes.insert(t->choice()->keeps_trained);
  }
  EXPECT_EQ(outcomes.size(), 2U);
}

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

// A second draw with another key would be a second release.
TEST_F(RunStatements, AChoiceIsDrawnUnderOneKeyOnly) {
  for (const bool other : {false, true}) {
    const std::string name = other ? "other key" : "own key";
    auto config = training_with_choice(0.01);
    config.training.reproducible = true;
    config.training.seed = seed;
    auto t = trainer(name, config);
    t->begin();
    t->run({.most_steps = 5});
    t.reset();
    if (other) write_file_atomically(folder(name).choice(), "0123456789abcdef\n", FileAccess::owner);
    t = trainer(name, config);
    t->resume();
    at::Tensor trained;
    EXPECT_TRUE(t->run({.after_step = [&](std::uint64_t) { trained = t->model().parameters().values().clone(); }}));
    EXPECT_EQ(t->choice().has_value(), !other);
    if (other) { EXPECT_TRUE(at::equal(t->model().parameters().values(), trained)); }
    EXPECT_TRUE(std::filesystem::exists(folder(name).choice()));
  }
}

// private/ is put back to an earlier time beside the ledger of the finished run, and another machine goes on: under its
// key a choice would be a second release.
TEST_F(RunStatements, AChoiceIsNotDrawnAgainAfterABackup) {
  const auto config = training_with_choice(0.01);
  auto t = trainer("run", config);
  t->begin();
  t->run({.most_steps = 5});
  t.reset();
  const auto backup = folder("run").root.parent_path() / "backup";
  std::filesystem::copy(folder("run").priv(), backup, std::filesystem::copy_options::recursive);
  t = trainer("run", config);
  t->resume();
  EXPECT_TRUE(t->run({}));
  EXPECT_TRUE(t->choice().has_value());
  t.reset();
  std::filesystem::remove_all(folder("run").priv());
  std::filesystem::copy(backup, folder("run").priv(), std::filesystem::copy_options::recursive);
  ASSERT_FALSE(std::filesystem::exists(folder("run").choice()));
  auto last = load_checkpoint(folder("run").last());
  last->environment = "another machine";
  save_checkpoint(folder("run").last(), *last);
  for (const bool again : {false, true}) {  // nor by a process that then goes on under the new key
    t = trainer("run", config);
    t->resume();
    if (!again) t.reset();
  }
  EXPECT_TRUE(t->run({}));
  EXPECT_FALSE(t->choice().has_value());
}

// A run is tied to every value that its choice will read: those of the validation windows, and those between the
// training part and them.
TEST_F(RunStatements, AChoiceKeepsTheValuesThatItWillRead) {
  const auto config = training_with_choice(0.01);
  data_.split.training_length =
      std::vector<std::int64_t>(data_.dataset.series.size(), data_.split.validation.front().forecast_start - 3);
  Config begun;
  {
    auto t = trainer("run", config);
    t->begin();
    t->run({.most_steps = 5});
    begun = t->config();
  }
  const auto first = data_.split.validation.front();
  for (const auto place : {first.forecast_start - 3, first.forecast_start - 1, first.forecast_start,
                           first.forecast_start + config.dataset.prediction_length - 1}) {
    auto other = data_;
    other.dataset.series[static_cast<std::size_t>(first.series)].values[static_cast<std::size_t>(place)] += 1.0F;
    EXPECT_THROW(refuse_what_was_not_charged_for(folder("run"), begun, other), UsageError) << place;
  }
  EXPECT_NO_THROW(refuse_what_was_not_charged_for(folder("run"), begun, data_));
  auto other = data_;  // what no choice reads may change
  other.dataset.series[static_cast<std::size_t>(first.series)].values.back() += 1.0F;
  EXPECT_NO_THROW(refuse_what_was_not_charged_for(folder("run"), begun, other));
}

TEST_F(RunStatements, ALedgerSaysOfAChoiceWhatTheConfigurationSays) {
  for (const double share : {0.0, 0.1}) {
    const std::string name = "share " + std::to_string(share);
    const auto config = training_with_choice(share);
    auto t = trainer(name, config);
    t->begin();
    t->run({.most_steps = 2});
    t.reset();
    const auto file = folder(name).ledger();
    auto ledger = parse_json(read_file(file), file.string());
    if (share > 0.0) {
      ledger.erase("choice");
    } else {
      ledger["choice"] = {{"epsilon", 5.0}};
    }
    write_file_atomically(file, json_text(ledger, 2));
    t = trainer(name, config);
    EXPECT_THROW(t->resume(), DataError);
  }
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

TEST_F(RunStatements, AChoiceNeedsAStartAndValidationWindows) {
  auto config = small_training();
  config.privacy.choice_share = 0.01;
  EXPECT_THROW(trainer("random weights", config), UsageError);
  config.model.prior = PriorKind::last_value;
  EXPECT_NO_THROW(trainer("prior", config));
  data_.split.validation.clear();
  EXPECT_THROW(trainer("no windows", config), UsageError);
}

}  // namespace
}  // namespace tsdp::training
