// Plans, exact resume, charging.
#include "tsdp/training/trainer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "privacy/theorems/structured_pairs.h"
#include "run/charge.h"
#include "run/checkpoint.h"
#include "run/environment.h"
#include "run/metrics_log.h"
#include "run/plateau_schedule.h"
#include "training/model_setup.h"
#include "training/step_engine.h"
#include "training/window_source.h"
#include "training_fixture.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::training {
namespace {

Config small_config() {
  auto config = small_training();
  config.privacy.target_epsilon = 8.0;
  return config;
}

/// The waves without their double precision: what readers give where no noise goes onto the data.
data::PreparedData small_data() {
  auto data = waves();
  for (auto& series : data.dataset.series) series.exact.clear();
  return data;
}

class TrainerTest : public TrainingFixture {
 protected:
  TrainerTest() { data_ = small_data(); }

  at::Tensor weights_after_whole_run(const std::string& name, const Config& config) const {
    auto t = trainer(name, config);
    t->begin();
    EXPECT_TRUE(t->run({}));
    return t->model().parameters().values().clone();
  }
};

TEST_F(TrainerTest, PlansTheMostStepsWithinTheTarget) {
  auto config = small_config();
  config.training.max_epochs = 100000;
  config.privacy.target_epsilon = 2.0;
  config.privacy.noise_multiplier = 12.0;  // many steps, so that one more costs little
  const auto t = trainer("plan", config);
  const auto& plan = t->plan();
  EXPECT_TRUE(plan.limited_by_epsilon);
  EXPECT_LE(plan.epsilon.upper, 2.0);
  // One step more is not certified, and not far from the target.
  const auto curve = t->method().privacy()->curve();
  auto& accountant = *curve;
  EXPECT_LE(accountant.delta(2.0, plan.steps, 1e-4).upper, 1e-5);
  EXPECT_GT(accountant.delta(2.0, plan.steps + 1, 1e-4).upper, 1e-5);
  EXPECT_GT(plan.epsilon.lower, 1.99);
}

TEST_F(TrainerTest, EpochsBoundThePlanToo) {
  const auto t = trainer("plan", small_config());
  EXPECT_FALSE(t->plan().limited_by_epsilon);
  EXPECT_EQ(t->plan().steps, 80U);  // 40 epochs of ⌊6/3⌋ = 2 steps
  EXPECT_LT(t->plan().epsilon.upper, 8.0);
}

TEST_F(TrainerTest, CalibratesTheNoiseMultiplier) {
  auto config = small_config();
  config.privacy.noise_multiplier.reset();
  config.privacy.target_epsilon = 3.0;
  const auto t = trainer("plan", config);
  EXPECT_EQ(t->plan().steps, 80U);
  EXPECT_LE(t->plan().epsilon.upper, 3.0);
  EXPECT_GT(t->plan().epsilon.lower, 2.9);
}

TEST_F(TrainerTest, RefusesABudgetThatPaysForNothing) {
  auto config = small_config();
  config.privacy.target_epsilon = 1e-3;
  try {
    trainer("plan", config);
    FAIL();
  } catch (const PrivacyError& error) {
    EXPECT_NE(std::string(error.what()).find("one step alone costs epsilon"), std::string::npos);
  }
}

TEST_F(TrainerTest, StopAndResumeAtEveryStepGivesTheSameBits) {
  auto config = small_config();
  config.training.max_epochs = 6;
  config.training.reproducible = true;
  const auto expected = weights_after_whole_run("whole", config);
  trainer("parts", config)->begin();
  for (int runs = 0; runs < 100; ++runs) {
    auto t = trainer("parts", config);
    t->resume();
    const auto before = t->step();
    if (before == t->plan().steps) {
      EXPECT_TRUE(at::equal(t->model().parameters().values(), expected));
      break;
    }
    EXPECT_EQ(t->run({.most_steps = 1}), before + 1 == t->plan().steps);
    EXPECT_EQ(t->step(), before + 1);
    EXPECT_LT(runs, 99);
  }
}

TEST_F(TrainerTest, ReplaysFromTheLastCheckpointWithTheSecretKey) {
  auto config = small_config();
  config.training.max_epochs = 10;
  auto whole = trainer("run", config);
  whole->begin();
  const auto first = folder("run").last();
  const auto at_start = read_file(first);
  EXPECT_TRUE(whole->run({}));
  const auto expected = whole->model().parameters().values().clone();
  EXPECT_THROW(trainer("run", config)->resume(), Error);  // one process at a time
  whole.reset();
  // A crash: the checkpoint is the one of step 0, but all 20 steps were charged.
  write_file_atomically(first, at_start, FileAccess::owner);
  auto again = trainer("run", config);
  again->resume();
  EXPECT_EQ(again->step(), 0U);
  EXPECT_TRUE(again->run({}));
  EXPECT_TRUE(at::equal(again->model().parameters().values(), expected));
  EXPECT_EQ(Charge(folder("run").charged()).steps(), 20U);
}

// A mechanism that is chosen is kept, with its noise: another program might choose another.
TEST_F(TrainerTest, AChosenMechanismIsKept) {
  auto config = small_config();
  config.privacy.relation = privacy::Relation::series;
  config.sampling.top_level = privacy::TopLevel::balls_in_bins;
  config.training.max_epochs = 6;
  config.privacy.target_epsilon = 4.0;
  config.privacy.noise_multiplier.reset();
  config.privacy.noise_mechanism.reset();
  config.dataset.path = "series.txt";  // (to be read back)
  config.dataset.format = "lstnet";
  config.dataset.season_length = 4;
  config.dataset.start = "2020-01-01";
  {
    auto t = trainer("run", config);
    t->begin();
    EXPECT_FALSE(t->run({.most_steps = 3}));
  }
  const auto kept = read_config(folder("run").config());
  ASSERT_TRUE(kept.privacy.noise_mechanism);
  ASSERT_TRUE(kept.privacy.noise_multiplier);
  EXPECT_NE(*kept.privacy.noise_mechanism, privacy::StrategyKind::identity);
  auto again = trainer("run", kept);
  again->resume();
  EXPECT_TRUE(again->run({}));
  const auto ledger =
      mechanism::read_ledger(nlohmann::ordered_json::parse(read_file(folder("run").ledger())), "ledger");
  const auto& noise = ledger.method.privacy()->noise();
  ASSERT_NE(noise.strategy, nullptr);
  EXPECT_EQ(noise.strategy->kind(), *kept.privacy.noise_mechanism);
  EXPECT_EQ(noise.multiplier, *kept.privacy.noise_multiplier);
  EXPECT_LE(ledger.cost->epsilon.upper, 4.0);
  EXPECT_GT(ledger.cost->epsilon.upper, 3.9);
}

TEST_F(TrainerTest, AnotherThreadCountKeepsChargedStepsCharged) {
  const Threads one(1);
  trainer("run", small_config())->begin();
  Charge(folder("run").charged()).raise_to(30);  // a crash after charging 30 steps, with the checkpoint at 0
  const Threads two(2);
  auto again = trainer("run", small_config());
  again->resume();
  EXPECT_EQ(again->step(), 30U);
  EXPECT_TRUE(again->run({}));
  EXPECT_EQ(again->step(), again->plan().steps);
  const auto ledger = nlohmann::json::parse(read_file(folder("run").ledger()));
  EXPECT_EQ(ledger["steps_taken"], 50);
  EXPECT_EQ(ledger["steps_charged"], 80);
}

// Under a new key an order is another one: what an epoch has taken, it might take again. So runs go on with the next
// epoch, or, where the whole run has one draw, not at all; identical replays go on anywhere.
TEST_F(TrainerTest, ANewKeyGoesOnWhereTheLawAllowsIt) {
  struct Case {
    const char* name;
    privacy::TopLevel sampler;
    privacy::Reshuffle reshuffle;
    privacy::Relation relation;
    std::optional<std::uint64_t> goes_on_at;  ///< of a crash that charged 31 steps of epochs of two
    privacy::StrategyKind mechanism = privacy::StrategyKind::identity;
    privacy::Redraw redraw = privacy::Redraw::once;
  };
  using enum privacy::TopLevel;
  const auto every = privacy::Reshuffle::every_epoch;
  for (const auto& c :
       {Case{"wor", without_replacement, every, privacy::Relation::series, 31},
        Case{"in turn", deterministic, every, privacy::Relation::series, 31},
        Case{"poisson", poisson, every, privacy::Relation::series, 31},
        Case{"shuffled", shuffled, every, privacy::Relation::series, 32},
        Case{"values, shuffled", shuffled, every, privacy::Relation::event, 32},
        Case{"shuffled once", shuffled, privacy::Reshuffle::once, privacy::Relation::series, {}},
        Case{"bins", balls_in_bins, every, privacy::Relation::series, {}},
        Case{"bins, redrawn", balls_in_bins, every, privacy::Relation::series, 32, privacy::StrategyKind::identity,
             privacy::Redraw::every_epoch},
        Case{"cyclic coins", cyclic_poisson, every, privacy::Relation::series, 31},
        Case{
            "in turn, correlated", deterministic, every, privacy::Relation::series, {}, privacy::StrategyKind::bisr}}) {
    SCOPED_TRACE(c.name);
    auto config = small_config();
    config.sampling.top_level = c.sampler;
    config.sampling.reshuffle = c.reshuffle;
    config.sampling.redraw = c.redraw;
    config.privacy.relation = c.relation;
    config.privacy.noise_multiplier = c.mechanism == privacy::StrategyKind::identity ? 8.0 : 60.0;
    config.privacy.noise_mechanism = c.mechanism;
    const Threads one(1);
    {
      auto t = trainer(c.name, config);
      t->begin();
      ASSERT_EQ(t->plan().steps_per_epoch, 2U);
    }
    Charge(folder(c.name).charged()).raise_to(31);
    {
      const Threads two(2);
      auto t = trainer(c.name, config);
      if (!c.goes_on_at) {
        try {
          t->resume();
          FAIL() << "went on";
        } catch (const PrivacyError& error) {
          EXPECT_NE(std::string(error.what()).find("resume it where it began"), std::string::npos) << error.what();
        }
      } else {
        t->resume();
        EXPECT_EQ(t->step(), *c.goes_on_at);
        EXPECT_GE(Charge(folder(c.name).charged()).steps(), *c.goes_on_at);
      }
    }
    if (c.goes_on_at) continue;
    auto t = trainer(c.name, config);  // where it began everything can be replayed
    t->resume();
    EXPECT_EQ(t->step(), 0U);
    EXPECT_TRUE(t->run({}));
  }
}

// Two copies of a run that go on in two environments take the same steps from other weights: with noise in common, the
// difference of their releases would show gradients without noise.
TEST_F(TrainerTest, ChargesAtMostAHundredthOfThePlanAhead) {
  auto config = small_config();
  config.privacy.noise_multiplier = 100.0;
  config.training.max_epochs = 5000;
  const auto t = trainer("run", config);
  t->begin();
  ASSERT_EQ(t->plan().steps, 10'000U);
  std::uint64_t most = 0;
  t->run({.most_steps = 400, .after_step = [&](std::uint64_t step) {
            most = std::max(most, Charge(folder("run").charged()).steps() - step);
          }});
  EXPECT_LE(most, 100U);
  EXPECT_GE(most, 50U);  // nor one by one
}

TEST_F(TrainerTest, CopiesThatPartHaveNoiseOfTheirOwn) {
  for (const bool reproducible : {false, true}) {
    auto config = small_config();
    config.training.reproducible = reproducible;
    const std::string name = reproducible ? "reproducible" : "secret", copy = name + "_copy";
    const Threads one(1);
    trainer(name, config)->begin();
    std::filesystem::copy(folder(name).root, folder(copy).root, std::filesystem::copy_options::recursive);
    const auto key = [&](const std::string& run) { return load_checkpoint(folder(run).last())->key->hex(); };
    const auto begun = key(name);
    trainer(name, config)->resume();
    EXPECT_EQ(key(name), begun);  // the same environment replays, or takes, the same steps
    const Threads two(2);
    trainer(copy, config)->resume();
    EXPECT_EQ(key(copy) == begun, reproducible);
  }
}

// Steps that were taken under another key were other releases: replaying them under this one would be new ones,
// uncharged.
TEST_F(TrainerTest, ACheckpointPutBackFromBeforeAChangeOfKeyReplaysNothing) {
  const auto config = small_config();
  trainer("run", config)->begin();
  const auto first = read_file(folder("run").last());
  const auto key = load_checkpoint(folder("run").last())->key->hex();
  Charge(folder("run").charged()).raise_to(26);
  std::filesystem::remove(folder("run").last());
  auto t = trainer("run", config);
  t->resume();  // a new key
  EXPECT_FALSE(t->run({.most_steps = 20}));
  t.reset();
  write_file_atomically(folder("run").last(), first, FileAccess::owner);
  auto back = trainer("run", config);
  back->resume();
  EXPECT_EQ(back->step(), 46U);
  EXPECT_NE(load_checkpoint(folder("run").last())->key->hex(), key);
}

TEST_F(TrainerTest, ACleanStopLosesNothingElsewhere) {
  const Threads one(1);
  auto t = trainer("run", small_config());
  t->begin();
  EXPECT_FALSE(t->run({.most_steps = 10}));
  EXPECT_EQ(Charge(folder("run").charged()).steps(), 10U);
  t.reset();
  const Threads two(2);
  auto again = trainer("run", small_config());
  again->resume();
  EXPECT_EQ(again->step(), 10U);
  EXPECT_TRUE(again->run({}));
  EXPECT_EQ(nlohmann::json::parse(read_file(folder("run").ledger()))["steps_taken"], 80);
}

TEST_F(TrainerTest, ACleanStopKeepsWhatACrashBeforeMayHaveTaken) {
  trainer("run", small_config())->begin();
  Charge(folder("run").charged()).raise_to(30);  // a crash
  auto again = trainer("run", small_config());
  again->resume();
  EXPECT_EQ(again->step(), 0U);
  EXPECT_FALSE(again->run({.most_steps = 5}));
  EXPECT_EQ(Charge(folder("run").charged()).steps(), 30U);
}

TEST_F(TrainerTest, RefusesToEndARunThatWouldHaveTakenNoStep) {
  const Threads one(1);
  auto config = small_config();
  config.training.max_epochs = 10;
  trainer("run", config)->begin();
  Charge(folder("run").charged()).raise_to(20);
  {
    const Threads two(2);
    EXPECT_THROW(trainer("run", config)->resume(), PrivacyError);
  }
  auto back = trainer("run", config);
  back->resume();  // where it began nothing is lost
  EXPECT_EQ(back->step(), 0U);
  EXPECT_TRUE(back->run({}));
  EXPECT_EQ(nlohmann::json::parse(read_file(folder("run").ledger()))["steps_taken"], 20);
}

TEST_F(TrainerTest, WithoutPrivacyNothingIsGivenUp) {
  const Threads one(1);
  auto config = small_config();
  config.privacy.enabled = false;
  auto t = trainer("run", config);
  t->begin();
  t.reset();
  Charge(folder("run").charged()).raise_to(30);
  const Threads two(2);
  auto again = trainer("run", config);
  again->resume();
  EXPECT_EQ(again->step(), 0U);
}

TEST_F(TrainerTest, APrivateRunChoosesNoWeightsByTheirLosses) {
  auto config = small_config();
  config.training.checkpoint = ExportedWeights::best;
  try {
    trainer("run", config);
    FAIL();
  } catch (const PrivacyError& error) {
    EXPECT_NE(std::string(error.what()).find("training.checkpoint: found best with privacy.enabled"), std::string::npos)
        << error.what();
  }
  config.privacy.enabled = false;
  EXPECT_NO_THROW(trainer("run", config));
}

TEST_F(TrainerTest, ResumingTakesPrivateFilesFromOthers) {
  trainer("run", small_config())->begin();
  namespace fs = std::filesystem;
  fs::permissions(folder("run").root / "private", fs::perms(0755));
  fs::permissions(folder("run").checkpoints(), fs::perms(0755));
  fs::permissions(folder("run").charged(), fs::perms(0644));
  trainer("run", small_config())->resume();
  EXPECT_EQ(fs::status(folder("run").root / "private").permissions(), fs::perms(0700));
  EXPECT_EQ(fs::status(folder("run").checkpoints()).permissions(), fs::perms(0700));
  EXPECT_EQ(fs::status(folder("run").charged()).permissions(), fs::perms(0600));
}

TEST(Environment, TellsWhatBitsHangOn) {
  const at::Device cpu(at::kCPU);
  const auto here = environment_of(cpu);
  EXPECT_EQ(environment_of(cpu), here);
  EXPECT_NE(environment_of(cpu, /*repeats=*/false), environment_of(cpu, /*repeats=*/false));
  EXPECT_NE(here.find(", code "), std::string::npos);
  ASSERT_EQ(::setenv("MKL_CBWR", "COMPATIBLE", 1), 0);
  const auto other = environment_of(cpu);
  ::unsetenv("MKL_CBWR");
  EXPECT_NE(other.find("MKL_CBWR=COMPATIBLE"), std::string::npos);
  EXPECT_EQ(environment_of(cpu), here);
  const Threads one_more(at::get_num_threads() + 1);
  EXPECT_NE(environment_of(cpu), here);
}

// A crash here, a crash there, and back: the first environment must not replay what the second one has taken.
TEST_F(TrainerTest, GoingBackToTheFirstEnvironmentReplaysNothingOfTheSecond) {
  const auto config = small_config();
  const Threads one(1);
  trainer("run", config)->begin();
  Charge(folder("run").charged()).raise_to(30);
  {
    const Threads two(2);
    trainer("run", config)->resume();  // gives up steps 1 … 30, and crashes before a checkpoint of its own
  }
  auto back = trainer("run", config);
  back->resume();
  EXPECT_EQ(back->step(), 30U);
}

TEST_F(TrainerTest, ChangedDataAreNotResumed) {
  const auto config = small_config();
  trainer("run", config)->begin();
  data_.dataset.series[3].values[7] += 1.0F;
  EXPECT_THROW(trainer("run", config)->resume(), UsageError);
  data_ = small_data();
  trainer("run", config)->resume();
  data_.dataset.series[3].start += 3600;  // models read the calendar
  EXPECT_THROW(trainer("run", config)->resume(), UsageError);
}

TEST_F(TrainerTest, ChangesThatOnlyDoublesShowAreNotResumedEither) {
  const auto config = small_config();
  for (auto& series : data_.dataset.series) series.exact.assign(series.values.begin(), series.values.end());
  trainer("run", config)->begin();
  trainer("run", config)->resume();
  data_.dataset.series[3].exact[7] += 1e-12;
  EXPECT_THROW(trainer("run", config)->resume(), UsageError);
}

TEST_F(TrainerTest, NoiseOnTheDataMeetsDoubles) {
  auto config = small_config();
  config.training.max_epochs = 5;
  config.training.reproducible = true;
  config.privacy.v = 0.5;
  config.augmentation.context_noise = config.augmentation.forecast_noise = 1.0;
  // In single precision neighbours may lie further apart than v: nothing is trained on that.
  EXPECT_THROW(weights_after_whole_run("floats", config), Error);
  for (auto& series : data_.dataset.series) series.exact.assign(series.values.begin(), series.values.end());
  const auto weights = weights_after_whole_run("doubles", config);
  // What the floats are is no matter, what the doubles are is.
  for (auto& series : data_.dataset.series)
    for (auto& value : series.values) value += 1.0F;
  EXPECT_TRUE(at::equal(weights_after_whole_run("other floats", config), weights));
  for (auto& series : data_.dataset.series)
    for (auto& value : series.exact) value += 1.0;
  EXPECT_FALSE(at::equal(weights_after_whole_run("other doubles", config), weights));
}

TEST_F(TrainerTest, WithoutPrivacyNoiseOnTheDataMeetsFloatsAsBefore) {
  auto config = small_config();
  config.training.max_epochs = 5;
  config.training.reproducible = true;
  config.privacy.enabled = false;
  config.augmentation.context_noise = 1.0;
  const auto weights = weights_after_whole_run("noised", config);
  config.augmentation.context_noise = 0.0;
  EXPECT_FALSE(at::equal(weights_after_whole_run("plain", config), weights));
}

TEST_F(TrainerTest, ALostCheckpointKeepsChargedStepsCharged) {
  const auto config = small_config();
  trainer("run", config)->begin();
  Charge(folder("run").charged()).raise_to(30);
  std::filesystem::remove(folder("run").last());
  auto again = trainer("run", config);
  again->resume();
  EXPECT_EQ(again->step(), 30U);
  EXPECT_TRUE(again->run({}));
  EXPECT_EQ(nlohmann::json::parse(read_file(folder("run").ledger()))["steps_taken"], 50);
  EXPECT_EQ(Charge(folder("run").charged()).steps(), 80U);
  again.reset();
  std::filesystem::remove(folder("run").last());
  EXPECT_THROW(trainer("run", config)->resume(), PrivacyError);  // the whole budget is gone
}

TEST_F(TrainerTest, ALostCountOfChargedStepsIsASpentBudget) {
  trainer("run", small_config())->begin();
  std::filesystem::remove(folder("run").charged());
  EXPECT_THROW(trainer("run", small_config())->resume(), PrivacyError);
}

TEST_F(TrainerTest, AResumedRunKeepsItsConfiguration) {
  auto config = small_config();
  trainer("run", config)->begin();
  const auto before = read_file(folder("run").ledger());
  config.privacy.noise_multiplier = 40.0;
  try {
    trainer("run", config)->resume();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(
        std::string(error.what()).find("found 'noise_multiplier: 40'; the run began with 'noise_multiplier: 1.5'"),
        std::string::npos)
        << error.what();
  }
  EXPECT_EQ(read_file(folder("run").ledger()), before);
}

TEST_F(TrainerTest, TwoRunsDrawDifferentKeys) {
  auto config = small_config();
  config.training.max_epochs = 2;
  EXPECT_FALSE(at::equal(weights_after_whole_run("a", config), weights_after_whole_run("b", config)));
  config.training.reproducible = true;
  EXPECT_TRUE(at::equal(weights_after_whole_run("c", config), weights_after_whole_run("d", config)));
}

TEST_F(TrainerTest, TheLedgerNeverUnderstates) {
  auto config = small_config();
  auto t = trainer("run", config);
  t->begin();
  const auto running = nlohmann::json::parse(read_file(folder("run").ledger()));
  EXPECT_EQ(running["state"], "running");
  EXPECT_EQ(running["epsilon"]["upper"].get<double>(), t->plan().epsilon.upper);
  // Epsilon anew, from nothing but what the ledger itself says: Theorem 4.4 with N series of length L each, one of
  // T = L − L_F + 1 windows of which m = L_C + L_F hold a value.
  const auto expect_covered = [&](const nlohmann::json& ledger, std::uint64_t uses) {
    EXPECT_EQ(ledger["delta"].get<double>(), config.privacy.delta);
    EXPECT_EQ(ledger["noise_multiplier"].get<double>(), config.privacy.noise_multiplier);
    EXPECT_EQ(ledger["theorem"], "4.4");
    EXPECT_EQ(ledger["relation"]["w"], 1);
    const auto& m = ledger["mechanism"];
    ASSERT_EQ(m["shortest_sequence"], m["longest_sequence"]);
    const double windows = m["longest_sequence"].get<double>() - m["forecast_length"].get<double>() + 1.0;
    const double holding = m["context_length"].get<double>() + m["forecast_length"].get<double>();
    const double share = m["batch_size"].get<double>() / m["num_sequences"].get<double>() * holding / windows;
    privacy::Accountant accountant(privacy::one_window_pair(share, ledger["noise_multiplier"]));
    const auto spent = accountant.epsilon(ledger["delta"], uses, 1e-5);
    EXPECT_EQ(ledger["compositions"], uses);
    EXPECT_GE(ledger["epsilon"]["upper"].get<double>(), spent.lower);
    EXPECT_LE(ledger["epsilon"]["lower"].get<double>(), spent.upper);
    EXPECT_LE(ledger["epsilon"]["upper"].get<double>(), 1.002 * spent.upper);
  };
  expect_covered(running, t->plan().steps);  // charged ahead: all that is planned
  EXPECT_FALSE(t->run({.most_steps = 10}));
  const auto stopped = nlohmann::json::parse(read_file(folder("run").ledger()));
  EXPECT_EQ(stopped["state"], "interrupted");
  EXPECT_EQ(stopped["steps_taken"], 10);
  EXPECT_EQ(stopped["steps_charged"], 10);
  expect_covered(stopped, 10);
  EXPECT_TRUE(t->run({}));
  const auto finished = nlohmann::json::parse(read_file(folder("run").ledger()));
  EXPECT_EQ(finished["state"], "finished");
  EXPECT_EQ(finished["steps_taken"], t->plan().steps);
  expect_covered(finished, t->plan().steps);
  EXPECT_LE(finished["epsilon"]["upper"].get<double>(), config.privacy.target_epsilon);
  // The attacker's view grows with what was spent, and (ε, δ) bounds it: advantage ≤ (e^ε − 1 + 2δ) / (e^ε + 1).
  const double advantage = finished["attack"]["advantage"];
  EXPECT_LT(stopped["attack"]["advantage"].get<double>(), advantage);
  EXPECT_LT(0.0, advantage);
  EXPECT_LE(advantage, std::tanh(0.5 * config.privacy.target_epsilon) + 1e-4);
  EXPECT_GT(finished["attack"]["true_positive_rate"].get<double>(), 1e-3);
  // So does μ. N(μ, 1) against N(0, 1) has the advantage 2 Φ(μ/2) − 1.
  const double mu = finished["gaussian"]["mu"];
  EXPECT_LT(stopped["gaussian"]["mu"].get<double>(), mu);
  EXPECT_EQ(finished["gaussian"]["delta"], config.privacy.delta);
  EXPECT_GE(std::erf(mu / (2.0 * std::sqrt(2.0))) + config.privacy.delta, 0.98 * advantage);
}

TEST_F(TrainerTest, FilesOutsidePrivateHoldNeitherKeyNorData) {
  auto config = small_config();
  config.training.max_epochs = 2;
  auto t = trainer("run", config);
  t->begin();
  t->run({});
  const auto key = load_checkpoint(folder("run").last())->key->hex();
  for (const auto& file : {folder("run").config(), folder("run").ledger()})
    EXPECT_EQ(read_file(file).find(key), std::string::npos);
  const auto mode = std::filesystem::status(folder("run").last()).permissions();
  EXPECT_EQ(mode & std::filesystem::perms::mask,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(TrainerTest, TrainsWithoutPrivacyWhenAskedTo) {
  auto config = small_config();
  config.privacy.enabled = false;
  config.training.max_epochs = 60;
  auto t = trainer("run", config);
  t->begin();
  EXPECT_TRUE(t->run({}));
  const auto ledger = mechanism::document(t->current_ledger(mechanism::RunState::finished));
  EXPECT_FALSE(ledger["private"].get<bool>());
  EXPECT_TRUE(ledger["epsilon"].is_null());
}

Config config_of(const std::string& model) {
  auto config = small_training_of(model);
  config.privacy.target_epsilon = 8.0;
  return config;
}

TEST_F(TrainerTest, EveryModelResumesToTheSameBits) {
  for (const auto& name : models::model_names()) {
    SCOPED_TRACE(name);
    auto config = config_of(name);
    config.training.reproducible = true;
    config.training.max_epochs = 6;
    const auto whole = weights_after_whole_run(name + "_whole", config);
    EXPECT_TRUE(whole.isfinite().all().item<bool>());
    {
      auto first = trainer(name + "_cut", config);
      first->begin();
      TrainOptions some;
      some.most_steps = 5;
      EXPECT_FALSE(first->run(some));
    }
    auto second = trainer(name + "_cut", config);
    second->resume();
    EXPECT_TRUE(second->run({}));
    EXPECT_TRUE(at::equal(second->model().parameters().values(), whole));
  }
}

TEST_F(TrainerTest, WhatIsNotTrainedStaysAsItWas) {
  for (const bool is_private : {true, false})
    for (const auto& name : models::model_names()) {
      SCOPED_TRACE(name + (is_private ? ", private" : ", not private"));
      auto config = small_training_of(name);
      config.privacy.enabled = is_private;
      config.training.trainable = Trainable::head;
      const auto t = trainer(name + (is_private ? " private" : ""), config);
      t->begin();
      const auto& parameters = t->model().parameters();
      EXPECT_LT(parameters.trained_count(), parameters.count());
      const auto before = parameters.values().clone();
      t->run({.most_steps = 3});
      for (const auto& entry : parameters.entries()) {
        const auto part = [&](const at::Tensor& all) { return all.narrow(0, entry.offset, entry.count); };
        const bool same = at::equal(part(before), part(parameters.values()));
        EXPECT_TRUE(entry.trained ? !is_private || !same : same) << entry.name;
      }
    }
}

TEST_F(TrainerTest, AWindowWithLagsIsAccountedWhole) {
  // P = C + max(lag) − 1.
  const auto t = trainer("lags", config_of("deepar"));
  EXPECT_EQ(t->model().past_length(), 8 + 24 - 1);
  EXPECT_EQ(t->method().scheme().parameters().context_length, 31);
}

// A batch in chunks: every window's norm is the same to the last bit or two, the update the same but for rounding.
TEST_F(TrainerTest, ChunksChangeNothingButRounding) {
  for (const auto& name : models::model_names())
    for (const auto clipping :
         {privacy::ClippingKind::flat, privacy::ClippingKind::per_layer, privacy::ClippingKind::automatic}) {
      SCOPED_TRACE(name);
      const auto config = config_of(name);
      const auto type = at::TensorOptions(at::kDouble);
      const auto model = model_of(config, type);
      const data::WindowStore store(data_.dataset, model->past_length(), 4);
      WindowSource source(store, features_of(*model, data_.dataset), type);
      std::vector<data::WindowIndex> indices;
      for (std::int64_t i = 0; i < 11; ++i) indices.push_back({i % 6, 3 + 13 * i});
      const auto batch = source.gather(indices);
      const auto step = [&](std::int64_t budget, bool is_private) {
        RandomStream weights(SecretKey::from_seed(4), "initial weights", 0);
        model->initialise(weights);
        StepEngine::Options options;
        options.memory_budget = budget;
        StepEngine engine(*model, method_of_batch(11, is_private, {clipping, 0.1}), options);
        EXPECT_TRUE(budget == 0 || engine.chunk() < 5);
        const auto result = engine.step(batch, places_of_batch(11), SecretKey::from_seed(5), 0);
        return std::tuple{result.losses, result.norms, model->parameters().gradients().clone()};
      };
      for (const bool is_private : {true, false}) {
        const auto [losses, norms, gradient] = step(0, is_private);
        const auto [losses2, norms2, gradient2] = step(4 * model->bytes_per_window(), is_private);
        EXPECT_TRUE(at::allclose(losses, losses2, 1e-14, 1e-14));
        EXPECT_EQ(norms.defined(), is_private);
        EXPECT_TRUE(!is_private || at::allclose(norms, norms2, 1e-13, 0.0));
        EXPECT_TRUE(at::allclose(gradient, gradient2, 1e-11, 1e-13));
      }
    }
}

TEST(PlateauSchedule, HalvesAsReduceLROnPlateauDoes) {
  // PyTorch 2.13, patience 2, losses as below: 1 until the third loss in a row that is not below 0.9999 of the least.
  PlateauSchedule schedule;
  const auto factors = [&](const std::vector<double>& losses) {
    std::vector<double> out;
    for (const double loss : losses) {
      schedule.look(loss, 2);
      out.push_back(schedule.factor);
    }
    return out;
  };
  EXPECT_EQ(factors({5.0, 5.0, 4.99999, 4.9, 4.9, 4.95, 4.8999, 4.9}),
            (std::vector<double>{1, 1, 1, 1, 1, 1, 0.5, 0.5}));
  EXPECT_EQ(factors({-1.0, -0.99995, -0.9, std::numeric_limits<double>::quiet_NaN(), -0.9}),
            (std::vector<double>{0.5, 0.5, 0.5, 0.5, 0.25}));
}

TEST_F(TrainerTest, BestTrainingLossIsKeptWithoutAValidationPart) {
  auto config = small_config();
  config.privacy.enabled = false;
  config.training.checkpoint = ExportedWeights::best;
  config.training.validate_every = 3;
  config.optimizer.gradient_norm_bound = 10.0;
  config.optimizer.plateau_looks = 0;  // the rate and its history are resumed too
  config.training.reproducible = true;
  auto data = data_;
  data.split.validation.clear();
  const auto run = [&](const std::string& name, std::uint64_t cut) {
    for (bool resumed = false;; resumed = true) {
      Trainer t(settled(config, data), data, at::Device(at::kCPU), folder(name));
      if (resumed) {
        t.resume();
      } else {
        t.begin();
      }
      TrainOptions options;
      if (!resumed && cut > 0) options.most_steps = cut;
      if (t.run(options)) break;
    }
    return *load_checkpoint(folder(name).best());
  };
  const auto best = run("best", 0);
  EXPECT_TRUE(std::isfinite(best.best_loss));
  EXPECT_TRUE(best.step % 6 == 0 || best.step == 80) << best.step;  // three epochs of two steps, or the end
  std::ifstream in(folder("best").metrics());
  double least = std::numeric_limits<double>::infinity();
  for (std::string line; std::getline(in, line);)
    least = std::min(least, nlohmann::json::parse(line).value("training_loss", least));
  EXPECT_EQ(best.best_loss, least);
  // The sum of losses between two looks is part of what is resumed.
  const auto resumed = run("best_cut", 4);
  EXPECT_EQ(resumed.best_loss, best.best_loss);
  EXPECT_TRUE(at::equal(resumed.values, best.values));
}

TEST_F(TrainerTest, LogsEachStepOnceAndWhatItCost) {
  auto config = small_config();
  {
    auto t = trainer("logged", config);
    t->begin();
    EXPECT_FALSE(t->run({.most_steps = 31}));
  }
  {
    // What a crash leaves: steps beyond the checkpoint, the last of them in part.
    std::ofstream out(folder("logged").metrics(), std::ios::app);
    out << R"({"step":32,"epoch":16.0,"loss":1.0})" << "\n"
        << R"({"step":33,"epo)";
  }
  auto t = trainer("logged", config);
  t->resume();
  EXPECT_TRUE(t->run({}));
  std::vector<std::uint64_t> steps;
  std::vector<double> epsilons;
  for (const auto& line : read_metrics(folder("logged").metrics())) {
    if (line.contains("loss")) steps.push_back(line["step"].get<std::uint64_t>());
    if (line.contains("epsilon_upper")) epsilons.push_back(line["epsilon_upper"].get<double>());
    EXPECT_EQ(line["epoch"].get<double>(), static_cast<double>(line["step"].get<std::uint64_t>()) / 2.0);
  }
  ASSERT_EQ(steps.size(), 80U);
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], i + 1);
  ASSERT_GT(epsilons.size(), 10U);
  EXPECT_TRUE(std::is_sorted(epsilons.begin(), epsilons.end()));
  EXPECT_EQ(epsilons.back(), t->plan().epsilon.upper);
  // Each is the certified cost of its step count, so not below what a sharper answer says.
  const auto curve = t->method().privacy()->curve();
  auto& accountant = *curve;
  for (const auto& line : read_metrics(folder("logged").metrics()))
    if (line.contains("epsilon_upper")) {
      const auto exact = accountant.epsilon(config.privacy.delta, line["step"].get<std::uint64_t>(), 1e-4);
      EXPECT_GE(line["epsilon_upper"].get<double>(), exact.lower);
      EXPECT_LE(line["epsilon_upper"].get<double>(), exact.upper * 1.02);
    }
  EXPECT_TRUE(read_metrics(root_ / "missing.jsonl").empty());
}

}  // namespace

// What is trained is what was settled: a program that changes either gets no trainer.
TEST_F(TrainerTest, WhatIsNotAsItWasSettledIsNotTrained) {
  auto config = small_training();
  config.privacy.v = 1.0;
  config.augmentation.context_noise = config.augmentation.forecast_noise = 1.0;
  const auto run = settled(config, data_);
  const auto refused = [&](const mechanism::Settled& changed, const data::PreparedData& data, const std::string& what) {
    try {
      Trainer made(changed, data, at::Device(at::kCPU), folder("run"));
      ADD_FAILURE() << what;
    } catch (const PrivacyError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  EXPECT_NO_THROW(Trainer(run, data_, at::Device(at::kCPU), folder("run")));
  auto shorter = data_;
  for (auto& length : shorter.split.training_length) length -= 10;
  refused(run, shorter, "lengths of the series");
  const std::pair<const char*, std::function<void(Config&)>> changes[] = {
      {"privacy.v", [](Config& c) { c.privacy.v = 0.1; }},
      {"privacy.enabled", [](Config& c) { c.privacy.enabled = false; }},
      {"privacy.noise_multiplier", [](Config& c) { c.privacy.noise_multiplier = 0.5; }},
      {"privacy.clip_norm", [](Config& c) { c.privacy.clip_norm = 10.0; }},
      {"privacy.composition", [](Config& c) { c.privacy.composition = privacy::StepComposition::adaptive; }},
      {"sampling", [](Config& c) { c.sampling.batch_size = 6; }},
  };
  for (const auto& [what, change] : changes) {
    auto changed = run;
    change(changed.config);
    refused(changed, data_, what);
  }
}

}  // namespace tsdp::training
