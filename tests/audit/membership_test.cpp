// The attack on released models: its test on made losses, and the whole of it on runs of a few steps.
#include "audit/membership.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "../training/training_fixture.h"
#include "audit/trainer_audit.h"
#include "tsdp/base/error.h"

namespace tsdp::audit {
namespace {

/// Normal losses of `count` models around `mean`, with deviation 1.
std::vector<double> losses_around(double mean, std::size_t count, std::uint64_t seed) {
  std::vector<double> out(count);
  RandomStream(SecretKey::from_seed(seed), "losses", 0).normals(0, out);
  for (double& loss : out) loss += mean;
  return out;
}

// Two normal laws a distance d apart are told by an advantage of 2Φ(d/2) − 1, whichever is the larger one. Error rate:
// ends of 1 − 10⁻⁹.
TEST(Membership, TellsLawsApartAsFarAsTheyAreApart) {
  for (const double apart : {-2.0, 0.0, 0.5, 3.0}) {
    const auto found = judge_membership(losses_around(apart, 4000, 1), losses_around(0.0, 4000, 2), 1.0, 1.0 - 1e-9);
    const double possible = std::erf(std::abs(apart) / 2.0 / std::sqrt(2.0));
    EXPECT_LE(found.advantage.lower, possible) << apart;
    EXPECT_GE(found.advantage.upper, possible - 0.02) << apart;
    EXPECT_EQ(found.models, 4000U);  // the other half fitted the test
    EXPECT_FALSE(found.contradicted());
  }
}

// Few models of one law seem to be told apart by a test that was fitted to them; tried on others it tells nothing.
// Error rate: 5.5 deviations of a mean, below 1e-7.
TEST(Membership, IsTriedOnModelsThatDidNotFitIt) {
  constexpr int repeats = 400;
  constexpr std::size_t models = 16;
  double sum = 0.0;
  for (int i = 0; i < repeats; ++i) {
    const auto seed = static_cast<std::uint64_t>(2 * i);
    const auto found =
        judge_membership(losses_around(0.0, models, seed), losses_around(0.0, models, seed + 1), 1.0, 0.9);
    sum += found.true_positives - found.false_positives;
  }
  // Each difference of two shares of 8 has variance at most 2 / (4 · 8).
  EXPECT_LT(std::abs(sum / repeats), 5.5 * std::sqrt(1.0 / 16.0 / repeats));
}

TEST(Membership, MoreThanTheBoundAllowsIsAContradiction) {
  const auto with = losses_around(3.0, 400, 1), without = losses_around(0.0, 400, 2);
  EXPECT_TRUE(judge_membership(with, without, 0.3, 0.99).contradicted());
  EXPECT_FALSE(judge_membership(with, without, 0.9, 0.99).contradicted());
  EXPECT_FALSE(judge_membership(without, losses_around(0.0, 400, 3), 0.01, 0.99).contradicted());
}

class MembershipOfRuns : public training::TrainingFixture {
 protected:
  [[nodiscard]] Config config() const {
    auto c = training::small_training();
    c.privacy.relation = privacy::Relation::series;
    c.sampling.subsequences_per_sequence = 2;
    c.sampling.batch_size = 12;
    c.training.max_epochs = 20;
    c.training.reproducible = true;
    return c;
  }
  [[nodiscard]] MembershipVerdict attack(const Config& config, MembershipOptions options = {}) const {
    if (!options.target) options.target = "5";
    return attack_membership(training::settled(config, data_), data_, options);
  }
};

// Without privacy a series far from all others is found in every model; with little privacy in some, and never beyond
// what epsilon allows. Fixed seeds; ends of 1 − 10⁻⁶.
TEST_F(MembershipOfRuns, FindsAnOutlierWithoutPrivacyAndKeepsToTheBoundWithIt) {
  auto& values = data_.dataset.series[5].values;
  for (std::size_t t = 0; t < values.size(); ++t) values[t] = t % 3 == 0 ? 40.0F : -7.0F;
  for (auto& series : data_.dataset.series) series.exact.clear();
  MembershipOptions options;
  options.models = 40;
  options.confidence = 1.0 - 1e-6;
  auto open = config();
  open.privacy.enabled = false;
  const auto found = attack(open, options);
  EXPECT_EQ(found.bound, 1.0);
  EXPECT_EQ(found.true_positives, 1.0);
  EXPECT_EQ(found.false_positives, 0.0);
  auto closed = config();
  closed.privacy.noise_multiplier = 20.0;
  const auto hidden = attack(closed, options);
  EXPECT_LT(hidden.bound, 0.5);
  EXPECT_FALSE(hidden.contradicted());
  EXPECT_LT(hidden.true_positives - hidden.false_positives, 0.8);
}

TEST_F(MembershipOfRuns, RefusesWhatIsNotThere) {
  MembershipOptions options;
  options.target = "nobody";
  EXPECT_THROW(attack(config(), options), UsageError);
  options.target = "1";
  for (const std::uint64_t models : {0, 4, 10}) {
    options.models = models;
    EXPECT_THROW(attack(config(), options), UsageError);
  }
  std::atomic<bool> stop = true;
  options.models = 8;
  options.stop = &stop;
  EXPECT_THROW(attack(config(), options), Stopped);
}

// What protects values of a series bounds nothing about the series.
TEST_F(MembershipOfRuns, OfRunsThatProtectValuesThereIsNoBound) {
  auto events = config();
  events.privacy.relation = privacy::Relation::event;
  events.sampling.subsequences_per_sequence = 1;
  events.sampling.batch_size = 3;
  MembershipOptions options;
  options.models = 8;
  EXPECT_EQ(attack(events, options).bound, 1.0);
}

}  // namespace
}  // namespace tsdp::audit
