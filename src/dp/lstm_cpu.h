// A stack of LSTM layers on the CPU, in single precision: forward, backward through time, and the gradient of every
// window by itself. One thread works on one group of up to `lanes` windows; a caller spreads groups over threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tsdp::dp::lstm_cpu {

enum class Isa {
  portable,
  avx2,
  avx512
};

/// The best of these that this processor has.
Isa best_isa();

/// PyTorch's conventions: gates i, f, g, o; for each layer weight_ih (4U, F), weight_hh (4U, U), bias_ih, bias_hh; the
/// parameters of the stack lie in this order, without gaps. States start at zero.
struct Plan {
  std::int64_t inputs = 0;  ///< F of the first layer; the others have F = U
  std::int64_t hidden = 0;  ///< U
  std::int64_t layers = 0;
  std::int64_t steps = 0;
  std::int64_t lanes = 32;  ///< windows a group: 16 or 32
  Isa isa = best_isa();

  std::int64_t layer_inputs(std::int64_t layer) const { return layer == 0 ? inputs : hidden; }
  std::int64_t layer_parameters(std::int64_t layer) const { return 4 * hidden * (layer_inputs(layer) + hidden + 2); }
  std::int64_t parameters() const { return layer_parameters(0) + (layers - 1) * layer_parameters(1); }
};

/// Floats on their own cache lines (and, when many, huge pages). Grows, never shrinks; new floats are zero.
class Buffer {
 public:
  float* reserve(std::int64_t count);
  float* data() const { return values_.get(); }

 private:
  struct Free {
    void operator()(float* values) const;
  };
  std::unique_ptr<float[], Free> values_;
  std::int64_t count_ = 0;
};

/// The stack's weights in the order in which the kernels read them.
struct Weights {
  Buffer values;
  struct Layer {
    std::int64_t forward = 0;  ///< offsets into `values`
    std::int64_t to_hidden = 0;
    std::int64_t to_inputs = 0;
  };
  std::vector<Layer> layers;
};

/// What one group's forward pass leaves for its backward pass, and that for the gradients; and scratch space.
struct Record {
  Buffer passes;  ///< activated gates (after the backward pass, the derivatives with respect to the gates' sums), c and
                  ///< tanh c
  Buffer hidden;  ///< h of all layers but the top one, window by window
  Buffer sums;  ///< derivatives with respect to the gates' sums, summed over steps
  Buffer scratch;
};

/// Called once per step, with `parameters` in the flat layout.
void prepare(const Plan& plan, const float* parameters, Weights& weights);

/// x (count, T, F), h (count, T, U) of the top layer; count ≤ lanes.
void forward(const Plan& plan, const Weights& weights, Record& record, std::int64_t count, const float* x, float* h);

/// From dh (count, T, U). With `dx_sum` (count, F): the sum over steps of the derivative with respect to the first
/// layer's input.
void backward(const Plan& plan, const Weights& weights, Record& record, std::int64_t count, const float* dh,
              float* dx_sum);

/// After `backward`, with the x and h of `forward`: the gradient of window w to rows + w · stride, in the flat layout,
/// and its squared norm to squared[w], relative error below 4e-6.
void window_gradients(const Plan& plan, Record& record, std::int64_t count, const float* x, const float* h, float* rows,
                      std::int64_t stride, double* squared);

/// The same gradients, added to `sum`.
void add_gradients(const Plan& plan, Record& record, std::int64_t count, const float* x, const float* h, float* sum);

/// sum[p] += Σ_w factors[w] · rows[w · stride + p] for begin ≤ p < end. Rows of factor 0 are not looked at, so they may
/// hold anything.
void weighted_sum(Isa isa, std::int64_t windows, const float* factors, const float* rows, std::int64_t stride,
                  std::int64_t begin, std::int64_t end, float* sum);

}  // namespace tsdp::dp::lstm_cpu
