#include "tsdp/settings/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

const std::string least_text =
    "dataset:\n"                     // 1
    "  path: data/x.txt.gz\n"        // 2
    "  format: lstnet\n"             // 3
    "  frequency: 1D\n"              // 4
    "  start: \"1990-01-01\"\n"      // 5
    "  prediction_length: 30\n"      // 6
    "  season_length: 7\n"           // 7
    "model: {context_length: 30}\n"  // 8
    "sampling: {batch_size: 4}\n";   // 9

// The example of the documented interface.
const std::string full_text = R"(dataset:
  path: data/exchange_rate.txt.gz
  format: lstnet            # lstnet | tsf | csv
  frequency: 1D             # pandas-style: 10min, 1h, 1D
  start: "1990-01-01"
  prediction_length: 30
  season_length: 7          # of the seasonal-naive baseline and MASE
  split: lstnet             # lstnet (train = first 80 %, test windows right after) | last (test windows at the end)
  test_windows: 5
  validation_length: 150    # held out of training, at its end; default 5 * prediction_length
model:
  name: simple_ff           # simple_ff | deepar | itransformer | dlinear
  context_length: 30
  lags: []                  # deepar only; they count into the accounted context
sampling:
  top_level: wor            # wor | deterministic
  bottom_level: wr          # wr | poisson
  batch_size: 4             # Lambda: expected subsequences a step
  subsequences_per_sequence: 1   # lambda
augmentation: {context_noise: 0.0, forecast_noise: 0.0}
privacy:
  enabled: true
  relation: event           # event | user
  w: 1
  v: null                   # null: unbounded change of a value
  noise_multiplier: 4.0     # or `auto`, calibrated to spend target_epsilon over max_epochs
  clip_norm: 1.0e-4
  target_epsilon: 1.0
  delta: 1.0e-7
optimizer: {name: adam, learning_rate: 1.0e-3, weight_decay: 1.0e-8}
training: {max_epochs: 4000, seed: 1, reproducible: false, validate_every: 50, checkpoint: last}
)";

class ConfigTest : public test::TemporaryFolder {
 protected:
  [[nodiscard]] std::filesystem::path file() const { return folder_ / "config.yaml"; }

  Config read(const std::string& text, const std::vector<std::string>& assignments = {}) const {
    std::ofstream(file(), std::ios::binary) << text;
    return read_config(file(), assignments);
  }

  /// Expects that reading throws a UsageError of one line with all `parts`.
  void expect_refused(const std::string& text, const std::vector<std::string>& parts,
                      const std::vector<std::string>& assignments = {}) const {
    try {
      static_cast<void>(read(text, assignments));
      ADD_FAILURE() << "accepted:\n" << text << (assignments.empty() ? "" : assignments.front());
    } catch (const UsageError& error) {
      const std::string line = error.what();
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      for (const auto& part : parts)
        EXPECT_NE(line.find(part), std::string::npos) << "no '" << part << "' in: " << line;
    }
  }

  void expect_set_refused(const std::string& assignment, const std::vector<std::string>& parts) const {
    expect_refused(least_text, parts, {assignment});
  }
};

/// `least_text` with one part of it replaced.
std::string changed(const std::string& from, const std::string& to) {
  auto text = least_text;
  const auto place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

TEST_F(ConfigTest, ReadsTheExampleOfTheInterface) {
  const auto c = read(full_text);
  EXPECT_EQ(c.dataset.path, "data/exchange_rate.txt.gz");
  EXPECT_EQ(c.dataset.format, "lstnet");
  EXPECT_EQ(c.dataset.frequency, "1D");
  EXPECT_EQ(c.dataset.start, "1990-01-01");
  EXPECT_EQ(c.dataset.prediction_length, 30);
  EXPECT_EQ(c.dataset.season_length, 7);
  EXPECT_EQ(c.dataset.split, "lstnet");
  EXPECT_EQ(c.dataset.test_windows, 5);
  EXPECT_EQ(c.dataset.validation_length, 150);
  EXPECT_EQ(c.model.name, "simple_ff");
  EXPECT_EQ(c.model.context_length, 30);
  EXPECT_TRUE(c.model.lags.empty());
  EXPECT_EQ(c.sampling.top_level, privacy::TopLevel::without_replacement);
  EXPECT_EQ(c.sampling.bottom_level, privacy::BottomLevel::with_replacement);
  EXPECT_EQ(c.sampling.batch_size, 4);
  EXPECT_EQ(c.sampling.subsequences_per_sequence, 1);
  EXPECT_EQ(c.augmentation.context_noise, 0.0);
  EXPECT_EQ(c.augmentation.forecast_noise, 0.0);
  EXPECT_TRUE(c.privacy.enabled);
  EXPECT_EQ(c.privacy.relation, privacy::Relation::event);
  EXPECT_EQ(c.privacy.w, 1);
  EXPECT_FALSE(c.privacy.v.has_value());
  EXPECT_EQ(c.privacy.noise_multiplier, 4.0);
  EXPECT_EQ(c.privacy.clip_norm, 1e-4);
  EXPECT_EQ(c.privacy.target_epsilon, 1.0);
  EXPECT_EQ(c.privacy.delta, 1e-7);
  EXPECT_EQ(c.optimizer.name, "adam");
  EXPECT_EQ(c.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(c.optimizer.weight_decay, 1e-8);
  EXPECT_EQ(c.training.max_epochs, 4000);
  EXPECT_EQ(c.training.seed, 1);
  EXPECT_FALSE(c.training.reproducible);
  EXPECT_EQ(c.training.validate_every, 50);
  EXPECT_EQ(c.training.checkpoint, ExportedWeights::last);
}

TEST_F(ConfigTest, WhatIsNotGivenHasItsDefault) {
  const auto c = read(least_text);
  EXPECT_FALSE(c.dataset.validation_length.has_value());
  EXPECT_FALSE(c.privacy.noise_multiplier.has_value());
  EXPECT_TRUE(c.privacy.enabled);
  EXPECT_EQ(c.sampling.subsequences_per_sequence, 1);
  EXPECT_EQ(c.sampling.top_level, privacy::TopLevel::without_replacement);
}

TEST_F(ConfigTest, TextReadsBackToTheSameConfiguration) {
  Config c;
  c.dataset.path = "a folder/with \"quotes\", #hash: and \\ back\tslash/é.txt";
  c.dataset.format = "csv";
  c.dataset.frequency = "10min";
  c.dataset.start = "2015-01-31 13:00";
  c.dataset.prediction_length = 24;
  c.dataset.season_length = 168;
  c.dataset.split = "last";
  c.dataset.test_windows = 7;
  c.dataset.validation_length = 0;
  c.model.context_length = 96;
  c.sampling.top_level = privacy::TopLevel::deterministic;
  c.sampling.bottom_level = privacy::BottomLevel::poisson;
  c.sampling.batch_size = 256;
  c.sampling.subsequences_per_sequence = 16;
  c.augmentation.context_noise = 1.0 / 3.0;
  c.augmentation.forecast_noise = 0.1;
  c.privacy.enabled = false;
  c.privacy.relation = privacy::Relation::user;
  c.privacy.w = 5;
  c.privacy.v = 2.0 / 3.0;
  c.privacy.noise_multiplier = 3.2166230406798864;
  c.privacy.clip_norm = 1e-12;
  c.privacy.target_epsilon = 0.7;
  c.privacy.delta = 1.0000000000000001e-25;
  c.optimizer.learning_rate = 0.3;
  c.optimizer.weight_decay = 0.0;
  c.optimizer.gradient_norm_bound = 0.1;
  c.optimizer.plateau_looks = 10;
  c.privacy.clipping = privacy::ClippingKind::per_layer;
  c.model.name = "deepar";
  c.model.lags = {1, 2, 24};
  c.model.default_scale = 1e-3;
  c.model.missing_values = "mean";
  c.dataset.item_column = "meter, no";
  c.dataset.value_columns = {"kWh"};
  c.dataset.duplicates = "mean";
  c.dataset.gaps = "missing";
  c.dataset.short_series = "pad";
  c.model.width_factor = 3;
  c.model.width = 12;
  c.model.prior = PriorKind::last_value;
  c.model.start = "runs/other/model.pt";
  c.dataset.synthetic_series = 7;
  c.dataset.synthetic_length = 8;
  c.dataset.synthetic_seed = 9;
  c.model.sampled_forecasts = true;
  c.training.memory_mb = 77;
  c.training.max_epochs = 1;
  c.training.seed = std::numeric_limits<std::int64_t>::max();
  c.training.reproducible = true;
  c.training.validate_every = 3;
  c.training.checkpoint_seconds = 0.25;
  const auto d = read(config_text(c));
  EXPECT_EQ(config_text(d), config_text(c));
  EXPECT_EQ(d.dataset.path, c.dataset.path);
  EXPECT_EQ(d.dataset.start, c.dataset.start);
  EXPECT_EQ(d.dataset.item_column, c.dataset.item_column);
  EXPECT_EQ(d.dataset.time_column, std::nullopt);
  EXPECT_EQ(d.dataset.short_series, "pad");
  EXPECT_EQ(d.dataset.validation_length, c.dataset.validation_length);
  EXPECT_EQ(d.sampling.top_level, privacy::TopLevel::deterministic);
  EXPECT_EQ(d.sampling.bottom_level, privacy::BottomLevel::poisson);
  EXPECT_EQ(d.augmentation.context_noise, c.augmentation.context_noise);
  EXPECT_FALSE(d.privacy.enabled);
  EXPECT_EQ(d.privacy.relation, privacy::Relation::user);
  EXPECT_EQ(d.privacy.v, c.privacy.v);
  EXPECT_EQ(d.privacy.noise_multiplier, c.privacy.noise_multiplier);
  EXPECT_EQ(d.privacy.delta, c.privacy.delta);
  EXPECT_EQ(d.training.seed, c.training.seed);
  EXPECT_TRUE(d.training.reproducible);
  EXPECT_EQ(d.model.lags, c.model.lags);
  EXPECT_EQ(d.optimizer.gradient_norm_bound, 0.1);
  EXPECT_EQ(d.optimizer.plateau_looks, 10);
  EXPECT_EQ(d.privacy.clipping, privacy::ClippingKind::per_layer);
  EXPECT_EQ(d.training.memory_mb, 77);
}

TEST_F(ConfigTest, TextOfUnsetValuesReadsBackAsUnset) {
  const auto c = read(config_text(read(least_text)));
  EXPECT_EQ(config_text(c), config_text(read(least_text)));
  EXPECT_FALSE(c.dataset.validation_length.has_value());
  EXPECT_FALSE(c.privacy.v.has_value());
  EXPECT_FALSE(c.privacy.noise_multiplier.has_value());
}

TEST_F(ConfigTest, AssignmentsStandOverTheFile) {
  const auto c = read(full_text, {"privacy.noise_multiplier=auto", "privacy.v=2.5", "dataset.validation_length=null",
                                  "dataset.path=a=b.txt", "sampling.batch_size=5", "sampling.batch_size=6"});
  EXPECT_FALSE(c.privacy.noise_multiplier.has_value());
  EXPECT_EQ(c.privacy.v, 2.5);
  EXPECT_FALSE(c.dataset.validation_length.has_value());
  EXPECT_EQ(c.dataset.path, "a=b.txt");
  EXPECT_EQ(c.sampling.batch_size, 6);
}

TEST_F(ConfigTest, AssignmentsMayGiveWhatTheFileLacks) {
  EXPECT_EQ(read(changed("sampling: {batch_size: 4}\n", ""), {"sampling.batch_size=9"}).sampling.batch_size, 9);
}

TEST_F(ConfigTest, RefusesUnknownKeysWithLineAndNearest) {
  expect_refused(changed("season_length", "seasonlength"),
                 {"config.yaml:7: ", "'dataset.seasonlength'", "'dataset.season_length'"});
  expect_set_refused("privacy.noise_multiplyer=1",
                     {"--set", "'privacy.noise_multiplyer'", "'privacy.noise_multiplier'"});
}

TEST_F(ConfigTest, RefusesUnknownSectionsWithLineAndNearest) {
  for (const auto* section : {"samplng", "trainng", "datset", "optimiser", "augmentations"})
    expect_refused(least_text + section + ": {}\n", {"config.yaml:10: ", section});
  expect_refused(least_text + "trainng: {}\n", {"'training"});
  expect_refused(least_text + "optimiser: {}\n", {"'optimizer"});
}

TEST_F(ConfigTest, RefusesDuplicates) {
  expect_refused(least_text + "model: {name: simple_ff}\n", {"config.yaml:10: ", "duplicate", "'model'"});
  expect_refused(changed("  season_length: 7\n", "  season_length: 7\n  season_length: 7\n"),
                 {"config.yaml:8: ", "duplicate", "'dataset.season_length'"});
}

TEST_F(ConfigTest, RefusesWrongTypes) {
  expect_refused(changed("season_length: 7", "season_length: seven"),
                 {"config.yaml:7: dataset.season_length: ", "'seven'", "an integer from 1 to 1000000000"});
  expect_refused(changed("season_length: 7", "season_length: 7.0"), {"config.yaml:7: ", "'7.0'", "an integer"});
  expect_refused(changed("season_length: 7", "season_length: \"7\""), {"config.yaml:7: ", "'7'", "an integer"});
  expect_refused(changed("season_length: 7", "season_length:"), {"config.yaml:7: ", "null", "an integer"});
  expect_refused(changed("season_length: 7", "season_length: [7]"), {"config.yaml:7: ", "a list", "an integer"});
  expect_refused(changed("season_length: 7", "season_length: {a: 7}"), {"config.yaml:7: ", "a section", "an integer"});
  expect_refused(changed("path: data/x.txt.gz", "path:"), {"config.yaml:2: dataset.path: ", "null", "text"});
  expect_refused(changed("format: lstnet", "format: LSTNET"), {"config.yaml:3: ", "'LSTNET'", "lstnet, tsf, csv"});
  expect_refused(changed("model: {context_length: 30}", "model: 30"),
                 {"config.yaml:8: model: ", "'30'", "a section of keys"});
  expect_set_refused("privacy.enabled=yes", {"--set privacy.enabled: ", "'yes'", "true or false"});
  expect_set_refused("privacy.delta=small", {"--set privacy.delta: ", "'small'", "a number"});
  expect_set_refused("model.lags=3", {"--set model.lags: ", "'3'", "a list"});
  expect_set_refused("model.lags=['1', 2]", {"--set model.lags: ", "a list, [1, 2]", "an integer from 1"});
  expect_set_refused("model.context_length=\"12\"", {"the quoted text '12'", "an integer"});
}

// What a run writes as config.yaml must name the same file.
TEST_F(ConfigTest, RefusesTextThatIsNotUtf8) {
  expect_refused(changed("data/x", "data/\x8b"),
                 {"config.yaml:2: dataset.path: found 'data/\x8b.txt.gz', which is not UTF-8"});
  expect_set_refused("dataset.path=caf\xe9",
                     {"--set dataset.path: found 'caf\xe9', which is not UTF-8; expected text"});
  EXPECT_EQ(read(least_text, {"dataset.path=caf\xc3\xa9"}).dataset.path, "caf\xc3\xa9");
}

TEST_F(ConfigTest, RefusesValuesOutOfRange) {
  for (const auto* bad : {"privacy.delta=0",
                          "privacy.delta=1",
                          "privacy.delta=-1e-7",
                          "privacy.delta=nan",
                          "privacy.clip_norm=0",
                          "privacy.clip_norm=inf",
                          "privacy.noise_multiplier=0",
                          "privacy.noise_multiplier=-4",
                          "privacy.noise_multiplier=inf",
                          "privacy.target_epsilon=-1",
                          "privacy.w=0",
                          "privacy.v=0",
                          "privacy.v=inf",
                          "sampling.batch_size=0",
                          "sampling.batch_size=99999999999999999999",
                          "model.context_length=0",
                          "dataset.prediction_length=-1",
                          "dataset.validation_length=-1",
                          "training.seed=-1",
                          "training.max_epochs=0",
                          "augmentation.context_noise=-1",
                          "augmentation.forecast_noise=nan",
                          "augmentation.context_noise=inf",
                          "optimizer.learning_rate=0",
                          "optimizer.weight_decay=-1",
                          "optimizer.gradient_norm_bound=0",
                          "optimizer.plateau_looks=-1",
                          "model.width_factor=0",
                          "model.default_scale=-1",
                          "training.memory_mb=0",
                          "privacy.clipping=flatly",
                          "model.name=deep",
                          "model.lags=[0]"}) {
    const std::string text = bad;
    const auto equals = text.find('=');
    const auto value = text.substr(equals + 1);
    expect_set_refused(text, {"--set " + text.substr(0, equals) + ": found ",
                              value[0] == '[' ? "a list" : "'" + value + "'", "expected"});
  }
  expect_refused(changed("prediction_length: 30", "prediction_length: 0"),
                 {"config.yaml:6: dataset.prediction_length: ", "'0'", "an integer from 1 to 1000000"});
  for (const auto* key : {"dataset.prediction_length", "model.context_length"}) {
    const std::string option = key;
    expect_set_refused(option + "=1000000000", {"--set " + option, "'1000000000'", "an integer from 1 to 1000000"});
  }
}

// Every lag is an input of the model at every step: a million of them would plan for hours.
TEST_F(ConfigTest, BoundsListsAndWhatIsInThem) {
  std::string lags = "1";
  for (int lag = 2; lag <= 1000; ++lag) lags.append(",").append(std::to_string(lag));
  EXPECT_EQ(read(least_text, {"model.name=deepar", "model.lags=[" + lags + "]"}).model.lags.size(), 1000U);
  expect_set_refused(
      "model.lags=[" + lags + ",1001]",
      {"--set model.lags: ", "a list of 1001", "a list of at most 1000, each an integer from 1 to 1000000, or auto"});
  expect_set_refused("model.lags=[1000001]", {"--set model.lags: ", "[1000001]", "each an integer from 1 to 1000000"});
}

TEST_F(ConfigTest, AListOfOneNameMayBeThatName) {
  const auto values = [&](const std::string& text) {
    return read(least_text, {"dataset.columns.value=" + text}).dataset.value_columns;
  };
  EXPECT_TRUE(values("null").empty());
  EXPECT_EQ(values("kWh"), std::vector<std::string>{"kWh"});
  EXPECT_EQ(values("[kWh]"), std::vector<std::string>{"kWh"});
  EXPECT_EQ(values("[pulse, blood pressure]"), (std::vector<std::string>{"pulse", "blood pressure"}));
  const auto text = [&](const std::string& set) { return config_text(read(least_text, {set})); };
  EXPECT_NE(text("dataset.columns.value=[kWh]").find("value: \"kWh\"\n"), std::string::npos);
  EXPECT_NE(text("dataset.columns.value=[a, b]").find("value: [\"a\", \"b\"]\n"), std::string::npos);
  for (const std::string wrong : {"\"\"", "[a, a]", "{a: b}"})
    expect_set_refused("dataset.columns.value=" + wrong,
                       {"dataset.columns.value: ", "text, or null, or a list of at most"});
}

TEST_F(ConfigTest, RefusesASecondDocument) {
  const auto lines = std::count(least_text.begin(), least_text.end(), '\n');
  const auto at = [&](std::ptrdiff_t line) { return cat("config.yaml:", line, ": found a second YAML document"); };
  expect_refused(least_text + "---\nmodel: {context_length: 9}\n", {at(lines + 1)});
  expect_refused("---\n" + least_text + "--- # another\n", {at(lines + 2)});
  expect_refused(least_text + "...\n# a word\n\nmodel: {context_length: 9}\n", {at(lines + 4)});
  expect_refused(least_text + "\n---\r\n", {at(lines + 2)});
  expect_set_refused("privacy.delta=1e-7\n---\n1e-3", {"--set privacy.delta: ", "a second YAML document"});
  for (const auto& text : {"---\n" + least_text, "%YAML 1.2\n# a word\n---\n" + least_text + "...\n# the end\n",
                           least_text + "# ---\n", "\xEF\xBB\xBF" + least_text})
    EXPECT_EQ(read(text).model.context_length, 30) << text;
}

TEST_F(ConfigTest, RefusesFilesThatAreNoConfigurationBySize) {
  expect_refused(least_text + "# " + std::string(5 << 20, 'x') + "\n",
                 {"config.yaml: found 52", " bytes; expected", "4194304"});
  expect_refused(std::string(100'000, '['), {"config.yaml:1:", "not YAML"});
  expect_refused(std::string(1000, 'k') + ": 1\n", {"config.yaml:1: unknown key 'kkk"});
}

TEST_F(ConfigTest, RefusesFilesThatLackARequiredKey) {
  expect_refused(changed("  season_length: 7\n", ""),
                 {"config.yaml: ", "dataset.season_length", "not given", "an integer"});
  expect_refused(changed("model: {context_length: 30}\n", ""), {"config.yaml: ", "model.context_length", "not given"});
}

TEST_F(ConfigTest, SettingsMayBeLeftToTheProgram) {
  const auto c = read(least_text, {"model.context_length=auto", "sampling.batch_size=auto", "training.max_epochs=auto",
                                   "optimizer.learning_rate=auto", "privacy.noise_multiplier=auto", "model.width=auto",
                                   "model.prior=auto", "model.start=auto"});
  EXPECT_FALSE(c.model.context_length);
  EXPECT_TRUE(c.sampling.auto_batch_size);
  EXPECT_FALSE(c.sampling.batch_size);
  EXPECT_FALSE(c.training.max_epochs);
  EXPECT_FALSE(c.optimizer.learning_rate);
  EXPECT_FALSE(c.privacy.noise_multiplier);
  EXPECT_FALSE(c.model.width);
  EXPECT_FALSE(c.model.prior);
  EXPECT_EQ(c.model.start, "auto");
  EXPECT_EQ(config_text(read(config_text(c))), config_text(c));
  expect_set_refused("sampling.batch_size=null",
                     {"sampling.batch_size: not given", "an integer from 1 to 1000000000, or auto"});
  expect_set_refused("sampling.batch_size=some",
                     {"--set sampling.batch_size: found 'some'", "an integer from 1 to 1000000000, auto or null"});
  expect_set_refused("training.max_epochs=none",
                     {"--set training.max_epochs: ", "'none'", "an integer from 1 to 1000000000, or auto"});
  expect_set_refused("training.max_epochs=", {"--set training.max_epochs: ", "null", "or auto"});
  expect_set_refused("optimizer.learning_rate=fast", {"--set optimizer.learning_rate: ", "'fast'", "or auto"});
}

// Noise grows with the parameters, so a model that starts as its prior is narrower.
TEST_F(ConfigTest, WidthsFollowThePrior) {
  const auto width = [&](const std::vector<std::string>& set) { return width_of(read(least_text, set)); };
  EXPECT_EQ(width({"model.name=dlinear"}), 0);
  EXPECT_EQ(width({"model.name=dlinear", "model.prior=last_value"}), 4);
  EXPECT_EQ(width({"model.name=simple_ff", "model.prior=auto"}), 16);
  EXPECT_EQ(width({"model.name=dlinear", "model.prior=last_value", "model.width_factor=2"}), 0);
  EXPECT_EQ(width({"model.name=dlinear", "model.width=7"}), 7);
}

// By season and step alone; judged by 20 windows, or by as many as 20,000 values hold.
TEST_F(ConfigTest, CandidatesFollowTheSeason) {
  const auto config = read(least_text, {"model.prior=seasonal_naive"});
  ASSERT_TRUE(config.model.auto_candidates);
  const auto daily = mixture_of(config);
  EXPECT_EQ(daily.windows, 20);
  EXPECT_EQ(daily.stride, 30);
  EXPECT_EQ(daily.members.size(), 10U);
  EXPECT_EQ(daily.members[0], (Mixture::Member{Candidate::start, 1, 1}));
  EXPECT_EQ(daily.members[1], (Mixture::Member{Candidate::seasonal_quantiles, 7, 2}));
  EXPECT_EQ(daily.past_length(30, 30), 7 * (28 + 6 + 5) + 20 * 30);
  EXPECT_TRUE(mixture_of(read(least_text)).members.empty()) << "as in GluonTS, without a prior";
  EXPECT_TRUE(mixture_of(read(least_text, {"model.prior=seasonal_naive", "model.candidates=[]"})).members.empty());
  const auto chosen = mixture_of(read(least_text, {"model.candidates=[last_value_bands]"}));
  EXPECT_EQ(chosen.members, (std::vector<Mixture::Member>{{Candidate::last_value_bands, 1, 100}}));
  const auto hourly =
      mixture_of(read(least_text, {"model.prior=last_value", "dataset.frequency=1h", "dataset.season_length=24"}));
  EXPECT_TRUE(std::find(hourly.members.begin(), hourly.members.end(),
                        Mixture::Member{Candidate::seasonal_quantiles, 168, 8}) != hourly.members.end())
      << "the same hour of the week";
  // Those that read covariates, where there are some, and no more than memory holds.
  auto told = read(least_text, {"model.prior=seasonal_naive", "dataset.covariates.file=weather.csv"});
  const auto moved = [](const Mixture& mixture) { return mixture.has(Candidate::covariate_quantiles); };
  EXPECT_FALSE(moved(daily) || moved(mixture_of(told))) << "which they are is not known yet";
  EXPECT_EQ(mixture_of(told).covariates, 0);
  told.dataset.covariate_columns.assign(16, "x");
  EXPECT_TRUE(moved(mixture_of(told)));
  EXPECT_EQ(mixture_of(told).covariates, 16);
  told.dataset.covariates_change = false;
  EXPECT_FALSE(moved(mixture_of(told))) << "what is the same at every step moves nothing";
  told.dataset.covariates_change = true;
  told.dataset.covariate_columns.emplace_back("y");
  EXPECT_FALSE(moved(mixture_of(told)));
  told.model.auto_candidates = false;
  told.model.candidates = {"covariate_quantiles"};
  EXPECT_EQ(mixture_of(told).covariates, 17) << "where they are asked for";
  EXPECT_TRUE(mixture_of(read(least_text, {"model.candidates=[covariate_quantiles]"})).empty())
      << "left out without covariates, as other candidates are without a season";
  // A configuration that no file was read for may state no season.
  Config none;
  none.dataset.prediction_length = 3;
  none.dataset.frequency = "1h";
  none.model.prior = PriorKind::last_value;
  for (const auto& member : mixture_of(none).members) EXPECT_EQ(member.season, 1);
  // A season that no past holds many of.
  const auto long_season =
      mixture_of(read(least_text, {"model.prior=last_value", "dataset.frequency=1h", "dataset.season_length=8760"}));
  for (const auto& member : long_season.members) EXPECT_LE(member.season * member.read(30), 20'000);
  EXPECT_EQ(long_season.windows, 2);
}

TEST_F(ConfigTest, RefusesBrokenYaml) {
  expect_refused(changed("model: {context_length: 30}", "model: {context_length: 30"), {"config.yaml:", "YAML"});
  expect_refused(changed("  season_length", "\tseason_length"), {"config.yaml:7:", "YAML"});
  expect_set_refused("model.lags=[1", {"--set", "model.lags=[1", "YAML"});
}

TEST_F(ConfigTest, RefusesFilesThatAreNoSections) {
  for (const auto* text : {"", "# nothing\n", "- a\n- b\n", "word\n"})
    expect_refused(text, {"config.yaml: ", "expected sections of keys"});
}

TEST_F(ConfigTest, RefusesAssignmentsThatAreNone) {
  expect_set_refused("privacy.delta", {"--set privacy.delta", "key.path=value"});
  expect_set_refused("=1", {"--set", "''"});
  expect_set_refused("delta=1e-5", {"--set", "'delta'", "nearest known key"});
}

TEST_F(ConfigTest, AutomaticLagsFollowTheSeason) {
  using Lags = std::vector<std::int64_t>;
  const auto lags = [&](int season) {
    return read(least_text, {"model.name=deepar", "model.lags=auto", "dataset.season_length=" + std::to_string(season)})
        .model.lags;
  };
  EXPECT_EQ(lags(24), (Lags{1,  2,  3,  4,  5,  6,   7,   23,  24,  25,  47,  48,  49,  71,
                            72, 73, 95, 96, 97, 119, 120, 121, 143, 144, 145, 167, 168, 169}));
  EXPECT_EQ(lags(12), (Lags{1, 2, 3, 4, 5, 6, 7, 11, 12, 13}));
  EXPECT_EQ(lags(7), (Lags{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(lags(2), (Lags{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(lags(1), (Lags{1, 2, 3, 4, 5, 6, 7}));
  // A run's configuration says what was read.
  EXPECT_NE(config_text(read(least_text, {"model.name=deepar", "model.lags=auto", "dataset.season_length=2"}))
                .find("lags: [1, 2, 3, 4, 5, 6, 7]"),
            std::string::npos);
  // Other models read none; so a sweep may set it for all.
  EXPECT_TRUE(read(least_text, {"model.lags=auto"}).model.lags.empty());
  EXPECT_EQ(read(least_text, {"model.lags=auto", "model.lags=[3]", "model.name=deepar"}).model.lags, (Lags{3}));
  EXPECT_TRUE(read(least_text, {"model.lags=auto", "model.name=deepar"}).model.chosen_lags);
  EXPECT_FALSE(read(least_text, {"model.lags=auto", "model.lags=[3]", "model.name=deepar"}).model.chosen_lags);
}

TEST_F(ConfigTest, RefusesValuesThatContradictEachOther) {
  expect_set_refused("sampling.subsequences_per_sequence=5",
                     {"config.yaml: ", "sampling.subsequences_per_sequence", "5", "at most sampling.batch_size (4)"});
  expect_set_refused("dataset.start=null", {"config.yaml: ", "dataset.start", "lstnet"});
  expect_set_refused("model.lags=[1, 2]", {"config.yaml: ", "model.lags", "simple_ff"});
  expect_set_refused("model.missing_values=median", {"model.missing_values", "found 'median'", "mean, zero"});
  expect_set_refused("dataset.short_series=cut", {"dataset.short_series", "found 'cut'", "error, drop, pad"});
  expect_set_refused("model.name=deepar", {"config.yaml: ", "model.lags: not given", "deepar", "[1, 2, 3"});
  expect_set_refused("optimizer.gradient_norm_bound=10",
                     {"config.yaml: ", "optimizer.gradient_norm_bound", "10", "privacy.clip_norm", "expected null"});
  expect_set_refused("optimizer.plateau_looks=10",
                     {"config.yaml: ", "optimizer.plateau_looks", "10", "training loss", "expected null"});
  try {
    static_cast<void>(read(least_text, {"training.checkpoint=best"}));
    ADD_FAILURE() << "a private run chose weights by their losses";
  } catch (const PrivacyError& error) {
    EXPECT_NE(std::string(error.what()).find("training.checkpoint: found best"), std::string::npos) << error.what();
  }
  const auto expect_one_variable = [&](const std::vector<std::string>& settings, const std::string& key) {
    auto all = settings;
    all.emplace_back("dataset.columns.value=[a, b]");
    expect_refused(least_text, {"config.yaml: ", key, "not implemented"}, all);
  };
  expect_one_variable({"privacy.relation=series", "dataset.owner.column=home"}, "dataset.owner: found");
  expect_one_variable({"privacy.v=1"}, "privacy.v: found");
  expect_one_variable({"dataset.format=synthetic", "dataset.path=hourly", "dataset.start=null"},
                      "dataset.format: found synthetic");
  expect_one_variable({"dataset.path=data/{rank}.txt"}, "dataset.columns.value: found");
  const auto expect_no_mixture = [&](const std::vector<std::string>& settings, const std::string& part) {
    auto all = settings;
    all.emplace_back("training.trainable=mixture");
    expect_refused(least_text, {"config.yaml: ", "training.trainable: found mixture with ", part}, all);
  };
  expect_no_mixture({"model.name=deepar", "model.lags=[1, 2]"}, "whose forecasts are samples");
  expect_no_mixture({"model.sampled_forecasts=true"}, "whose forecasts are samples");
  expect_no_mixture({"model.candidates=[]"}, "no model.candidates");
  expect_no_mixture({"model.candidates=[seasonal_quantiles, chronos.jsonl]"}, "forecasts of other programs");
  expect_no_mixture({"dataset.path=data/{rank}.txt"}, "expected one file");
  // Without privacy there is the training loss to choose by, and a bound on the whole gradient.
  EXPECT_EQ(read(least_text, {"training.checkpoint=best", "dataset.validation_length=0", "privacy.enabled=false",
                              "optimizer.gradient_norm_bound=10"})
                .optimizer.gradient_norm_bound,
            10.0);
}

TEST_F(ConfigTest, AFileThatCannotBeReadIsAUsageError) {
  try {
    static_cast<void>(read_config(file()));
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(file().string()), std::string::npos) << error.what();
  }
}

TEST_F(ConfigTest, WhatIsNoFileIsNamedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("circle", (folder_ / "circle").c_str()), 0);
  for (const auto& [name, reason] :
       {std::pair{"fifo", "Is a FIFO"}, std::pair{"circle", "Too many levels of symbolic links"},
        std::pair{"", "Is a directory"}}) {
    const auto place = folder_ / name;
    for (const auto& look : std::vector<std::function<void()>>{
             [&] { static_cast<void>(find_config_file(place)); }, [&] { static_cast<void>(read_config(place)); },
             [&] { static_cast<void>(find_data_file(place.string(), file())); }}) {
      try {
        look();
        ADD_FAILURE() << place << " was taken for a file";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
      }
    }
  }
}

TEST_F(ConfigTest, FindsDataFromTheConfigurationsFolder) {
  std::filesystem::create_directories(file().parent_path() / "sub");
  const auto data = file().parent_path() / "sub" / "only_here.txt";
  std::ofstream(data) << "1\n";
  EXPECT_EQ(find_data_file("sub/only_here.txt", file()), data);
  EXPECT_EQ(find_data_file(data.string(), "elsewhere/config.yaml"), data);
  try {
    static_cast<void>(find_data_file("sub/absent.txt", file()));
    ADD_FAILURE();
  } catch (const DataError& error) {
    const std::string line = error.what();
    EXPECT_NE(line.find("'sub/absent.txt'"), std::string::npos) << line;
    EXPECT_NE(line.find((file().parent_path() / "sub/absent.txt").string()), std::string::npos) << line;
  }
}

TEST_F(ConfigTest, FindsNoConfigurationThatIsNotThere) {
  try {
    static_cast<void>(find_config_file("absent_for_sure.yaml"));
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("absent_for_sure.yaml"), std::string::npos) << error.what();
  }
}

TEST_F(ConfigTest, FindsRelativeNamesInTheFoldersOfTheProject) {
  const auto configs = std::filesystem::path(TSDP_SOURCE_DIR) / "configs";
  EXPECT_EQ(find_config_file("traffic.yaml"), configs / "traffic.yaml");
  EXPECT_EQ(find_config_file("paper/table2.yaml"), configs / "paper" / "table2.yaml");
  EXPECT_EQ(find_config_file("table2.yaml", {"configs/sweeps", "configs/paper"}), configs / "paper" / "table2.yaml");
  EXPECT_THROW(static_cast<void>(find_config_file("table2.yaml")), UsageError);
  EXPECT_THROW(static_cast<void>(find_config_file("/paper/table2.yaml")), UsageError);
}

// The configuration of an earlier version's run holds it.
TEST_F(ConfigTest, AnOptionThatIsGoneIsReadWhereItDidNothing) {
  EXPECT_EQ(config_text(read(least_text + "privacy: {choice_share: 0}\n")), config_text(read(least_text)));
  EXPECT_NO_THROW(read(least_text, {"privacy.choice_share=0"}));
  for (const auto* value : {"0.05", "[0]", "null"})
    expect_set_refused(std::string("privacy.choice_share=") + value,
                       {"--set privacy.choice_share: found", "no private choice"});
  expect_refused(least_text + "privacy: {choice_share: 0.1}\n",
                 {"config.yaml:10: privacy.choice_share: found", "no private choice"});
}

TEST_F(ConfigTest, ChecksASettingAlone) {
  EXPECT_NO_THROW(check_setting("here: ", "model.name", "deepar"));  // that it needs lags is not its own affair
  EXPECT_NO_THROW(check_setting("here: ", "model.lags", "[1, 24]"));
  const auto refusal = [](const std::string& key, const std::string& value) -> std::string {
    try {
      check_setting("here: ", key, value);
    } catch (const UsageError& error) { return error.what(); }
    return "not refused";
  };
  EXPECT_EQ(refusal("privacy.ww", "1"), "here: unknown key 'privacy.ww'; the nearest known key is 'privacy.w'");
  EXPECT_EQ(refusal("privacy.w", "0"), "here: privacy.w: found '0'; expected an integer from 1 to 1000000000");
  EXPECT_EQ(refusal("model.lags", "[1").rfind("here: model.lags=[1: not YAML: ", 0), 0U);
}

TEST_F(ConfigTest, ShippedConfigurationsAreRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TSDP_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    EXPECT_NO_THROW(static_cast<void>(read_config(entry.path()))) << entry.path();
  }
  EXPECT_GT(count, 0);
}

// Not shipped are the benchmarks and what a command makes: a message says how to come by each, and what can be had
// without.
TEST_F(ConfigTest, AMissingDataFileSaysWhereItComesFrom) {
  const auto configs = std::filesystem::path(TSDP_SOURCE_DIR) / "configs";
  const auto refusal = [&](const std::string& path) -> std::string {
    try {
      static_cast<void>(find_data_file(path, configs / "some.yaml"));
    } catch (const DataError& error) { return error.what(); }
    return "found";
  };
  struct Case {
    const char* path;
    std::vector<std::string> parts;
  };
  // The project that the program finds around itself: a copy of the sources may lie within it
  // (scripts/planted_errors.sh).
  const auto script = (project_root() / "scripts/fetch_data.sh").string();
  const auto data = (project_root() / "data").string();
  const std::string look_alike = "--config lookalike_traffic.yaml trains on made data";
  for (const auto& [path, parts] : std::vector<Case>{
           {"none/traffic.txt.gz",
            {"get it: " + script +
                 " traffic, or put traffic/traffic.txt.gz of github.com/laiguokun/multivariate-time-series-data into " +
                 data,
             look_alike}},
           {"none/electricity.txt.gz",
            {script + " electricity,", "electricity/electricity.txt.gz of github.com/", look_alike}},
           {"none/solar_10_minutes_dataset.tsf",
            {script + " solar_10_minutes,", "solar_10_minutes_dataset.zip, zenodo.org/records/4656144", look_alike}},
           {"none/lookalike_traffic.txt.gz",
            {"make it: tsdp-data generate traffic-like --series 862 --length 17544 --seed 11 --output " + data +
             "/lookalike_traffic.txt.gz"}},
           {"none/lookalike_10k.txt.gz",
            {"make it: tsdp-data generate traffic-like --series 10000 --length 400 --seed 5 --output "}},
           {"none/gefcom2012_load.txt.gz",
            {"its terms are unknown", "put data/gefcom2012_load.txt.gz of them into " + data,
             "tsdp-data generate hourly --series 20 --length 39414 --seed 1 --output " + data +
                 "/gefcom2012_load.txt.gz"}},
           {"none/m4_hourly.tsf.gz", {"its terms are unknown", "made.txt.gz " + data + "/m4_hourly.tsf.gz"}},
           {"none/mine.csv", {"looked for "}}}) {
    const auto line = refusal(path);
    EXPECT_NE(line.find("dataset.path: no file '" + std::string(path) + "'"), std::string::npos) << line;
    EXPECT_NE(line.find("--set dataset.path=FILE takes another file"), std::string::npos) << line;
    for (const auto& part : parts) EXPECT_NE(line.find(part), std::string::npos) << "no '" << part << "' in: " << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
  // What the message offers is what the script and the configurations say.
  const auto text_of = [](const std::filesystem::path& file) {
    std::ifstream in(file);
    return std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  };
  EXPECT_NE(text_of(script).find("traffic | electricity | solar_10_minutes"), std::string::npos);
  for (const auto* name : {"lookalike_traffic", "lookalike_10k"}) {
    const auto line = refusal(std::string("none/") + name + ".txt.gz");
    const auto from = line.find("tsdp-data generate"), to = line.find(" --output ");
    ASSERT_NE(from, std::string::npos);
    EXPECT_NE(text_of(configs / (std::string(name) + ".yaml")).find(line.substr(from, to - from)), std::string::npos)
        << line;
  }
}

// The paper's benchmarks come twice: with the settings that are recommended, which spend the target, and with the
// paper's.
TEST_F(ConfigTest, BenchmarksHaveTheRecommendedSettingsAndThePapers) {
  const auto configs = std::filesystem::path(TSDP_SOURCE_DIR) / "configs";
  struct Paper {
    const char* name;
    std::int64_t context, batch, epochs;
    double noise;
  };
  for (const auto& p : {Paper{"traffic.yaml", 96, 256, 4000, 4.0}, Paper{"electricity.yaml", 24, 128, 8000, 2.0},
                        Paper{"solar_10_minutes.yaml", 240, 128, 16000, 4.0}}) {
    SCOPED_TRACE(p.name);
    const auto good = read_config(configs / p.name);
    EXPECT_EQ(good.privacy.noise_multiplier, std::nullopt);  // auto: spends the target
    EXPECT_EQ(good.training.max_epochs, std::nullopt);
    EXPECT_EQ(good.model.start, "auto");
    EXPECT_EQ(good.model.prior, PriorKind::seasonal_naive);
    const auto paper = read_config(configs / "paper" / p.name);
    EXPECT_EQ(paper.model.context_length, p.context);
    EXPECT_EQ(paper.sampling.batch_size, p.batch);
    EXPECT_EQ(paper.training.max_epochs, p.epochs);
    EXPECT_EQ(paper.privacy.noise_multiplier, p.noise);
    EXPECT_EQ(paper.model.prior, PriorKind::none);
    EXPECT_EQ(paper.model.missing_values, "zero");
    EXPECT_EQ(paper.privacy.composition, privacy::StepComposition::symmetrised);
    EXPECT_EQ(good.dataset.path, paper.dataset.path);
    EXPECT_EQ(good.dataset.test_windows, paper.dataset.test_windows);
  }
}

TEST_F(ConfigTest, ReferencePageIsTheTable) {
  const auto page = std::filesystem::path(TSDP_SOURCE_DIR) / "docs" / "options.md";
  std::ifstream in(page, std::ios::binary);
  ASSERT_TRUE(in.good()) << page << " is not there; make it with: tsdp-train --help-options markdown > docs/options.md";
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_EQ(text, options_reference())
      << page << " is out of date; make it with: tsdp-train --help-options markdown > docs/options.md";
}

TEST_F(ConfigTest, HelpNamesEveryKey) {
  const auto help = options_help();
  std::string section;
  std::ofstream(file()) << config_text(read(least_text));
  std::ifstream in(file());
  int keys = 0;
  for (std::string line; std::getline(in, line);) {
    const auto name = line.substr(0, line.find(':'));
    if (name.rfind("  ", 0) != 0) {
      section = name;
      continue;
    }
    ++keys;
    EXPECT_NE(help.find(section + "." + name.substr(2) + " "), std::string::npos) << line;
  }
  EXPECT_GT(keys, 30);
}

}  // namespace
}  // namespace tsdp
