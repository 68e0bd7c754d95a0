#include "dp/private_step.h"
#include "dp/noise_mechanism.h"
#include "src/dp/lstm_cpu.h"
#include "tsdp/dp/layers.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <optional>

namespace tsdp::dp {
namespace {

TEST(ClipFactors, NeverLetAWindowPassTheClipNorm) {
  // Norms from 1e-8 to 1e8, at both precisions: factor · norm ≤ C even after rounding.
  for (const auto type : {at::kDouble, at::kFloat}) {
    const auto norms = at::logspace(-8, 8, 4001, 10.0, type);
    const auto factors = clip_factors(norms.to(at::kDouble).square(), {0.37, ClipFactor::exact, false, 1}, type);
    EXPECT_LE((factors.to(at::kDouble) * norms.to(at::kDouble)).max().item<double>(), 0.37);
    // Short gradients stay as they are but for the guard against rounding.
    EXPECT_EQ(factors.max().item<double>(),
              at::scalar_tensor(0.37 * rounding_guard(type, 1) / 0.37, type).item<double>());
    EXPECT_GT(factors.max().item<double>(), 1.0 - 1e-5);
    // Opacus's factor is never larger.
    EXPECT_TRUE((clip_factors(norms.to(at::kDouble).square(), {0.37, ClipFactor::opacus, false, 1}, type) <=
                 factors * (1.0 + 1e-5))
                    .all()
                    .item<bool>());
  }
}

TEST(ClipFactors, DropWindowsThatAreNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto factors = clip_factors(at::tensor({4.0, inf, std::nan(""), 0.0}, at::kDouble),
                                    {1.0, ClipFactor::exact, false, 1}, at::kDouble);
  EXPECT_NEAR(factors[0].item<double>(), 0.5, 1e-12);
  EXPECT_EQ(factors[1].item<double>(), 0.0);
  EXPECT_EQ(factors[2].item<double>(), 0.0);
  EXPECT_NEAR(factors[3].item<double>(), 1.0, 1e-12);
}

TEST(AddClippedSum, AWindowThatIsNotFiniteAddsNothing) {
  ParameterBuffer parameters;
  const auto w = parameters.declare("w", {1, 2});
  const auto b = parameters.declare("b", {1});
  parameters.allocate(at::kDouble);
  Linear layer(parameters.value(w), parameters.value(b), parameters.gradient(w), parameters.gradient(b));
  layer.forward(at::tensor({3.0, 4.0, std::nan(""), 1.0}, at::kDouble).view({2, 2}));
  layer.backward({at::tensor({10.0, 1.0}, at::kDouble).view({2, 1})}, false);
  const auto norms =
      add_clipped_sum({&layer}, Records::each_window(2), {1.0, ClipFactor::exact, false, 2}, at::kDouble);
  // Window 0: gradient 10·(3, 4, 1), norm 10·√26; clipped to (3, 4, 1)/√26.
  EXPECT_NEAR(norms[0].item<double>(), 10.0 * std::sqrt(26.0), 1e-10);
  const auto expected = at::tensor({3.0, 4.0, 1.0}, at::kDouble) / std::sqrt(26.0);
  EXPECT_TRUE(at::allclose(parameters.gradients(), expected, 1e-12, 1e-12));
  // No window at all: nothing is added.
  add_clipped_sum({&layer}, Records::each_window(0), {1.0}, at::kDouble);
  EXPECT_TRUE(at::allclose(parameters.gradients(), expected, 1e-12, 1e-12));
}

// Two neighbours that differ in window 0 alone, ±1: later windows of half a unit in the last place are rounded up in
// one sum and down in the other. The sums differ by more than 2, but not by more than what the guard allows for.
TEST(RoundingGuard, CoversWhatRoundingAddsToTheSensitivity) {
  for (const std::int64_t windows : {20, 128, 256, 1024, 4096}) {
    int half = 1;
    while (4 * half <= windows) half *= 2;
    const auto sum = [&](float first) {
      std::vector<float> rows(static_cast<std::size_t>(windows), 0.52F * std::ldexp(static_cast<float>(half), -23));
      std::fill_n(rows.begin(), half, 1.0F);
      rows[0] = first;
      const std::vector<float> ones(rows.size(), 1.0F);
      float total = 0.0F;
      lstm_cpu::weighted_sum(lstm_cpu::best_isa(), windows, ones.data(), rows.data(), 1, 0, 1, &total);
      return static_cast<double>(total);
    };
    const double moved = sum(1.0F) - sum(-1.0F);
    EXPECT_GT(moved, 2.0) << windows;
    EXPECT_LE(moved, 2.0 / rounding_guard(at::kFloat, windows)) << windows;
  }
}

// What a window adds stays within the clip norm where float squares underflow, and where factors would be subnormal.
TEST(AddClippedSum, ExtremeMagnitudesStayWithinTheClipNorm) {
  const std::int64_t d = 64;
  const std::int64_t p = 1536;
  for (const bool kernels : {true, false})
    for (const auto& [x, g] :
         {std::pair{1e19, 2e-23}, std::pair{1e19, 4e-23}, std::pair{1e19, 1e-22}, std::pair{1e38, 1e2},
          std::pair{1e24, 1e-20}, std::pair{1e-22, 1e18}, std::pair{1.0, 1e-25}, std::pair{1e30, 1e8}})
      for (const auto factor : {ClipFactor::exact, ClipFactor::opacus, ClipFactor::automatic}) {
        std::optional<PlainOperations> plain;
        if (!kernels) plain.emplace();
        ParameterBuffer parameters;
        const auto w = parameters.declare("w", {p, d});
        const auto b = parameters.declare("b", {p});
        parameters.allocate(at::kFloat);
        Linear layer(parameters.value(w), parameters.value(b), parameters.gradient(w), parameters.gradient(b));
        layer.forward(at::full({1, d}, x, at::kFloat));
        layer.backward({at::full({1, p}, g, at::kFloat)}, false);
        add_clipped_sum({&layer}, Records::each_window(1), {1e-4, factor}, at::kFloat);
        EXPECT_LE(parameters.gradients().to(at::kDouble).norm().item<double>(), 1e-4)
            << x << ", " << g << ", kernels " << kernels << ", kind " << static_cast<int>(factor);
      }
}

/// y on the grid of noise of this deviation: multiples of 2⁻²⁴ of the power of two at or below it.
double on_grid(double y, double deviation) {
  const double unit = std::exp2(std::floor(std::log2(deviation)) - 24.0);
  return std::nearbyint(y / unit) * unit;
}

TEST(AddNoise, IsTheStreamWhateverTheThreads) {
  const RandomStream stream(SecretKey::from_seed(3), noise_purpose, 11);
  const std::int64_t count = 100'003;
  std::vector<double> normals(static_cast<std::size_t>(count));
  stream.normals(0, normals);
  const int threads = at::get_num_threads();
  for (const int n : {1, 2}) {
    at::set_num_threads(n);
    auto gradient = at::full({count}, 0.25, at::kFloat);
    add_noise(gradient, 3.0, stream);
    for (std::int64_t i = 0; i < count; ++i)
      ASSERT_EQ(gradient.data_ptr<float>()[i],
                static_cast<float>(on_grid(0.25 + 3.0 * normals[static_cast<std::size_t>(i)], 3.0)))
          << i;
  }
  at::set_num_threads(threads);
}

TEST(FinishSum, AddsPartsOfEitherPrecisionAndNoiseOnce) {
  const RandomStream stream(SecretKey::from_seed(4), noise_purpose, 1);
  const std::int64_t count = 40'000;
  std::vector<double> normals(static_cast<std::size_t>(count));
  stream.normals(0, normals);
  for (const double deviation : {0.0, 2e-3, 1.0}) {
    auto gradient = at::rand({count}, at::kFloat);
    const auto first = gradient.clone();
    const auto second = at::rand({count}, at::kDouble);
    finish_sum(gradient, {gradient, second}, deviation, stream, 0.125);
    for (std::int64_t i = 0; i < count; ++i) {
      double sum = deviation * normals[static_cast<std::size_t>(i)];
      sum += static_cast<double>(first.data_ptr<float>()[i]);
      sum += second.data_ptr<double>()[i];
      if (deviation > 0.0) sum = on_grid(sum, deviation);
      ASSERT_EQ(gradient.data_ptr<float>()[i], static_cast<float>(sum) * 0.125F) << i;
    }
  }
}

TEST(FinishSum, RefusesWhatIsNoNoiseOrNoPart) {
  const RandomStream stream(SecretKey::from_seed(4), noise_purpose, 1);
  const auto gradient = at::zeros({10}, at::kFloat);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(finish_sum(gradient, {gradient}, bad, stream, 1.0), c10::Error) << bad;
  EXPECT_THROW(finish_sum(gradient, {at::zeros({9}, at::kFloat)}, 1.0, stream, 1.0), c10::Error);
  EXPECT_THROW(finish_sum(gradient, {at::zeros({10, 2}, at::kFloat).select(1, 0)}, 1.0, stream, 1.0), c10::Error);
}

TEST(AddNoise, HasTheStatedDeviation) {
  const std::int64_t count = 1'000'000;
  auto gradient = at::zeros({count}, at::kDouble);
  add_noise(gradient, 2.5, RandomStream(SecretKey::from_seed(4), noise_purpose, 0));
  // Mean: deviation 2.5e-3, variance: relative deviation √(2/n) = 1.41e-3; bounds at 5.75 deviations (two-sided 1e-8).
  EXPECT_NEAR(gradient.mean().item<double>(), 0.0, 5.75 * 2.5e-3);
  EXPECT_NEAR(gradient.square().mean().item<double>() / 6.25, 1.0, 5.75 * 1.42e-3);
}

TEST(Adam, FollowsItsFormulas) {
  auto values = at::tensor({1.0, -2.0}, at::kDouble);
  Adam adam({0.1, 0.01, 0.9, 0.999, 1e-8}, values);
  double m[2] = {0, 0};
  double v[2] = {0, 0};
  double x[2] = {1.0, -2.0};
  for (int n = 1; n <= 4; ++n) {
    const double g[2] = {0.3 * n, -1.0};
    adam.step(values, at::tensor({g[0], g[1]}, at::kDouble));
    for (int i = 0; i < 2; ++i) {
      const double d = g[i] + 0.01 * x[i];
      m[i] = 0.9 * m[i] + 0.1 * d;
      v[i] = 0.999 * v[i] + 0.001 * d * d;
      x[i] -= 0.1 * (m[i] / (1 - std::pow(0.9, n))) / (std::sqrt(v[i] / (1 - std::pow(0.999, n))) + 1e-8);
      EXPECT_NEAR(values[i].item<double>(), x[i], 1e-12);
    }
  }
}

}  // namespace
}  // namespace tsdp::dp
