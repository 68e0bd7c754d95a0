// The audit of the whole trainer: it finds nothing on the healthy one, and what is planted in the claim it is held
// against.
//
// Error rate: confidence 1 − 1e-6 each, so a healthy trainer fails one of these with probability below 1e-6. Keys are
// fixed (training.reproducible), so a pass stays a pass. `surely_found`: uses on each data set with which a tenth less
// noise and a tenth larger sampling rate are found with room to spare (statistics_test.cpp).
#include "audit/trainer_audit.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audit/canary.h"
#include "base/log.h"
#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::audit {
namespace {

constexpr double surely = 1.0 - 1e-6;
constexpr std::uint64_t surely_found = 20'000;

/// One row of the theorem table that training can use, tiny: T = 8 windows a series, 3 of them touched; 5 of 10 series
/// a batch.
struct Row {
  std::string theorem;
  std::string top_level;
  std::string bottom_level;
  std::int64_t lambda = 1;
  double context_noise = 0.0;
  double forecast_noise = 0.0;
  std::int64_t batch_series = 5;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"4.2", "deterministic", "wr"},    {"4.4", "wor", "wr"},
      {"E.1", "deterministic", "wr", 2}, {"E.8", "deterministic", "poisson", 2},
      {"F.1", "wor", "wr", 2},           {"F.2", "wor", "poisson", 4},
      {"4.5", "wor", "wr", 1, 0.5, 0.5}, {"G.1", "wor", "wr", 1, 1.0, 0.5},
  };
  return all;
}

Config config_of(const Row& row) {
  Config c;
  c.dataset.frequency = "1h";
  c.dataset.prediction_length = 1;
  c.model.context_length = 2;
  c.sampling.top_level = named<privacy::TopLevel>(row.top_level, "row");
  c.sampling.bottom_level = named<privacy::BottomLevel>(row.bottom_level, "row");
  c.sampling.subsequences_per_sequence = row.lambda;
  c.sampling.batch_size = row.batch_series * row.lambda;
  c.augmentation.context_noise = row.context_noise;
  c.augmentation.forecast_noise = row.forecast_noise;
  if (row.context_noise > 0.0 || row.forecast_noise > 0.0) c.privacy.v = 0.7;
  c.privacy.noise_multiplier = 1.0;
  c.privacy.clip_norm = 0.1;
  c.privacy.delta = 1e-5;
  c.privacy.target_epsilon = 1000.0;
  c.training.max_epochs = 10;
  c.training.reproducible = true;
  c.training.seed = 5;
  return c;
}

const std::vector<std::int64_t> lengths(10, 8);

AuditOptions options(Mode mode = Mode::canary) {
  AuditOptions out;
  out.mode = mode;
  out.trials = surely_found;
  out.confidence = surely;
  return out;
}

bool says(const Verdict& verdict, const std::string& part) {
  for (const auto& line : verdict.contradictions)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

std::string all(const Verdict& verdict) {
  std::string out;
  for (const auto& line : verdict.contradictions) out += line + "\n";
  return out;
}

class TrainerAudit : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    log::set_level(log::Level::quiet);
    at::set_num_threads(1);
  }
  [[nodiscard]] static const Row& row() { return rows()[GetParam()]; }
};

// What is certified otherwise than it ran: a tenth less noise, and a tenth more sampling.
TEST_P(TrainerAudit, FindsNothingButWhatIsPlanted) {
  const auto config = config_of(row());
  const auto seen = measure(config, lengths, options());
  const auto claim = claim_of(config, lengths, options(), seen);
  ASSERT_EQ(claim.theorem, row().theorem);
  const auto healthy = judge(claim, seen.uses, surely);
  EXPECT_FALSE(healthy.contradicted()) << all(healthy);
  EXPECT_TRUE(healthy.remarks.empty()) << healthy.remarks.front();
  EXPECT_LE(healthy.epsilon.lower, healthy.epsilon.upper);
  EXPECT_GT(healthy.epsilon.lower, 0.8 * healthy.epsilon.upper);
  EXPECT_GT(healthy.noise_multiplier.lower, 0.9);
  EXPECT_LT(healthy.noise_multiplier.upper, 1.1);
  ASSERT_TRUE(healthy.touched.has_value());

  auto quieter = config;
  quieter.privacy.noise_multiplier = 1.0 / 0.9;
  const auto noise = judge(claim_of(quieter, lengths, options(), seen), seen.uses, surely);
  EXPECT_TRUE(says(noise, "noise multiplier: certified")) << all(noise);
  EXPECT_GT(noise.epsilon.lower, noise.epsilon.upper);

  // 11 series in place of 10 (ρ), under deterministic iteration 9 windows in place of 8 (r).
  const auto others =
      row().top_level == "deterministic" ? std::vector<std::int64_t>(10, 9) : std::vector<std::int64_t>(11, 8);
  const auto rate = judge(claim_of(config, others, options(), seen), seen.uses, surely);
  EXPECT_TRUE(says(rate, "the changed windows were drawn in a share")) << all(rate);
}

// The configured forecaster on extreme data: a factor of 2 in the noise, and that the attack sees the change at all. (A
// change in the forecast moves a gradient by up to 1.97 of the 2 that clipping allows, one in the context by a quarter
// of that.)
TEST_P(TrainerAudit, FindsAFactorOfTwoWithTheConfiguredForecaster) {
  auto config = config_of(row());
  config.dataset.prediction_length = 2;
  config.model.context_length = 1;
  auto how = options(Mode::data);
  how.trials = 6'000;
  const auto seen = measure(config, lengths, how);
  EXPECT_EQ(seen.model, "simple_ff");
  const auto claim = claim_of(config, lengths, how, seen);
  const auto healthy = judge(claim, seen.uses, surely);
  EXPECT_FALSE(healthy.contradicted()) << all(healthy);
  EXPECT_GT(healthy.epsilon.lower, 0.5 * healthy.epsilon.upper);
  EXPECT_LE(healthy.direct_epsilon, healthy.direct_upper);
  if (row().context_noise == 0.0) { EXPECT_GT(judge(claim, seen.uses, 0.95).direct_epsilon, 0.02); }
  auto quieter = config;
  quieter.privacy.noise_multiplier = 2.0;
  const auto noise = judge(claim_of(quieter, lengths, how, seen), seen.uses, surely);
  EXPECT_TRUE(says(noise, "noise multiplier: certified")) << noise.noise_multiplier.upper;
  EXPECT_GT(noise.epsilon.lower, noise.epsilon.upper);
}

INSTANTIATE_TEST_SUITE_P(Rows, TrainerAudit, testing::Range<std::size_t>(0, 8), [](const auto& test) {
  auto name = rows()[test.param].theorem;
  name.erase(name.find('.'), 1);
  return "Theorem" + name;
});

/// A way of making batches of whole series, tiny: 10 series of 8 windows, of which one is there or missing.
struct SeriesRow {
  std::string name;
  std::string theorem;
  privacy::TopLevel top_level;
  std::int64_t batch_series = 5;
  privacy::StrategyKind noise = privacy::StrategyKind::identity;
  std::int64_t bands = 1;
  std::int64_t lambda = 1;
  privacy::BottomLevel bottom_level = privacy::BottomLevel::with_replacement;
  std::uint64_t trials = surely_found;
  bool owners = false;  ///< 5 of the 10 have a series more
};

const std::vector<SeriesRow>& series_rows() {
  using privacy::StrategyKind;
  using privacy::TopLevel;
  static const std::vector<SeriesRow> all = {
      {"Fixed", "series.deterministic", TopLevel::deterministic},
      {"Poisson", "series.poisson", TopLevel::poisson},
      {"WithoutReplacement", "series.wor", TopLevel::without_replacement},
      {"WindowsByCoins", "series.poisson", TopLevel::poisson, 5, StrategyKind::identity, 1, 2,
       privacy::BottomLevel::poisson},
      {"CyclicIndependent", "series.cyclic_poisson", TopLevel::cyclic_poisson},
      {"CyclicBands", "series.cyclic_poisson", TopLevel::cyclic_poisson, 2, StrategyKind::bsr, 3, 1,
       privacy::BottomLevel::with_replacement, 6'000},
      {"CyclicBestBands", "series.cyclic_poisson", TopLevel::cyclic_poisson, 2, StrategyKind::band_mf, 2, 1,
       privacy::BottomLevel::with_replacement, 8'000},
      {"Owners", "series.poisson", TopLevel::poisson, 5, StrategyKind::identity, 1, 3,
       privacy::BottomLevel::with_replacement, surely_found, true},
  };
  return all;
}

Config config_of(const SeriesRow& row) {
  auto c = config_of(
      Row{"", tsdp::name(row.top_level), tsdp::name(row.bottom_level), row.lambda, 0.0, 0.0, row.batch_series});
  c.privacy.relation = privacy::Relation::series;
  c.privacy.noise_mechanism = row.noise;
  c.privacy.noise_bands = row.bands;
  return c;
}

/// `count` records of one series; where they are owners, every second one has two.
privacy::SeriesLengths records(const SeriesRow& row, std::int64_t count) {
  if (!row.owners) return {std::vector<std::int64_t>(static_cast<std::size_t>(count), 8)};
  privacy::Owners owners;
  for (std::int64_t owner = 0; owner < count; ++owner) owners.of.push_back(owner);
  for (std::int64_t owner = 1; owner < count; owner += 2) owners.of.push_back(owner);
  return {std::vector<std::int64_t>(owners.of.size(), 8), owners};
}

class AuditOfSeries : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    log::set_level(log::Level::quiet);
    at::set_num_threads(1);
  }
  [[nodiscard]] static const SeriesRow& row() { return series_rows()[GetParam()]; }
};

// As above, for whole series. What a claim has too much of is told: noise, and series among which a batch is drawn.
TEST_P(AuditOfSeries, FindsNothingButWhatIsPlanted) {
  const auto config = config_of(row());
  auto how = options();
  how.trials = row().trials;
  const auto seen = measure(config, records(row(), 10), how);
  EXPECT_NEAR(seen.unit_length, 1.0, 5e-3);
  ASSERT_EQ(seen.uses.first.size(), row().trials);
  ASSERT_EQ(seen.uses.second.size(), row().trials);
  const auto claim = claim_of(config, records(row(), 10), how, seen);
  ASSERT_EQ(claim.theorem, row().theorem);
  const auto healthy = judge(claim, seen.uses, surely);
  EXPECT_FALSE(healthy.contradicted()) << all(healthy);
  EXPECT_TRUE(healthy.remarks.empty()) << healthy.remarks.front();
  EXPECT_LE(healthy.epsilon.lower, healthy.epsilon.upper);
  EXPECT_GT(healthy.epsilon.lower, 0.8 * healthy.epsilon.upper);
  EXPECT_GT(healthy.noise_multiplier.lower, 0.9);
  EXPECT_LT(healthy.noise_multiplier.upper, 1.1);
  EXPECT_LE(healthy.direct_epsilon, healthy.direct_upper);
  ASSERT_TRUE(healthy.touched.has_value());

  auto quieter = config;
  quieter.privacy.noise_multiplier = 1.0 / 0.9;
  const auto noise = judge(claim_of(quieter, records(row(), 10), how, seen), seen.uses, surely);
  EXPECT_TRUE(says(noise, "noise multiplier: certified")) << all(noise);
  EXPECT_GT(noise.epsilon.lower, noise.epsilon.upper);

  if (row().top_level == privacy::TopLevel::deterministic) return;
  const auto rate = judge(claim_of(config, records(row(), 12), how, seen), seen.uses, surely);
  EXPECT_TRUE(says(rate, "the changed windows were drawn in a share")) << all(rate);
}

INSTANTIATE_TEST_SUITE_P(, AuditOfSeries, testing::Range<std::size_t>(0, 8),
                         [](const auto& test) { return series_rows()[test.param].name; });

class TrainerAuditOnce : public testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::quiet);
    at::set_num_threads(1);
  }
  void TearDown() override { at::set_num_threads(1); }
};

TEST_F(TrainerAuditOnce, GoesThroughThreadsChunksAndOtherClipping) {
  const auto row = Row{"4.4", "wor", "wr"};
  for (const std::string kind : {"threads", "memory", "per_layer", "automatic"}) {
    SCOPED_TRACE(kind);
    auto config = config_of(row);
    auto how = options();
    how.trials = kind == "threads" ? 500 : 4'000;  // threads that wait for each other are slow where others work, too
    if (kind == "threads") at::set_num_threads(2);
    if (kind == "memory") config.training.memory_mb = 1;
    if (kind == "per_layer" || kind == "automatic")
      config.privacy.clipping = named<privacy::ClippingKind>(kind, "kind");
    const auto seen = measure(config, lengths, how);
    EXPECT_NEAR(seen.unit_length, 1.0, 1e-4);
    const auto verdict = judge(claim_of(config, lengths, how, seen), seen.uses, surely);
    EXPECT_FALSE(verdict.contradicted()) << all(verdict);
    EXPECT_GT(verdict.epsilon.lower, 0.3 * verdict.epsilon.upper);
    at::set_num_threads(1);
  }
}

// Larger batches are summed in double precision and guarded for it: 300 windows.
TEST_F(TrainerAuditOnce, CountsWithTheGuardOfLargeBatches) {
  auto config = config_of({"4.4", "wor", "wr"});
  config.sampling.batch_size = 300;
  auto how = options();
  how.trials = 2'000;
  const std::vector<std::int64_t> many(600, 8);
  const auto seen = measure(config, many, how);
  EXPECT_LT(seen.unit_length, 0.9995);
  EXPECT_GT(seen.unit_length, 0.998);
  const auto verdict = judge(claim_of(config, many, how, seen), seen.uses, surely);
  EXPECT_FALSE(verdict.contradicted()) << all(verdict);
}

TEST_F(TrainerAuditOnce, CoversUsersWeeksAndBoundedChanges) {
  auto how = options();
  how.trials = 4'000;
  for (const std::string kind : {"user", "event", "bounded"}) {
    SCOPED_TRACE(kind);
    auto config = config_of({"4.4", "wor", "wr"});
    if (kind != "bounded") config.privacy.relation = named<privacy::Relation>(kind, "kind");
    if (kind != "bounded") config.privacy.w = 2;
    if (kind == "bounded") config.privacy.v = 1e-3;
    const auto seen = measure(config, lengths, how);
    const auto verdict = judge(claim_of(config, lengths, how, seen), seen.uses, surely);
    EXPECT_FALSE(verdict.contradicted()) << all(verdict);
    EXPECT_GT(verdict.epsilon.lower, 0.5 * verdict.epsilon.upper);
  }
}

// tsdp.1 is tighter than 4.5 and G.1 on the same scheme, and holds.
TEST_F(TrainerAuditOnce, HoldsAnotherTheoremAgainstTheSameRun) {
  for (const auto& row : {rows()[6], rows()[7]}) {
    const auto config = config_of(row);
    auto how = options();
    const auto seen = measure(config, lengths, how);
    const auto own = claim_of(config, lengths, how, seen);
    how.theorem = "tsdp.1";
    const auto ours = claim_of(config, lengths, how, seen);
    EXPECT_EQ(ours.theorem, "tsdp.1");
    EXPECT_LE(ours.epsilon.upper, own.epsilon.upper * (1.0 + 1e-3));
    const auto verdict = judge(ours, seen.uses, surely);
    EXPECT_FALSE(verdict.contradicted()) << all(verdict);
    how.theorem = "F.7";
    EXPECT_THROW(claim_of(config, lengths, how, seen), PrivacyError);
    // The run's own row, named, is the run's own claim: composed as the run composes.
    auto adaptive = config;
    adaptive.privacy.noise_multiplier = 4.0;
    adaptive.privacy.composition = privacy::StepComposition::adaptive;
    how.theorem.reset();
    const auto unnamed = claim_of(adaptive, lengths, how, seen);
    how.theorem = unnamed.theorem;
    EXPECT_NEAR(claim_of(adaptive, lengths, how, seen).epsilon.upper, unnamed.epsilon.upper,
                1e-3 * unnamed.epsilon.upper);
  }
}

/// Other tests run beside this one and make folders of the same name: a place for temporary files that is its own.
class TrainerAuditInItsOwnPlace : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    if (const auto* place = ::getenv("TMPDIR")) before_ = place;
    ASSERT_EQ(::setenv("TMPDIR", folder_.c_str(), 1), 0);
    log::set_level(log::Level::quiet);
    at::set_num_threads(1);
  }
  void TearDown() override {
    before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR");
    TemporaryFolder::TearDown();
  }

 private:
  std::optional<std::string> before_;
};

TEST_F(TrainerAuditInItsOwnPlace, LeavesNothingBehindAndIsReproducible) {
  auto how = options();
  how.trials = 50;
  const auto config = config_of({"4.4", "wor", "wr"});
  const auto a = measure(config, lengths, how);
  const auto b = measure(config, lengths, how);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  ASSERT_EQ(a.uses.second.size(), 50U);
  EXPECT_EQ(a.uses.second[49].along, b.uses.second[49].along);
  EXPECT_NE(a.uses.first[0].blank, a.uses.second[0].blank);  // keys of their own
  auto free = config;
  free.training.reproducible = false;
  EXPECT_NE(measure(free, lengths, how).uses.first[0].blank, measure(free, lengths, how).uses.first[0].blank);
}

TEST_F(TrainerAuditOnce, PrintsItsClaims) {
  auto how = options();
  how.trials = 1'000;
  const auto config = config_of({"4.4", "wor", "wr"});
  const auto seen = measure(config, lengths, how);
  const auto claim = claim_of(config, lengths, how, seen);
  const auto json = to_json(claim, seen, judge(claim, seen.uses, surely), how);
  for (const auto* key :
       {"epsilon", "confidence", "trials", "theorem", "mode", "share", "delta", "uses", "assumptions"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["trials"], 1000);
  EXPECT_EQ(json["mode"], "canary");
  EXPECT_LE(json["epsilon"]["lower"].get<double>(), json["epsilon"]["upper"].get<double>());
  EXPECT_EQ(json["parameters"], 8);
}

TEST_F(TrainerAuditOnce, RefusesWhatIsNotCertified) {
  auto config = config_of({"4.4", "wor", "wr"});
  config.privacy.enabled = false;
  EXPECT_THROW(measure(config, lengths, options()), UsageError);
  config = config_of({"4.4", "wor", "wr"});
  config.augmentation.forecast_noise = 1.0;  // without v
  EXPECT_THROW(measure(config, lengths, options()), PrivacyError);
  config.augmentation.forecast_noise = 0.0;
  config.privacy.v = 1e-200;
  EXPECT_THROW(measure(config, lengths, options()), UsageError);
}

// By how much a series moves a use follows from the coefficients: certified ones that move it by less than those that
// run are contradicted.
TEST_F(TrainerAuditOnce, TellsCoefficientsThatMoveMore) {
  auto config = config_of(SeriesRow{"", "", privacy::TopLevel::cyclic_poisson, 2, privacy::StrategyKind::file, 3});
  config.privacy.noise_coefficients = "coefficients.json";
  const auto of = [&](std::vector<double> coefficients) {
    auto out = config;
    out.privacy.noise_recursion =
        privacy::NoiseRecursion{privacy::NoiseRecursion::Form::banded, std::move(coefficients)};
    return out;
  };
  auto how = options();
  how.trials = 4'000;
  const auto ran = of({1.0, 0.6, 0.4});
  const auto seen = measure(ran, lengths, how);
  const auto same = judge(claim_of(ran, lengths, how, seen), seen.uses, surely);
  EXPECT_FALSE(same.contradicted()) << all(same);
  EXPECT_TRUE(judge(claim_of(of({1.0, 0.0, 0.1}), lengths, how, seen), seen.uses, surely).contradicted());
}

TEST_F(TrainerAuditOnce, RefusesWholeSeriesWhoseUsesAreNotApart) {
  using privacy::StrategyKind;
  using privacy::TopLevel;
  const auto refusal = [](const SeriesRow& row, Mode mode = Mode::canary) -> std::string {
    try {
      static_cast<void>(measure(config_of(row), lengths, options(mode)));
    } catch (const Error& error) { return error.what(); }
    return "";
  };
  const auto expect = [&](const std::string& found, std::vector<std::string> parts) {
    for (const auto& part : parts) EXPECT_NE(found.find(part), std::string::npos) << part << " in: " << found;
    EXPECT_EQ(found.find('\n'), std::string::npos);
  };
  expect(refusal({"", "", TopLevel::balls_in_bins}),
         {"sampling.top_level: found balls_in_bins", "expected poisson, cyclic_poisson, wor or deterministic"});
  expect(refusal({"", "", TopLevel::shuffled}), {"sampling.top_level: found shuffled", "expected deterministic"});
  expect(refusal({"", "", TopLevel::deterministic, 5, StrategyKind::bsr, 2}),
         {"privacy.noise.mechanism: found bsr with sampling.top_level deterministic", "expected identity"});
  expect(refusal({"", "", TopLevel::balls_in_bins, 5, StrategyKind::blt}),
         {"privacy.noise.mechanism: found blt with sampling.top_level balls_in_bins", "cyclic_poisson"});
  expect(refusal({"", "", TopLevel::poisson}, Mode::data),
         {"--mode: found data with privacy.relation series", "expected canary"});
}

TEST(MarkCode, KeepsNeighboursWithinTheRelation) {
  for (const double v : {0.1, 0.7, 1.0, 3e20, 1e-10}) {
    privacy::SubsamplingScheme::Parameters p;
    p.lengths = {9, 9};
    for (const double noise : {0.0, 0.5}) {
      p.context_noise = p.forecast_noise = noise;
      const privacy::SubsamplingScheme scheme(p);
      const auto code = mark_code(scheme, {privacy::Relation::event, 1, v});
      const Neighbours neighbours{1, {3}};
      for (std::int64_t s = 0; s < 2; ++s) {
        const auto first = marked_values(code, neighbours, s, 9, false);
        const auto second = marked_values(code, neighbours, s, 9, true);
        for (std::size_t i = 0; i < 9; ++i) {
          const bool changed = s == 1 && i == 3;
          if (std::isnan(first[i])) {
            EXPECT_TRUE(std::isnan(second[i]) && !changed);
            continue;
          }
          const double distance = static_cast<double>(second[i]) - static_cast<double>(first[i]);
          EXPECT_EQ(distance > 0.0, changed);
          EXPECT_LE(distance, v);
          if (changed) { EXPECT_GE(distance, (noise > 0.0 ? 1.0 - 1e-6 : 0.5) * v); }
        }
      }
    }
  }
}

// A missing series has no value; the other data set holds the same series, and all others are the same in both.
TEST(MarkCode, AMissingSeriesHasNoValue) {
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths({9, 9, 9, 9}, privacy::Owners{{0, 1, 0, 1}, {}});
  p.record = privacy::Record::series;
  const privacy::SubsamplingScheme scheme(p);
  const auto neighbours = worst_neighbours(scheme, {privacy::Relation::series, 1, {}});
  EXPECT_EQ(neighbours.missing, (std::vector<std::int64_t>{1, 3}));
  const auto code = mark_code(scheme, {privacy::Relation::series, 1, {}});
  for (std::int64_t s = 0; s < 4; ++s) {
    const auto first = marked_values(code, neighbours, s, 9, false);
    const auto second = marked_values(code, neighbours, s, 9, true);
    for (std::size_t i = 0; i < 9; ++i) {
      EXPECT_EQ(std::isnan(first[i]), s % 2 == 1);
      EXPECT_EQ(second[i], s % 2 == 1 ? 3.0F : 0.0F);
    }
  }
}

}  // namespace
}  // namespace tsdp::audit
