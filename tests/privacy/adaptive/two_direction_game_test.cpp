// The lower end of adaptive composition: the game of the two directions, from below, against values computed in other ways.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "privacy/adaptive/merged_steps.h"
#include "privacy/adaptive/two_direction_game.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::privacy {
namespace {

constexpr double traffic_rate = 256.0 / 862.0 * 120.0 / 13893.0;

DominatingPair step_pair(double q, double sigma) { return DominatingPair({{0.0, 1.0 - q}, {2.0, q}}, sigma); }

/// W_1(r) of the two directions: r H_{1/r}, the better direction.
double after_one(const DominatingPair& pair, double loss) {
  return loss <= 0.0 ? std::exp(loss) * pair.symmetrised_profile(-loss) : std::expm1(loss) + pair.symmetrised_profile(loss);
}

/// W_2 by the trapezoidal rule: the direction of the first step, then the better one.
double after_two(double q, double sigma, double epsilon) {
  const auto pair = step_pair(q, sigma);
  constexpr double step = 0.004;
  double remove = 0.0;
  double add = 0.0;
  for (double x = -9.0; x <= 9.0 + 2.0 / sigma; x += step) {
    const double under_q = std::exp(-0.5 * x * x) * step / std::sqrt(2.0 * std::numbers::pi);
    const double ratio = 1.0 + q * std::expm1(2.0 / sigma * x - 2.0 / (sigma * sigma));
    remove += under_q * after_one(pair, std::log(ratio) - epsilon);
    add += under_q * ratio * after_one(pair, -std::log(ratio) - epsilon);
  }
  return std::exp(epsilon) * std::max(remove, add);
}

TEST(MergedSteps, AreBelowThePairAndClose) {
  struct Setting {
    double q, sigma, step;
  };
  for (const auto& [q, sigma, step] : std::vector<Setting>{{traffic_rate, 4.0, 5e-5}, {0.1, 1.0, 0.005}, {0.5, 2.0, 0.02}, {0.05, 0.9, 0.008}}) {
    SCOPED_TRACE(cat("q ", q, ", sigma ", sigma));
    const auto pair = step_pair(q, sigma);
    const auto one = MergedSteps::one(q, sigma, step);
    ASSERT_TRUE(one);
    EXPECT_LT(one->mismatch, 1e-11);
    double under_q = 0.0;
    double under_p = 0.0;
    for (std::size_t i = 0; i < one->q.size(); ++i) {
      under_q += one->q[i];
      under_p += one->q[i] * std::exp(step * static_cast<double>(one->first + static_cast<std::int64_t>(i)));
      EXPECT_GE(one->q[i], 0.0);
    }
    EXPECT_NEAR(under_q, 1.0, one->mismatch + 1e-13);
    EXPECT_NEAR(under_p, 1.0, one->mismatch + 1e-13);
    // Every profile of what is merged is below the pair's, in both directions; as steps are merged more, it falls.
    const auto three = one->repeated(3, step);
    ASSERT_TRUE(three);
    const auto coarse = one->coarser(3, step);
    for (const double epsilon : {0.0, 0.3 * q, q, 3.0 * q}) {
      const auto profile = [&](const MergedSteps& m, double distance, double sign) {
        double sum = 0.0;
        for (std::size_t i = 0; i < m.q.size(); ++i) {
          const double loss = sign * distance * static_cast<double>(m.first + static_cast<std::int64_t>(i));
          const double mass = m.q[i] * (sign > 0.0 ? 1.0 : std::exp(-loss));
          sum += mass * std::max(0.0, std::exp(loss) - std::exp(epsilon));
        }
        return sum;
      };
      for (const auto direction : {Direction::remove, Direction::add}) {
        const double sign = direction == Direction::remove ? 1.0 : -1.0;
        const double exact = pair.profile(direction, epsilon);
        const double widest = pair.profile(direction, 0.0);
        EXPECT_LE(profile(*one, step, sign), exact + 2.0 * one->mismatch);
        EXPECT_GE(profile(*one, step, sign), exact - 0.015 * widest);
        EXPECT_LE(profile(coarse, 3.0 * step, sign), profile(*one, step, sign) + 2.0 * coarse.mismatch);
        if (sigma >= 2.0) {  // (Elsewhere three cells are half of the least loss.)
          EXPECT_GE(profile(coarse, 3.0 * step, sign), exact - 0.04 * widest);
        }
        if (epsilon > 0.0) {
          const auto composed = Accountant(pair, direction).delta(epsilon, 3);
          EXPECT_LE(profile(*three, step, sign), composed.upper + 2.0 * three->mismatch);
          EXPECT_GE(profile(*three, step, sign), composed.lower - 0.03 * widest);
        }
      }
    }
    EXPECT_LT(coarse.mismatch, 1e-11);
    EXPECT_LT(three->mismatch, 1e-11);
  }
}

TEST(TwoDirectionGame, IsBelowOneAndTwoStepsAndClose) {
  for (const auto& [q, sigma] : std::vector<std::pair<double, double>>{{traffic_rate, 4.0}, {0.1, 1.0}, {0.5, 2.0}, {0.03, 0.7}}) {
    const auto pair = step_pair(q, sigma);
    for (const double epsilon : {0.2 * q, q, 2.5 * q}) {
      SCOPED_TRACE(cat("q ", q, ", sigma ", sigma, ", epsilon ", epsilon));
      const double one = TwoDirectionGame(q, sigma, 1, epsilon).delta(epsilon);
      EXPECT_LE(one, pair.symmetrised_profile(epsilon));
      EXPECT_GE(one, pair.symmetrised_profile(epsilon) * (1.0 - 2e-3));
      const double two = TwoDirectionGame(q, sigma, 2, epsilon).delta(epsilon);
      const double exact = after_two(q, sigma, epsilon);
      EXPECT_LE(two, exact * (1.0 + 1e-9));
      EXPECT_GE(two, exact * (1.0 - 3e-3));
    }
  }
  // Beside 7.7477e-4 of a strategy with another triangle.
  EXPECT_NEAR(TwoDirectionGame(traffic_rate, 4.0, 2, 1e-3).delta(0.0), 7.7366e-4, 2e-7);
}

TEST(TwoDirectionGame, IsAboveOneDirectionAndBelowTheSymmetrisedPair) {
  const auto pair = step_pair(traffic_rate, 4.0);
  const double same = std::max(Accountant(pair, Direction::remove).epsilon(1e-7, 1000).lower, Accountant(pair, Direction::add).epsilon(1e-7, 1000).lower);
  Accountant symmetrised(pair);
  const double upper = symmetrised.epsilon(1e-7, 1000).upper;
  const double found = two_direction_epsilon(traffic_rate, 4.0, 1000, 1e-7, upper);
  EXPECT_GT(found, 1.001 * same);
  EXPECT_LT(found, symmetrised.epsilon(1e-7, 1000).lower);
  EXPECT_GE(found, 0.1925);
  EXPECT_GE(TwoDirectionGame(traffic_rate, 4.0, 1000, found).delta(found), 1e-7 * (1.0 - 1e-4));
  // Decided in runs of steps: less.
  const double seldom = two_direction_epsilon(traffic_rate, 4.0, 1000, 1e-7, upper, {0.03, 400});
  EXPECT_LT(seldom, found);
  EXPECT_GT(seldom, 0.99 * found);
  // On the points of a grid through another number: not above, and hardly below.
  const TwoDirectionGame elsewhere(traffic_rate, 4.0, 1000, 0.37);
  EXPECT_LE(elsewhere.delta(found), 1e-7 * (1.0 + 2e-3));
  EXPECT_GE(elsewhere.delta(found), 1e-7 * (1.0 - 5e-2));
  EXPECT_LE(elsewhere.epsilon(1e-7), found * (1.0 + 1e-5));
}

TEST(TwoDirectionGame, GrowsWithStepsAndFallsWithEpsilon) {
  double before = 0.0;
  for (const std::uint64_t uses : {1, 2, 3, 7, 20, 50}) {
    const TwoDirectionGame game(0.02, 2.0, uses, 0.1);
    EXPECT_GT(game.delta(0.1), before);
    before = game.delta(0.1);
    double last = 1.0;
    for (double epsilon = 0.0; epsilon < 2.0; epsilon += 0.01) {
      EXPECT_LE(game.delta(epsilon), last);
      last = game.delta(epsilon);
    }
  }
}

TEST(TwoDirectionGame, AnswersTinyEpsilonsByTheFirstPoint) {
  const double at_zero = TwoDirectionGame(0.1, 4.0, 10, 0.1).delta(0.0);
  for (const double epsilon : {1e-300, 1e-15, 1e-9, 1e-4}) {
    const double found = TwoDirectionGame(0.1, 4.0, 10, epsilon).delta(epsilon);
    EXPECT_LE(found, at_zero);
    EXPECT_GE(found, 0.97 * at_zero);
  }
  EXPECT_LT(TwoDirectionGame(0.1, 1e8, 10, 1e-9).delta(1e-9), 1e-7);
  for (const std::uint64_t decisions : {0, 1, 3}) EXPECT_GT(TwoDirectionGame(0.1, 4.0, 10, 0.1, {0.03, decisions}).delta(0.1), 0.0);
}

TEST(TwoDirectionGame, ClaimsNothingOutOfReach) {
  EXPECT_EQ(TwoDirectionGame(1e-4, 0.3, 10, 1.0).delta(1.0), 0.0);
  EXPECT_EQ(two_direction_epsilon(1e-4, 0.3, 10, 1e-7, 1.0), 0.0);
  EXPECT_EQ(TwoDirectionGame(0.1, 1.0, 10, 1.0).delta(100.0), 0.0);
  EXPECT_EQ(TwoDirectionGame(0.1, 1.0, 10, 1.0).epsilon(0.999), 0.0);
  EXPECT_EQ(TwoDirectionGame(0.1, 1.0, 10, 1.0).likely_epsilon(0.999), 0.0);
  EXPECT_THROW(TwoDirectionGame(0.0, 1.0, 10, 1.0), PrivacyError);
  EXPECT_THROW(TwoDirectionGame(1.0, 1.0, 10, 1.0), PrivacyError);
  EXPECT_THROW(TwoDirectionGame(0.1, 0.0, 10, 1.0), PrivacyError);
}

}  // namespace
}  // namespace tsdp::privacy
