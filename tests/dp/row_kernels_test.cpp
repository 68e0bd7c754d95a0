// The row kernels against plain loops in extended precision.
#include "src/dp/row_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "support/draw.h"

namespace tsdp::dp::rows {
namespace {

using test::Draw;
using Wide = long double;

template <typename T>
constexpr double unit = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;

template <typename T>
std::vector<T> random(std::size_t count, Draw& draw, double low = -1, double high = 1) {
  std::vector<T> values(count);
  for (T& v : values) v = static_cast<T>(draw.between(low, high));
  return values;
}

template <typename T>
class RowKernels : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(RowKernels, Types);

TYPED_TEST(RowKernels, SquaredNorms) {
  using T = TypeParam;
  Draw draw(1);
  for (const std::int64_t length : {0, 1, 3, 8, 15, 16, 17, 63, 64, 65, 195, 1000, 4096, 4097, 8200, 20000}) {
    const std::int64_t count = 5;
    const std::int64_t stride = length + draw.one_of(4);
    const auto rows = random<T>(static_cast<std::size_t>(count * stride + 1), draw);
    std::vector<double> out(count, 0.25);
    const bool add = draw.one_of(2) == 1;
    squared_norms(rows.data(), count, length, stride, out.data(), add);
    for (std::int64_t i = 0; i < count; ++i) {
      Wide expected = add ? 0.25L : 0.0L;
      for (std::int64_t k = 0; k < length; ++k) {
        const Wide v = rows[static_cast<std::size_t>(i * stride + k)];
        expected += v * v;
      }
      EXPECT_NEAR(out[static_cast<std::size_t>(i)], static_cast<double>(expected),
                  70 * unit<T> * static_cast<double>(expected))
          << length;
    }
  }
}

TYPED_TEST(RowKernels, SquaredNormsOfUnequalSizes) {
  using T = TypeParam;
  // All squares in one lane, growing: the order that rounds worst.
  std::vector<T> row(64 * 70, T(0));
  Wide expected = 0;
  for (std::size_t i = 0; i < row.size(); i += 16) {
    row[i] = static_cast<T>(1.0 + 1e-3 * static_cast<double>(i % 37));
    expected += static_cast<Wide>(row[i]) * static_cast<Wide>(row[i]);
  }
  double out = 0;
  squared_norms(row.data(), 1, static_cast<std::int64_t>(row.size()), 0, &out);
  EXPECT_NEAR(out / static_cast<double>(expected), 1.0, 70 * unit<T>);
  row[5] = std::numeric_limits<T>::infinity();
  squared_norms(row.data(), 1, static_cast<std::int64_t>(row.size()), 0, &out);
  EXPECT_TRUE(std::isinf(out));
  row[5] = std::numeric_limits<T>::quiet_NaN();
  squared_norms(row.data(), 1, static_cast<std::int64_t>(row.size()), 0, &out);
  EXPECT_TRUE(std::isnan(out));
}

TEST(RowKernelsOfDoubles, Scale) {
  std::vector<double> values = {1.0, -2.0, 0.5, 3.0, 7.0, 1e300, 0.0, 4.0, 9.0, 1.0};
  const auto before = values;
  scale(values.data(), 9, 3.0);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(values[i], 3.0 * before[i]);
  EXPECT_EQ(values[9], 1.0);
}

TYPED_TEST(RowKernels, AddAndStore) {
  using T = TypeParam;
  Draw draw(2);
  for (const std::size_t length : {0, 1, 7, 16, 40, 195}) {
    const auto first = random<T>(length, draw);
    const auto second = random<double>(length, draw);
    const auto factor = random<T>(1, draw)[0];
    std::vector<double> sums(length + 1, 0.0);
    std::vector<T> out(length + 1, T(7));
    sums[length] = 5.0;
    add(first.data(), static_cast<std::int64_t>(length), sums.data());
    add(second.data(), static_cast<std::int64_t>(length), sums.data());
    store(sums.data(), static_cast<std::int64_t>(length), 0.0, factor, out.data());
    for (std::size_t i = 0; i < length; ++i) {
      EXPECT_EQ(sums[i], static_cast<double>(first[i]) + second[i]);
      EXPECT_EQ(out[i], static_cast<T>(sums[i]) * factor);
    }
    EXPECT_EQ(sums[length], 5.0);
    // An offset of 1.5 · 2^52 · 2^-10 leaves multiples of 2^-10.
    store(sums.data(), static_cast<std::int64_t>(length), 0x1.8p42, T(1), out.data());
    for (std::size_t i = 0; i < length; ++i)
      EXPECT_EQ(out[i], static_cast<T>(std::nearbyint(sums[i] * 0x1p10) * 0x1p-10));
    EXPECT_EQ(out[length], T(7));
  }
}

TYPED_TEST(RowKernels, LayerNorm) {
  using T = TypeParam;
  Draw draw(3);
  for (const std::size_t width : {1, 2, 5, 16, 20, 37, 40, 64, 100, 256}) {
    const std::size_t count = 7;
    auto x = random<T>(count * width, draw, -3, 4);
    for (std::size_t k = 0; k < width; ++k) x[k] = T(2);  // no variance at all
    const auto gain = random<T>(width, draw, 0.5, 2);
    const auto shift = random<T>(width, draw);
    const auto g = random<T>(count * width, draw);
    const auto factors = random<T>(count, draw, 0, 1);
    std::vector<T> y(count * width), dx(count * width), mean(count), inverse(count);
    layer_norm_forward(x.data(), static_cast<std::int64_t>(count), static_cast<std::int64_t>(width), gain.data(),
                       shift.data(), y.data(), mean.data(), inverse.data());
    const LayerNorm<T> layer{x.data(),
                             mean.data(),
                             inverse.data(),
                             gain.data(),
                             static_cast<std::int64_t>(count),
                             static_cast<std::int64_t>(width)};
    std::vector<double> norms(count, 0.5);
    layer_norm_backward(layer, g.data(), dx.data(), norms.data(), true);
    auto in_place = g;
    layer_norm_backward<T>(layer, in_place.data(), in_place.data(), nullptr);
    std::vector<T> plain_gain(width, T(1)), plain_shift(width, T(0)), gain_sum(width, T(0)), shift_sum(width, T(2));
    layer_norm_gradient<T>(layer, g.data(), nullptr, plain_gain.data(), plain_shift.data());
    layer_norm_gradient(layer, g.data(), factors.data(), gain_sum.data(), shift_sum.data());

    std::vector<Wide> gains(width, 1), shifts(width, 0), weighted_gains(width, 0), weighted_shifts(width, 2);
    for (std::size_t i = 0; i < count; ++i) {
      const T* row = x.data() + i * width;
      const T* gradient = g.data() + i * width;
      const auto n = static_cast<Wide>(width);
      Wide m = 0, variance = 0;
      for (std::size_t k = 0; k < width; ++k) m += row[k] / n;
      for (std::size_t k = 0; k < width; ++k) variance += (row[k] - m) * (row[k] - m) / n;
      const Wide scale = 1 / std::sqrt(variance + 1e-5L);
      Wide first = 0, second = 0, norm = 0.5L;
      for (std::size_t k = 0; k < width; ++k) {
        const Wide unit_x = (row[k] - m) * scale;
        first += static_cast<Wide>(gain[k]) * gradient[k] / n;
        second += static_cast<Wide>(gain[k]) * gradient[k] * unit_x / n;
        const Wide by_gain = gradient[k] * unit_x;
        norm += by_gain * by_gain + static_cast<Wide>(gradient[k]) * gradient[k];
        gains[k] += by_gain;
        shifts[k] += gradient[k];
        weighted_gains[k] += factors[i] * by_gain;
        weighted_shifts[k] += static_cast<Wide>(factors[i]) * gradient[k];
      }
      // The mean is off by some units of the largest value, and what is divided by a deviation that much more.
      const double tolerance = 40 * unit<T> * static_cast<double>(1 + 4 * scale);
      EXPECT_NEAR(norms[i], static_cast<double>(norm), 2 * tolerance * static_cast<double>(norm));
      for (std::size_t k = 0; k < width; ++k) {
        const Wide unit_x = (row[k] - m) * scale;
        EXPECT_NEAR(y[i * width + k], static_cast<double>(gain[k] * unit_x + shift[k]), 4 * tolerance) << width;
        const auto expected = static_cast<double>(scale * (gain[k] * gradient[k] - first - unit_x * second));
        EXPECT_NEAR(dx[i * width + k], expected, 8 * tolerance * static_cast<double>(1 + scale)) << width;
        EXPECT_NEAR(in_place[i * width + k], dx[i * width + k], 8 * tolerance * static_cast<double>(1 + scale));
      }
    }
    for (std::size_t k = 0; k < width; ++k) {
      EXPECT_NEAR(plain_gain[k], static_cast<double>(gains[k]), 4000 * unit<T>);
      EXPECT_NEAR(plain_shift[k], static_cast<double>(shifts[k]), 100 * unit<T>);
      EXPECT_NEAR(gain_sum[k], static_cast<double>(weighted_gains[k]), 4000 * unit<T>);
      EXPECT_NEAR(shift_sum[k], static_cast<double>(weighted_shifts[k]), 100 * unit<T>);
    }
  }
}

}  // namespace
}  // namespace tsdp::dp::rows
