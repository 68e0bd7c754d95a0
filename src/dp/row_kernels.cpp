// Plain loops over explicit lanes, which are vectorised without leave to reorder sums.
#include "row_kernels.h"

#include <cmath>

#include "tsdp/core/clones.h"

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

template <typename T>
TSDP_INLINE double squared_norm(const T* __restrict row, std::int64_t length) {
  constexpr std::int64_t step = 4 * lanes;
  constexpr std::int64_t piece = 64 * step;  // 64 squares a lane
  double sums[lanes] = {};
  std::int64_t i = 0;
  while (i + step <= length) {
    const std::int64_t end = i + piece < length ? i + piece : length;
    T a[lanes] = {}, b[lanes] = {}, c[lanes] = {}, d[lanes] = {};
    for (; i + step <= end; i += step)
      for (int j = 0; j < lanes; ++j) {
        a[j] += row[i + j] * row[i + j];
        b[j] += row[i + lanes + j] * row[i + lanes + j];
        c[j] += row[i + 2 * lanes + j] * row[i + 2 * lanes + j];
        d[j] += row[i + 3 * lanes + j] * row[i + 3 * lanes + j];
      }
    for (int j = 0; j < lanes; ++j)
      sums[j] += (static_cast<double>(a[j]) + static_cast<double>(b[j])) +
                 (static_cast<double>(c[j]) + static_cast<double>(d[j]));
  }
  for (; i + lanes <= length; i += lanes)
    for (int j = 0; j < lanes; ++j) sums[j] += static_cast<double>(row[i + j]) * static_cast<double>(row[i + j]);
  double rest = 0;
  for (; i < length; ++i) rest += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  const double norm = sum_of(sums) + rest;
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

template <typename T>
TSDP_INLINE void scale_rows_of(const T* in, std::int64_t in_stride, const T* factors, std::int64_t count,
                               std::int64_t length, T* out, std::int64_t out_stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T factor = factors[i];
    const T* from = in + i * in_stride;
    T* to = out + i * out_stride;
    for (std::int64_t k = 0; k < length; ++k) to[k] = factor * from[k];
  }
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
    const T m = lane_sum<T>(
                    width, [&](std::int64_t k) __attribute__((always_inline)) { return row[k]; }) *
                per_width;
    const T variance =
        lane_sum<T>(
            width, [&](std::int64_t k) __attribute__((always_inline)) { return (row[k] - m) * (row[k] - m); }) *
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
      const double norm = lane_sum<double>(
          width, [&](std::int64_t k) __attribute__((always_inline)) {
            const double unit = static_cast<double>((row[k] - m) * scale);
            const double gradient = static_cast<double>(g[k]);
            return (gradient * gradient) * (1.0 + unit * unit);
          });
      squared_norms[i] = add ? squared_norms[i] + norm : norm;
    }
    if (x_gradient == nullptr) continue;
    // With h = gain · g: dx = inverse · (h − mean(h) − x̂ mean(h x̂)).
    const T first = lane_sum<T>(
                        width, [&](std::int64_t k) __attribute__((always_inline)) { return gain[k] * g[k]; }) *
                    per_width;
    const T second =
        lane_sum<T>(
            width, [&](std::int64_t k)
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

#define TSDP_DEFINE_ROWS(T)                                                                                      \
  template <>                                                                                                    \
  TSDP_CLONES void squared_norms<T>(const T* rows, std::int64_t count, std::int64_t length, std::int64_t stride, \
                                    double* out, bool add) {                                                     \
    squared_norms_of<T>(rows, count, length, stride, out, add);                                                  \
  }                                                                                                              \
  template <>                                                                                                    \
  TSDP_CLONES void scale_rows<T>(const T* in, std::int64_t in_stride, const T* factors, std::int64_t count,      \
                                 std::int64_t length, T* out, std::int64_t out_stride) {                         \
    scale_rows_of<T>(in, in_stride, factors, count, length, out, out_stride);                                    \
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

}  // namespace tsdp::dp::rows
