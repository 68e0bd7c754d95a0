// Plain loops over explicit lanes, which are vectorised without permission to reorder sums.
#include "row_kernels.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/clones.h"

#define TSDP_INLINE [[gnu::always_inline]] inline

namespace tsdp::dp::rows {
namespace {

constexpr int lanes = 16;

template <typename T>
TSDP_INLINE T sum_of(const T (&v)[lanes]) {
  T sums[4];
  for (int j = 0; j < 4; ++j) sums[j] = (v[j] + v[j + 8]) + (v[j + 4] + v[j + 12]);
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/// `lanes` numbers side by side. Written out where a type changes, since there the compiler turns loops over arrays
/// into single conversions.
template <typename T>
struct Lanes {
  typedef T type __attribute__((vector_size(lanes * sizeof(T)), aligned(sizeof(T)), may_alias));
};

template <typename T>
TSDP_INLINE double squared_norm(const T* __restrict row, std::int64_t length) {
  using Narrow = typename Lanes<T>::type;
  using Wide = typename Lanes<double>::type;
  constexpr std::int64_t step = 4 * lanes;
  constexpr std::int64_t piece = 64 * step;  // 64 squares a lane
  const auto at = [row](std::int64_t place) { return reinterpret_cast<const Narrow*>(row + place); };
  Wide sums = {};
  std::int64_t i = 0;
  while (i + step <= length) {
    const std::int64_t end = i + piece < length ? i + piece : length;
    Narrow a = {}, b = {}, c = {}, d = {};
    for (; i + step <= end; i += step) {
      a += *at(i) * *at(i);
      b += *at(i + lanes) * *at(i + lanes);
      c += *at(i + 2 * lanes) * *at(i + 2 * lanes);
      d += *at(i + 3 * lanes) * *at(i + 3 * lanes);
    }
    sums += (__builtin_convertvector(a, Wide) + __builtin_convertvector(b, Wide)) +
            (__builtin_convertvector(c, Wide) + __builtin_convertvector(d, Wide));
  }
  for (; i + lanes <= length; i += lanes) {
    const Wide wide = __builtin_convertvector(*at(i), Wide);
    sums += wide * wide;
  }
  double rest = 0;
  for (; i < length; ++i) rest += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  double lane_sums[lanes];
  std::memcpy(lane_sums, &sums, sizeof lane_sums);
  const double norm = sum_of(lane_sums) + rest;
  if (sizeof(T) == sizeof(double) || norm >= static_cast<double>(length) * least_mean_square) return norm;
  // Float squares below 2^-126 are lost or coarse; here that could matter.
  double again = 0;
  for (i = 0; i < length; ++i) again += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  return again;
}

template <typename T>
TSDP_INLINE void squared_norms_of(const T* rows, std::int64_t count, std::int64_t length, std::int64_t stride,
                                  double* out, bool add) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double norm = squared_norm(rows + i * stride, length);
    out[i] = add ? out[i] + norm : norm;
  }
}

TSDP_INLINE double product(const float* __restrict a, const float* __restrict b, std::int64_t length) {
  using Narrow = typename Lanes<float>::type;
  using Wide = typename Lanes<double>::type;
  Wide sums = {};
  std::int64_t i = 0;
  for (; i + lanes <= length; i += lanes)
    sums += __builtin_convertvector(*reinterpret_cast<const Narrow*>(a + i), Wide) *
            __builtin_convertvector(*reinterpret_cast<const Narrow*>(b + i), Wide);
  double rest = 0;
  for (; i < length; ++i) rest += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  double lane_sums[lanes];
  std::memcpy(lane_sums, &sums, sizeof lane_sums);
  return sum_of(lane_sums) + rest;
}

/// out[t][s] = row t · row s for s ≤ t: one pass over `count` ≤ 4 rows, each converted once.
template <int count>
TSDP_INLINE void products_of_rows(const float* __restrict rows, std::int64_t length, double (&out)[4][4]) {
  constexpr int half = lanes / 2;
  using Narrow = float __attribute__((vector_size(half * sizeof(float)), aligned(sizeof(float)), may_alias));
  using Wide = double __attribute__((vector_size(half * sizeof(double))));
  Wide sums[4][4] = {};
  std::int64_t i = 0;
  for (; i + half <= length; i += half) {
    Wide row[count];
    for (int t = 0; t < count; ++t)
      row[t] = __builtin_convertvector(*reinterpret_cast<const Narrow*>(rows + t * length + i), Wide);
    for (int t = 0; t < count; ++t)
      for (int s = 0; s <= t; ++s) sums[t][s] += row[t] * row[s];
  }
  for (int t = 0; t < count; ++t)
    for (int s = 0; s <= t; ++s) {
      double sum = 0;
      for (std::int64_t j = i; j < length; ++j)
        sum += static_cast<double>(rows[t * length + j]) * static_cast<double>(rows[s * length + j]);
      for (int j = 0; j < half; ++j) sum += sums[t][s][j];
      out[t][s] = sum;
    }
}

TSDP_INLINE RecordNorm norm_of_products_of(const float* g, std::int64_t p, const float* x, std::int64_t d,
                                           std::int64_t windows) {
  RecordNorm out{0.0, 0.0, 0.0};
  double row =
      0.0;  // of t: rows are summed by themselves, so that errors grow with the windows and not with their square
  const auto add = [&out, &row](std::int64_t t, std::int64_t s, double of_g, double of_x) {
    if (s < t) {
      row += 2.0 * of_g * (of_x + 1.0);
      return;
    }
    out.largest_input = of_x > out.largest_input ? of_x : out.largest_input;
    out.sum_of_norms += std::sqrt(of_g * (of_x + 1.0));
    out.squared_norm += row + of_g * (of_x + 1.0);
    row = 0.0;
  };
  if (windows <= 4) {
    double of_g[4][4], of_x[4][4];
    const auto both = [&](auto count) {
      products_of_rows<decltype(count)::value>(g, p, of_g);
      products_of_rows<decltype(count)::value>(x, d, of_x);
    };
    if (windows == 1) both(std::integral_constant<int, 1>());
    if (windows == 2) both(std::integral_constant<int, 2>());
    if (windows == 3) both(std::integral_constant<int, 3>());
    if (windows == 4) both(std::integral_constant<int, 4>());
    for (std::int64_t t = 0; t < windows; ++t)
      for (std::int64_t s = 0; s <= t; ++s) add(t, s, of_g[t][s], of_x[t][s]);
  } else {
    for (std::int64_t t = 0; t < windows; ++t)
      for (std::int64_t s = 0; s <= t; ++s)
        add(t, s, product(g + t * p, g + s * p, p), product(x + t * d, x + s * d, d));
  }
  if (out.squared_norm < 0.0) out.squared_norm = 0.0;
  out.squared_norm += static_cast<double>(p + d + 2 * windows + 12) * 0x1p-53 * out.sum_of_norms * out.sum_of_norms;
  return out;
}

/// Σ f(k) for k < width.
template <typename T, typename F>
TSDP_INLINE T lane_sum(std::int64_t width, const F& f) {
  T sums[lanes] = {};
  std::int64_t k = 0;
  for (; k + lanes <= width; k += lanes)
    for (int j = 0; j < lanes; ++j) sums[j] += f(k + j);
  T rest = 0;
  for (; k < width; ++k) rest += f(k);
  return sum_of(sums) + rest;
}

template <typename T>
TSDP_INLINE void forward_of(const T* x, std::int64_t count, std::int64_t width, const T* __restrict gain,
                            const T* __restrict shift, T* y, T* mean, T* inverse) {
  const T per_width = T(1) / static_cast<T>(width);
  for (std::int64_t i = 0; i < count; ++i) {
    const T* __restrict row = x + i * width;
    T* __restrict to = y + i * width;
    const T m = lane_sum<T>(width, [&](std::int64_t k) __attribute__((always_inline)) { return row[k]; }) * per_width;
    const T variance =
        lane_sum<T>(width, [&](std::int64_t k) __attribute__((always_inline)) { return (row[k] - m) * (row[k] - m); }) *
        per_width;
    const T scale = T(1) / std::sqrt(variance + static_cast<T>(layer_norm_epsilon));
    for (std::int64_t k = 0; k < width; ++k) to[k] = gain[k] * ((row[k] - m) * scale) + shift[k];
    mean[i] = m;
    inverse[i] = scale;
  }
}

template <typename T>
TSDP_INLINE void backward_of(const LayerNorm<T>& layer, const T* y_gradient, T* x_gradient, double* squared_norms,
                             bool add) {
  const std::int64_t width = layer.width;
  const T per_width = T(1) / static_cast<T>(width);
  const T* __restrict gain = layer.gain;
  for (std::int64_t i = 0; i < layer.count; ++i) {
    const T* row = layer.x + i * width;
    const T* g = y_gradient + i * width;
    const T m = layer.mean[i];
    const T scale = layer.inverse[i];
    if (squared_norms != nullptr) {
      // (g x̂)² + g² = g² (1 + x̂²)
      const double norm = lane_sum<double>(width, [&](std::int64_t k) __attribute__((always_inline)) {
        const double unit = static_cast<double>((row[k] - m) * scale);
        const double gradient = static_cast<double>(g[k]);
        return (gradient * gradient) * (1.0 + unit * unit);
      });
      squared_norms[i] = add ? squared_norms[i] + norm : norm;
    }
    if (x_gradient == nullptr) continue;
    // With h = gain · g: dx = inverse · (h − mean(h) − x̂ mean(h x̂)).
    const T first =
        lane_sum<T>(width, [&](std::int64_t k) __attribute__((always_inline)) { return gain[k] * g[k]; }) * per_width;
    const T second =
        lane_sum<T>(width, [&](std::int64_t k)
                               __attribute__((always_inline)) { return gain[k] * g[k] * ((row[k] - m) * scale); }) *
        per_width;
    T* to = x_gradient + i * width;
    for (std::int64_t k = 0; k < width; ++k)
      to[k] = scale * ((gain[k] * g[k] - first) - ((row[k] - m) * scale) * second);
  }
}

template <typename T>
TSDP_INLINE void gradient_of(const LayerNorm<T>& layer, const T* y_gradient, const T* factors,
                             T* __restrict gain_gradient, T* __restrict shift_gradient) {
  const std::int64_t width = layer.width;
  for (std::int64_t i = 0; i < layer.count; ++i) {
    const T* __restrict row = layer.x + i * width;
    const T* __restrict g = y_gradient + i * width;
    const T m = layer.mean[i];
    const T scale = layer.inverse[i];
    const T factor = factors == nullptr ? T(1) : factors[i];
    for (std::int64_t k = 0; k < width; ++k) {
      const T scaled = factor * g[k];
      gain_gradient[k] += scaled * ((row[k] - m) * scale);
      shift_gradient[k] += scaled;
    }
  }
}

}  // namespace

TSDP_CLONES void scale(double* values, std::int64_t length, double factor) {
  for (std::int64_t i = 0; i < length; ++i) values[i] *= factor;
}

#define TSDP_DEFINE_ROWS(T)                                                                                      \
  template <>                                                                                                    \
  TSDP_CLONES void squared_norms<T>(const T* rows, std::int64_t count, std::int64_t length, std::int64_t stride, \
                                    double* out, bool add) {                                                     \
    squared_norms_of<T>(rows, count, length, stride, out, add);                                                  \
  }                                                                                                              \
  template <>                                                                                                    \
  TSDP_CLONES void add<T>(const T* __restrict terms, std::int64_t length, double* __restrict sums) {             \
    for (std::int64_t i = 0; i < length; ++i) sums[i] += static_cast<double>(terms[i]);                          \
  }                                                                                                              \
  template <>                                                                                                    \
  TSDP_CLONES void store<T>(const double* __restrict sums, std::int64_t length, double offset, T factor,         \
                            T* __restrict out) {                                                                 \
    for (std::int64_t i = 0; i < length; ++i) out[i] = static_cast<T>((sums[i] + offset) - offset) * factor;     \
  }                                                                                                              \
  template <>                                                                                                    \
  TSDP_CLONES void layer_norm_forward<T>(const T* x, std::int64_t count, std::int64_t width, const T* gain,      \
                                         const T* shift, T* y, T* mean, T* inverse) {                            \
    forward_of<T>(x, count, width, gain, shift, y, mean, inverse);                                               \
  }                                                                                                              \
  template <>                                                                                                    \
  TSDP_CLONES void layer_norm_backward<T>(const LayerNorm<T>& layer, const T* y_gradient, T* x_gradient,         \
                                          double* squared_norms, bool add) {                                     \
    backward_of<T>(layer, y_gradient, x_gradient, squared_norms, add);                                           \
  }                                                                                                              \
  template <>                                                                                                    \
  TSDP_CLONES void layer_norm_gradient<T>(const LayerNorm<T>& layer, const T* y_gradient, const T* factors,      \
                                          T* gain_gradient, T* shift_gradient) {                                 \
    gradient_of<T>(layer, y_gradient, factors, gain_gradient, shift_gradient);                                   \
  }
TSDP_DEFINE_ROWS(float)
TSDP_DEFINE_ROWS(double)

TSDP_CLONES RecordNorm norm_of_products(const float* g, std::int64_t p, const float* x, std::int64_t d,
                                        std::int64_t windows) {
  return norm_of_products_of(g, p, x, d, windows);
}

}  // namespace tsdp::dp::rows
