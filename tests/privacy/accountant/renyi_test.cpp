// Rényi divergences against quadrature of their definition, and budgets against the conversion that they rest on.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "privacy/accountant/renyi.h"
#include "privacy/theorems/structured_pairs.h"
#include "tsdp/base/error.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::privacy {
namespace {

double density(const std::vector<DominatingPair::Component>& mixture, double x, double sigma, double sign) {
  double sum = 0.0;
  for (const auto& c : mixture) {
    const double z = (x - sign * c.mean) / sigma;
    sum += c.weight * std::exp(-0.5 * z * z) / (sigma * std::sqrt(2.0 * M_PI));
  }
  return sum;
}

/// D_α(P‖Q) by the trapezoidal rule, or with P and Q exchanged.
double divergence(const DominatingPair& pair, double order, bool exchanged) {
  const double sigma = pair.sigma();
  const bool mirror = pair.against() == DominatingPair::Against::mirror;
  const double reach = (order + 12.0) * (pair.largest_mean() + sigma);
  const int n = 400'000;
  double sum = 0.0;
  for (int i = 0; i <= n; ++i) {
    const double x = -reach + 2.0 * reach * i / n;
    double p = density(pair.components(), x, sigma, 1.0);
    double q = mirror ? density(pair.components(), x, sigma, -1.0) : density({{0.0, 1.0}}, x, sigma, 1.0);
    if (exchanged) std::swap(p, q);
    if (p > 0.0 && q > 0.0) sum += std::exp(order * std::log(p) + (1.0 - order) * std::log(q));
  }
  return std::log(sum * 2.0 * reach / n) / (order - 1.0);
}

TEST(Renyi, OfAGaussianIsThatOfAGaussian) {
  // Not subsampled: D_α = α (2/σ)²/2 in both directions. The symmetrised profile's is the larger of mixed ones.
  for (const double sigma : {2.0, 8.0}) {
    const auto pair = one_window_pair(1.0, sigma);
    const std::vector<double> orders = {1.5, 2.0, 8.0, 32.0};
    const auto found = renyi_divergences(pair, orders);
    for (std::size_t i = 0; i < orders.size(); ++i) {
      const double exact = orders[i] * 2.0 / (sigma * sigma);
      EXPECT_GE(found[i], exact) << orders[i];
      EXPECT_LE(found[i], exact * 1.01) << orders[i];
    }
  }
}

TEST(Renyi, IsNoLessThanEitherDirectionAndNotMuchMore) {
  const DominatingPair pairs[] = {
      one_window_pair(0.01, 2.0), one_window_pair(0.3, 1.0),
      DominatingPair({{0.0, 0.9}, {2.0, 0.08}, {4.0, 0.02}}, 3.0, DominatingPair::Against::mirror)};
  const std::vector<double> orders = {1.5, 2.0, 4.0, 8.0, 16.0};
  for (const auto& pair : pairs) {
    const auto found = renyi_divergences(pair, orders);
    for (std::size_t i = 0; i < orders.size(); ++i) {
      const double one = divergence(pair, orders[i], false);
      const double other = divergence(pair, orders[i], true);
      EXPECT_GE(found[i], one * (1.0 - 1e-9)) << orders[i];
      EXPECT_GE(found[i], other * (1.0 - 1e-9)) << orders[i];
      // H_sym has for s ≥ 1 what one direction has, for both of them: at most the two together.
      const double theta = orders[i] - 1.0;
      EXPECT_LE(found[i], 1.01 * std::log(std::exp(theta * one) + std::exp(theta * other) - 1.0) / theta) << orders[i];
    }
  }
}

TEST(Renyi, GrowsWithTheOrderAndIsDilutedByUseProbability) {
  const auto all = renyi_orders();
  const auto found = renyi_divergences(one_window_pair(0.005, 1.0), all);
  for (std::size_t i = 1; i < found.size(); ++i) EXPECT_GE(found[i], found[i - 1]);
  const DominatingPair often({{0.0, 0.5}, {2.0, 0.5}}, 2.0);
  const DominatingPair seldom({{0.0, 0.5}, {2.0, 0.5}}, 2.0, DominatingPair::Against::noise, 0.1);
  EXPECT_LT(renyi_divergences(seldom, std::vector<double>{4.0})[0],
            renyi_divergences(often, std::vector<double>{4.0})[0]);
  EXPECT_TRUE(std::isinf(renyi_divergences(one_window_pair(1.0, 0.05), std::vector<double>{256.0})[0]));
  EXPECT_THROW(static_cast<void>(renyi_divergences(often, std::vector<double>{1.0})), PrivacyError);
}

// What a budget pays for is at least what the exact composition needs: the filter is safe, and of use.
TEST(RenyiBudget, IsAboveTheExactCostAndNotFarAbove) {
  const double delta = 1e-6;
  const auto& orders = renyi_orders();
  const struct {
    double share, sigma, epsilon, least;
  } cases[] = {{0.002, 8.0, 1.0, 0.4}, {0.01, 4.0, 4.0, 0.5}, {0.002, 4.0, 8.0, 0.4}};
  for (const auto& c : cases) {
    const auto pair = one_window_pair(c.share, c.sigma);
    const auto most = static_cast<double>(Accountant(pair).max_uses(c.epsilon, delta));
    const auto cost = renyi_divergences(pair, orders);
    double admitted = 0.0;
    for (std::size_t i = 0; i < orders.size(); ++i)
      admitted = std::max(admitted, std::floor(renyi_budget(orders[i], c.epsilon, delta, orders.size()) / cost[i]));
    EXPECT_LE(admitted, most) << c.sigma;
    EXPECT_GT(admitted, c.least * most) << c.sigma << ": " << admitted << " of " << most;
  }
}

TEST(RenyiBudget, IsTheConversionWithAShareOfDelta) {
  // δ/n = c(α−1) e^{(α−1)(B−ε)}.
  for (const double order : {1.5, 2.0, 16.0}) {
    const double budget = renyi_budget(order, 3.0, 1e-5, 4);
    const double theta = order - 1.0;
    const double c = std::pow(theta, theta) / std::pow(1.0 + theta, 1.0 + theta);
    EXPECT_NEAR(c * std::exp(theta * (budget - 3.0)), 2.5e-6, 1e-15);
    EXPECT_LE(c * std::exp(theta * (budget - 3.0)), 2.5e-6);
  }
  EXPECT_LT(renyi_budget(1.5, 0.1, 1e-9, 16), 0.0);
  EXPECT_THROW(static_cast<void>(renyi_budget(2.0, 0.0, 1e-5, 1)), PrivacyError);
}

}  // namespace
}  // namespace tsdp::privacy
