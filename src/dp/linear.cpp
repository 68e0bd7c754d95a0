#include "tsdp/dp/layer.h"

namespace tsdp::dp {
namespace {

/// Reuses `buffer` if shape and kind fit; a batch of usual size then allocates nothing.
at::Tensor& fitted(at::Tensor& buffer, at::IntArrayRef shape, const at::TensorOptions& options) {
  if (!buffer.defined() || buffer.sizes() != shape || buffer.options().dtype() != options.dtype() ||
      buffer.device() != options.device())
    buffer = at::empty(shape, options);
  return buffer;
}

/// Squared Euclidean norms of the rows of a matrix.
at::Tensor squared_row_norms(const at::Tensor& rows) { return at::linalg_vector_norm(rows, 2, at::IntArrayRef{1}).square_(); }

}  // namespace

Linear::Linear(at::Tensor weight, at::Tensor bias, at::Tensor weight_gradient, at::Tensor bias_gradient)
    : weight_(std::move(weight)),
      bias_(std::move(bias)),
      weight_gradient_(std::move(weight_gradient)),
      bias_gradient_(std::move(bias_gradient)) {}

const at::Tensor& Linear::forward(const at::Tensor& input) {
  input_ = input;
  auto shape = input.sizes().vec();
  shape.back() = weight_.size(0);
  fitted(output_, shape, input.options());
  auto flat = output_.view({-1, weight_.size(0)});
  at::addmm_out(flat, bias_, input.reshape({-1, weight_.size(1)}), weight_.t());
  return output_;
}

at::Tensor Linear::backward(const at::Tensor& output_gradient, bool want_input_gradient) {
  output_gradient_ = output_gradient;
  window_gradients_.reset();
  if (!want_input_gradient) return {};
  fitted(input_gradient_, input_.sizes(), input_.options());
  auto flat = input_gradient_.view({-1, weight_.size(1)});
  at::mm_out(flat, output_gradient.reshape({-1, weight_.size(0)}), weight_);
  return input_gradient_;
}

bool Linear::materialise(std::int64_t positions) const {
  const auto p = weight_.size(0);
  const auto d = weight_.size(1);
  return positions * p * d <= positions * positions * (p + d);
}

void Linear::add_squared_norms(at::Tensor& norms) {
  if (input_.dim() == 2) {
    // One position: ‖g xᵀ‖² + ‖g‖² = ‖g‖² (‖x‖² + 1).
    norms.addcmul_(squared_row_norms(output_gradient_), squared_row_norms(input_).add_(1.0));
    return;
  }
  const auto batch = input_.size(0);
  norms.add_(squared_row_norms(output_gradient_.sum(1)));
  if (materialise(input_.size(1))) {
    window_gradients_ = at::bmm(output_gradient_.transpose(1, 2), input_);
    norms.add_(squared_row_norms(window_gradients_.view({batch, -1})));
    return;
  }
  // ‖Σ_t g_t x_tᵀ‖² = Σ_{t,s} (g_t·g_s)(x_t·x_s).
  const auto gram_x = at::bmm(input_, input_.transpose(1, 2));
  const auto gram_g = at::bmm(output_gradient_, output_gradient_.transpose(1, 2));
  // Rounding may leave a tiny negative number where the gradient is 0.
  norms.add_(gram_x.mul(gram_g).sum({1, 2}).clamp_min_(0.0));
}

void Linear::discard(const at::Tensor& windows) {
  const auto cleared = [&](const at::Tensor& recorded) {
    return recorded.dim() == 2 ? recorded.masked_fill(windows.unsqueeze(1), 0.0)
                               : recorded.masked_fill(windows.unsqueeze(1).unsqueeze(2), 0.0);
  };
  input_ = cleared(input_);
  output_gradient_ = cleared(output_gradient_);
  if (window_gradients_.defined()) window_gradients_ = cleared(window_gradients_);
}

void Linear::write_gradient(const at::Tensor& factors) {
  const auto p = weight_.size(0);
  const auto d = weight_.size(1);
  if (factors.defined() && window_gradients_.defined()) {
    weight_gradient_.copy_(at::mv(window_gradients_.view({-1, p * d}).t(), factors).view({p, d}));
    bias_gradient_.copy_(at::mv(output_gradient_.sum(1).t(), factors));
    return;
  }
  auto x = input_;
  auto g = output_gradient_;
  if (factors.defined()) {
    auto scale = factors.dim() == x.dim() ? factors : factors.view({-1, 1});
    if (x.dim() == 3) scale = scale.unsqueeze(2);
    // The factors go into whichever side is smaller; the bias needs them as well.
    if (x.dim() == 2) {
      bias_gradient_.copy_(at::mv(g.t(), factors));
      if (d < p) {
        x = x * scale;
      } else {
        g = g * scale;
      }
    } else {
      g = g * scale;
      bias_gradient_.copy_(g.sum({0, 1}));
    }
  } else {
    bias_gradient_.copy_(g.reshape({-1, p}).sum(0));
  }
  const auto flat_g = g.reshape({-1, p});
  const auto flat_x = x.reshape({-1, d});
  if (weight_gradient_.is_contiguous()) {
    at::mm_out(weight_gradient_, flat_g.t(), flat_x);
  } else {
    weight_gradient_.copy_(at::mm(flat_g.t(), flat_x));
  }
}

}  // namespace tsdp::dp
