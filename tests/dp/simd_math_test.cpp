// The branch-free functions against references in extended and 50-digit precision.
#include "src/dp/simd_math.h"

#include <gtest/gtest.h>

#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "support/draw.h"

namespace tsdp::dp::simd_math {
namespace {

using Wide = boost::multiprecision::cpp_bin_float_50;
using test::Draw;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int draws = 100000;

/// The largest relative error over `points`; results below `floor` are compared absolutely.
double worst(const std::vector<double>& points, const std::function<double(double)>& f,
             const std::function<long double(long double)>& reference, long double floor = 0) {
  long double most = 0;
  for (const double x : points) {
    const long double expected = reference(x);
    const long double size = std::max(std::abs(expected), floor);
    const long double error = std::abs(static_cast<long double>(f(x)) - expected);
    const long double relative = size == 0 ? (error == 0 ? 0.0L : 1.0L) : error / size;
    if (!(relative <= most)) most = relative;  // NaN stays
  }
  return static_cast<double>(most);
}

std::vector<double> log_spaced(double low, double high, std::uint64_t seed, int count = draws) {
  Draw draw(seed);
  std::vector<double> points;
  for (int i = 0; i < count; ++i) points.push_back(draw.log_between(low, high));
  return points;
}

std::vector<double> evenly(double low, double high, std::uint64_t seed) {
  Draw draw(seed);
  std::vector<double> points;
  for (int i = 0; i < draws; ++i) points.push_back(draw.between(low, high));
  return points;
}

TEST(SimdMath, Log) {
  const auto f = [](double x) { return log(x); };
  const auto reference = [](long double x) { return std::log(x); };
  EXPECT_LT(worst(log_spaced(1e-300, 1e300, 1), f, reference), 4e-16);
  EXPECT_LT(worst(evenly(0.5, 2.0, 2), f, reference), 4e-16);
  EXPECT_LT(worst(log_spaced(0.999999, 1.000001, 3), f, reference), 4e-16);
  EXPECT_LT(worst({1.0, 0x1p-1074, 0x1p-1022, 3e-310, std::numeric_limits<double>::max()}, f, reference), 4e-16);
  EXPECT_EQ(log(1.0), 0.0);
  EXPECT_EQ(log(0.0), -infinity);
  EXPECT_EQ(log(-0.0), -infinity);
  EXPECT_EQ(log(infinity), infinity);
  EXPECT_TRUE(std::isnan(log(-1.0)));
  EXPECT_TRUE(std::isnan(log(-infinity)));
  EXPECT_TRUE(std::isnan(log(nan)));
}

TEST(SimdMath, Exp) {
  const auto f = [](double x) { return exp(x); };
  const auto reference = [](long double x) { return std::exp(x); };
  EXPECT_LT(worst(evenly(-708.0, 709.78, 4), f, reference), 3e-16);
  EXPECT_LT(worst(evenly(-1.0, 1.0, 5), f, reference), 3e-16);
  EXPECT_LT(worst(log_spaced(1e-300, 1.0, 6), f, reference), 3e-16);
  EXPECT_EQ(exp(0.0), 1.0);
  EXPECT_EQ(exp(-708.5), 0.0);
  EXPECT_EQ(exp(-infinity), 0.0);
  EXPECT_EQ(exp(709.79), infinity);
  EXPECT_EQ(exp(infinity), infinity);
  EXPECT_TRUE(std::isnan(exp(nan)));
  EXPECT_TRUE(std::isnan(exp(std::bit_cast<double>(0xFFF8000000000123ULL))));
}

TEST(SimdMath, Log1p) {
  const auto f = [](double x) { return log1p(x); };
  const auto reference = [](long double x) { return std::log1p(x); };
  EXPECT_LT(worst(log_spaced(1e-300, 1e307, 7), f, reference), 5e-16);
  EXPECT_LT(worst(log_spaced(1e-3, 1e3, 8), f, reference), 5e-16);
  EXPECT_LT(worst(evenly(0.0, 4.0, 9), f, reference), 5e-16);
  const double largest = std::numeric_limits<double>::max();
  EXPECT_LT(worst({1.0, 1.0 - 0x1p-53, 3.0, 0x1p53, 0x1p64, 0x1p1023, 0x1.8p1023, largest, 0x1p-1021}, f, reference),
            5e-16);
  EXPECT_EQ(log1p(0.0), 0.0);
  EXPECT_EQ(log1p(infinity), infinity);
  EXPECT_TRUE(std::isnan(log1p(nan)));
}

TEST(SimdMath, SoftplusAndSigmoid) {
  // exp in double overflows nowhere on these ranges; log1p keeps small results.
  const auto reference = [](long double x) { return x > 20 ? x : std::log1p(std::exp(x)); };
  const auto slope = [](long double x) { return 1 / (1 + std::exp(-x)); };
  for (const auto& points : {evenly(-700.0, 100.0, 10), evenly(-3.0, 3.0, 11), evenly(19.0, 21.0, 12)}) {
    EXPECT_LT(worst(points, [](double x) { return softplus(x); }, reference), 7e-16);
    EXPECT_LT(worst(points, [](double x) { return sigmoid(x); }, slope), 7e-16);
  }
  EXPECT_EQ(softplus(20.000001), 20.000001);
  EXPECT_EQ(softplus(infinity), infinity);
  EXPECT_EQ(softplus(-infinity), 0.0);
  EXPECT_EQ(sigmoid(infinity), 1.0);
  EXPECT_EQ(sigmoid(-infinity), 0.0);
  EXPECT_EQ(sigmoid(0.0), 0.5);
  EXPECT_TRUE(std::isnan(softplus(nan)));
  EXPECT_TRUE(std::isnan(sigmoid(nan)));
}

/// Stirling's series of lgamma and its derivative in 50 digits, after a shift to beyond 60.
Wide wide_lgamma(Wide x) {
  Wide product = 1;
  for (; x < 60; x += 1) product *= x;
  const Wide b[] = {Wide(1) / 12,         Wide(-1) / 360,        Wide(1) / 1260, Wide(-1) / 1680,
                    Wide(1) / 1188,       Wide(-691) / 360360,   Wide(1) / 156,  Wide(-3617) / 122400,
                    Wide(43867) / 244188, Wide(-174611) / 125400};
  Wide sum = 0;
  Wide power = 1 / x;
  for (const Wide& c : b) {
    sum += c * power;
    power /= x * x;
  }
  const Wide two_pi = 8 * atan(Wide(1));
  return (x - Wide(1) / 2) * log(x) - x + log(two_pi) / 2 + sum - log(product);
}
Wide wide_digamma(Wide x) {
  Wide shift = 0;
  for (; x < 60; x += 1) shift += 1 / x;
  const Wide b[] = {Wide(1) / 12,       Wide(-1) / 120, Wide(1) / 252,      Wide(-1) / 240,      Wide(1) / 132,
                    Wide(-691) / 32760, Wide(1) / 12,   Wide(-3617) / 8160, Wide(43867) / 14364, Wide(-174611) / 6600};
  Wide sum = 0;
  Wide power = 1 / (x * x);
  for (const Wide& c : b) {
    sum += c * power;
    power /= x * x;
  }
  return log(x) - 1 / (2 * x) - sum - shift;
}

TEST(SimdMath, ReferencesAgreeWithBoost) {
  for (const double h : log_spaced(1.0, 1e6, 13, 200)) {
    EXPECT_NEAR(static_cast<double>(wide_lgamma(h) / (boost::math::lgamma(static_cast<long double>(h)))), 1.0, 1e-15);
    EXPECT_NEAR(static_cast<double>(wide_digamma(h) / boost::math::digamma(static_cast<long double>(h))), 1.0, 1e-14);
  }
}

TEST(SimdMath, GammaDifferences) {
  const Wide half = Wide(1) / 2;
  double worst_lgamma = 0;
  double worst_digamma = 0;
  double worst_lgamma_rest = 0;
  double worst_digamma_rest = 0;
  auto points = log_spaced(1.0, 1e9, 14, 1500);
  for (const double h : log_spaced(1.0, 4.0, 15, 1500)) points.push_back(h);
  for (const double h : {1.0, 1.0 + 0x1p-52, 1.5, 2.0, 1e9}) points.push_back(h);
  for (const double h : points) {
    const Wide x = h;
    const Wide lgamma = wide_lgamma(x + half) - wide_lgamma(x);
    const Wide digamma = wide_digamma(x + half) - wide_digamma(x);
    const auto relative = [](double got, const Wide& expected, const Wide& size) {
      return static_cast<double>(abs(got - expected) / size);
    };
    const auto rests = detail::gamma_rests(1.0 / h);
    const Wide size = abs(lgamma) > 1 ? Wide(abs(lgamma)) : Wide(1);
    worst_lgamma = std::max(worst_lgamma, relative(lgamma_difference(h), lgamma, size));
    worst_digamma = std::max(worst_digamma, relative(digamma_difference(h), digamma, digamma));
    if (h > 1e6) continue;  // the references of the rests cancel
    const Wide lgamma_rest = lgamma - log(x) / 2;
    const Wide digamma_rest = digamma - 1 / (2 * x);
    worst_lgamma_rest = std::max(worst_lgamma_rest, relative(rests.lgamma, lgamma_rest, abs(lgamma_rest)));
    worst_digamma_rest = std::max(worst_digamma_rest, relative(rests.digamma, digamma_rest, abs(digamma_rest)));
  }
  EXPECT_LT(worst_lgamma, 7e-16);
  EXPECT_LT(worst_digamma, 1e-15);
  EXPECT_LT(worst_lgamma_rest, 6e-15);
  EXPECT_LT(worst_digamma_rest, 3e-15);
  // Beyond, the first term of each asymptotic series is all that counts.
  for (const double h : log_spaced(1e9, 1e300, 16, 10000)) {
    const long double x = h;
    EXPECT_NEAR(static_cast<double>(lgamma_difference(h) / (0.5L * std::log(x) - 1 / (8 * x))), 1.0, 5e-16);
    EXPECT_NEAR(static_cast<double>(digamma_difference(h) / (1 / (2 * x) + 1 / (8 * x * x))), 1.0, 5e-16);
  }
  EXPECT_EQ(lgamma_difference(infinity), infinity);
  EXPECT_EQ(digamma_difference(infinity), 0.0);
  EXPECT_TRUE(std::isnan(lgamma_difference(nan)));
  EXPECT_TRUE(std::isnan(digamma_difference(nan)));
}

}  // namespace
}  // namespace tsdp::dp::simd_math
