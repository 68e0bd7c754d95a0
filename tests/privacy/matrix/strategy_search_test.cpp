#include "tsdp/privacy/matrix/strategy_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tsdp/base/error.h"

namespace tsdp::privacy {
namespace {

struct Shape {
  std::int64_t bins, epochs;
};

StrategyKind kind_of(NoiseRecursion::Form form) {
  return form == NoiseRecursion::Form::banded           ? StrategyKind::band_mf
         : form == NoiseRecursion::Form::banded_inverse ? StrategyKind::band_inv_mf
                                                        : StrategyKind::blt;
}

double objective(const NoiseRecursion& recursion, Shape shape) {
  const Strategy strategy(kind_of(recursion.form), recursion, shape.bins * shape.epochs);
  return strategy.mean_error() * squared_sensitivity(strategy, shape.bins, shape.epochs);
}

/// With sums over the matrices themselves.
double objective_by_definition(const NoiseRecursion& recursion, Shape shape) {
  const auto steps = static_cast<std::size_t>(shape.bins * shape.epochs);
  const Strategy strategy(kind_of(recursion.form), recursion, shape.bins * shape.epochs);
  const auto c = strategy.column();
  const auto q = strategy.inverse();
  double error = 0.0;
  for (std::size_t row = 0; row < steps; ++row)
    for (std::size_t column = 0; column <= row; ++column) {
      double entry = 0.0;
      for (std::size_t t = column; t <= row; ++t) entry += q[t - column];
      error += entry * entry / static_cast<double>(steps);
    }
  double most = 0.0;
  for (std::size_t place = 0; place < static_cast<std::size_t>(shape.bins); ++place) {
    double square = 0.0;
    for (std::size_t n = 0; n < steps; ++n) {
      double sum = 0.0;
      for (std::size_t at = place; at <= n; at += static_cast<std::size_t>(shape.bins)) sum += std::abs(c[n - at]);
      square += sum * sum;
    }
    most = std::max(most, square);
  }
  return error * most;
}

void expect_in_order(const NoiseRecursion& r, Shape shape) {
  const auto steps = shape.bins * shape.epochs;
  const Strategy strategy(kind_of(r.form), r, steps);
  EXPECT_TRUE(strategy.non_negative());
  for (const double c : strategy.column()) EXPECT_GE(c, 0.0);
  EXPECT_EQ(strategy.column().front(), 1.0);
  if (r.form != NoiseRecursion::Form::buffered) {
    EXPECT_EQ(r.coefficients.front(), 1.0);
    for (std::size_t j = 1; j < r.coefficients.size(); ++j)
      EXPECT_GE(r.form == NoiseRecursion::Form::banded ? r.coefficients[j] : -r.coefficients[j], 0.0) << j;
    return;
  }
  double shares = 0.0;
  for (std::size_t j = 0; j < r.decays.size(); ++j) {
    EXPECT_GT(r.decays[j], 0.0);
    EXPECT_LT(r.decays[j], j == 0 ? 1.0 : r.decays[j - 1]);
    EXPECT_GT(r.weights[j], 0.0);
    shares += r.weights[j] / r.decays[j];
  }
  EXPECT_LT(shares, 1.0);
  for (const double q : strategy.inverse()) EXPECT_LE(std::abs(q), 1.0);
}

/// Steps of all lengths: none of them leads below.
void expect_a_minimum(const NoiseRecursion& best, Shape shape, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  const double least = objective(best, shape);
  for (int i = 0; i < 40; ++i) {
    const double length = std::pow(10.0, -1.0 - 0.125 * i);
    auto other = best;
    for (std::size_t j = 1; j < other.coefficients.size(); ++j) {
      auto& a = other.coefficients[j];
      a += length * normal(generator) / std::sqrt(static_cast<double>(other.coefficients.size()));
      a = best.form == NoiseRecursion::Form::banded ? std::max(a, 0.0) : std::min(a, 0.0);
    }
    double shares = 0.0;
    for (std::size_t j = 0; j < other.decays.size(); ++j) {
      other.decays[j] = 1.0 - (1.0 - other.decays[j]) * std::exp(length * normal(generator));
      other.weights[j] *= std::exp(length * normal(generator));
      if (!(other.decays[j] > 0.0)) other.decays[j] = best.decays[j];
      shares += other.weights[j] / other.decays[j];
    }
    if (shares >= 1.0) continue;
    EXPECT_GE(objective(other, shape), least * (1.0 - 1e-6)) << "a step of " << length;
  }
}

TEST(StrategySearch, FindsWhatAnIndependentProgramFound) {
  // Known values of an independent program.
  const auto bands = best_bands(4, 100, 1);
  EXPECT_NEAR(objective(bands, {100, 1}), 15.336178170715039, 1e-6);
  const std::vector<double> c = {1.0, 0.7069026370548653, 0.6068347293135105, 0.5251883606939632};
  const auto inverse = best_inverse_bands(4, 100, 1);
  EXPECT_NEAR(objective(inverse, {100, 1}), 6.052501515816964, 1e-6);
  const std::vector<double> q = {1.0, -0.4712069829694759, -0.12580066007937293, -0.2714527745362566};
  const auto four_epochs = best_inverse_bands(4, 25, 4);
  EXPECT_NEAR(objective(four_epochs, {25, 4}), 27.32285401906254, 1e-6);
  const std::vector<double> q4 = {1.0, -0.5140248520133366, -0.1361178094909136, -0.18682582087857028};
  for (std::size_t j = 0; j < 4; ++j) {
    EXPECT_NEAR(bands.coefficients[j], c[j], 1e-5);
    EXPECT_NEAR(inverse.coefficients[j], q[j], 1e-5);
    EXPECT_NEAR(four_epochs.coefficients[j], q4[j], 1e-5);
  }
  EXPECT_LE(objective(best_buffers(2, 100, 1), {100, 1}), 5.632523);
}

TEST(StrategySearch, MinimisesTheDefinition) {
  for (const Shape shape : {Shape{30, 1}, {10, 3}, {3, 10}})
    for (const auto& r : {best_bands(5, shape.bins, shape.epochs), best_inverse_bands(5, shape.bins, shape.epochs),
                          best_buffers(3, shape.bins, shape.epochs)}) {
      const double direct = objective_by_definition(r, shape);
      EXPECT_NEAR(objective(r, shape), direct, 1e-11 * direct);
    }
}

TEST(StrategySearch, MinimaOfAllShapes) {
  std::uint64_t seed = 1;
  for (const Shape shape : {Shape{100, 1}, {25, 4}, {100, 10}, {3, 20}, {1, 40}, {7, 1}, {300, 2}})
    for (const std::int64_t bands : {1, 2, 4, 7, 40, 64}) {
      if (bands > shape.bins * shape.epochs) continue;
      SCOPED_TRACE(std::to_string(bands) + " bands, " + std::to_string(shape.bins) + " bins, " +
                   std::to_string(shape.epochs) + " epochs");
      const auto c = best_bands(bands, shape.bins, shape.epochs);
      ASSERT_EQ(c.coefficients.size(), static_cast<std::size_t>(bands));
      expect_in_order(c, shape);
      EXPECT_LE(objective(c, shape), objective(square_root_bands(bands), shape) * (1.0 + 1e-12));
      expect_a_minimum(c, shape, ++seed);
      const auto q = best_inverse_bands(bands, shape.bins, shape.epochs);
      ASSERT_EQ(q.coefficients.size(), static_cast<std::size_t>(bands));
      expect_in_order(q, shape);
      EXPECT_LE(objective(q, shape), objective(inverse_square_root_bands(bands), shape) * (1.0 + 1e-12));
      expect_a_minimum(q, shape, ++seed);
    }
}

TEST(StrategySearch, BuffersOfAllShapes) {
  std::uint64_t seed = 1;
  for (const Shape shape : {Shape{100, 1}, {25, 4}, {100, 10}, {3, 20}, {1, 40}, {2, 1}, {1, 1}, {1000, 1}}) {
    const auto steps = shape.bins * shape.epochs;
    // Every C with c_0 = 1 and no entry below 0.
    const double least = objective(best_bands(steps, shape.bins, shape.epochs), shape);
    double before = std::numeric_limits<double>::infinity();
    for (const std::int64_t buffers : {1, 2, 3, 5, 8}) {
      SCOPED_TRACE(std::to_string(buffers) + " buffers, " + std::to_string(shape.bins) + " bins, " +
                   std::to_string(shape.epochs) + " epochs");
      const auto r = best_buffers(buffers, shape.bins, shape.epochs);
      ASSERT_EQ(r.decays.size(), static_cast<std::size_t>(buffers));
      expect_in_order(r, shape);
      const double value = objective(r, shape);
      EXPECT_GE(value, least * (1.0 - 1e-9));
      EXPECT_LE(value, before * (1.0 + 1e-6));
      before = value;
      expect_a_minimum(r, shape, ++seed);
    }
  }
  // Of one epoch a few buffers reach nearly all that there is.
  EXPECT_LT(objective(best_buffers(4, 1000, 1), {1000, 1}), 1.001 * objective(best_bands(1000, 1000, 1), {1000, 1}));
}

TEST(StrategySearch, MoreBandsAreNotWorse) {
  for (const Shape shape : {Shape{60, 1}, {20, 3}}) {
    double last = std::numeric_limits<double>::infinity(), last_inverse = last;
    for (const std::int64_t bands : {1, 2, 3, 5, 10, 20, 30, 60}) {
      const double value = objective(best_bands(bands, shape.bins, shape.epochs), shape);
      const double of_inverse = objective(best_inverse_bands(bands, shape.bins, shape.epochs), shape);
      EXPECT_LE(value, last * (1.0 + 1e-9)) << bands;
      EXPECT_LE(of_inverse, last_inverse * (1.0 + 1e-9)) << bands;
      last = value;
      last_inverse = of_inverse;
    }
  }
}

TEST(StrategySearch, ScalesDoNotMatter) {
  for (auto r : {best_bands(6, 20, 3), best_inverse_bands(6, 20, 3)}) {
    const double value = objective(r, {20, 3});
    for (auto& a : r.coefficients) a *= 3.7;
    EXPECT_NEAR(objective(r, {20, 3}), value, 1e-12 * value);
  }
}

TEST(StrategySearch, TheSameAgain) {
  EXPECT_EQ(best_bands(16, 50, 2), best_bands(16, 50, 2));
  EXPECT_EQ(best_inverse_bands(16, 50, 2), best_inverse_bands(16, 50, 2));
  EXPECT_EQ(best_buffers(4, 50, 2), best_buffers(4, 50, 2));
}

TEST(StrategySearch, SmallestSizes) {
  EXPECT_EQ(best_bands(1, 1, 1).coefficients, std::vector<double>{1.0});
  EXPECT_EQ(best_inverse_bands(1, 100, 10).coefficients, std::vector<double>{1.0});
  // N = 2 by a search over a grid: (1 + 1 + (1 − c)²)/2 · (1 + c²).
  double least = 10.0;
  for (int i = 0; i <= 100000; ++i) {
    const double c = 1e-5 * i;
    least = std::min(least, (2.0 + (1.0 - c) * (1.0 - c)) / 2.0 * (1.0 + c * c));
  }
  EXPECT_NEAR(objective(best_bands(2, 2, 1), {2, 1}), least, 1e-9);
  EXPECT_NEAR(objective(best_inverse_bands(2, 2, 1), {2, 1}), least, 1e-9);
  EXPECT_NEAR(objective(best_buffers(1, 2, 1), {2, 1}), least, 1e-9);
}

TEST(StrategySearch, RefusesNumbersOutOfRange) {
  const auto huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW((void)best_bands(0, 10, 1), UsageError);
  EXPECT_THROW((void)best_bands(11, 10, 1), UsageError);
  EXPECT_THROW((void)best_bands(-1, 10, 1), UsageError);
  EXPECT_THROW((void)best_inverse_bands(0, 10, 1), UsageError);
  EXPECT_THROW((void)best_inverse_bands(21, 10, 2), UsageError);
  EXPECT_THROW((void)best_buffers(0, 10, 1), UsageError);
  EXPECT_THROW((void)best_buffers(most_buffers + 1, 10, 1), UsageError);
  EXPECT_THROW((void)best_bands(1, 0, 1), UsageError);
  EXPECT_THROW((void)best_bands(1, 1, 0), UsageError);
  EXPECT_THROW((void)best_bands(1, huge, huge), UsageError);
  EXPECT_THROW((void)best_buffers(1, -huge, -huge), UsageError);
  EXPECT_THROW((void)best_inverse_bands(1, Strategy::most_steps, 2), UsageError);
}

}  // namespace
}  // namespace tsdp::privacy
