// Bounds on attackers against the Gaussian mechanism, whose trade-off curve is known in closed form.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/theorems/structured_pairs.h"
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
