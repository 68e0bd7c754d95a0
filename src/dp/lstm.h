// Stacked LSTM with a hand-written backward pass through time.
#pragma once

#include <memory>
#include <vector>

#include "tsdp/dp/layers.h"
#include "tsdp/dp/parameters.h"

namespace tsdp::dp {

struct LstmKernels;

/// PyTorch's LSTM (gates i, f, g, o; both bias vectors; zero initial state) over x (B, T, F), giving the top layer's h
/// (B, T, U). All layers and steps are recorded; window i's gradients are Σ_t dgate_it x_itᵀ, Σ_t dgate_it h_{i,t−1}ᵀ
/// and Σ_t dgate_it for both biases.
class Lstm final : public Map {
 public:
  /// Declares `<prefix>.weight_ih_l0`, `.weight_hh_l0`, `.bias_ih_l0`, `.bias_hh_l0`, then those of the layers above.
  /// Returns the place of the first. One that is not `trained` can only be run forwards.
  static std::size_t declare(ParameterBuffer& parameters, const std::string& prefix, std::int64_t inputs,
                             std::int64_t hidden, std::int64_t layers, bool trained = true);
  /// Uses parameters that `declare` declared. The CPU's kernel gives no gradient of every single input, so it serves
  /// only if `input_is_constant`: no parameter below, or one whose input is the same at all steps
  /// (`summed_input_gradient`).
  Lstm(const ParameterBuffer& parameters, std::size_t first, std::int64_t layers, bool input_is_constant = false);
  ~Lstm() override;

  const at::Tensor& forward(const at::Tensor& input) override;
  at::Tensor backward(const Gradient& output_gradient, bool want_input_gradient) override;
  void join(const Records& records) override;
  void add_squared_norms(at::Tensor& norms) override;
  void discard(const at::Tensor& windows) override;
  void add_gradient(const at::Tensor& factors) override;

  /// Σ_t of the gradient with respect to input t (B, F), of the last backward pass: what an input that is constant over
  /// the steps receives.
  [[nodiscard]] at::Tensor summed_input_gradient() const;

  /// How many windows a thread should work on at a time: one group of the CPU's kernel, whose gradients lie side by
  /// side in cache.
  static constexpr std::int64_t preferred_chunk = 32;

 private:
  class Kernel;
  struct Level {
    at::Tensor weight_ih, weight_hh, bias_ih, bias_hh;
    LinearRecord by_input, by_state;
    at::Tensor input;  // (B, T, F)
    at::Tensor gates;  // (T, B, 4U), after their nonlinearities
    at::Tensor cells;  // (T, B, U)
    at::Tensor output;  // (B, T, U)
    at::Tensor gate_gradients;  // (B, T, 4U), before the nonlinearities
    const LstmKernels* kernels = nullptr;  // of the last forward pass
    std::vector<at::Tensor> fused_gates = {}, fused_cells = {};  // like gates (B, 4U) and cells (B, U), a tensor a step
  };
  const at::Tensor& forward(Level& level, const at::Tensor& input);
  void backward(Level& level, const at::Tensor& output_gradient);
  /// The same with LibTorch's fused cells, a launch a step in either direction; it has them off the CPU.
  const at::Tensor& forward_fused(Level& level, const at::Tensor& input);
  /// The same with a launch for all steps, by the device's own kernels.
  const at::Tensor& forward_at_once(Level& level, const at::Tensor& input, const LstmKernels& kernels);
  void backward_fused(Level& level, const at::Tensor& output_gradient);
  void backward_plain(Level& level, const at::Tensor& output_gradient);

  std::vector<Level> levels_;
  std::unique_ptr<Kernel> kernel_;
  bool by_kernel_ = false;  // whether the last forward pass was the kernel's
  bool input_is_constant_;
};

}  // namespace tsdp::dp
