// What a plan leaves of its target, and what would use it.
#include "tsdp/training/plan.h"

#include <gtest/gtest.h>

#include "settings/setup.h"
#include "training_fixture.h"

namespace tsdp::training {
namespace {

class UnusedBudgetTest : public testing::Test {
 protected:
  [[nodiscard]] Plan plan_of(const Config& config) const {
    return make_plan(method_of(config), {config.privacy.target_epsilon, config.privacy.delta},
                     config.training.max_epochs.value());
  }
  [[nodiscard]] std::optional<UnusedBudget> unused(const Config& config) const {
    return unused_budget(config, method_of(config), plan_of(config));
  }
  [[nodiscard]] mechanism::TrainingMethod method_of(const Config& config) const {
    return mechanism::method_of(config, data_.training_lengths());
  }

  data::PreparedData data_ = waves();
};

// Whichever of the two numbers is taken, the run goes through to its last epoch, within the target and with next to
// nothing left.
TEST_F(UnusedBudgetTest, EitherNumberUsesItAndNoMore) {
  for (const auto top_level : {privacy::TopLevel::without_replacement, privacy::TopLevel::deterministic}) {
    SCOPED_TRACE(name(top_level));
    auto config = small_training();
    config.sampling.top_level = top_level;
    config.privacy.target_epsilon = 8.0;
    config.privacy.noise_multiplier = 4.0;
    config.model.prior = PriorKind::last_value;
    const auto plan = plan_of(config);
    const auto left = unused(config);
    ASSERT_TRUE(left);
    EXPECT_DOUBLE_EQ(left->epsilon, 8.0 - plan.epsilon.upper);
    ASSERT_TRUE(left->max_epochs);
    ASSERT_TRUE(left->noise_multiplier);

    auto longer = config;
    longer.training.max_epochs = *left->max_epochs;
    const auto whole = plan_of(longer);
    EXPECT_EQ(whole.steps, static_cast<std::uint64_t>(*left->max_epochs) * whole.steps_per_epoch);
    EXPECT_LE(whole.epsilon.upper, 8.0);
    longer.training.max_epochs = *left->max_epochs + 1;
    EXPECT_TRUE(plan_of(longer).limited_by_epsilon);  // it is the most

    auto quieter = config;
    quieter.privacy.noise_multiplier = *left->noise_multiplier;
    const auto spent = plan_of(quieter);
    EXPECT_EQ(spent.steps, plan.steps);
    EXPECT_LE(spent.epsilon.upper, 8.0);
    EXPECT_FALSE(unused(quieter));
    quieter.privacy.noise_multiplier = 0.999 * *left->noise_multiplier;
    EXPECT_LT(plan_of(quieter).steps, plan.steps);  // it is the least
  }
}

TEST_F(UnusedBudgetTest, IsTheConfigurationsOwnTargetWhatever) {
  auto config = small_training();
  config.privacy.target_epsilon = 8.0;
  config.privacy.noise_multiplier.reset();
  const auto calibrated = method_of(config).privacy()->noise().multiplier;
  config.privacy.noise_multiplier = calibrated;
  EXPECT_FALSE(unused(config));  // auto spends the target
  config.privacy.noise_multiplier = 0.9 * calibrated;
  EXPECT_TRUE(plan_of(config).limited_by_epsilon);
  EXPECT_FALSE(unused(config));
  config.privacy.enabled = false;
  config.privacy.noise_multiplier = 4.0;
  EXPECT_FALSE(unused(config));
}

// What is left is told of every relation and composition; what would use it, where that is no long work.
TEST_F(UnusedBudgetTest, IsToldWithoutNumbersWhereTheyAreLongWork) {
  auto config = small_training();
  config.privacy.relation = privacy::Relation::series;
  config.sampling.top_level = privacy::TopLevel::poisson;
  config.privacy.noise_multiplier = 20.0;
  const auto left = unused(config);
  ASSERT_TRUE(left);
  EXPECT_GT(left->epsilon, 0.0);
  EXPECT_FALSE(left->max_epochs);
  EXPECT_FALSE(left->noise_multiplier);
}

// What a run of cyclic coins ends with may be a part of a round: from above it costs a whole one, from below nothing.
TEST(Plan, ARoundThatIsNotCompleteCountsFromAboveAlone) {
  auto config = small_training();
  config.privacy.relation = privacy::Relation::series;
  config.sampling.top_level = privacy::TopLevel::cyclic_poisson;
  config.sampling.batch_size.reset();
  config.sampling.batches = 5;
  config.privacy.noise_mechanism = privacy::StrategyKind::bsr;
  config.privacy.noise_bands = 4;
  config.privacy.noise_multiplier = 3.0;
  config.privacy.target_epsilon = 50.0;
  config.training.max_epochs = 1;
  const auto method = mechanism::method_of(config, waves().split.training_length);
  const auto plan = make_plan(method, {50.0, config.privacy.delta}, 1);
  ASSERT_EQ(plan.steps, 5U);
  const auto curve = method.privacy()->curve();
  EXPECT_EQ(plan.epsilon.upper, curve->epsilon(config.privacy.delta, 2).upper);
  EXPECT_EQ(plan.epsilon.lower, curve->epsilon(config.privacy.delta, 1).lower);
  EXPECT_LT(plan.epsilon.lower, 0.9 * plan.epsilon.upper);
}

}  // namespace
}  // namespace tsdp::training
