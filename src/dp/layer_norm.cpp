#include "tsdp/dp/layer_norm.h"

namespace tsdp::dp {
namespace {

constexpr double variance_floor = 1e-5;

}  // namespace

LayerNorm::LayerNorm(at::Tensor weight, at::Tensor bias, at::Tensor weight_gradient, at::Tensor bias_gradient)
    : weight_(std::move(weight)),
      bias_(std::move(bias)),
      weight_gradient_(std::move(weight_gradient)),
      bias_gradient_(std::move(bias_gradient)) {}

const at::Tensor& LayerNorm::forward(const at::Tensor& input) {
  const auto centred = input - input.mean(-1, /*keepdim=*/true);
  inverse_deviation_ = centred.square().mean(-1, /*keepdim=*/true).add_(variance_floor).rsqrt_();
  normalised_ = centred * inverse_deviation_;
  output_ = at::addcmul(bias_, normalised_, weight_);
  return output_;
}

at::Tensor LayerNorm::backward(const at::Tensor& output_gradient, bool want_input_gradient) {
  by_weight_ = output_gradient * normalised_;
  by_bias_ = output_gradient;
  if (output_gradient.dim() == 3) {
    by_weight_ = by_weight_.sum(1);
    by_bias_ = by_bias_.sum(1);
  }
  if (!want_input_gradient) return {};
  const auto g = output_gradient * weight_;
  const auto along = (g * normalised_).mean(-1, /*keepdim=*/true);
  return (g - g.mean(-1, /*keepdim=*/true) - normalised_ * along) * inverse_deviation_;
}

void LayerNorm::add_squared_norms(at::Tensor& norms) {
  norms.add_(squared_norms(by_weight_)).add_(squared_norms(by_bias_));
}

void LayerNorm::discard(const at::Tensor& windows) {
  by_weight_ = by_weight_.masked_fill(windows.unsqueeze(1), 0.0);
  by_bias_ = by_bias_.masked_fill(windows.unsqueeze(1), 0.0);
}

void LayerNorm::add_gradient(const at::Tensor& factors) {
  if (factors.defined()) {
    weight_gradient_.addmv_(by_weight_.t(), factors);
    bias_gradient_.addmv_(by_bias_.t(), factors);
  } else {
    weight_gradient_.add_(by_weight_.sum(0));
    bias_gradient_.add_(by_bias_.sum(0));
  }
}

}  // namespace tsdp::dp
