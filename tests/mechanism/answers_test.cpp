// What a mechanism keeps of its answers.
#include <gtest/gtest.h>

#include "privacy/theorems/series_law.h"
#include "tsdp/mechanism/training_method.h"

namespace tsdp::mechanism {
namespace {

constexpr double delta = 1e-6;

PrivateMechanism bins(double sigma) {
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(12, 100);
  p.context_length = 8;
  p.forecast_length = 4;
  p.top_level = privacy::TopLevel::balls_in_bins;
  p.subsequences_per_sequence = 1;
  p.batch_size = 4;
  p.batches = 3;
  p.record = privacy::Record::series;
  return {
      {privacy::Relation::series, 1, {}}, privacy::SubsamplingScheme(p), {}, {privacy::NoiseKind::independent, sigma}};
}

// In any order, and of copies: what a new mechanism says that was asked nothing before.
TEST(Mechanism, AnswersAreKeptForWhatWasAsked) {
  const auto mechanism = bins(8.0);
  const auto copy = mechanism;
  for (int again = 0; again < 2; ++again)
    for (const std::uint64_t steps : {9, 3, 6}) {
      SCOPED_TRACE(steps);
      for (const double d : {delta, 10.0 * delta}) {
        const auto found = (again == 0 ? mechanism : copy).cost_after(steps, d);
        const auto expected = bins(8.0).cost_after(steps, d);
        EXPECT_EQ(found.epsilon.upper, expected.epsilon.upper);
        EXPECT_EQ(found.epsilon.lower, expected.epsilon.lower);
        EXPECT_EQ(found.attack.true_positive_rate, expected.attack.true_positive_rate);
      }
      const auto uses = mechanism.theorem().uses_of_steps(steps);
      const double epsilon = mechanism.cost_after(steps, delta).epsilon.upper;
      const auto found = copy.substitution(uses, epsilon, delta);
      const auto expected = bins(8.0).substitution(uses, epsilon, delta);
      EXPECT_EQ(found.epsilon, expected.epsilon);
      EXPECT_EQ(found.delta, expected.delta);
      EXPECT_EQ(copy.certificate(delta, uses).upper, bins(8.0).certificate(delta, uses).upper);
    }
  EXPECT_LT(mechanism.cost_after(3, delta).epsilon.upper, mechanism.cost_after(9, delta).epsilon.upper);
  EXPECT_GT(mechanism.cost_after(3, delta).epsilon.upper, mechanism.cost_after(3, 10.0 * delta).epsilon.upper);
  EXPECT_NE(bins(4.0).cost_after(3, delta).epsilon.upper, mechanism.cost_after(3, delta).epsilon.upper);
}

}  // namespace
}  // namespace tsdp::mechanism
