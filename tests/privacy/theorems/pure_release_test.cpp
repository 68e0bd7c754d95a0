// A pure release after other uses (Theorem tsdp.7), against sums over explicit laws.
#include "privacy/theorems/pure_release.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tsdp/base/error.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/theorems/attack.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::privacy {
namespace {

/// k uses of a coin that tells the truth with probability 1/(1 + e^{−ε₁}), k ≤ 1: the worst ε₁-differentially private
/// mechanism.
class Coin final : public PrivacyCurve {
 public:
  explicit Coin(double epsilon) : epsilon_(epsilon) {}
  Interval find_delta(double epsilon, std::uint64_t, double, Certificate&) override {
    const double found = std::max(0.0, (std::exp(epsilon_) - std::exp(epsilon)) / (1.0 + std::exp(epsilon_)));
    return {found, found};
  }
  Interval find_epsilon(double delta, std::uint64_t, double, Certificate&) override {
    const double found = std::log(std::max(1.0, std::exp(epsilon_) - delta * (1.0 + std::exp(epsilon_))));
    return {found, found};
  }
  Certificate methods() const override { return {"a coin", "a coin", {}}; }

 protected:
  std::uint64_t search_uses(double epsilon, double delta, std::uint64_t, double) override {
    return certifies(epsilon, delta, 1) ? 1 : 0;
  }

 private:
  double epsilon_;
};

/// One use that costs exactly `epsilon` at any delta.
class Step final : public PrivacyCurve {
 public:
  explicit Step(double epsilon) : epsilon_(epsilon) {}
  Interval find_delta(double epsilon, std::uint64_t, double, Certificate&) override {
    return epsilon >= epsilon_ ? Interval{0.0, 0.0} : Interval{0.5, 0.5};
  }
  Interval find_epsilon(double, std::uint64_t, double, Certificate&) override { return {epsilon_, epsilon_}; }
  Certificate methods() const override { return {"a step", "a step", {}}; }

 protected:
  std::uint64_t search_uses(double epsilon, double, std::uint64_t, double) override { return epsilon >= epsilon_; }

 private:
  double epsilon_;
};

/// H_{e^ε} of two coins together, by their four outcomes.
double two_coins(double first, double second, double epsilon) {
  const double p = 1.0 / (1.0 + std::exp(-first));
  const double q = 1.0 / (1.0 + std::exp(-second));
  double sum = 0.0;
  for (const double a : {p, 1.0 - p})
    for (const double b : {q, 1.0 - q}) sum += std::max(0.0, a * b - std::exp(epsilon) * (1.0 - a) * (1.0 - b));
  return sum;
}

TEST(PureRelease, IsExactForTwoCoins) {
  for (const double first : {0.1, 1.0, 4.0})
    for (const double second : {0.01, 0.4, 2.0, 6.0}) {
      CurveWithPureRelease curve(std::make_unique<Coin>(first), second);
      for (const double epsilon : {0.0, 0.05, 0.4, 1.0, 1.4, 2.5, 5.9, 6.1, 9.0}) {
        const double truth = two_coins(first, second, epsilon);
        const double found = curve.delta(epsilon, 1).upper;
        // (What differs is the rounding of both sums, whose terms reach e^ε.)
        EXPECT_NEAR(found, truth, 1e-12) << first << " " << second << " " << epsilon;
        EXPECT_LE(curve.delta(epsilon, 1).lower, truth + 1e-12);
      }
      const double at_one = curve.epsilon(1e-5, 1).upper;
      EXPECT_LE(two_coins(first, second, at_one), 1e-5 + 1e-12);
      EXPECT_LE(at_one, first + second + 1e-12);
    }
}

/// H_{e^ε} of N(0, σ²) against N(1, σ²) and a coin, by quadrature over the first outcome.
double gaussian_and_coin(double sigma, double coin, double epsilon) {
  const double q = 1.0 / (1.0 + std::exp(-coin));
  double sum = 0.0;
  const double step = 1e-4 * sigma;
  for (double x = -12.0 * sigma; x < 1.0 + 12.0 * sigma; x += step) {
    const double a = std::exp(-0.5 * x * x / (sigma * sigma));
    const double b = std::exp(-0.5 * (x - 1.0) * (x - 1.0) / (sigma * sigma));
    for (const double c : {q, 1.0 - q}) sum += std::max(0.0, a * c - std::exp(epsilon) * b * (1.0 - c));
  }
  return sum * step / (sigma * std::sqrt(2.0 * 3.14159265358979323846));
}

TEST(PureRelease, LiesAboveAGaussianAndACoin) {
  const double sigma = 1.5;
  for (const double coin : {0.05, 0.5, 2.0}) {
    CurveWithPureRelease curve(std::make_unique<Accountant>(DominatingPair({{1.0, 1.0}}, sigma)), coin);
    for (const double epsilon : {0.0, 0.3, 1.0, 2.0, 3.0}) {
      const double truth = gaussian_and_coin(sigma, coin, epsilon);
      const auto found = curve.delta(epsilon, 1);
      EXPECT_GE(found.upper, truth * (1.0 - 1e-6)) << coin << " " << epsilon;
      EXPECT_LE(found.upper, truth * 1.003) << coin << " " << epsilon;
      EXPECT_LE(found.lower, truth);
    }
    const auto whole = curve.epsilon(1e-5, 1);
    Accountant alone(DominatingPair({{1.0, 1.0}}, sigma));
    EXPECT_GE(whole.upper, alone.epsilon(1e-5, 1).upper + coin);
    EXPECT_LE(whole.upper, alone.epsilon(1e-5, 1).upper + coin + 1e-12);
    EXPECT_EQ(whole.lower, alone.epsilon(1e-5, 1).lower);
    EXPECT_LE(gaussian_and_coin(sigma, coin, whole.upper), 1e-5);
  }
}

// What epsilon() answers is certified by what is left of it, whatever way the sum was rounded.
TEST(PureRelease, IsTakenOffAsItWasAdded) {
  for (int i = 1; i < 4000; ++i) {
    const double first = std::fmod(0.6180339887498949 * i, 3.0);
    const double second = 1e-4 + std::fmod(0.4142135623730951 * i, 0.7);
    CurveWithPureRelease curve(std::make_unique<Step>(first), second);
    const double whole = curve.epsilon(1e-6, 1).upper;
    EXPECT_GE(whole, first + second);
    EXPECT_TRUE(curve.certifies(whole, 1e-6, 1)) << first << " " << second;
    EXPECT_FALSE(curve.certifies(whole * (1.0 - 1e-15), 1e-6, 1)) << first << " " << second;
    EXPECT_EQ(curve.max_uses(whole, 1e-6, 1), 1U);
    // Nothing is left of as much as the release costs, or of what is no number; and this is found at once.
    for (const double much : {second, std::nextafter(second, 1.0), second * (1.0 + 1e-9), 0.0, std::nan("")})
      EXPECT_FALSE(curve.certifies(much, 1e-6, 1)) << much;
    EXPECT_TRUE(curve.certifies(std::numeric_limits<double>::infinity(), 1e-6, 1));
  }
}

TEST(PureRelease, PlansNoMoreUsesThanTheRestOfTheBudgetPaysFor) {
  const DominatingPair pair({{0.0, 0.99}, {2.0, 0.01}}, 4.0);
  CurveWithPureRelease curve(std::make_unique<Accountant>(pair), 0.25);
  Accountant alone(pair);
  const auto uses = curve.max_uses(1.0, 1e-6);
  EXPECT_EQ(uses, alone.max_uses(0.75, 1e-6));
  ASSERT_GT(uses, 0U);
  EXPECT_TRUE(curve.certifies(1.0, 1e-6, uses / 2));
  EXPECT_FALSE(curve.certifies(1.0, 1e-6, 2 * uses));
  EXPECT_LE(curve.epsilon(1e-6, uses).upper, 1.0 + 1e-4);
  EXPECT_EQ(curve.max_uses(0.2, 1e-6), 0U);
  EXPECT_FALSE(curve.certifies(0.2, 1e-6, 1));
  // Without a use there is no release.
  EXPECT_EQ(curve.epsilon(1e-6, 0).upper, 0.0);
  EXPECT_EQ(curve.delta(0.0, 0).upper, 0.0);
}

TEST(PureRelease, AttackersAreBoundedAsByTheirBestTest) {
  CurveWithPureRelease curve(std::make_unique<Coin>(0.5), 0.3);
  const auto bound = attack_bound(curve, 1);
  const double best = two_coins(0.5, 0.3, 0.0);  // total variation
  EXPECT_GE(bound.advantage, best);
  EXPECT_LE(bound.advantage, best + 1e-12);
}

// In whatever order a theorem is told of them.
TEST(PureRelease, StaysAfterStepsThatAreComposedAdaptively) {
  SubsamplingScheme::Parameters p;
  p.lengths = SeriesLengths::equal(50, 1000);
  p.context_length = 8;
  p.forecast_length = 4;
  p.batch_size = 10;
  const auto steps = apply_theorem(SubsamplingScheme(p), {}, 4.0, std::nullopt);
  const auto alone = composed_adaptively(steps, 20).curve()->epsilon(1e-6, 20).upper;
  for (const auto& both : {composed_adaptively(followed_by_pure_release(steps, 0.25), 20),
                           followed_by_pure_release(composed_adaptively(steps, 20), 0.25),
                           composed_adaptively(followed_by_pure_release(composed_adaptively(steps, 10), 0.25), 20)}) {
    EXPECT_EQ(both.pure_release, 0.25);
    EXPECT_NEAR(both.curve()->epsilon(1e-6, 20).upper, alone + 0.25, 1e-9);
  }
  EXPECT_EQ(steps.bound, Bound::tight);
  EXPECT_EQ(followed_by_pure_release(steps, 0.25).bound, Bound::upper);
  EXPECT_THROW(static_cast<void>(followed_by_pure_release(followed_by_pure_release(steps, 0.25), 0.25)), PrivacyError);
  EXPECT_THROW(static_cast<void>(followed_by_pure_release(apply_theorem(SubsamplingScheme(p), {}, 4.0, "F.7"), 0.25)),
               PrivacyError);
}

TEST(PureRelease, RefusesWhatIsNoEpsilon) {
  for (const double epsilon :
       {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(CurveWithPureRelease(std::make_unique<Coin>(1.0), epsilon), PrivacyError);
}

}  // namespace
}  // namespace tsdp::privacy
