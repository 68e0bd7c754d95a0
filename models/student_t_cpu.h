// The Student-t head with its loss and gradient, one window at a time while it is in cache. One thread; callers split
// the windows between threads. float and double; the Student-t part is in double for both.
#pragma once

#include <cstdint>

namespace tsdp::models::student_t_cpu {

/// The three affine maps D → 1 of the head, each [weight (D), bias], and its input (windows, K, D).
template <typename T>
struct Head {
  const T* maps = nullptr;         ///< 3 (D + 1): df, loc, scale
  const T* hidden = nullptr;       ///< rows of D without gaps
  std::int64_t hidden_stride = 0;  ///< from window to window
  std::int64_t windows = 0;
  std::int64_t positions = 0;  ///< K
  std::int64_t width = 0;      ///< D
};

/// Each row of `target` and `weights` (windows, K) is without gaps.
template <typename T>
struct Loss {
  const T* target = nullptr;  ///< in units of the data
  std::int64_t target_stride = 0;
  const T* affine_scale = nullptr;  ///< (windows)
  const T* weights = nullptr;       ///< where 0, the term and its gradient are exactly 0, finite or not
  std::int64_t weights_stride = 0;
};

/// Results that are not wanted are null, where that is said. Nothing overlaps anything else.
template <typename T>
struct Gradients {
  T* losses = nullptr;           ///< (windows): Σ_k weight nll; not finite if any counted nll is not
  T* raw_gradient = nullptr;     ///< (windows, K, 3), or null
  T* hidden_gradient = nullptr;  ///< (windows, K, D), like `hidden`
  std::int64_t hidden_gradient_stride = 0;
  double* hidden_squared_norms = nullptr;  ///< (windows): of the rows of K D values just written; or null
  // The gradient of the head's parameters, 3 (D + 1) in the order of `maps`, for each window or in sum or both; one of
  // the two must be given. Where a raw gradient is 0 and the hidden value is not finite, it is NaN.
  T* window_head_gradients = nullptr;
  std::int64_t window_head_gradients_stride = 0;
  double* head_squared_norms = nullptr;  ///< (windows): of the rows of window_head_gradients; or null
  T* head_gradient = nullptr;  ///< the windows' sum is added to it
};

/// raw (windows, K, 3) = weight · hidden + bias.
template <typename T>
void forward(const Head<T>& head, T* raw);

/// Squared norms: at most 64 float squares are summed in float, then in double, so that the relative error is at most
/// 70 · 2^-24 unless squares leave the range of float.
template <typename T>
void loss_and_gradient(const Head<T>& head, const Loss<T>& loss, const Gradients<T>& gradients);

template <>
void forward<float>(const Head<float>& head, float* raw);
template <>
void forward<double>(const Head<double>& head, double* raw);
template <>
void loss_and_gradient<float>(const Head<float>& head, const Loss<float>& loss, const Gradients<float>& gradients);
template <>
void loss_and_gradient<double>(const Head<double>& head, const Loss<double>& loss, const Gradients<double>& gradients);

}  // namespace tsdp::models::student_t_cpu
