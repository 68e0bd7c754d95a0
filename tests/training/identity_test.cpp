// Files of a run that were put back, taken from another run, edited or lost: nothing of that may make a run spend more
// than its ledger states.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "run/charge.h"
#include "run/charged_for.h"
#include "run/checkpoint.h"
#include "training_fixture.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/tensor_file.h"

namespace tsdp::training {
namespace {

namespace fs = std::filesystem;

class Identity : public TrainingFixture {
 protected:
  void finish(const std::string& name, const Config& config) {
    auto t = trainer(name, config);
    t->begin();
    EXPECT_TRUE(t->run({}));
  }
  [[nodiscard]] nlohmann::json ledger_of(const std::string& name) const {
    return nlohmann::json::parse(read_file(folder(name).ledger()));
  }
  void copy(const fs::path& from, const fs::path& to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
  }
};

// private/ put back under a finished ledger, in an environment where nothing can be replayed: a second model would be
// trained with noise of its own.
TEST_F(Identity, TheLedgerIsAWitnessOfWhatWasCharged) {
  const auto config = small_training();
  const Threads one(1);
  {
    auto t = trainer("run", config);
    t->begin();
    EXPECT_FALSE(t->run({.most_steps = 10}));
  }
  copy(folder("run").priv(), root_ / "backup");
  {
    auto t = trainer("run", config);
    t->resume();
    EXPECT_TRUE(t->run({}));
  }
  const auto weights = trainer("run", config);
  copy(root_ / "backup", folder("run").priv());
  const Threads two(2);
  auto again = trainer("run", config);
  again->resume();
  EXPECT_EQ(again->step(), again->plan().steps);  // nothing is left
  EXPECT_TRUE(again->run({}));
  EXPECT_EQ(ledger_of("run")["steps_charged"], 80);
  EXPECT_EQ(ledger_of("run")["steps_taken"], 10);
}

// The same in the middle of a run: what was charged after the backup stays charged, though the count in private/ says
// less.
TEST_F(Identity, TheLedgerIsAWitnessWhileARunGoesOn) {
  const auto config = small_training();
  const Threads one(1);
  trainer("run", config)->begin();
  copy(folder("run").priv(), root_ / "backup");
  {
    auto t = trainer("run", config);
    t->resume();
    std::atomic<bool> stop = false;
    TrainOptions options;
    options.stop = &stop;
    options.most_steps = 20;
    // As a crash leaves it: the ledger of the last charge, not of the clean stop.
    EXPECT_FALSE(t->run(options));
  }
  auto ledger = nlohmann::ordered_json::parse(read_file(folder("run").ledger()));
  ASSERT_EQ(ledger["steps_charged"], 20);
  copy(root_ / "backup", folder("run").priv());
  ASSERT_EQ(Charge(folder("run").charged()).steps(), 0U);
  const Threads two(2);
  auto again = trainer("run", config);
  again->resume();
  EXPECT_EQ(again->step(), 20U);
  EXPECT_EQ(Charge(folder("run").charged()).steps(), 20U);
}

// private/ put back whole, from before the key changed: its checkpoint and its count agree with each other, and the
// ledger alone knows that the steps since were taken under another key.
TEST_F(Identity, TheLedgerIsAWitnessOfTheKey) {
  const auto config = small_training();
  {
    const Threads one(1);
    auto t = trainer("run", config);
    t->begin();
    EXPECT_FALSE(t->run({.most_steps = 10}));
  }
  copy(folder("run").priv(), root_ / "backup");
  {
    const Threads two(2);
    auto t = trainer("run", config);
    t->resume();
    EXPECT_FALSE(t->run({.most_steps = 10}));
  }
  ASSERT_EQ(ledger_of("run")["steps_charged"], 20);
  copy(root_ / "backup", folder("run").priv());
  const Threads one(1);
  auto again = trainer("run", config);
  again->resume();
  EXPECT_EQ(again->step(), 20U);  // steps 11 to 20 are not taken again with the old key's noise
  EXPECT_TRUE(again->run({}));
  EXPECT_EQ(ledger_of("run")["steps_charged"], 80);
  EXPECT_EQ(ledger_of("run")["steps_taken"], 70);
}

TEST_F(Identity, ALostLedgerIsNotMadeAnew) {
  const auto config = small_training();
  {
    auto t = trainer("run", config);
    t->begin();
    EXPECT_FALSE(t->run({.most_steps = 10}));
  }
  fs::remove(folder("run").ledger());
  try {
    trainer("run", config)->resume();
    FAIL();
  } catch (const PrivacyError& error) {
    EXPECT_NE(std::string(error.what()).find("privacy.json: is gone"), std::string::npos) << error.what();
  }
}

TEST_F(Identity, FilesOfAnotherRunAreRefused) {
  const auto config = small_training();
  auto not_private = config;
  not_private.privacy.enabled = false;
  finish("run", config);
  finish("other", config);
  finish("not private", not_private);
  const auto refused = [&](const fs::path& file, const std::string& from) {
    SCOPED_TRACE(file.string() + " from " + from);
    const auto own = read_file(file);
    write_file_atomically(file, read_file(root_ / from / fs::relative(file, folder("run").root)));
    try {
      trainer("run", config)->resume();
      ADD_FAILURE() << "resumed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(file.filename().string()), std::string::npos) << error.what();
    }
    write_file_atomically(file, own);
  };
  for (const std::string from : {"other", "not private"})
    for (const auto& file : {folder("run").last(), folder("run").charged(), folder("run").ledger()})
      refused(file, from);
  EXPECT_NO_THROW(trainer("run", config)->resume());
}

TEST_F(Identity, ABitThatFlipsInACheckpointIsFound) {
  const auto config = small_training();
  trainer("run", config)->begin();
  const auto file = folder("run").last();
  const auto whole = read_file(file);
  for (std::size_t i = 0; i < 40; ++i) {
    auto changed = whole;
    const auto place = i * (whole.size() - 1) / 39;
    changed[place] = static_cast<char>(changed[place] ^ 0x10);
    write_file_atomically(file, changed);
    EXPECT_THROW(static_cast<void>(load_checkpoint(file)), DataError) << place;
  }
}

TEST_F(Identity, TheKeyGoesWithTheEndOfTheRun) {
  auto config = small_training();
  auto t = trainer("run", config);
  t->begin();
  const auto key = load_checkpoint(folder("run").last())->key->hex();
  for (const char* left : {"last.pt.part", "best.pt.part", "charged.part"})
    std::ofstream(folder("run").checkpoints() / left) << key;  // what a crash leaves
  EXPECT_TRUE(t->run({}));
  t.reset();
  EXPECT_FALSE(load_checkpoint(folder("run").last())->key);
  for (const auto& entry : fs::recursive_directory_iterator(folder("run").root)) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(read_file(entry.path()).find(key), std::string::npos) << entry.path();
    EXPECT_NE(entry.path().extension(), ".part");
  }
  // Taken up again, a finished run has nothing to do and loses nothing.
  const auto weights = load_checkpoint(folder("run").last())->values;
  const auto ledger = read_file(folder("run").ledger());
  auto again = trainer("run", config);
  again->resume();
  EXPECT_TRUE(again->run({}));
  EXPECT_TRUE(at::equal(again->model().parameters().values(), weights));
  EXPECT_EQ(read_file(folder("run").ledger()), ledger);
}

// A budget was charged for the plan that the run began with. A crash before the first ledger leaves the count alone to
// say so.
TEST_F(Identity, AResumedRunWithoutALedgerKeepsToItsPlan) {
  const auto config = small_training();
  auto t = trainer("run", config);
  t->begin();
  t.reset();
  std::filesystem::remove(folder("run").ledger());
  auto count = read_file(folder("run").charged());
  const auto at = count.find("planned 80\n");
  ASSERT_NE(at, std::string::npos) << count;
  count.replace(at, 10, "planned 50");  // as a program would have written that plans fewer steps than this one
  write_file_atomically(folder("run").charged(), count, FileAccess::owner);
  t = trainer("run", config);
  t->resume();
  EXPECT_TRUE(t->run({}));
  EXPECT_EQ(t->step(), 50U);
  EXPECT_TRUE(
      mechanism::verify(parse_json(read_file(folder("run").ledger()), "privacy.json"), "privacy.json").agrees());
  // A count of before that was kept is read as it was.
  t = trainer("old", config);
  t->begin();
  t.reset();
  count = read_file(folder("old").charged());
  write_file_atomically(folder("old").charged(), count.substr(0, count.find("planned ")), FileAccess::owner);
  t = trainer("old", config);
  t->resume();
  EXPECT_TRUE(t->run({}));
  EXPECT_EQ(t->step(), 80U);
}

// What a run states that ends a step before this program's plan is of its own steps.
TEST_F(Identity, AShorterPlanStatesWhatItCosts) {
  for (const int planned : {79, 78, 40, 1}) {
    const auto name = "planned " + std::to_string(planned);
    const auto config = small_training();
    auto t = trainer(name, config);
    t->begin();
    t.reset();
    std::filesystem::remove(folder(name).ledger());
    auto count = read_file(folder(name).charged());
    count.replace(count.find("planned 80"), 10, name);
    write_file_atomically(folder(name).charged(), count, FileAccess::owner);
    t = trainer(name, config);
    t->resume();
    EXPECT_TRUE(t->run({}));
    const auto found = mechanism::verify(parse_json(read_file(folder(name).ledger()), "privacy.json"), "privacy.json");
    EXPECT_TRUE(found.agrees()) << (found.agrees() ? "" : found.differences.front());
    EXPECT_LT(ledger_of(name)["epsilon"]["upper"],
              ledger_of("planned 79")["epsilon"]["upper"].get<double>() + (planned == 79 ? 1e-9 : 0.0));
  }
}

// Another program charged more steps than this one plans: they may be released, and no ledger of fewer is written over
// that.
TEST_F(Identity, ALedgerThatChargedMoreThanIsPlannedIsNotCut) {
  const auto config = small_training();
  auto t = trainer("run", config);
  t->begin();
  EXPECT_FALSE(t->run({.most_steps = 4}));
  t.reset();
  auto ledger = nlohmann::ordered_json::parse(read_file(folder("run").ledger()));
  ledger["steps_planned"] = 90;
  ledger["steps_charged"] = 85;
  const auto text = ledger.dump(2);
  write_file_atomically(folder("run").ledger(), text);
  t = trainer("run", config);
  EXPECT_THROW(t->resume(), PrivacyError);
  EXPECT_EQ(read_file(folder("run").ledger()), text);
}

TEST_F(Identity, ACountBeyondItsPlanIsDamaged) {
  const auto config = small_training();
  trainer("run", config)->begin();
  auto count = read_file(folder("run").charged());
  write_file_atomically(folder("run").charged(), "81" + count.substr(count.find('\n')), FileAccess::owner);
  EXPECT_THROW(Charge(folder("run").charged()), DataError);
}

// Before the first ledger a digest alone says which coefficients a budget was charged for.
TEST_F(Identity, CoefficientsAreThoseThatWereChargedFor) {
  auto config = small_training();
  config.privacy.relation = privacy::Relation::series;
  config.sampling.top_level = privacy::TopLevel::deterministic;
  config.sampling.batch_size.reset();
  config.sampling.batches = 3;
  config.privacy.noise_multiplier = 20.0;
  config.privacy.noise_mechanism = privacy::StrategyKind::file;
  config.privacy.noise_coefficients = "coefficients.json";
  config.privacy.noise_recursion = {privacy::NoiseRecursion::Form::banded, {2.0, 0.75, 0.25}, {}, {}};
  config.training.max_epochs = 4;
  trainer("run", config)->begin();
  std::filesystem::remove(folder("run").ledger());  // killed before it was written
  auto other = config;
  other.privacy.noise_recursion->coefficients[1] = 2.0;
  EXPECT_THROW(trainer("run", other)->resume(), UsageError);
  auto t = trainer("run", config);
  t->resume();
  EXPECT_TRUE(t->run({}));
}

// A program that plans more steps than the one that began the run takes no more than were planned, and charged, then.
TEST_F(Identity, AResumedRunKeepsToItsPlan) {
  const auto config = small_training();
  auto t = trainer("run", config);
  t->begin();
  EXPECT_FALSE(t->run({.most_steps = 4}));
  t.reset();
  auto ledger = nlohmann::ordered_json::parse(read_file(folder("run").ledger()));
  ASSERT_EQ(ledger["steps_planned"], 80);
  ledger["steps_planned"] = 50;
  std::ofstream(folder("run").ledger()) << ledger.dump(2);
  t = trainer("run", config);
  t->resume();
  EXPECT_TRUE(t->run({}));
  EXPECT_EQ(t->step(), 50U);
  EXPECT_EQ(nlohmann::json::parse(read_file(folder("run").ledger()))["steps_charged"], 50);
}

TEST_F(Identity, BestCheckpointsHoldNoKey) {
  auto config = small_training();
  config.privacy.enabled = false;
  config.training.checkpoint = ExportedWeights::best;
  config.training.validate_every = 1;
  auto t = trainer("run", config);
  t->begin();
  EXPECT_FALSE(t->run({.most_steps = 10}));
  EXPECT_TRUE(load_checkpoint(folder("run").last())->key);
  EXPECT_FALSE(load_checkpoint(folder("run").best())->key);
}

// Weights that are not finite are no model: the run does not end as if it had one, and what it charged stays charged.
TEST_F(Identity, WeightsThatAreNotFiniteEndNoRun) {
  const auto config = small_training();
  {
    auto t = trainer("run", config);
    t->begin();
    t->model().parameters().values().fill_(std::numeric_limits<float>::quiet_NaN());
    EXPECT_THROW(t->run({}), Error);
  }
  EXPECT_EQ(ledger_of("run")["state"], "running");
  EXPECT_EQ(ledger_of("run")["steps_taken"], 80U);
  EXPECT_EQ(Charge(folder("run").charged()).steps(), 80U);
  auto again = trainer("run", config);
  again->resume();
  EXPECT_THROW(again->run({}), Error);
}

// A crash between the first files of a run leaves either nothing that is in the way or a run that can be taken up.
TEST_F(Identity, ARunBeginsWholeOrNotAtAll) {
  const auto config = small_training();
  {
    // Before the checkpoints have their name.
    fs::create_directories(folder("early").staging().checkpoints());
    std::ofstream(folder("early").staging().charged()) << "0\n";
    EXPECT_NO_THROW(trainer("early", config)->begin());
    EXPECT_FALSE(fs::exists(folder("early").staging().root));
  }
  trainer("late", config)->begin();
  fs::remove(folder("late").config());
  fs::remove(folder("late").ledger());
  EXPECT_EQ(config_charged_for(folder("late")), config_text(config));
  auto t = trainer("late", config);
  t->resume();
  EXPECT_TRUE(t->run({}));
}

TEST_F(Identity, LedgersAgreeWithTheirTermsAndEditsAreFound) {
  const auto config = small_training();
  finish("run", config);
  const auto ledger = nlohmann::ordered_json::parse(read_file(folder("run").ledger()));
  const auto whole = mechanism::verify(ledger, "ledger");
  EXPECT_TRUE(whole.agrees()) << whole.differences.front();
  EXPECT_GE(whole.stated.upper, whole.epsilon.lower);
  // An understated epsilon with every text and number that follows from it. The first one is within the bracket, and
  // not certified.
  for (const double share : {1.0 + 1e-9, 0.9995, 0.998, 0.9, 0.6}) {
    auto terms = mechanism::read_ledger(ledger, "ledger");
    auto& epsilon = terms.cost->epsilon;
    epsilon.upper = whole.epsilon.lower * share;
    epsilon.lower = std::min(epsilon.lower, epsilon.upper);
    EXPECT_FALSE(mechanism::verify(mechanism::document(terms), "ledger").agrees()) << share;
  }
  const auto expect_difference = [&](const char* pointer, const nlohmann::ordered_json& value) {
    auto edited = ledger;
    edited[nlohmann::ordered_json::json_pointer(pointer)] = value;
    bool refused = false;
    try {
      refused = !mechanism::verify(edited, "ledger").agrees();
    } catch (const DataError&) { refused = true; }
    EXPECT_TRUE(refused) << pointer << " = " << value;
  };
  expect_difference("/epsilon/upper", ledger["epsilon"]["upper"].get<double>() * 0.998);
  expect_difference("/epsilon/upper", ledger["epsilon"]["upper"].get<double>() * 1.1);
  expect_difference("/epsilon/lower", 0.0);
  expect_difference("/delta", 1e-4);
  expect_difference("/noise_multiplier", 1.6);
  expect_difference("/steps_charged", 40);
  expect_difference("/compositions", 40);
  expect_difference("/mechanism/num_sequences", 12);
  expect_difference("/mechanism/shortest_sequence", 100);
  expect_difference("/mechanism/batch_size", 6);
  expect_difference("/mechanism/context_length", 4);
  expect_difference("/mechanism/top_level", "deterministic");
  expect_difference("/mechanism/bottom_level", "poisson");
  expect_difference("/relation/w", 2);
  expect_difference("/relation/kind", "series");
  expect_difference("/theorem", "4.2");
  expect_difference("/theorem", "F.7");
  expect_difference("/statement", "(0.1, 1e-5)-differential privacy");
  expect_difference("/not_covered", nlohmann::ordered_json::array());
  expect_difference("/groups/of/0/delta", 1e-9);
  expect_difference("/attack/advantage", 1e-3);
  expect_difference("/reproducible", true);
  expect_difference("/private", false);
  expect_difference("/format", "tsdp-privacy-1");
  expect_difference("/epsilon", "0.1");
  expect_difference("/steps_taken", -1);
  expect_difference("/more", 1);
}

}  // namespace
}  // namespace tsdp::training
