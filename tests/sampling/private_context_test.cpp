// The randomiser of inference-time privacy: its law, its parameters, and what depends on which stream.
#include "sampling/private_context.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tsdp/base/error.h"

namespace tsdp::sampling {
namespace {

using namespace privacy;

PrivateContext::Parameters parameters(double keep = 1.0, std::int64_t w = 1, double v = 10.0, double epsilon = 1.0,
                                      double delta = 1e-4) {
  return {epsilon, delta, v, w, keep};
}

struct Window {
  std::vector<float> values;
  std::vector<float> marks;
};

Window released(const PrivateContext& mechanism, std::uint64_t seed, std::uint64_t use, Window window) {
  const auto key = SecretKey::from_seed(seed);
  RandomStream coins(key, context_coins_purpose, use);
  const RandomStream noise(key, context_noise_purpose, use);
  const std::vector<double> exact(window.values.begin(), window.values.end());
  mechanism.release(coins, noise, exact, window.values, window.marks);
  return window;
}

Window constant(std::size_t length, float value) {
  return {std::vector<float>(length, value), std::vector<float>(length, 1.0F)};
}

TEST(PrivateContext, IsAccountedForAsItRuns) {
  for (const double keep : {0.1, 0.3, 0.5, 0.75, 1.0})
    for (const std::int64_t w : {1, 2, 7})
      for (const double epsilon : {0.5, 1.0, 8.0}) {
        SCOPED_TRACE(testing::Message() << keep << ", " << w << ", " << epsilon);
        const PrivateContext mechanism(parameters(keep, w, 0.1, epsilon));
        EXPECT_GE(mechanism.parameters().keep, keep);
        EXPECT_LE(mechanism.parameters().keep, keep + 0x1p-53);
        EXPECT_EQ(mechanism.parameters().keep,
                  std::ldexp(std::floor(std::ldexp(mechanism.parameters().keep, 53)), -53));
        // Never less noise than the claim needs, and hardly more.
        EXPECT_GE(mechanism.noise_multiplier(), privacy::inference_noise(mechanism.mechanism(), epsilon, 1e-4));
        const double reach = 0.1 * (1.0 + 0x1p-19);  // how far apart two values may lie that were read from decimals
        EXPECT_GE(mechanism.noise(), reach * mechanism.noise_multiplier());
        EXPECT_LE(mechanism.noise(), reach * mechanism.noise_multiplier() * (1.0 + 1e-15));
        const double spent = privacy::inference_delta(mechanism.mechanism(), epsilon, mechanism.noise_multiplier());
        EXPECT_LE(spent, 1e-4);
        EXPECT_GE(spent, 1e-4 * (1.0 - 1e-6));
      }
}

TEST(PrivateContext, SeveralChangedValuesNeedTheNoiseOfTheirDistance) {
  // With r = 1 w changes of v are one change of √w v.
  const PrivateContext one(parameters(1.0, 1));
  const PrivateContext nine(parameters(1.0, 9));
  EXPECT_NEAR(nine.noise_multiplier(), 3.0 * one.noise_multiplier(), 1e-7 * nine.noise_multiplier());
  // Dropping helps less the more of them there are, but never costs.
  EXPECT_LT(PrivateContext(parameters(0.5, 9)).noise_multiplier(), nine.noise_multiplier());
}

TEST(PrivateContext, CutNormalsAreChargedForInDelta) {
  // 2⁻¹⁰⁵ e^ε of δ is spent on them: half of it at ε = log(δ/2⁻¹⁰⁴).
  const double delta = 1e-9;
  const double epsilon = std::log(delta * 0x1p104);
  const PrivateContext mechanism(parameters(1.0, 1, 1.0, epsilon, delta));
  const double spent = privacy::inference_delta(mechanism.mechanism(), epsilon, mechanism.noise_multiplier());
  EXPECT_NEAR(spent, 0.5 * delta, 1e-6 * delta);
  EXPECT_THROW(PrivateContext(parameters(1.0, 1, 1.0, epsilon + 0.7, delta)), PrivacyError);
  EXPECT_THROW(PrivateContext(parameters(1.0, 1, 1.0, 1000.0, delta)), PrivacyError);
}

// Shares of n coins lie within 5.5 standard deviations but for 4e-8; so do means of n normals, and mean squares, which
// are as good as normal at this n. All checks together err with probability below 1e-6.
TEST(PrivateContext, KeepsAndNoisesByItsLaw) {
  for (const double keep : {0.3, 0.75, 1.0}) {
    SCOPED_TRACE(keep);
    const PrivateContext mechanism(parameters(keep));
    constexpr std::size_t length = 500;
    constexpr std::uint64_t uses = 1000;
    double kept = 0.0;
    double sum = 0.0;
    double squares = 0.0;
    double beside = 0.0;  // products of neighbours
    double beside_count = 0.0;
    for (std::uint64_t use = 0; use < uses; ++use) {
      const auto window = released(mechanism, 11, use, constant(length, 100.0F));
      double before = 0.0;
      for (std::size_t j = 0; j < length; ++j) {
        if (window.marks[j] == 0.0F) {
          EXPECT_EQ(window.values[j], 0.0F);
          before = 0.0;
          continue;
        }
        const double z = (static_cast<double>(window.values[j]) - 100.0) / mechanism.noise();
        kept += 1.0;
        sum += z;
        squares += z * z;
        if (before != 0.0) {
          beside += z * before;
          beside_count += 1.0;
        }
        before = z;
      }
    }
    const double n = static_cast<double>(length) * static_cast<double>(uses);
    EXPECT_NEAR(kept, keep * n, 5.5 * std::sqrt(n * keep * (1.0 - keep)) + 1e-9);
    EXPECT_NEAR(sum / kept, 0.0, 5.5 / std::sqrt(kept));
    EXPECT_NEAR(squares / kept, 1.0, 5.5 * std::sqrt(2.0 / kept));
    EXPECT_NEAR(beside / beside_count, 0.0, 5.5 / std::sqrt(beside_count));
  }
}

TEST(PrivateContext, PaddingAndMissingValuesStay) {
  const PrivateContext mechanism(parameters(0.75));
  auto whole = constant(40, 7.0F);
  auto holed = whole;
  for (const std::size_t j : {0U, 1U, 2U, 13U, 39U}) holed.values[j] = holed.marks[j] = 0.0F;
  const auto a = released(mechanism, 5, 3, whole);
  const auto b = released(mechanism, 5, 3, holed);
  for (std::size_t j = 0; j < 40; ++j) {
    const bool missing = holed.marks[j] == 0.0F;
    EXPECT_EQ(b.values[j], missing ? 0.0F : a.values[j]) << j;
    EXPECT_EQ(b.marks[j], missing ? 0.0F : a.marks[j]) << j;
  }
}

TEST(PrivateContext, DependsOnTheStreamsAlone) {
  const PrivateContext mechanism(parameters(0.5));
  const auto window = constant(64, 1.0F);
  const auto first = released(mechanism, 5, 0, window);
  const auto again = released(mechanism, 5, 0, window);
  EXPECT_EQ(first.values, again.values);
  EXPECT_EQ(first.marks, again.marks);
  EXPECT_NE(first.marks, released(mechanism, 5, 1, window).marks);
  EXPECT_NE(first.marks, released(mechanism, 6, 0, window).marks);
  EXPECT_NE(first.values, released(mechanism, 5, 1, window).values);
}

TEST(PrivateContext, ExtremeValuesStayFinite) {
  const PrivateContext mechanism(parameters(1.0, 1, 1e37));
  const auto window = released(mechanism, 1, 1, constant(1000, std::numeric_limits<float>::max()));
  for (const float value : window.values) EXPECT_TRUE(std::isfinite(value));
}

TEST(PrivateContext, CutsAndNoisesDoublesBeforeTheyBecomeFloats) {
  const PrivateContext mechanism(parameters(1.0, 1, 2.0));
  const auto key = SecretKey::from_seed(3);
  const RandomStream noise(key, context_noise_purpose, 4);
  std::vector<double> normals(200);
  noise.normals(0, normals);
  std::vector<double> exact(200, 1000000031.0);  // floats lie 64 apart there
  exact[0] = 1e12;
  exact[1] = -1e300;
  exact[2] = std::numeric_limits<double>::quiet_NaN();  // missing
  std::vector<float> values(200, -1.0F);
  std::vector<float> marks(200, 1.0F);
  marks[2] = 0.0F;
  RandomStream coins(key, context_coins_purpose, 4);
  mechanism.release(coins, noise, exact, values, marks);
  EXPECT_EQ(values[0], 0x1p33F);
  EXPECT_EQ(values[1], -0x1p33F);
  EXPECT_EQ(values[2], 0.0F);
  std::size_t up = 0;
  for (std::size_t j = 3; j < 200; ++j) {
    const double y = 1000000031.0 + mechanism.noise() * normals[j];
    EXPECT_EQ(values[j], y > 1000000032.0 ? 1000000064.0F : 1000000000.0F) << j << ": " << y;
    up += values[j] > 1e9F ? 1 : 0;
  }
  EXPECT_GT(up, 50U);  // 44 % of them are expected; a value rounded first would never get there
  std::vector<float> fewer(199);
  EXPECT_THROW(mechanism.release(coins, noise, exact, fewer, marks), Error);
  EXPECT_THROW(mechanism.release(coins, noise, std::span(exact).first(199), values, marks), Error);
}

TEST(PrivateContext, NoNoiseWhereDroppingIsEnough) {
  const PrivateContext mechanism(parameters(0.01, 1, 10.0, 1.0, 0.02));
  EXPECT_EQ(mechanism.noise(), 0.0);
  const auto window = released(mechanism, 2, 2, constant(1000, 3.0F));
  for (std::size_t j = 0; j < 1000; ++j) EXPECT_EQ(window.values[j], window.marks[j] != 0.0F ? 3.0F : 0.0F);
}

TEST(PrivateContext, ImputesByTheMeanOfWhatWasKept) {
  std::vector<float> values = {0.0F, 4.0F, 0.0F, -1.0F, 0.0F, 9.0F};
  std::vector<float> marks = {0.0F, 1.0F, 0.0F, 1.0F, 0.0F, 1.0F};
  const std::vector<float> observed = {0.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
  impute(values, marks, observed);
  EXPECT_EQ(values, (std::vector<float>{0.0F, 4.0F, 4.0F, -1.0F, 4.0F, 9.0F}));
  EXPECT_EQ(marks, observed);
  values = {0.0F, 0.0F};
  marks = {0.0F, 0.0F};
  impute(values, marks, std::vector<float>{1.0F, 1.0F});
  EXPECT_EQ(values, (std::vector<float>{0.0F, 0.0F}));
  EXPECT_EQ(marks, (std::vector<float>{0.0F, 0.0F}));
}

// A pair of normals has up to 2^-48 of its mass where circles lie further apart than single precision rounds; four
// times that for each changed value is what delta has to outweigh.
TEST(PrivateContext, RefusesADeltaThatCoarseNormalsWouldShowIn) {
  for (const std::int64_t w : {1, 3, 1000}) {
    const double least = static_cast<double>(w) * 0x1p-46;
    EXPECT_NO_THROW(PrivateContext(parameters(1.0, w, 1.0, 1.0, least))) << w;
    EXPECT_THROW(PrivateContext(parameters(1.0, w, 1.0, 1.0, std::nextafter(least, 0.0))), PrivacyError) << w;
  }
  EXPECT_THROW(PrivateContext(parameters(1.0, 1, 1.0, 1.0, 1e-26)), PrivacyError);
}

TEST(PrivateContext, RefusesParametersOutOfRange) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (const double epsilon : {0.0, -1.0, nan, infinite, 2e6})
    EXPECT_THROW(PrivateContext(parameters(1.0, 1, 1.0, epsilon)), UsageError) << epsilon;
  for (const double delta : {0.0, -1e-4, 1.0, nan})
    EXPECT_THROW(PrivateContext(parameters(1.0, 1, 1.0, 1.0, delta)), UsageError) << delta;
  for (const double v : {0.0, -1.0, nan}) EXPECT_THROW(PrivateContext(parameters(1.0, 1, v)), UsageError) << v;
  for (const double keep : {0.0, -0.5, 1.5, nan}) EXPECT_THROW(PrivateContext(parameters(keep)), UsageError) << keep;
  for (const std::int64_t w : {0, -1, 1'000'001}) EXPECT_THROW(PrivateContext(parameters(1.0, w)), UsageError) << w;
  EXPECT_THROW(PrivateContext(parameters(1.0, 1, 1e-320)),
               UsageError);  // values so near to each other are not told apart
  // No bound on the change, or one that no noise in numbers could hide.
  EXPECT_THROW(PrivateContext(parameters(1.0, 1, infinite)), PrivacyError);
  EXPECT_THROW(PrivateContext(parameters(1.0, 1, 3e38)), PrivacyError);
}

}  // namespace
}  // namespace tsdp::sampling
