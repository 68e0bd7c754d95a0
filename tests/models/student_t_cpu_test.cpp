// The fused head against its formulas written plainly in extended precision.
#include "models/student_t_cpu.h"

#include <gtest/gtest.h>

#include <boost/math/special_functions/digamma.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "support/draw.h"

namespace tsdp::models::student_t_cpu {
namespace {

using test::Draw;
using Wide = long double;

template <typename T>
constexpr Wide unit = std::is_same_v<T, float> ? 0x1p-24L : 0x1p-53L;

/// One term and its gradients, with the sizes of what was added up in each.
struct Term {
  Wide nll, by[3];
  Wide nll_size, by_size[3];
};

template <typename T>
Term term(Wide d, Wide m, Wide r, Wide y, Wide a) {
  const auto softplus = [](Wide x) { return x > 20 ? x : std::log1p(std::exp(x)); };
  const auto sigmoid = [](Wide x) { return 1 / (1 + std::exp(-x)); };
  const Wide least = std::numeric_limits<T>::epsilon();
  const Wide df = 2 + softplus(d);
  const Wide scale = std::max(softplus(r), least);
  const Wide z = (y / a - m) / scale;
  const Wide share = z * z / df;
  const Wide pi = std::numbers::pi_v<Wide>;
  Term t;
  t.nll = std::log(a) + std::log(scale) + std::log(df) / 2 + std::log(pi) / 2 + std::lgamma(df / 2) -
          std::lgamma((df + 1) / 2) + (df + 1) / 2 * std::log1p(share);
  t.nll_size = std::abs(std::log(a)) + std::abs(std::log(scale)) + 2 + (df + 1) / 2 * std::log1p(share);
  const Wide up_t = (df + 1) * (share / (1 + share));
  const Wide rest = 1 / df + boost::math::digamma(df / 2) - boost::math::digamma((df + 1) / 2);
  t.by[0] = (rest + std::log1p(share) - up_t / df) / 2 * sigmoid(d);
  t.by[1] = -(df + 1) * z / (df * (1 + share) * scale);
  t.by[2] = softplus(r) > least ? (1 - up_t) / scale * sigmoid(r) : 0;
  // The reference's own digammas cancel, too.
  t.by_size[0] = (std::abs(rest) + std::log1p(share) + up_t / df + 1e-3L) / 2 * sigmoid(d);
  // What is lost in y/a − m counts as often as it was larger than their difference.
  const Wide cancelled = z == 0 ? 1 : 1 + (std::abs(y / a) + std::abs(m)) / std::abs(z * scale);
  t.nll_size += cancelled * up_t;
  t.by_size[0] += cancelled * up_t * sigmoid(d);
  t.by_size[1] = (cancelled + 1) * std::abs(t.by[1]);
  t.by_size[2] = (1 + (1 + cancelled) * up_t) / scale * sigmoid(r);
  return t;
}

template <typename T>
struct Case {
  std::int64_t windows, positions, width;
  std::vector<T> hidden, maps, target, scale, weights;
  // Written:
  std::vector<T> losses, raw_gradient, hidden_gradient, head_rows, head_sum;
  std::vector<double> hidden_norms, head_norms;
  std::int64_t hidden_stride, target_stride, gradient_stride, row_stride;

  Case(std::int64_t windows_, std::int64_t positions_, std::int64_t width_)
      : windows(windows_), positions(positions_), width(width_) {
    hidden_stride = positions * width + 3;
    gradient_stride = positions * width + 1;
    target_stride = positions + 2;
    row_stride = 3 * (width + 1) + 2;
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    hidden.assign(size(windows * hidden_stride), T(0));
    maps.assign(size(3 * (width + 1)), T(0));
    target.assign(size(windows * target_stride), T(0));
    scale.assign(size(windows), T(1));
    weights.assign(size(windows * positions), T(1));
    losses.assign(size(windows), T(-1));
    raw_gradient.assign(size(windows * positions * 3), T(-1));
    hidden_gradient.assign(size(windows * gradient_stride), T(-1));
    head_rows.assign(size(windows * row_stride), T(-1));
    head_sum.assign(size(3 * (width + 1)), T(0));
    hidden_norms.assign(size(windows), -1);
    head_norms.assign(size(windows), -1);
  }
  Head<T> head() const { return {maps.data(), hidden.data(), hidden_stride, windows, positions, width}; }
  Loss<T> loss() const { return {target.data(), target_stride, scale.data(), weights.data(), positions}; }
  Gradients<T> gradients(bool rows, bool sum) {
    Gradients<T> g;
    g.losses = losses.data();
    g.raw_gradient = raw_gradient.data();
    g.hidden_gradient = hidden_gradient.data();
    g.hidden_gradient_stride = gradient_stride;
    g.hidden_squared_norms = hidden_norms.data();
    if (rows) {
      g.window_head_gradients = head_rows.data();
      g.window_head_gradients_stride = row_stride;
      g.head_squared_norms = head_norms.data();
    }
    if (sum) g.head_gradient = head_sum.data();
    return g;
  }
  std::vector<T> forward_raw() const {
    std::vector<T> raw(static_cast<std::size_t>(windows * positions * 3));
    forward(head(), raw.data());
    return raw;
  }
  T& at(std::vector<T>& v, std::int64_t i) { return v[static_cast<std::size_t>(i)]; }
};

template <typename T>
class StudentTCpu : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(StudentTCpu, Types);

/// The loss and raw gradient of every window, given the raw outputs.
template <typename T>
void check_terms(Case<T>& c, const std::vector<T>& raw) {
  for (std::int64_t i = 0; i < c.windows; ++i) {
    Wide sum = 0;
    Wide size = 0;
    for (std::int64_t k = 0; k < c.positions; ++k) {
      const auto place = static_cast<std::size_t>(i * c.positions + k);
      const Wide w = c.weights[place];
      if (w == 0) {
        for (std::size_t m = 0; m < 3; ++m) EXPECT_EQ(c.raw_gradient[3 * place + m], T(0));
        continue;
      }
      const Wide d = raw[3 * place], m = raw[3 * place + 1], r = raw[3 * place + 2];
      const auto t = term<T>(d, m, r, c.at(c.target, i * c.target_stride + k), c.at(c.scale, i));
      sum += w * t.nll;
      size += std::abs(w) * t.nll_size;
      for (std::size_t j = 0; j < 3; ++j) {
        const Wide expected = w * t.by[j];
        const Wide tolerance =
            2 * unit<T> * std::abs(expected) + 0x1p-48L * std::abs(w) * t.by_size[j] + std::numeric_limits<T>::min();
        EXPECT_NEAR(c.raw_gradient[3 * place + j], static_cast<double>(expected), static_cast<double>(tolerance))
            << "raw output " << j << " of " << d << ", " << m << ", " << r;
      }
    }
    EXPECT_NEAR(c.at(c.losses, i), static_cast<double>(sum),
                static_cast<double>(2 * unit<T> * std::abs(sum) + 0x1p-48L * size));
  }
}

/// Everything linear, given the raw gradient.
template <typename T>
void check_linear(Case<T>& c, bool rows, const std::vector<T>& sum_before) {
  const auto positions = static_cast<Wide>(c.positions);
  std::vector<Wide> sums(c.head_sum.begin(), c.head_sum.end());
  std::vector<Wide> sizes(sums.size(), 0);
  for (std::size_t j = 0; j < sums.size(); ++j) sums[j] = sum_before[j];
  for (std::int64_t i = 0; i < c.windows; ++i) {
    Wide hidden_norm = 0;
    for (std::int64_t k = 0; k < c.positions; ++k)
      for (std::int64_t d = 0; d < c.width; ++d) {
        Wide expected = 0, size = 0;
        for (std::int64_t m = 0; m < 3; ++m) {
          const Wide part = static_cast<Wide>(c.at(c.raw_gradient, (i * c.positions + k) * 3 + m)) *
                            static_cast<Wide>(c.at(c.maps, m * (c.width + 1) + d));
          expected += part;
          size += std::abs(part);
        }
        const T got = c.at(c.hidden_gradient, i * c.gradient_stride + k * c.width + d);
        EXPECT_NEAR(got, static_cast<double>(expected), static_cast<double>(4 * unit<T> * size));
        hidden_norm += static_cast<Wide>(got) * static_cast<Wide>(got);
      }
    EXPECT_NEAR(c.hidden_norms[static_cast<std::size_t>(i)], static_cast<double>(hidden_norm),
                static_cast<double>(70 * unit<T> * hidden_norm));
    Wide head_norm = 0;
    for (std::int64_t m = 0; m < 3; ++m)
      for (std::int64_t d = 0; d <= c.width; ++d) {
        Wide expected = 0, size = 0;
        for (std::int64_t k = 0; k < c.positions; ++k) {
          const Wide g = c.at(c.raw_gradient, (i * c.positions + k) * 3 + m);
          const Wide part = d == c.width ? g : g * c.at(c.hidden, i * c.hidden_stride + k * c.width + d);
          expected += part;
          size += std::abs(part);
        }
        const std::int64_t place = m * (c.width + 1) + d;
        sums[static_cast<std::size_t>(place)] += expected;
        sizes[static_cast<std::size_t>(place)] += size;
        if (!rows) continue;
        const T got = c.at(c.head_rows, i * c.row_stride + place);
        EXPECT_NEAR(got, static_cast<double>(expected), static_cast<double>((positions + 3) * unit<T> * size));
        head_norm += static_cast<Wide>(got) * static_cast<Wide>(got);
      }
    if (rows) {
      EXPECT_NEAR(c.head_norms[static_cast<std::size_t>(i)], static_cast<double>(head_norm),
                  static_cast<double>(20 * 0x1p-53L * head_norm));
    }
  }
  for (std::size_t j = 0; j < sums.size(); ++j)
    EXPECT_NEAR(c.head_sum[j], static_cast<double>(sums[j]),
                static_cast<double>((positions + static_cast<Wide>(c.windows) + 3) * unit<T> *
                                    (sizes[j] + std::abs(static_cast<Wide>(sum_before[j])))));
}

TYPED_TEST(StudentTCpu, RandomSizes) {
  using T = TypeParam;
  Draw draw(1);
  const std::int64_t sizes[][3] = {{5, 24, 64}, {3, 119, 40}, {7, 24, 20}, {7, 24, 8},  {4, 1, 1},   {200, 1, 4},
                                   {3, 5, 3},   {2, 64, 16},  {2, 65, 17}, {2, 63, 15}, {3, 130, 7}, {67, 3, 33},
                                   {2, 8, 100}, {1, 200, 12}, {9, 30, 31}, {0, 24, 64}, {2, 21, 0}};
  for (const auto& [windows, positions, width] : sizes) {
    SCOPED_TRACE(testing::Message() << windows << " x " << positions << " x " << width);
    Case<T> c(windows, positions, width);
    const double size = 2.0 / std::sqrt(static_cast<double>(width) + 1);
    for (T& v : c.hidden) v = static_cast<T>(draw.between(-1, 1));
    for (T& v : c.maps) v = static_cast<T>(draw.between(-size, size));
    for (T& v : c.target) v = static_cast<T>(draw.between(-3, 3));
    for (T& v : c.scale) v = static_cast<T>(draw.log_between(0.1, 10));
    for (T& v : c.weights) v = static_cast<T>(draw.one_of(5) == 0 ? 0.0 : draw.between(0, 1));
    for (T& v : c.head_sum) v = static_cast<T>(draw.between(-1, 1));

    const auto raw = c.forward_raw();
    for (std::int64_t i = 0; i < windows; ++i)
      for (std::int64_t k = 0; k < positions; ++k)
        for (std::int64_t m = 0; m < 3; ++m) {
          Wide expected = c.at(c.maps, m * (width + 1) + width);
          Wide sum = std::abs(expected);
          for (std::int64_t d = 0; d < width; ++d) {
            const Wide part = static_cast<Wide>(c.at(c.maps, m * (width + 1) + d)) *
                              static_cast<Wide>(c.at(c.hidden, i * c.hidden_stride + k * width + d));
            expected += part;
            sum += std::abs(part);
          }
          EXPECT_NEAR(raw[static_cast<std::size_t>((i * positions + k) * 3 + m)], static_cast<double>(expected),
                      static_cast<double>((static_cast<Wide>(width) / 8 + 8) * unit<T> * sum));
        }

    const auto before = c.head_sum;
    loss_and_gradient(c.head(), c.loss(), c.gradients(true, true));
    check_terms(c, raw);
    check_linear(c, true, before);
    const auto losses = c.losses;
    c.head_sum = before;
    loss_and_gradient(c.head(), c.loss(), c.gradients(false, true));
    check_linear(c, false, before);
    EXPECT_EQ(c.losses, losses);
    // What lies between the rows is left alone, and rows alone leave the sum alone.
    const auto sum = c.head_sum;
    loss_and_gradient(c.head(), c.loss(), c.gradients(true, false));
    EXPECT_EQ(c.head_sum, sum);
    for (std::int64_t i = 0; i < windows; ++i) {
      EXPECT_EQ(c.at(c.hidden_gradient, i * c.gradient_stride + positions * width), T(-1));
      EXPECT_EQ(c.at(c.head_rows, i * c.row_stride + 3 * (width + 1)), T(-1));
    }
  }
}

/// D = 3 and maps that make the hidden values the raw outputs, exactly.
template <typename T>
Case<T> direct(std::int64_t windows, std::int64_t positions) {
  Case<T> c(windows, positions, 3);
  for (std::size_t m = 0; m < 3; ++m) c.maps[m * 4 + m] = T(1);
  return c;
}

TYPED_TEST(StudentTCpu, Extremes) {
  using T = TypeParam;
  Draw draw(2);
  auto c = direct<T>(600, 24);
  for (std::int64_t i = 0; i < c.windows; ++i) {
    const int kind = draw.one_of(4);
    c.at(c.scale, i) = static_cast<T>(kind == 0 ? 1e-10 : kind == 1 ? draw.log_between(1e-10, 1e10) : 1.0);
    for (std::int64_t k = 0; k < c.positions; ++k) {
      T* raw = &c.at(c.hidden, i * c.hidden_stride + 3 * k);
      const int which = draw.one_of(4);
      raw[0] = static_cast<T>(which == 0 ? draw.log_between(1e-3, 1e4) : draw.between(-40, 25));
      raw[1] = static_cast<T>(draw.between(-5, 5));
      raw[2] = static_cast<T>(draw.one_of(3) == 0 ? draw.between(-200, 100) : draw.between(-16, 5));
      const double reach = draw.one_of(3) == 0 ? draw.log_between(1e-6, 1e20) : draw.between(-5, 5);
      c.at(c.target, i * c.target_stride + k) =
          static_cast<T>(static_cast<double>(c.at(c.scale, i)) * (kind == 2 ? 1e10 : reach));
      c.weights[static_cast<std::size_t>(i * c.positions + k)] =
          static_cast<T>(draw.one_of(3) == 0 ? 0.0 : draw.log_between(1e-3, 10));
    }
  }
  loss_and_gradient(c.head(), c.loss(), c.gradients(true, true));
  check_terms(c, c.forward_raw());
}

TYPED_TEST(StudentTCpu, ClampHasNoGradient) {
  using T = TypeParam;
  auto c = direct<T>(1, 6);
  const double edge = std::log(static_cast<double>(std::numeric_limits<T>::epsilon()));
  const double raw[6] = {edge - 0.01, edge + 0.01, -200, -1000, -0.5, 30};
  for (std::int64_t k = 0; k < 6; ++k) {
    c.at(c.hidden, 3 * k + 1) = T(0.25);
    c.at(c.hidden, 3 * k + 2) = static_cast<T>(raw[k]);
  }
  loss_and_gradient(c.head(), c.loss(), c.gradients(true, true));
  for (std::size_t k = 0; k < 6; ++k)
    EXPECT_EQ(c.raw_gradient[3 * k + 2] == T(0), k == 0 || k == 2 || k == 3) << raw[k];
  check_terms(c, c.forward_raw());
}

TYPED_TEST(StudentTCpu, ZeroWeightsHideWhatIsNotFinite) {
  using T = TypeParam;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  auto c = direct<T>(4, 10);
  for (T& w : c.weights) w = T(0);
  for (std::int64_t i = 0; i < 4; ++i) {
    c.weights[static_cast<std::size_t>(i * 10 + 3)] = T(0.5);
    const T bad[] = {infinity, -infinity, nan, T(0)};
    for (std::int64_t k = 0; k < 10; ++k)
      if (k != 3) c.at(c.target, i * c.target_stride + k) = bad[(i + k) % 4];
  }
  loss_and_gradient(c.head(), c.loss(), c.gradients(true, true));
  check_terms(c, c.forward_raw());
  check_linear(c, true, std::vector<T>(c.head_sum.size(), T(0)));
  // A window without any weight is nothing at all.
  c.weights[3] = T(0);
  loss_and_gradient(c.head(), c.loss(), c.gradients(true, false));
  EXPECT_EQ(c.losses[0], T(0));
  EXPECT_EQ(c.head_norms[0], 0.0);
  EXPECT_EQ(c.hidden_norms[0], 0.0);
}

TYPED_TEST(StudentTCpu, WhatIsNotFiniteIsSeen) {
  using T = TypeParam;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  const auto lossy = [](int what, T value) {
    auto c = direct<T>(3, 30);
    if (what < 3) c.at(c.hidden, c.hidden_stride + 3 * 17 + what) = value;
    if (what == 3) c.at(c.target, c.target_stride + 17) = value;
    if (what == 4) c.scale[1] = value;
    if (what == 5) c.weights[30 + 17] = value;
    if (what < 3) {
      // Only the map of this raw output reads the hidden value; the others' zeros would make NaN of infinity.
      c.maps.assign(c.maps.size(), T(0));
      c.maps[static_cast<std::size_t>(what) * 5] = T(1);
    }
    loss_and_gradient(c.head(), c.loss(), c.gradients(true, true));
    EXPECT_TRUE(std::isfinite(c.losses[0]) && std::isfinite(c.losses[2]));
    EXPECT_TRUE(std::isfinite(c.head_norms[0]) && std::isfinite(c.head_norms[2]));
    return c.losses[1];
  };
  for (int what = 0; what < 6; ++what) {
    EXPECT_TRUE(std::isnan(lossy(what, nan))) << what;
    EXPECT_FALSE(std::isfinite(lossy(what, infinity))) << what;
  }
  for (const int what : {1, 3, 4, 5}) EXPECT_FALSE(std::isfinite(lossy(what, -infinity))) << what;
  EXPECT_FALSE(std::isfinite(lossy(4, T(0))));
  EXPECT_TRUE(std::isnan(lossy(4, T(-1))));
  if (std::is_same_v<T, double>) {
    EXPECT_FALSE(std::isfinite(lossy(3, static_cast<T>(1e200))));  // z² overflows
  }
}

TEST(StudentTCpuDouble, GradientIsThatOfTheLoss) {
  using T = double;
  Draw draw(3);
  Case<T> c(1, 5, 6);
  for (T& v : c.hidden) v = static_cast<T>(draw.between(-1, 1));
  for (T& v : c.maps) v = static_cast<T>(draw.between(-1, 1));
  for (T& v : c.target) v = static_cast<T>(draw.between(-3, 3));
  loss_and_gradient(c.head(), c.loss(), c.gradients(true, false));
  const auto hidden_gradient = c.hidden_gradient;
  const auto head_row = c.head_rows;
  const auto difference = [&](T& place) {
    const T before = place;
    const double step = 1e-6;
    place = static_cast<T>(before + step);
    loss_and_gradient(c.head(), c.loss(), c.gradients(true, false));
    const double above = c.losses[0];
    place = static_cast<T>(before - step);
    loss_and_gradient(c.head(), c.loss(), c.gradients(true, false));
    const double below = c.losses[0];
    place = before;
    return (above - below) / (2 * step);
  };
  for (std::size_t j = 0; j < 30; ++j) EXPECT_NEAR(difference(c.hidden[j]), hidden_gradient[j], 1e-7);
  for (std::size_t j = 0; j < 21; ++j) EXPECT_NEAR(difference(c.maps[j]), head_row[j], 1e-7);
}

}  // namespace
}  // namespace tsdp::models::student_t_cpu
