// Small operations on rows (one a window), float and double, one thread each; callers split the rows between threads.
#pragma once

#include <cstdint>

namespace tsdp::dp::rows {

/// Sums of float squares whose mean is below this are computed again in double: squares below 2^-126 are lost or
/// coarse, at most length · 2^-126 in all, which is 2^-36 of what passes.
inline constexpr double least_mean_square = 0x1p-90;

/// out[i] = ‖row i‖² (added to out[i] if `add`), row i at rows + i · stride. float: at most 64 squares are summed in
/// float, then in double, so the relative error is at most 70 · 2^-24 (above 2^128 infinite). double: all in double.
template <typename T>
void squared_norms(const T* rows, std::int64_t count, std::int64_t length, std::int64_t stride, double* out,
                   bool add = false);

/// Norms of a record's gradient Σ_t g_t (x_t, 1)ᵀ.
struct RecordNorm {
  double squared_norm;   ///< never less than the true one
  double sum_of_norms;  ///< Σ_t ‖g_t‖ ‖(x_t, 1)‖: as large as the norm, or larger where the windows' gradients cancel
  double largest_input;  ///< max_t ‖x_t‖²
};

/// From the record's rows g (windows, p) and x (windows, d): ‖Σ_t g_t (x_t, 1)ᵀ‖² = Σ_{t,s} (g_t·g_s)(x_t·x_s + 1), in
/// double precision. Products of length n are off by at most n u of the product of norms, u = 2⁻⁵³, and every row of
/// products and the rows are summed one after the other, so all of it is off by at most (p + d + 2 windows + 12) u (Σ_t
/// ‖g_t‖ ‖(x_t, 1)‖)², which is added.
RecordNorm norm_of_products(const float* g, std::int64_t p, const float* x, std::int64_t d, std::int64_t windows);

/// values[i] *= factor.
void scale(double* values, std::int64_t length, double factor);

/// sums[i] += terms[i].
template <typename T>
void add(const T* terms, std::int64_t length, double* sums);

/// out[i] = (sums[i] + offset) − offset, rounded to T, · factor.
template <typename T>
void store(const double* sums, std::int64_t length, double offset, T factor, T* out);

inline constexpr double layer_norm_epsilon = 1e-5;

/// Rows of `width` without gaps. y = gain · x̂ + shift, x̂ = (x − mean) · inverse, inverse = 1/√(variance + 1e-5) with
/// the biased variance; keeps mean and inverse of each row.
template <typename T>
void layer_norm_forward(const T* x, std::int64_t count, std::int64_t width, const T* gain, const T* shift, T* y,
                        T* mean, T* inverse);

/// What `layer_norm_backward` and `layer_norm_gradient` know of the forward pass.
template <typename T>
struct LayerNorm {
  const T* x = nullptr;
  const T* mean = nullptr;
  const T* inverse = nullptr;
  const T* gain = nullptr;
  std::int64_t count = 0;
  std::int64_t width = 0;

  /// Rows from `begin` to below `end`.
  [[nodiscard]] LayerNorm part(std::int64_t begin, std::int64_t end) const {
    return {x + begin * width, mean + begin, inverse + begin, gain, end - begin, width};
  }
};

/// x_gradient (may be y_gradient) and, each row being a window, the squared norm of its gradient of (gain, shift), in
/// double (added if `add`). Either may be null.
template <typename T>
void layer_norm_backward(const LayerNorm<T>& layer, const T* y_gradient, T* x_gradient, double* squared_norms,
                         bool add = false);

/// Adds Σ_i factors[i] · (gradient of row i) to those of gain and shift; without factors they are 1.
template <typename T>
void layer_norm_gradient(const LayerNorm<T>& layer, const T* y_gradient, const T* factors, T* gain_gradient,
                         T* shift_gradient);

// clang-format off
#define TSDP_DECLARE_ROWS(T)                                                                                       \
  template <> void squared_norms<T>(const T*, std::int64_t, std::int64_t, std::int64_t, double*, bool);            \
  template <> void add<T>(const T*, std::int64_t, double*);                                                         \
  template <> void store<T>(const double*, std::int64_t, double, T, T*);                                            \
  template <> void layer_norm_forward<T>(const T*, std::int64_t, std::int64_t, const T*, const T*, T*, T*, T*);    \
  template <> void layer_norm_backward<T>(const LayerNorm<T>&, const T*, T*, double*, bool);                       \
  template <> void layer_norm_gradient<T>(const LayerNorm<T>&, const T*, const T*, T*, T*);
// clang-format on
TSDP_DECLARE_ROWS(float)
TSDP_DECLARE_ROWS(double)
#undef TSDP_DECLARE_ROWS

}  // namespace tsdp::dp::rows
