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

/// Squared Euclidean norms along the last axis, in double precision; relative error at most 70 units of the rows' type.
at::Tensor squared_norms(const at::Tensor& rows) {
  // Single precision is summed over pieces of at most 64 (a sum of n squares is off by at most n units, in whatever
  // order) and in double precision over the pieces: three times as fast as converting every element.
  const auto length = rows.size(-1);
  if (rows.scalar_type() == at::kFloat && rows.is_contiguous()) {
    for (std::int64_t piece = 64; piece >= 16; --piece) {
      if (length % piece != 0) continue;
      auto shape = rows.sizes().vec();
      shape.back() = length / piece;
      shape.push_back(piece);
      return at::linalg_vector_norm(rows.view(shape), 2, at::IntArrayRef{-1}).to(at::kDouble).square_().sum(-1);
    }
  }
  return at::linalg_vector_norm(rows, 2, at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble).square_();
}

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
    norms.addcmul_(squared_norms(output_gradient_), squared_norms(input_).add_(1.0));
    return;
  }
  const auto batch = input_.size(0);
  if (materialise(input_.size(1))) {
    // What is measured here is what `write_gradient` scales and adds.
    window_gradients_ = at::bmm(output_gradient_.transpose(1, 2), input_);
    window_bias_gradients_ = output_gradient_.sum(1);
    norms.add_(squared_norms(window_gradients_.view({batch, -1}))).add_(squared_norms(window_bias_gradients_));
    return;
  }
  // ‖Σ_t g_t x_tᵀ‖² = Σ_{t,s} (g_t·g_s)(x_t·x_s).
  const auto gram_x = at::bmm(input_, input_.transpose(1, 2)).to(at::kDouble);
  const auto gram_g = at::bmm(output_gradient_, output_gradient_.transpose(1, 2)).to(at::kDouble);
  // Positions may cancel: the sum is then far smaller than its terms, and their rounding (and that of the contraction
  // that writes the gradient) may be larger than the sum. So the norm is raised by what rounding can hide,
  // γ (Σ_t ‖g_t‖ ‖x_t‖)² and γ (Σ_t ‖g_t‖)², γ = 4 (T + p + d) u with u the unit of the type: a window is then clipped
  // too much rather than too little.
  const auto g_sizes = squared_norms(output_gradient_).sqrt_();
  const auto x_sizes = squared_norms(input_).sqrt_();
  const double unit = input_.scalar_type() == at::kDouble ? 0x1p-53 : 0x1p-24;
  const double gamma = 4.0 * static_cast<double>(input_.size(1) + weight_.size(0) + weight_.size(1)) * unit;
  norms.add_(gram_x.mul(gram_g).sum({1, 2}).clamp_min_(0.0));
  norms.add_((g_sizes * x_sizes).sum(1).square_(), gamma);
  norms.add_(squared_norms(output_gradient_.sum(1))).add_(g_sizes.sum(1).square_(), gamma);
}

void Linear::discard(const at::Tensor& windows) {
  const auto cleared = [&](const at::Tensor& recorded) {
    return recorded.dim() == 2 ? recorded.masked_fill(windows.unsqueeze(1), 0.0)
                               : recorded.masked_fill(windows.unsqueeze(1).unsqueeze(2), 0.0);
  };
  input_ = cleared(input_);
  output_gradient_ = cleared(output_gradient_);
  if (window_gradients_.defined()) {
    window_gradients_ = cleared(window_gradients_);
    window_bias_gradients_ = cleared(window_bias_gradients_);
  }
}

void Linear::write_gradient(const at::Tensor& factors) {
  const auto p = weight_.size(0);
  const auto d = weight_.size(1);
  if (factors.defined() && window_gradients_.defined()) {
    weight_gradient_.copy_(at::mv(window_gradients_.view({-1, p * d}).t(), factors).view({p, d}));
    bias_gradient_.copy_(at::mv(window_bias_gradients_.t(), factors));
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
