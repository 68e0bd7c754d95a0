// Bins that are drawn anew in every epoch, and the losses that are made from profiles.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "privacy/accountant/composition.h"
#include "privacy/accountant/profile_loss.h"
#include "privacy/theorems/series_law.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "privacy/whole_series/poisson_curve.h"
#include "privacy/whole_series/random_allocation_curve.h"
#include "privacy/whole_series/redrawn_bins_curve.h"

namespace tsdp::privacy {
namespace {

/// H_α(N(μ, 1)‖N(0, 1)) at α = e^ε for any ε.
long double gaussian_profile(long double epsilon, long double mu) {
  const auto below = [](long double x) { return 0.5L * std::erfc(-x / std::sqrt(2.0L)); };
  return below(mu / 2.0L - epsilon / mu) - std::exp(epsilon) * below(-mu / 2.0L - epsilon / mu);
}

double composed(const LossDistribution& loss, std::uint64_t uses, double epsilon) {
  Composer composer{ProductLoss(loss)};
  return composer.compose(uses, best_tilt_for_epsilon(composer.loss(), uses, epsilon)).delta(epsilon);
}

TEST(ProfileLoss, OfAGaussianComposesToBothSidesOfTheClosedForm) {
  constexpr double mu = 0.3;
  constexpr double step = 0x1p-6;  // a twentieth of the deviation
  std::vector<ProfilePoint> points;
  std::vector<LossCell> cells;
  const auto below = [](double x) { return 0.5L * std::erfc(-static_cast<long double>(x) / std::sqrt(2.0L)); };
  // A cell of losses is one of x, as the loss of N(μ, 1) against N(0, 1) is μ x − μ²/2.
  const auto at = [&](std::int64_t index) { return (static_cast<double>(index) * step + 0.5 * mu * mu) / mu; };
  for (std::int64_t index = -200; index <= 200; ++index) {
    points.push_back({index, gaussian_profile(static_cast<double>(index) * step, mu)});
    cells.push_back({below(at(index + 1) - mu) - below(at(index) - mu), below(at(index + 1)) - below(at(index))});
  }
  const auto above = dominating_loss(points, step);
  const auto under = dominated_loss(cells, step);
  double mass = above.at_zero + above.infinite_mass;
  for (const auto& point : above.points) mass += point.plus + point.minus;
  EXPECT_NEAR(mass, 1.0, 1e-12);
  for (const std::uint64_t uses : {1U, 7U, 100U})
    for (const double epsilon : {0.0, 0.1, 0.5, 2.0}) {
      SCOPED_TRACE(std::to_string(uses) + " uses, epsilon " + std::to_string(epsilon));
      const auto truth = gaussian_delta(epsilon, mu * std::sqrt(static_cast<double>(uses)));
      if (truth.lower < 1e-9) continue;
      EXPECT_GE(composed(above, uses, epsilon), truth.lower);
      EXPECT_LE(composed(under, uses, epsilon), truth.upper);
      EXPECT_LE(composed(above, uses, epsilon), 1.003 * truth.upper);
      EXPECT_GE(composed(under, uses, epsilon), 0.99 * truth.lower);
    }
}

// Points that are off upwards, as bounds are, never make a profile that is below the true one, though they are no
// longer convex.
TEST(ProfileLoss, StaysAboveWherePointsAreOff) {
  constexpr double mu = 0.5;
  constexpr double step = 0x1p-5;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> off(0.0, 1.0);
  std::vector<ProfilePoint> points;
  for (std::int64_t index = -150; index <= 150; ++index)
    points.push_back({index, gaussian_profile(static_cast<double>(index) * step, mu) + 1e-6L * off(random)});
  const auto above = dominating_loss(points, step);
  for (const auto& point : above.points) {
    EXPECT_GE(point.plus, 0.0);
    EXPECT_GE(point.minus, 0.0);
  }
  for (const double epsilon : {0.0, 0.51, 1.9, 3.3}) {
    const auto truth = gaussian_delta(epsilon, mu * 3.0);
    EXPECT_GE(composed(above, 9, epsilon), truth.lower) << epsilon;
    EXPECT_LE(composed(above, 9, epsilon), truth.upper + 3e-4) << epsilon;
  }
}

TEST(RedrawnBinsCurve, ByMonteCarloInBothDirections) {
  constexpr int bins = 6;
  constexpr double sigma = 1.3;
  constexpr int epochs = 4;
  constexpr int samples = 1'000'000;
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  const std::vector<double> epsilons = {0.0, 0.5, 1.2};
  for (const auto direction : {Direction::remove, Direction::add}) {
    SCOPED_TRACE(direction == Direction::remove ? "remove" : "add");
    std::vector<double> sum(epsilons.size()), square(epsilons.size());
    for (int i = 0; i < samples; ++i) {
      double loss = 0.0;
      for (int e = 0; e < epochs; ++e) {
        double ratio = 0.0;
        for (int t = 0; t < bins; ++t) {
          const double y = sigma * normal(random) + (t == 0 && direction == Direction::remove ? 1.0 : 0.0);
          ratio += std::exp((y - 0.5) / (sigma * sigma)) / bins;
        }
        loss += direction == Direction::remove ? std::log(ratio) : -std::log(ratio);
      }
      for (std::size_t j = 0; j < epsilons.size(); ++j) {
        const double value = std::max(0.0, -std::expm1(epsilons[j] - loss));
        sum[j] += value;
        square[j] += value * value;
      }
    }
    RedrawnBinsCurve curve(bins, sigma, direction);
    for (std::size_t j = 0; j < epsilons.size(); ++j) {
      SCOPED_TRACE(epsilons[j]);
      const double mean = sum[j] / samples;
      const double error = std::sqrt((square[j] / samples - mean * mean) / samples);
      const auto found = curve.delta(epsilons[j], epochs);
      EXPECT_GE(found.upper, mean - 5.5 * error);
      EXPECT_LE(found.lower, mean + 5.5 * error);
      EXPECT_LT(found.upper, 1.04 * found.lower);
    }
  }
}

TEST(RedrawnBinsCurve, OneBinAndOneEpochAreKnown) {
  RedrawnBinsCurve one_bin(1, 1.5);
  const auto fixed = GaussianCurve(1.5).delta(0.7, 3);
  EXPECT_EQ(one_bin.delta(0.7, 3).upper, fixed.upper);
  EXPECT_GE(one_bin.delta(0.7, 3).lower, 0.999 * fixed.lower);
  RedrawnBinsCurve anew(20, 1.0);
  RandomAllocationCurve once(20, 1.0);
  for (const double epsilon : {0.2, 0.8, 1.5}) {
    const auto a = anew.delta(epsilon, 1);
    const auto b = once.delta(epsilon, 1);
    EXPECT_LE(a.lower, b.upper) << epsilon;
    EXPECT_LE(b.lower, a.upper) << epsilon;
    EXPECT_LT(a.upper, 1.1 * b.upper) << epsilon;
  }
}

// An independent program's bracket for 25 batches, 40 epochs, sigma 6: [0.870, 0.910]; and never more than coins by 3
// %.
TEST(RedrawnBinsCurve, IsAsExpectedBesideOtherSamplers) {
  const auto found = RedrawnBinsCurve(25, 6.0).epsilon(1e-6, 40);
  EXPECT_GT(found.upper, 0.870);
  EXPECT_LT(found.lower, 0.910);
  struct Setting {
    std::int64_t bins;
    double sigma;
    std::uint64_t epochs;
    double delta;
  };
  for (const auto& s : {Setting{25, 6.0, 40, 1e-6}, Setting{100, 1.0, 10, 1e-5}, Setting{1000, 3.0, 1000, 1e-7}}) {
    SCOPED_TRACE(s.bins);
    const auto anew = RedrawnBinsCurve(s.bins, s.sigma).epsilon(s.delta, s.epochs);
    const auto coins = PoissonCurve(1.0 / static_cast<double>(s.bins), s.sigma)
                           .epsilon(s.delta, s.epochs * static_cast<std::uint64_t>(s.bins));
    EXPECT_LT(anew.upper, 1.03 * coins.lower);
    EXPECT_LT(anew.upper, 1.05 * anew.lower);
    EXPECT_LT(anew.upper, 0.5 * RandomAllocationCurve(s.bins, s.sigma).epsilon(s.delta, s.epochs, 1e-2).lower);
  }
}

TEST(RedrawnBinsCurve, MoreNoiseAndFewerEpochsCostLess) {
  const auto upper = [](double sigma, std::uint64_t epochs) {
    return RedrawnBinsCurve(50, sigma).epsilon(1e-6, epochs).upper;
  };
  EXPECT_LT(upper(2.0, 20), upper(1.5, 20));
  EXPECT_LT(upper(2.0, 10), upper(2.0, 20));
  // Far out every end is still ordered, and nothing is thrown.
  for (const double sigma : {0.02, 0.3, 300.0, 8e3, 1e5})
    for (const std::uint64_t epochs : {1U, 1000U}) {
      RedrawnBinsCurve curve(50, sigma);
      const auto delta = curve.delta(3.0, epochs);
      EXPECT_LE(delta.lower, delta.upper) << sigma;
      EXPECT_LE(delta.upper, GaussianCurve(sigma).delta(3.0, epochs).upper) << sigma;
    }
}

TEST(RedrawnBinsCurve, TheMostUsesAreTheLastThatAreCertified) {
  RedrawnBinsCurve curve(30, 2.0);
  const auto most = curve.max_uses(1.0, 1e-6);
  EXPECT_GT(most, 1U);
  EXPECT_TRUE(curve.stays_within(1.0, 1e-6, most));
  EXPECT_FALSE(curve.stays_within(1.0, 1e-6, most + 1));
}

}  // namespace
}  // namespace tsdp::privacy
