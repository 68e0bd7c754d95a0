// Affine maps, with the record of one from which its norms and clipped sums are computed, and layer normalisation.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "tsdp/dp/layer.h"

namespace tsdp::dp {

/// Record of an affine map y = x Wᵀ + b: activations x (B, d) or (B, T, d) and output gradients g (B, p) or (B, T, p).
/// The gradient of window i is Σ_t g_it x_itᵀ and Σ_t g_it. Gradients may be strided views; W may be any map that a
/// layer applies at T positions (including the recurrent weights of an LSTM).
class LinearRecord {
 public:
  LinearRecord(at::Tensor weight_gradient, at::Tensor bias_gradient);

  void set(at::Tensor input, Gradient output_gradient);
  /// As in Layer: the windows of a record become further positions of a single window.
  void join(const Records& records);
  /// As in Layer. One position: ‖g‖² (‖x‖² + 1). T positions: by T × T Gram matrices or by each window's p × d
  /// gradient, whichever takes fewer operations.
  void add_squared_norms(at::Tensor& norms);
  void discard(const at::Tensor& windows);
  void add_gradient(const at::Tensor& factors);

 private:
  void add_squared_norms_of_records(at::Tensor& norms);
  void add_gradient_of_records(const at::Tensor& factors);
  /// Adds Σ_i factors_i g_i x_iᵀ for rows x (n, d) and g (n, p).
  void add_products(at::Tensor x, at::Tensor g, const at::Tensor& factors);

  at::Tensor weight_gradient_, bias_gradient_;
  at::Tensor input_, output_gradient_;
  at::Tensor output_gradient_norms_;  // as in Gradient
  at::Tensor window_gradients_, window_bias_gradients_;  // (B, p, d), (B, p) of the last norms, if they were formed
  at::Tensor scaled_,
      window_factors_;  // a side multiplied by the factors, and factors of windows: buffers kept for reuse
  std::vector<double> input_norms_, gradient_norms_;  // of the CPU kernel, buffers kept for reuse
  /// For the CPU kernel, with one position per window: records whose windows lie side by side in input and output
  /// gradient as they were; and those of them whose windows cancel (rows::RecordNorms).
  std::optional<Records> records_;
  std::vector<char> cancelling_;
  at::Tensor own_positions_;  // (B) for joined windows, which are further positions: each record's own, without padding
  std::int64_t chosen_for_ =
      0;  // positions by which the way of computing is chosen: for joined windows a public number
};

/// Record of b in y = x Wᵀ + b where W is not trained: each window's gradient itself, Σ_t g_it. What is measured is
/// what is scaled and added.
class BiasRecord {
 public:
  explicit BiasRecord(at::Tensor gradient) : gradient_(std::move(gradient)) {}

  void set(const Gradient& output_gradient);  ///< (B, p) or (B, T, p)
  void join(const Records& records) { of_windows_ = records.sums(of_windows_); }
  void add_squared_norms(at::Tensor& norms) const { norms.add_(squared_norms(of_windows_)); }
  void discard(const at::Tensor& windows) { of_windows_ = of_windows_.masked_fill(windows.unsqueeze(1), 0.0); }
  void add_gradient(const at::Tensor& factors) const;

 private:
  at::Tensor gradient_, of_windows_;
};

/// y = x Wᵀ + b for x (B, d) or, with T positions, (B, T, d). Weight (p, d) and bias (p) may be strided views. Without
/// a weight gradient the bias alone is trained.
class Linear final : public Map {
 public:
  Linear(at::Tensor weight, at::Tensor bias, at::Tensor weight_gradient, at::Tensor bias_gradient);

  const at::Tensor& forward(const at::Tensor& input) override;
  at::Tensor backward(const Gradient& output_gradient, bool want_input_gradient) override;
  void join(const Records& records) override {
    std::visit([&](auto& record) { record.join(records); }, record_);
  }
  void add_squared_norms(at::Tensor& norms) override {
    std::visit([&](auto& record) { record.add_squared_norms(norms); }, record_);
  }
  void discard(const at::Tensor& windows) override {
    std::visit([&](auto& record) { record.discard(windows); }, record_);
  }
  void add_gradient(const at::Tensor& factors) override {
    std::visit([&](auto& record) { record.add_gradient(factors); }, record_);
  }

 private:
  at::Tensor weight_, bias_;
  at::Tensor input_, output_, input_gradient_;
  std::variant<LinearRecord, BiasRecord> record_;
};

/// Layer normalisation over the last axis:
/// y = γ (x − mean)/√(variance + 1e-5) + β for x (B, d) or (B, T, d), biased variance over the last axis; γ, β (d).
/// Window i's gradients are Σ_t g_it ∘ x̂_it and Σ_t g_it, formed directly.
class LayerNorm final : public Map {
 public:
  LayerNorm(at::Tensor weight, at::Tensor bias, at::Tensor weight_gradient, at::Tensor bias_gradient);

  const at::Tensor& forward(const at::Tensor& input) override;
  at::Tensor backward(const Gradient& output_gradient, bool want_input_gradient) override;
  void join(const Records& records) override;
  void add_squared_norms(at::Tensor& norms) override;
  void discard(const at::Tensor& windows) override;
  void add_gradient(const at::Tensor& factors) override;

 private:
  [[nodiscard]] bool by_kernel() const { return kernel_input_.defined(); }

  at::Tensor weight_, bias_, weight_gradient_, bias_gradient_;
  at::Tensor output_, normalised_, inverse_deviation_;
  at::Tensor device_input_;  // off the CPU, for LibTorch's own backward pass, with mean_ and inverse_
  at::Tensor by_weight_, by_bias_;  // (B, d): the windows' or the records' gradients
  bool joined_by_kernel_ = false;
  // For the CPU kernel, with one position per window: what it recorded, and the windows' squared norms.
  at::Tensor kernel_input_, mean_, inverse_, output_gradient_, input_gradient_, squared_norms_;
};

}  // namespace tsdp::dp
