// Bounds on attackers against the Gaussian mechanism, whose trade-off curve is known in closed form.
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/theorems/structured_pairs.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "privacy/whole_series/poisson_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/theorems/attack.h"

namespace tsdp::privacy {
namespace {

double phi(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

TEST(AttackBound, OfTheGaussianMechanismIsItsTradeOffCurve) {
  // q = 1: k uses are one Gaussian with μ = 2 √k / σ. The most powerful test at false-positive rate α has power
  // Φ(μ − z), z the quantile with Φ̄(z) = α = 1e-3, z = 3.0902323061678132; its advantage at best is 2Φ(μ/2) − 1.
  for (const double sigma : {4.0, 10.0, 30.0}) {
    for (const std::uint64_t uses : {1U, 9U, 100U}) {
      Accountant accountant(one_window_pair(1.0, sigma));
      const double mu = 2.0 * std::sqrt(static_cast<double>(uses)) / sigma;
      const auto bound = attack_bound(accountant, uses);
      const double power = phi(mu - 3.0902323061678132);
      const double advantage = 2.0 * phi(mu / 2.0) - 1.0;
      EXPECT_GE(bound.true_positive_rate, power * (1.0 - 1e-12)) << sigma << " " << uses;
      EXPECT_LE(bound.true_positive_rate, power * 1.02) << sigma << " " << uses;
      EXPECT_GE(bound.advantage, advantage * (1.0 - 1e-12)) << sigma << " " << uses;
      EXPECT_LE(bound.advantage, advantage * 1.02) << sigma << " " << uses;
    }
  }
}

TEST(AttackBound, OfNothingIsChance) {
  Accountant accountant(one_window_pair(0.01, 1.0));
  const auto bound = attack_bound(accountant, 0);
  EXPECT_EQ(bound.advantage, 0.0);
  EXPECT_NEAR(bound.true_positive_rate, 1e-3, 1e-15);
}

TEST(AttackBound, StaysBelowCertaintyAndAboveChance) {
  Accountant accountant(with_replacement_upper(4, 0.3, 0.5, 0.5));
  for (const double rate : {1e-6, 1e-3, 0.5}) {
    const auto bound = attack_bound(accountant, 20, rate);
    EXPECT_GE(bound.true_positive_rate, rate);
    EXPECT_LE(bound.true_positive_rate, 1.0);
  }
  for (const double rate : {0.0, 1.0, -1.0, std::nan("")})
    EXPECT_THROW((void)attack_bound(accountant, 1, rate), PrivacyError) << rate;
}

TEST(GaussianBound, OfTheGaussianMechanismIsItsMu) {
  for (const double sigma : {1.0, 4.0, 20.0}) {
    for (const std::uint64_t uses : {1U, 100U}) {
      for (const double delta : {1e-5, 1e-9}) {
        GaussianCurve curve(sigma);
        const double mu = std::sqrt(static_cast<double>(uses)) / sigma;
        const double epsilon = curve.epsilon(delta, uses).upper;
        const auto bound = gaussian_bound(curve, uses, epsilon, delta);
        ASSERT_TRUE(bound) << sigma << " " << uses;
        // A remainder of delta is granted, and takes that off.
        EXPECT_GE(bound->mu, mu * (1.0 - 2e-3)) << sigma << " " << uses;
        EXPECT_LE(bound->mu, mu * 1.015) << sigma << " " << uses;
        EXPECT_EQ(bound->remainder, delta);
        EXPECT_GE(bound->regret, 0.0);
        EXPECT_LE(bound->regret, 0.003);
        const auto finer = gaussian_bound(curve, uses, epsilon, delta, 1e-3);
        ASSERT_TRUE(finer);
        EXPECT_LE(finer->mu, std::min(bound->mu, mu * 1.002));
      }
    }
  }
}

TEST(GaussianBound, CoversTheWholeProfileAndNotMuchMore) {
  // δ(ε) ≤ δ_μ(ε) + δ₀ at 100 places, most of them between those that were asked; a smaller μ fails at one of them.
  const auto check = [](PrivacyCurve& curve, std::uint64_t uses, double delta, double tightness) {
    const double epsilon = curve.epsilon(delta, uses).upper;
    const auto bound = gaussian_bound(curve, uses, epsilon, delta);
    ASSERT_TRUE(bound);
    bool smaller_fails = false;
    for (int i = 0; i < 100; ++i) {
      const double at = 1.3 * epsilon * i / 100.0;
      const auto found = curve.delta(at, uses);
      EXPECT_LE(found.lower, gaussian_delta(at, bound->mu).upper + delta) << at << " " << bound->mu;
      smaller_fails = smaller_fails || found.lower > gaussian_delta(at, tightness * bound->mu).upper + delta;
    }
    EXPECT_TRUE(smaller_fails) << bound->mu;
  };
  for (const double rate : {0.001, 0.01, 0.1, 0.5})
    for (const double sigma : {1.0, 4.0})
      for (const std::uint64_t uses : {3U, 200U}) {
        Accountant curve(one_window_pair(rate, sigma));
        check(curve, uses, 1e-6, 0.98);
      }
  PoissonCurve poisson(0.05, 2.0);
  check(poisson, 40, 1e-5, 0.98);
}

/// A bit that is told truly with odds e^ε₀ : 1. Its μ is 2 Φ⁻¹(p), p = e^ε₀/(1 + e^ε₀), where the two curves of
/// false-positive and false-negative rates touch.
class RandomisedResponse final : public PrivacyCurve {
 public:
  explicit RandomisedResponse(double epsilon) : truly_(std::exp(epsilon) / (1.0 + std::exp(epsilon))) {}
  [[nodiscard]] Certificate methods() const override { return {}; }

 protected:
  [[nodiscard]] Interval find_delta(double epsilon, std::uint64_t, double, Certificate&) override {
    const double delta = std::max(0.0, truly_ - std::exp(epsilon) * (1.0 - truly_));
    return {delta, delta};
  }
  [[nodiscard]] Interval find_epsilon(double, std::uint64_t, double, Certificate&) override { return {}; }
  [[nodiscard]] std::uint64_t search_uses(double, double, std::uint64_t, double) override { return 0; }

 private:
  double truly_;
};

TEST(GaussianBound, OfRandomisedResponseIsWhereTheCurvesTouch) {
  for (const auto& [epsilon, quantile] : {std::pair{0.1, 0.0626545061}, {1.0, 0.6160176927}, {3.0, 1.6703418561}}) {
    ASSERT_NEAR(phi(quantile), std::exp(epsilon) / (1.0 + std::exp(epsilon)), 1e-9);
    RandomisedResponse curve(epsilon);
    const auto bound = gaussian_bound(curve, 1, 2.0 * epsilon, 1e-9);
    ASSERT_TRUE(bound);
    EXPECT_GE(bound->mu, 2.0 * quantile * (1.0 - 1e-6));
    EXPECT_LE(bound->mu, 2.0 * quantile * 1.05);
  }
}

TEST(GaussianBound, RegretIsWhatMuLeavesOut) {
  // One use of a rare batch is far from Gaussian, 10,000 uses are close. The least κ at single rates is below it.
  Accountant rare(one_window_pair(0.001, 0.7));
  Accountant often(one_window_pair(0.02, 5.0));
  for (auto [curve, uses, least, most] : {std::tuple{&rare, 10U, 0.05, 0.6}, std::tuple{&often, 10'000U, 0.0, 0.003}}) {
    const double delta = 1e-6;
    const double epsilon = curve->epsilon(delta, uses).upper;
    const auto bound = gaussian_bound(*curve, uses, epsilon, delta, 1e-3);
    ASSERT_TRUE(bound);
    EXPECT_GE(bound->regret, least);
    EXPECT_LE(bound->regret, most);
    for (const double z : {-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0}) {
      const double miss = phi(z - bound->mu) - delta;  // of the Gaussian curve at the rate Φ(−z)
      const std::vector<double> rates = {std::min(1.0, phi(-z) + bound->regret)};
      EXPECT_LE(1.0 - trade_off(*curve, uses, rates, 1e-3)[0] - bound->regret, std::max(0.0, miss) + 1e-9) << z;
    }
  }
}

TEST(GaussianBound, OfNothingIsNothing) {
  Accountant accountant(one_window_pair(0.01, 1.0));
  const auto none = gaussian_bound(accountant, 0, 0.0, 1e-6);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->mu, 0.0);
  EXPECT_EQ(none->remainder, 0.0);
  EXPECT_EQ(none->regret, 0.0);
  // Nor is what delta alone allows.
  GaussianCurve one(1.0);
  const auto within_delta = gaussian_bound(one, 1, 0.01, 0.5);
  ASSERT_TRUE(within_delta);
  EXPECT_EQ(within_delta->mu, 0.0);
  EXPECT_EQ(within_delta->remainder, 0.5);
  // No finite number: it is left out, never understated.
  EXPECT_FALSE(gaussian_bound(accountant, 1'000'000, 800.0, 1e-6));
  for (const auto& [epsilon, delta] : {std::pair{-1.0, 1e-6}, {std::nan(""), 1e-6}, {1.0, -1e-6}, {1.0, 2.0}})
    EXPECT_THROW((void)gaussian_bound(accountant, 1, epsilon, delta), PrivacyError) << epsilon << " " << delta;
}

TEST(TradeOff, OfTheGaussianMechanismLiesJustAboveItsCurve) {
  // μ = 2 √k / σ as above. Rates are Φ̄(z), so the most powerful test has power Φ̄(z − μ).
  for (const double sigma : {6.0, 30.0}) {
    Accountant accountant(one_window_pair(1.0, sigma));
    const double mu = 2.0 * 3.0 / sigma;
    std::vector<double> rates = {0.0, 1.0};
    for (const double z : {-2.5, -1.0, 0.0, 1.0, 2.5}) rates.push_back(phi(-z));
    const auto powers = trade_off(accountant, 9, rates);
    ASSERT_EQ(powers.size(), rates.size());
    EXPECT_LE(powers[0], 0.01);
    EXPECT_DOUBLE_EQ(powers[1], 1.0);
    std::size_t k = 2;
    for (const double z : {-2.5, -1.0, 0.0, 1.0, 2.5}) {
      const double power = phi(mu - z);
      EXPECT_GE(powers[k], power * (1.0 - 1e-12)) << sigma << " " << z;
      EXPECT_LE(powers[k], power + 0.01) << sigma << " " << z;
      ++k;
    }
  }
}

TEST(TradeOff, OfNothingIsChanceAndRatesAreChecked) {
  Accountant accountant(one_window_pair(0.01, 1.0));
  const std::vector<double> rates = {0.0, 0.25, 1.0};
  EXPECT_EQ(trade_off(accountant, 0, rates), rates);
  for (const double rate : {-0.1, 1.1, std::nan("")})
    EXPECT_THROW((void)trade_off(accountant, 1, std::vector<double>{rate}), PrivacyError) << rate;
}

}  // namespace
}  // namespace tsdp::privacy
