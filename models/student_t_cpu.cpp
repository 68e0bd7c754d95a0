// Each instruction set has its own version, written once for vectors of `Lanes` numbers. The head's products use vector
// types, the Student-t part plain loops, which are vectorised.
#include "student_t_cpu.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/dp/row_kernels.h"
#include "src/dp/simd_math.h"

#define TSDP_INLINE [[gnu::always_inline]] inline

namespace tsdp::models::student_t_cpu {
namespace {

namespace simd_math = dp::simd_math;

/// Positions treated together: buffers of this length stay in the first cache next to the positions' rows.
constexpr std::int64_t block_positions = 64;

template <typename T, int Lanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(Lanes * sizeof(T))));
  typedef T unaligned __attribute__((vector_size(Lanes * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <typename T, int Lanes>
using Vector = typename VectorOf<T, Lanes>::type;
template <typename T>
constexpr int least_lanes = 16 / sizeof(T);

template <int Lanes, typename T>
TSDP_INLINE void load(Vector<T, Lanes>& v, const T* from) {
  v = *reinterpret_cast<const typename VectorOf<T, Lanes>::unaligned*>(from);
}
template <int Lanes, typename T>
TSDP_INLINE void store(T* to, const Vector<T, Lanes>& v) {
  *reinterpret_cast<typename VectorOf<T, Lanes>::unaligned*>(to) = v;
}

/// sum = lower half + upper half.
template <int Lanes, typename T, int... I>
TSDP_INLINE void fold(const Vector<T, Lanes>& v, Vector<T, Lanes / 2>& sum, std::integer_sequence<int, I...>) {
  sum = __builtin_shufflevector(v, v, I...) + __builtin_shufflevector(v, v, (I + Lanes / 2)...);
}

/// Within each 16 bytes: the lower halves of a and b interleaved plus their upper halves interleaved.
template <int Lanes, typename T, int... I>
TSDP_INLINE void zip(const Vector<T, Lanes>& a, const Vector<T, Lanes>& b, Vector<T, Lanes>& sum,
                     std::integer_sequence<int, I...>) {
  constexpr int group = least_lanes<T>;
  constexpr int half = group / 2;
  sum = __builtin_shufflevector(a, b, (I / group * group + I % group / 2 + I % 2 * Lanes)...) +
        __builtin_shufflevector(a, b, (I / group * group + I % group / 2 + I % 2 * Lanes + half)...);
}
/// Within each 16 bytes: a and b's lower halves plus their upper halves (float only).
template <int Lanes, int... I>
TSDP_INLINE void join(const Vector<float, Lanes>& a, const Vector<float, Lanes>& b, Vector<float, Lanes>& sum,
                      std::integer_sequence<int, I...>) {
  sum = __builtin_shufflevector(a, b, (I / 4 * 4 + I % 2 + I % 4 / 2 * Lanes)...) +
        __builtin_shufflevector(a, b, (I / 4 * 4 + I % 2 + I % 4 / 2 * Lanes + 2)...);
}

template <int Lanes, typename T>
TSDP_INLINE void add_folded(Vector<T, least_lanes<T>>& to, const Vector<T, Lanes>& v) {
  if constexpr (Lanes == least_lanes<T>) {
    to += v;
  } else {
    Vector<T, Lanes / 2> half;
    fold<Lanes, T>(v, half, std::make_integer_sequence<int, Lanes / 2>{});
    add_folded<Lanes / 2, T>(to, half);
  }
}
/// Four numbers in registers.
template <typename T>
struct Four {
  Vector<T, least_lanes<T>> part[sizeof(T) / 4];
};
/// to[i] += sum of v[i], for four vectors.
template <int Lanes, typename T>
TSDP_INLINE void add_sums(Four<T>& to, const Vector<T, Lanes> (&v)[4]) {
  constexpr auto all = std::make_integer_sequence<int, Lanes>{};
  Vector<T, Lanes> a, b;
  zip<Lanes, T>(v[0], v[1], a, all);
  zip<Lanes, T>(v[2], v[3], b, all);
  if constexpr (sizeof(T) == 4) {
    Vector<T, Lanes> sum;
    join<Lanes>(a, b, sum, all);
    add_folded<Lanes, T>(to.part[0], sum);
  } else {
    add_folded<Lanes, T>(to.part[0], a);
    add_folded<Lanes, T>(to.part[1], b);
  }
}

/// One number a position and map; the rows have room for vectors that go beyond the last position.
template <typename T>
struct alignas(64) Rows {
  T of[3][block_positions + 16];
};

/// Adds the products of one map with four rows from d on, with ever shorter vectors, and writes the sums.
template <int Lanes, typename T>
TSDP_INLINE void finish(Four<T>& sums, const T* map, const T* const (&x)[4], std::int64_t d, std::int64_t width,
                        T* to) {
  if constexpr (Lanes < least_lanes<T>) {
    for (std::size_t i = 0; i < sizeof(T) / 4; ++i)
      store<least_lanes<T>>(to + i * least_lanes<T>, sums.part[i] + map[width]);
    for (; d < width; ++d)
      for (int i = 0; i < 4; ++i) to[i] += map[d] * x[i][d];
  } else {
    if ((width & Lanes) != 0) {
      Vector<T, Lanes> w, h, products[4];
      load<Lanes>(w, map + d);
      for (int i = 0; i < 4; ++i) {
        load<Lanes>(h, x[i] + d);
        products[i] = w * h;
      }
      add_sums<Lanes>(sums, products);
      d += Lanes;
    }
    finish<Lanes / 2>(sums, map, x, d, width, to);
  }
}

/// raw = weight · hidden + bias, for `count` rows, from `place` on; up to three entries beyond are overwritten, too.
template <int Lanes, typename T>
TSDP_INLINE void raw_with(const Head<T>& head, const T* hidden, std::int64_t count, Rows<T>& raw, std::int64_t place) {
  const std::int64_t width = head.width;
  const T* const map_0 = head.maps;
  const T* const map_1 = map_0 + (width + 1);
  const T* const map_2 = map_1 + (width + 1);
  // Missing rows are read as the last one.
  for (std::int64_t k = 0; k < count; k += 4) {
    const T* x[4];
    for (std::int64_t i = 0; i < 4; ++i) x[i] = hidden + std::min(k + i, count - 1) * width;
    Four<T> raw_0{}, raw_1{}, raw_2{};
    std::int64_t d = 0;
    if (width >= Lanes) {
      // Named one by one: an array of all would be kept in memory.
      Vector<T, Lanes> sums_0[4], sums_1[4], sums_2[4];
      for (int i = 0; i < 4; ++i) sums_0[i] = sums_1[i] = sums_2[i] = Vector<T, Lanes>{};
      for (; d + Lanes <= width; d += Lanes) {
        Vector<T, Lanes> w_0, w_1, w_2, h;
        load<Lanes>(w_0, map_0 + d);
        load<Lanes>(w_1, map_1 + d);
        load<Lanes>(w_2, map_2 + d);
        for (int i = 0; i < 4; ++i) {
          load<Lanes>(h, x[i] + d);
          sums_0[i] += w_0 * h;
          sums_1[i] += w_1 * h;
          sums_2[i] += w_2 * h;
        }
      }
      add_sums<Lanes>(raw_0, sums_0);
      add_sums<Lanes>(raw_1, sums_1);
      add_sums<Lanes>(raw_2, sums_2);
    }
    finish<Lanes / 2>(raw_0, map_0, x, d, width, raw.of[0] + place + k);
    finish<Lanes / 2>(raw_1, map_1, x, d, width, raw.of[1] + place + k);
    finish<Lanes / 2>(raw_2, map_2, x, d, width, raw.of[2] + place + k);
  }
}

/// The same with shorter vectors where the longest would leave a remainder.
template <int Lanes, typename T>
TSDP_INLINE void raw_of_block(const Head<T>& head, const T* hidden, std::int64_t count, Rows<T>& raw,
                              std::int64_t place) {
  if constexpr (Lanes >= 4 * least_lanes<T>) {
    if (head.width % Lanes != 0) {
      raw_with<Lanes / 2>(head, hidden, count, raw, place);
      return;
    }
  }
  raw_with<Lanes>(head, hidden, count, raw, place);
}

/// A block's values by position in double precision.
struct alignas(64) Doubles {
  double raw[3][block_positions];  // then its gradient
  double target[block_positions];  // over the affine scale
  double weight[block_positions];
  double term[block_positions];  // what the term has in common in its window, then weight · nll
  // From loop to loop:
  double df[block_positions];
  double df_slope[block_positions];
  double scale[block_positions];
  double scale_slope[block_positions];
  double per_df[block_positions];
  double per_unit[block_positions];
  double z[block_positions];
  double share[block_positions];
  double lgamma_rest[block_positions];
  double digamma_rest[block_positions];
  double log_scale[block_positions];
  double log_share[block_positions];
  double kept[block_positions];
};

/// Weighted losses of `count` positions, a multiple of 8, and the gradients of their raw outputs. Short loops, so that
/// the processor has several steps of each in hand at once.
TSDP_INLINE void losses_of_block(Doubles& v, double least, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) {
    const auto part = simd_math::softplus_and_slope(v.raw[0][k]);
    v.df[k] = 2.0 + part.value;
    v.df_slope[k] = part.slope;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    const auto part = simd_math::softplus_and_slope(v.raw[2][k]);
    v.scale[k] = part.value < least ? least : part.value;  // NaN stays
    v.scale_slope[k] = part.value > least ? part.slope : 0.0;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    v.per_df[k] = 1.0 / v.df[k];
    v.per_unit[k] = 1.0 / v.scale[k];
    v.z[k] = (v.target[k] - v.raw[1][k]) * v.per_unit[k];
    v.share[k] = v.z[k] * v.z[k] * v.per_df[k];
    const auto rests = simd_math::detail::gamma_rests(2.0 * v.per_df[k]);
    v.lgamma_rest[k] = rests.lgamma;
    v.digamma_rest[k] = rests.digamma;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    // log scale, log1p(z²/df) and 1/(1 + z²/df) with one division.
    const auto a = simd_math::detail::parts(v.scale[k]);
    const auto b = simd_math::detail::parts_of_one_plus(v.share[k]);
    const double below_a = 2.0 + a.f;
    const double below_b = 2.0 + b.f;
    const double m_b = 1.0 + b.f;
    const double inverse = 1.0 / (below_a * (below_b * m_b));
    const double log_scale = simd_math::detail::log_of(a.e, a.f * (inverse * (below_b * m_b)));
    const double log_share = simd_math::detail::log_of(b.e, b.f * (inverse * (below_a * m_b)));
    constexpr double infinity = simd_math::detail::infinity;
    v.log_scale[k] = v.scale[k] < infinity ? log_scale : v.scale[k];
    v.log_share[k] = v.share[k] < infinity ? log_share : v.share[k];
    v.kept[k] = b.power * (inverse * (below_a * below_b));
  }
  for (std::int64_t k = 0; k < count; ++k) {
    // With g = lgamma(h + ½) − lgamma(h) − ½ log h at h = df/2:
    // ½ log df + lgamma(h) − lgamma(h + ½) = ½ log 2 − g, which leaves no large terms to cancel.
    const double up = v.df[k] + 1.0;
    const double nll = (v.term[k] + v.log_scale[k]) + (0.5 * up * v.log_share[k] - v.lgamma_rest[k]);
    // With t = (z²/df)/(1 + z²/df): ∂/∂loc = −(df+1) t/(z scale), ∂/∂scale = (1 − (df+1) t)/scale,
    // ∂/∂df = ½[1/df + ψ(df/2) − ψ((df+1)/2) + log1p(z²/df) − (df+1) t/df].
    const double up_t = up * (v.share[k] * v.kept[k]);
    const double by_df = 0.5 * ((v.log_share[k] - v.per_df[k] * up_t) - v.digamma_rest[k]) * v.df_slope[k];
    const double by_loc = -(up * v.per_df[k]) * (v.z[k] * v.kept[k]) * v.per_unit[k];
    const double by_scale = (1.0 - up_t) * v.per_unit[k] * v.scale_slope[k];
    const double w = v.weight[k];
    const bool counted = w != 0.0;
    v.term[k] = counted ? w * nll : 0.0;
    v.raw[0][k] = counted ? w * by_df : 0.0;
    v.raw[1][k] = counted ? w * by_loc : 0.0;
    v.raw[2][k] = counted ? w * by_scale : 0.0;
  }
}

/// What the backward pass of one block of one window reads and writes.
template <typename T>
struct Backward {
  const T* maps;
  const T* hidden;
  const T* raw_gradient[3];
  T* hidden_gradient;
  T* head_gradient;
  bool add;  // to head_gradient; else overwrite
  std::int64_t count;
  std::int64_t width;
};

/// Columns d to d + Lanes · Vectors of the gradients of hidden and maps. At most block_positions squares are summed in
/// a lane before they are added to `squares`.
template <int Lanes, int Vectors, typename T>
TSDP_INLINE void backward_columns(const Backward<T>& b, std::int64_t d, double (&squares)[16]) {
  using V = Vector<T, Lanes>;
  const std::int64_t stride = b.width + 1;
  V w_0[Vectors], w_1[Vectors], w_2[Vectors], sum_0[Vectors], sum_1[Vectors], sum_2[Vectors], square[Vectors];
  for (int i = 0; i < Vectors; ++i) {
    load<Lanes>(w_0[i], b.maps + d + i * Lanes);
    load<Lanes>(w_1[i], b.maps + stride + d + i * Lanes);
    load<Lanes>(w_2[i], b.maps + 2 * stride + d + i * Lanes);
    sum_0[i] = sum_1[i] = sum_2[i] = square[i] = V{};
  }
  const T* hidden = b.hidden + d;
  T* out = b.hidden_gradient + d;
  for (std::int64_t k = 0; k < b.count; ++k, hidden += b.width, out += b.width) {
    const T g_0 = b.raw_gradient[0][k];
    const T g_1 = b.raw_gradient[1][k];
    const T g_2 = b.raw_gradient[2][k];
    for (int i = 0; i < Vectors; ++i) {
      V h;
      load<Lanes>(h, hidden + i * Lanes);
      sum_0[i] += h * g_0;
      sum_1[i] += h * g_1;
      sum_2[i] += h * g_2;
      const V y = w_0[i] * g_0 + w_1[i] * g_1 + w_2[i] * g_2;
      store<Lanes>(out + i * Lanes, y);
      square[i] += y * y;
    }
  }
  for (int i = 0; i < Vectors; ++i) {
    T* to = b.head_gradient + d + i * Lanes;
    if (b.add) {
      V before;
      load<Lanes>(before, to);
      sum_0[i] += before;
      load<Lanes>(before, to + stride);
      sum_1[i] += before;
      load<Lanes>(before, to + 2 * stride);
      sum_2[i] += before;
    }
    store<Lanes>(to, sum_0[i]);
    store<Lanes>(to + stride, sum_1[i]);
    store<Lanes>(to + 2 * stride, sum_2[i]);
    alignas(64) T lanes[Lanes];
    store<Lanes>(lanes, square[i]);
    for (int j = 0; j < Lanes; ++j) squares[j] += static_cast<double>(lanes[j]);
  }
}

/// The columns from d on that fill no vector of twice `Lanes`.
template <int Lanes, typename T>
TSDP_INLINE void backward_rest(const Backward<T>& b, std::int64_t d, double (&squares)[16]) {
  if constexpr (Lanes >= least_lanes<T>) {
    if ((b.width & Lanes) != 0) {
      backward_columns<Lanes, 1>(b, d, squares);
      d += Lanes;
    }
    backward_rest<Lanes / 2>(b, d, squares);
  } else {
    const std::int64_t stride = b.width + 1;
    for (; d < b.width; ++d) {
      T sums[3] = {};
      for (std::int64_t k = 0; k < b.count; ++k) {
        T y = 0;
        for (int m = 0; m < 3; ++m) {
          sums[m] += b.raw_gradient[m][k] * b.hidden[k * b.width + d];
          y += b.raw_gradient[m][k] * b.maps[m * stride + d];
        }
        b.hidden_gradient[k * b.width + d] = y;
        squares[0] += static_cast<double>(y) * static_cast<double>(y);
      }
      for (int m = 0; m < 3; ++m) {
        T& to = b.head_gradient[m * stride + d];
        to = b.add ? to + sums[m] : sums[m];
      }
    }
  }
}

template <int Lanes, typename T>
TSDP_INLINE void backward_of_block(const Backward<T>& b, double (&squares)[16]) {
  std::int64_t d = 0;
  for (; d + 2 * Lanes <= b.width; d += 2 * Lanes) backward_columns<Lanes, 2>(b, d, squares);
  backward_rest<Lanes>(b, d, squares);
}

TSDP_INLINE double sum_of(const double (&lanes)[16]) {
  double sums[4];
  for (int j = 0; j < 4; ++j) sums[j] = (lanes[j] + lanes[j + 8]) + (lanes[j + 4] + lanes[j + 12]);
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

TSDP_INLINE double sum_of(const double* values, std::int64_t count) {
  double lanes[16] = {};
  std::int64_t k = 0;
  for (; k + 8 <= count; k += 8)
    for (int j = 0; j < 8; ++j) lanes[j] += values[k + j];
  for (; k < count; ++k) lanes[k % 8] += values[k];
  return sum_of(lanes);
}

template <typename T>
TSDP_INLINE double squared_norm(const T* values, std::int64_t count) {
  double lanes[16] = {};
  std::int64_t k = 0;
  for (; k + 16 <= count; k += 16)
    for (int j = 0; j < 16; ++j) lanes[j] += static_cast<double>(values[k + j]) * static_cast<double>(values[k + j]);
  for (; k < count; ++k) lanes[k % 16] += static_cast<double>(values[k]) * static_cast<double>(values[k]);
  return sum_of(lanes);
}

template <int Lanes, typename T>
TSDP_INLINE void forward_of(const Head<T>& head, T* raw_out) {
  Rows<T> raw;
  for (std::int64_t i = 0; i < head.windows; ++i) {
    for (std::int64_t p = 0; p < head.positions; p += block_positions) {
      const std::int64_t count = std::min(block_positions, head.positions - p);
      raw_of_block<Lanes>(head, head.hidden + i * head.hidden_stride + p * head.width, count, raw, 0);
      T* out = raw_out + (i * head.positions + p) * 3;
      for (std::int64_t k = 0; k < count; ++k)
        for (int m = 0; m < 3; ++m) out[3 * k + m] = raw.of[m][k];
    }
  }
}

template <int Lanes, typename T>
TSDP_INLINE void loss_and_gradient_of(const Head<T>& head, const Loss<T>& loss, const Gradients<T>& to) {
  constexpr double least = static_cast<double>(std::numeric_limits<T>::epsilon());
  constexpr std::int64_t most_windows = block_positions;
  const std::int64_t positions = head.positions;
  const std::int64_t width = head.width;
  const std::int64_t stride = width + 1;
  // Short windows share the loops over positions.
  const std::int64_t group = std::max<std::int64_t>(1, block_positions / std::max<std::int64_t>(1, positions));
  Rows<T> raw;  // then its gradient
  Doubles v;
  double per_scale[most_windows], constant[most_windows];
  for (std::int64_t first = 0; first < head.windows; first += group) {
    const std::int64_t windows = std::min(group, head.windows - first);
    for (std::int64_t i = 0; i < windows; ++i) {
      const auto a = static_cast<double>(loss.affine_scale[first + i]);
      per_scale[i] = 1.0 / a;
      constant[i] = simd_math::log(a) + 0.91893853320467274178;  // ½ log 2π
    }
    double loss_sum = 0;
    double squares[16] = {};
    // Only a group of one window has several blocks.
    for (std::int64_t p = 0; p < positions; p += block_positions) {
      const std::int64_t count = std::min(block_positions, positions - p);
      const bool last = p + count == positions;
      for (std::int64_t i = 0; i < windows; ++i) {
        const std::int64_t place = i * count;
        raw_of_block<Lanes>(head, head.hidden + (first + i) * head.hidden_stride + p * width, count, raw, place);
        const T* target = loss.target + (first + i) * loss.target_stride + p;
        const T* weight = loss.weights + (first + i) * loss.weights_stride + p;
        for (std::int64_t k = 0; k < count; ++k) {
          v.target[place + k] = static_cast<double>(target[k]) * per_scale[i];
          v.weight[place + k] = static_cast<double>(weight[k]);
          v.term[place + k] = constant[i];
        }
      }
      const std::int64_t filled = windows * count;
      const std::int64_t padded = (filled + 7) / 8 * 8;
      for (std::int64_t k = filled; k < padded; ++k) {
        v.target[k] = v.weight[k] = v.term[k] = 0;
        for (int m = 0; m < 3; ++m) raw.of[m][k] = 0;
      }
      for (int m = 0; m < 3; ++m)
        for (std::int64_t k = 0; k < padded; ++k) v.raw[m][k] = static_cast<double>(raw.of[m][k]);
      losses_of_block(v, least, padded);
      for (int m = 0; m < 3; ++m)
        for (std::int64_t k = 0; k < padded; ++k) raw.of[m][k] = static_cast<T>(v.raw[m][k]);

      for (std::int64_t i = 0; i < windows; ++i) {
        const std::int64_t window = first + i;
        const std::int64_t place = i * count;
        loss_sum += sum_of(v.term + place, count);
        if (last) {
          to.losses[window] = static_cast<T>(loss_sum);
          loss_sum = 0;
        }
        if (to.raw_gradient != nullptr) {
          T* out = to.raw_gradient + (window * positions + p) * 3;
          for (std::int64_t k = 0; k < count; ++k)
            for (int m = 0; m < 3; ++m) out[3 * k + m] = raw.of[m][place + k];
        }
        T* const row = to.window_head_gradients == nullptr
                           ? nullptr
                           : to.window_head_gradients + window * to.window_head_gradients_stride;
        Backward<T> b;
        b.maps = head.maps;
        b.hidden = head.hidden + window * head.hidden_stride + p * width;
        for (int m = 0; m < 3; ++m) b.raw_gradient[m] = raw.of[m] + place;
        b.hidden_gradient = to.hidden_gradient + window * to.hidden_gradient_stride + p * width;
        b.head_gradient = row != nullptr ? row : to.head_gradient;
        b.add = row == nullptr || p != 0;
        b.count = count;
        b.width = width;
        backward_of_block<Lanes>(b, squares);
        for (int m = 0; m < 3; ++m) {
          T& bias = b.head_gradient[m * stride + width];
          const double sum = sum_of(v.raw[m] + place, count);
          bias = static_cast<T>(b.add ? static_cast<double>(bias) + sum : sum);
        }
        if (!last) continue;
        if (to.hidden_squared_norms != nullptr) {
          double norm = sum_of(squares);
          const auto entries = head.positions * width;
          if (sizeof(T) != sizeof(double) && norm < static_cast<double>(entries) * dp::rows::least_mean_square) {
            // Too small for float squares (see row_kernels.h).
            const T* made = to.hidden_gradient + window * to.hidden_gradient_stride;
            norm = 0;
            for (std::int64_t j = 0; j < entries; ++j)
              norm += static_cast<double>(made[j]) * static_cast<double>(made[j]);
          }
          to.hidden_squared_norms[window] = norm;
        }
        for (double& s : squares) s = 0;
        if (row == nullptr) continue;
        if (to.head_squared_norms != nullptr) to.head_squared_norms[window] = squared_norm(row, 3 * stride);
        if (to.head_gradient != nullptr)
          for (std::int64_t j = 0; j < 3 * stride; ++j) to.head_gradient[j] += row[j];
      }
    }
  }
}

}  // namespace

// Versions of a function by what it is compiled for; calls find the best one. The names of levels, not those of
// processors, which match exactly one kind each.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TSDP_VERSION(level) __attribute__((target(level)))
#define TSDP_VERSIONS 1
#else
#define TSDP_VERSION(level)
#define TSDP_VERSIONS 0
#endif

#define TSDP_DEFINE(level, bytes)                                                                 \
  TSDP_VERSION(level)                                                                             \
  void forward_on(const Head<float>& head, float* raw) { forward_of<bytes / 4>(head, raw); }      \
  TSDP_VERSION(level)                                                                             \
  void forward_on(const Head<double>& head, double* raw) { forward_of<bytes / 8>(head, raw); }    \
  TSDP_VERSION(level)                                                                             \
  void loss_on(const Head<float>& head, const Loss<float>& loss, const Gradients<float>& to) {    \
    loss_and_gradient_of<bytes / 4>(head, loss, to);                                              \
  }                                                                                               \
  TSDP_VERSION(level)                                                                             \
  void loss_on(const Head<double>& head, const Loss<double>& loss, const Gradients<double>& to) { \
    loss_and_gradient_of<bytes / 8>(head, loss, to);                                              \
  }
namespace {
#if TSDP_VERSIONS
TSDP_DEFINE("arch=x86-64-v4", 64)
TSDP_DEFINE("arch=x86-64-v3", 32)
#endif
TSDP_DEFINE("default", 16)
}  // namespace

template <>
void forward<float>(const Head<float>& head, float* raw) {
  forward_on(head, raw);
}
template <>
void forward<double>(const Head<double>& head, double* raw) {
  forward_on(head, raw);
}
template <>
void loss_and_gradient<float>(const Head<float>& head, const Loss<float>& loss, const Gradients<float>& gradients) {
  loss_on(head, loss, gradients);
}
template <>
void loss_and_gradient<double>(const Head<double>& head, const Loss<double>& loss, const Gradients<double>& gradients) {
  loss_on(head, loss, gradients);
}

}  // namespace tsdp::models::student_t_cpu
