// What the choice between a trained model and its start cost, with which runs of earlier versions ended.

#include <gtest/gtest.h>

#include "tsdp/base/error.h"
#include "tsdp/mechanism/training_method.h"

namespace tsdp::mechanism {
namespace {

PrivateMechanism mechanism_of(privacy::Relation relation, double choice) {
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(50, 1000);
  p.context_length = 8;
  p.forecast_length = 4;
  p.batch_size = 10;
  if (relation == privacy::Relation::series) p.record = privacy::Record::series;
  return {{relation, 1, {}},
          privacy::SubsamplingScheme(p),
          {},
          {privacy::NoiseKind::independent, 4.0},
          std::nullopt,
          choice};
}

TEST(PrivateChoice, IsPartOfWhatAMechanismCosts) {
  const auto with = mechanism_of(privacy::Relation::event, 0.25);
  const auto without = mechanism_of(privacy::Relation::event, 0.0);
  EXPECT_EQ(with.choice_epsilon(), 0.25);
  EXPECT_EQ(without.choice_epsilon(), 0.0);
  EXPECT_NEAR(with.curve()->epsilon(1e-6, 100).upper, without.curve()->epsilon(1e-6, 100).upper + 0.25, 1e-12);
  EXPECT_EQ(with.curve()->max_uses(1.0, 1e-6), without.curve()->max_uses(0.75, 1e-6));
  EXPECT_THROW(static_cast<void>(mechanism_of(privacy::Relation::series, 0.25)), PrivacyError);
  EXPECT_THROW(static_cast<void>(mechanism_of(privacy::Relation::event, 1e-6)), UsageError);
  EXPECT_NO_THROW(static_cast<void>(mechanism_of(privacy::Relation::user, least_choice_epsilon)));
}

}  // namespace
}  // namespace tsdp::mechanism
