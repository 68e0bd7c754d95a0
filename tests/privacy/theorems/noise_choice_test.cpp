#include "privacy/theorems/noise_choice.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"

namespace tsdp::privacy {
namespace {

NoiseTarget target_of(TopLevel sampler, std::int64_t bins, std::int64_t epochs, double epsilon) {
  return {{sampler, bins}, epochs, epsilon, 1e-5};
}

// Against all kinds one by one.
TEST(LeastTotalError, IsTheLeastOfAllKinds) {
  for (const auto& target :
       {target_of(TopLevel::balls_in_bins, 6, 3, 2.0), target_of(TopLevel::deterministic, 6, 5, 1.0)}) {
    SCOPED_TRACE(std::to_string(target.law.batches) + " bins, epsilon " + std::to_string(target.epsilon));
    double least = std::numeric_limits<double>::infinity();
    StrategyKind best = StrategyKind::file;
    for (const auto kind : searched_kinds()) {
      const auto strategy =
          std::make_shared<const Strategy>(planned_strategy({kind, 4, 2}, target.law.batches, target.epochs));
      const double sigma = least_noise(target, strategy, 1e-3);
      const double total = sigma * sigma * strategy->mean_error();
      if (total < least) {
        least = total;
        best = kind;
      }
    }
    const auto found = least_total_error(target, {StrategyKind::identity, 4, 2}, 1e-3);
    // What is within the tolerance of the best may be taken for it.
    EXPECT_LE(found.total_error, least * 1.005) << name(found.strategy->kind()) << " for " << name(best);
    EXPECT_GE(found.total_error, least * 0.995);
    EXPECT_NEAR(found.total_error, found.noise_multiplier * found.noise_multiplier * found.strategy->mean_error(),
                1e-9 * found.total_error);
  }
}

TEST(LeastTotalError, IsIndependentNoiseWhereNothingElseIsCovered) {
  for (const auto sampler : {TopLevel::poisson, TopLevel::without_replacement}) {
    const auto found = least_total_error(target_of(sampler, 10, 4, 2.0), {});
    EXPECT_EQ(found.strategy->kind(), StrategyKind::identity);
    EXPECT_GT(found.noise_multiplier, 0.1);
  }
  for (const auto reshuffle : {Reshuffle::once, Reshuffle::every_epoch}) {
    auto shuffled = target_of(TopLevel::shuffled, 10, 4, 2.0);
    shuffled.law.reshuffle = reshuffle;
    EXPECT_NE(least_total_error(shuffled, {}).strategy->kind(), StrategyKind::identity);
  }
}

// Adaptive where that is covered and worth its time; the edges of the range of noise belong to it.
TEST(ChosenComposition, FollowsRowAndNoise) {
  const auto row = [](double sigma, TopLevel top_level, std::int64_t windows) {
    SubsamplingScheme::Parameters p;
    p.lengths = SeriesLengths::equal(20, 400);
    p.context_length = 24;
    p.forecast_length = 12;
    p.batch_size = 8;
    p.subsequences_per_sequence = windows;
    p.top_level = top_level;
    return apply_theorem(SubsamplingScheme(p), {Relation::event, 1, std::nullopt}, sigma, std::nullopt);
  };
  for (const auto top_level :
       {TopLevel::without_replacement, TopLevel::poisson, TopLevel::shuffled, TopLevel::deterministic}) {
    for (const double sigma : {3.0, 6.0, 12.0})
      EXPECT_EQ(chosen_composition(row(sigma, top_level, 1)), StepComposition::adaptive) << sigma;
    for (const double sigma : {1.0, 2.99, 12.01, 100.0})
      EXPECT_EQ(chosen_composition(row(sigma, top_level, 1)), StepComposition::symmetrised) << sigma;
    EXPECT_EQ(chosen_composition(row(6.0, top_level, 2)), StepComposition::symmetrised);
  }
  // Every window touches the value.
  SubsamplingScheme::Parameters p;
  p.lengths = SeriesLengths::equal(1, 40);
  p.context_length = 60;
  p.forecast_length = 12;
  p.batch_size = 1;
  const auto touched = apply_theorem(SubsamplingScheme(p), {Relation::event, 30, std::nullopt}, 6.0, std::nullopt);
  EXPECT_EQ(chosen_composition(touched), StepComposition::symmetrised);
}

// Of a noise that is searched for, too, the one that the symmetrised composition needs decides.
TEST(ChosenComposition, FollowsTheNoiseThatTheTargetNeeds) {
  const auto theorem_at = [](double sigma) {
    SubsamplingScheme::Parameters p;
    p.lengths = SeriesLengths::equal(20, 400);
    p.context_length = 24;
    p.forecast_length = 12;
    p.batch_size = 8;
    return apply_theorem(SubsamplingScheme(p), {Relation::event, 1, std::nullopt}, sigma, std::nullopt);
  };
  std::set<StepComposition> seen;
  for (const double epsilon : {0.1, 0.5, 1.0, 2.0, 4.0, 8.0}) {
    const PrivacyTarget target{epsilon, 1e-5, 1000};
    const double needed = least_noise(target, theorem_at);
    const auto chosen = chosen_composition(target, theorem_at);
    EXPECT_EQ(chosen == StepComposition::adaptive, needed >= 3.5 && needed <= 12.0) << epsilon << " needs " << needed;
    seen.insert(chosen);
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST(CoefficientsFile, IsAColumnOrAnInverse) {
  const auto folder = std::filesystem::temp_directory_path() / "tsdp_coefficients_test";
  std::filesystem::create_directories(folder);
  const auto file = folder / "c.json";
  write_file_atomically(file, "[2, 0.5, 0.25]");
  EXPECT_EQ(read_coefficients(file), (NoiseRecursion{NoiseRecursion::Form::banded, {2.0, 0.5, 0.25}, {}, {}}));
  write_file_atomically(file, "{\"inverse\": [1, -0.5]}");
  const auto inverse = read_coefficients(file);
  EXPECT_EQ(inverse, (NoiseRecursion{NoiseRecursion::Form::banded_inverse, {1.0, -0.5}, {}, {}}));
  write_file_atomically(file, coefficients_text(inverse));
  EXPECT_EQ(read_coefficients(file), inverse);
  const auto strategy = planned_strategy({StrategyKind::file, 4, 2, inverse}, 3, 1);
  EXPECT_EQ(strategy.column(), (std::vector<double>{1.0, 0.5, 0.25}));
  EXPECT_THROW(static_cast<void>(planned_strategy({StrategyKind::file}, 3, 1)), UsageError);
  for (const char* text :
       {"[]", "[0, 1]", "[-1]", "[1, \"a\"]", "{\"inverse\": [1], \"more\": 1}", "3", "[1e999]", "not JSON"}) {
    SCOPED_TRACE(text);
    write_file_atomically(file, text);
    try {
      static_cast<void>(read_coefficients(file));
      FAIL() << "taken";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(static_cast<void>(read_coefficients(folder / "absent.json")), DataError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tsdp::privacy
