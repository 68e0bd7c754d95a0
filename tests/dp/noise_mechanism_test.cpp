// Correlated noise as it is made from step to step, against C⁻¹Z made from the matrix.
#include "dp/noise_mechanism.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>

#include <cmath>
#include <vector>

#include "support/correlated_noise.h"
#include "tsdp/base/error.h"
#include "tsdp/privacy/matrix/strategy_search.h"

namespace tsdp::dp {
namespace {

using privacy::NoiseRecursion;
using privacy::StrategyKind;
using test::noise_of;

std::vector<privacy::Strategy> strategies() {
  std::vector<privacy::Strategy> out;
  for (const auto kind : {StrategyKind::identity, StrategyKind::bsr, StrategyKind::bisr, StrategyKind::band_mf,
                          StrategyKind::band_inv_mf, StrategyKind::blt})
    out.push_back(privacy::planned_strategy({kind, 4, 2}, 10, 4));
  // Not normalised, of mixed signs, with more bands than steps of an epoch; and one band alone.
  out.emplace_back(
      StrategyKind::file,
      NoiseRecursion{NoiseRecursion::Form::banded, {2.0, -0.5, 0.25, 0.5, 0, 0, 0, 0, 0, 0, 0.125, 0.25}, {}, {}}, 40);
  out.emplace_back(StrategyKind::file,
                   NoiseRecursion{NoiseRecursion::Form::banded_inverse, {0.5, 0.25, -0.125}, {}, {}}, 40);
  out.emplace_back(StrategyKind::file, NoiseRecursion{NoiseRecursion::Form::banded, {3.0}, {}, {}}, 40);
  out.emplace_back(StrategyKind::file, NoiseRecursion{NoiseRecursion::Form::banded_inverse, {3.0}, {}, {}}, 40);
  return out;
}

at::Tensor normals_of(const SecretKey& key, std::uint64_t step, std::int64_t count) {
  std::vector<double> z(static_cast<std::size_t>(count));
  RandomStream(key, noise_purpose, step).normals(0, z);
  return at::tensor(z, at::kDouble);
}

TEST(CorrelatedNoise, IsTheInverseTimesTheNormals) {
  const auto key = SecretKey::from_seed(7);
  constexpr std::int64_t count = 20'000;  // several parts a thread
  constexpr double deviation = 3.0;
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    for (const auto& strategy : strategies()) {
      SCOPED_TRACE(name(strategy.kind()));
      auto noise = noise_of(strategy, deviation, count);
      const auto q = strategy.inverse();
      std::vector<at::Tensor> z;
      for (std::uint64_t step = 0; step < 25; ++step) {
        z.push_back(normals_of(key, step, count));
        auto expected = at::zeros({count}, at::kDouble);
        for (std::uint64_t s = 0; s <= step; ++s) expected += z[s] * (q[step - s] * deviation);
        auto gradient = at::full({count}, 5.0, at::kDouble);
        noise.finish(gradient, {at::full({count}, 2.0, at::kDouble)}, key, step, 0.5);
        const auto found = gradient * 2.0 - 2.0;
        EXPECT_LT((found - expected).abs().max().item<double>(), 1e-6 * deviation) << "step " << step;
      }
    }
  }
  at::set_num_threads(before);
}

TEST(CorrelatedNoise, GoesOnFromItsState) {
  const auto key = SecretKey::from_seed(8);
  constexpr std::int64_t count = 500;
  for (const auto& strategy : strategies()) {
    SCOPED_TRACE(name(strategy.kind()));
    auto whole = noise_of(strategy, 1.0, count);
    auto part = std::make_unique<CorrelatedNoise>(noise_of(strategy, 1.0, count));
    for (std::uint64_t step = 0; step < 30; ++step) {
      if (step % 7 == 3) {
        auto next = std::make_unique<CorrelatedNoise>(noise_of(strategy, 1.0, count));
        const auto from = part->state();
        const auto to = next->state();
        ASSERT_EQ(from.size(), to.size());
        for (std::size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
        part = std::move(next);
      }
      auto a = at::zeros({count}, at::kFloat);
      auto b = at::zeros({count}, at::kFloat);
      whole.finish(a, {}, key, step, 1.0);
      part->finish(b, {}, key, step, 1.0);
      EXPECT_TRUE(at::equal(a, b)) << "step " << step;
    }
  }
}

// C x has independent entries of the stated variance: 1e5 draws of ten steps. Bounds at 6 standard errors for 55
// numbers of each strategy: an error rate below 1e-6 a test.
TEST(CorrelatedNoise, TimesTheMatrixIsIndependent) {
  const auto key = SecretKey::from_seed(9);
  constexpr std::int64_t count = 100'000;
  constexpr std::size_t steps = 10;
  for (const auto& strategy : strategies()) {
    SCOPED_TRACE(name(strategy.kind()));
    auto noise = noise_of(strategy, 2.0, count);
    const auto c = strategy.column();
    std::vector<at::Tensor> x, y;
    for (std::size_t t = 0; t < steps; ++t) {
      x.push_back(at::zeros({count}, at::kDouble));
      noise.finish(x.back(), {}, key, t, 1.0);
      y.push_back(at::zeros({count}, at::kDouble));
      for (std::size_t s = 0; s <= t; ++s) y.back() += x[s] * c[t - s];
    }
    const double error = 6.0 * 4.0 / std::sqrt(static_cast<double>(count));
    for (std::size_t t = 0; t < steps; ++t)
      for (std::size_t s = 0; s <= t; ++s)
        EXPECT_NEAR(y[t].dot(y[s]).item<double>() / static_cast<double>(count), t == s ? 4.0 : 0.0,
                    t == s ? 1.5 * error : error)
            << t << ", " << s;
  }
}

// Noise on a lattice coarser than the grid of releases would tell, by the digits that no noise could have given, what
// sum lies beneath. So of many coordinates some need more digits than single precision has.
TEST(CorrelatedNoise, IsFinerThanTheGridOfReleases) {
  const auto key = SecretKey::from_seed(10);
  constexpr std::int64_t count = 2000;
  for (const auto& strategy : strategies()) {
    SCOPED_TRACE(name(strategy.kind()));
    auto noise = noise_of(strategy, 1.3, count);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const auto before = noise.state().front().clone();
      auto gradient = at::zeros({count}, at::kDouble);
      noise.finish(gradient, {}, key, step, 1.0);
      const auto kept = noise.state().front();
      if (kept.size(0) == 0) continue;
      const auto changed = kept.ne(before);
      const auto fine = kept.ne(kept.to(at::kFloat).to(at::kDouble)).logical_and(changed);
      EXPECT_GT(fine.sum().item<std::int64_t>(), count * 9 / 10) << "step " << step;
    }
  }
}

TEST(CorrelatedNoise, RefusesStepsThatWereNotPlanned) {
  auto noise = noise_of(privacy::Strategy(StrategyKind::bsr, privacy::square_root_bands(2), 3), 1.0, 10);
  auto gradient = at::zeros({10}, at::kFloat);
  EXPECT_THROW(noise.finish(gradient, {}, SecretKey::from_seed(1), 1, 1.0), Error);
  for (std::uint64_t step = 0; step < 3; ++step) noise.finish(gradient, {}, SecretKey::from_seed(1), step, 1.0);
  EXPECT_THROW(noise.finish(gradient, {}, SecretKey::from_seed(1), 2, 1.0), Error);
  EXPECT_THROW(noise.finish(gradient, {}, SecretKey::from_seed(1), 3, 1.0), Error);
}

}  // namespace
}  // namespace tsdp::dp
