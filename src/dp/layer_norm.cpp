#include "tsdp/dp/layers.h"

#include <ATen/Parallel.h>

#include "row_kernels.h"

namespace tsdp::dp {
namespace {

constexpr double variance_floor = rows::layer_norm_epsilon;

/// What the kernels know about all rows.
rows::LayerNorm<float> rows_of(const at::Tensor& input, const at::Tensor& mean, const at::Tensor& inverse,
                               const at::Tensor& gain) {
  return {input.const_data_ptr<float>(),
          mean.const_data_ptr<float>(),
          inverse.const_data_ptr<float>(),
          gain.const_data_ptr<float>(),
          input.size(0),
          input.size(1)};
}

constexpr std::int64_t rows_a_thread = 64;

}  // namespace

LayerNorm::LayerNorm(at::Tensor weight, at::Tensor bias, at::Tensor weight_gradient, at::Tensor bias_gradient)
    : weight_(std::move(weight)),
      bias_(std::move(bias)),
      weight_gradient_(std::move(weight_gradient)),
      bias_gradient_(std::move(bias_gradient)) {}

const at::Tensor& LayerNorm::forward(const at::Tensor& input) {
  kernel_input_.reset();
  joined_by_kernel_ = false;
  if (input.dim() == 2 && kernels_serve(input) && input.is_contiguous()) {
    kernel_input_ = input;
    fitted(output_, input.sizes(), input.options());
    fitted(mean_, {input.size(0)}, input.options());
    fitted(inverse_, {input.size(0)}, input.options());
    at::parallel_for(0, input.size(0), rows_a_thread, [&](std::int64_t begin, std::int64_t end) {
      const auto width = input.size(1);
      rows::layer_norm_forward(input.const_data_ptr<float>() + begin * width, end - begin, width,
                               weight_.const_data_ptr<float>(), bias_.const_data_ptr<float>(),
                               output_.data_ptr<float>() + begin * width, mean_.data_ptr<float>() + begin,
                               inverse_.data_ptr<float>() + begin);
    });
    return output_;
  }
  if (!input.device().is_cpu()) {
    device_input_ = input;
    std::tie(normalised_, mean_, inverse_) =
        at::native_layer_norm(input, {input.size(-1)}, std::nullopt, std::nullopt, variance_floor);
    output_ = at::addcmul(bias_, normalised_, weight_);
    return output_;
  }
  const auto centred = input - input.mean(-1, /*keepdim=*/true);
  inverse_deviation_ = centred.square().mean(-1, /*keepdim=*/true).add_(variance_floor).rsqrt_();
  normalised_ = centred * inverse_deviation_;
  output_ = at::addcmul(bias_, normalised_, weight_);
  return output_;
}

at::Tensor LayerNorm::backward(const Gradient& arrived, bool want_input_gradient) {
  const auto& output_gradient = arrived.value;
  if (by_kernel()) {
    output_gradient_ = output_gradient.contiguous();
    fitted(input_gradient_, kernel_input_.sizes(), kernel_input_.options());
    fitted(squared_norms_, {kernel_input_.size(0)}, kernel_input_.options().dtype(at::kDouble));
    at::parallel_for(0, kernel_input_.size(0), rows_a_thread, [&](std::int64_t begin, std::int64_t end) {
      const auto first = begin * kernel_input_.size(1);
      rows::layer_norm_backward(rows_of(kernel_input_, mean_, inverse_, weight_).part(begin, end),
                                output_gradient_.const_data_ptr<float>() + first,
                                want_input_gradient ? input_gradient_.data_ptr<float>() + first : nullptr,
                                squared_norms_.data_ptr<double>() + begin);
    });
    return want_input_gradient ? input_gradient_ : at::Tensor();
  }
  by_weight_ = output_gradient * normalised_;
  by_bias_ = output_gradient;
  if (output_gradient.dim() == 3) {
    by_weight_ = by_weight_.sum(1);
    by_bias_ = by_bias_.sum(1);
  }
  if (!want_input_gradient) return {};
  if (device_input_.defined())
    return std::get<0>(at::native_layer_norm_backward(output_gradient, device_input_, {device_input_.size(-1)}, mean_,
                                                      inverse_, weight_, bias_, {true, false, false}));
  const auto g = output_gradient * weight_;
  const auto along = (g * normalised_).mean(-1, /*keepdim=*/true);
  return (g - g.mean(-1, /*keepdim=*/true) - normalised_ * along) * inverse_deviation_;
}

void LayerNorm::join(const Records& records) {
  if (by_kernel()) {
    const auto width = kernel_input_.size(1);
    fitted(by_weight_, {records.count(), width}, kernel_input_.options()).zero_();
    fitted(by_bias_, {records.count(), width}, kernel_input_.options()).zero_();
    const auto all = rows_of(kernel_input_, mean_, inverse_, weight_);
    const auto* gradient = output_gradient_.const_data_ptr<float>();
    auto* by_weight = by_weight_.data_ptr<float>();
    auto* by_bias = by_bias_.data_ptr<float>();
    for (std::int64_t r = 0; r < records.count(); ++r)
      rows::layer_norm_gradient<float>(all.part(records.begin(r), records.end(r)), gradient + records.begin(r) * width,
                                       nullptr, by_weight + r * width, by_bias + r * width);
    kernel_input_.reset();
    joined_by_kernel_ = true;
    return;
  }
  by_weight_ = records.sums(by_weight_);
  by_bias_ = records.sums(by_bias_);
}

void LayerNorm::add_squared_norms(at::Tensor& norms) {
  if (by_kernel()) {
    norms.add_(squared_norms_);
    return;
  }
  if (joined_by_kernel_) {
    for (const auto* side : {&by_weight_, &by_bias_})
      rows::squared_norms(side->const_data_ptr<float>(), side->size(0), side->size(1), side->size(1),
                          norms.data_ptr<double>(), true);
    return;
  }
  norms.add_(squared_norms(by_weight_)).add_(squared_norms(by_bias_));
}

void LayerNorm::discard(const at::Tensor& windows) {
  if (by_kernel()) {
    // Zero rows: mean 0, gradient 0, and a finite inverse deviation.
    kernel_input_ = kernel_input_.masked_fill(windows.unsqueeze(1), 0.0);
    output_gradient_ = output_gradient_.masked_fill(windows.unsqueeze(1), 0.0);
    mean_.masked_fill_(windows, 0.0);
    inverse_.masked_fill_(windows, 1.0);
    return;
  }
  by_weight_ = by_weight_.masked_fill(windows.unsqueeze(1), 0.0);
  by_bias_ = by_bias_.masked_fill(windows.unsqueeze(1), 0.0);
}

void LayerNorm::add_gradient(const at::Tensor& factors) {
  if (by_kernel()) {
    rows::layer_norm_gradient(rows_of(kernel_input_, mean_, inverse_, weight_),
                              output_gradient_.const_data_ptr<float>(),
                              factors.defined() ? factors.const_data_ptr<float>() : nullptr,
                              weight_gradient_.data_ptr<float>(), bias_gradient_.data_ptr<float>());
    return;
  }
  if (joined_by_kernel_ && factors.defined()) {
    const auto add = [&](const at::Tensor& side, const at::Tensor& gradient) {
      const auto width = side.size(1);
      const auto* row = side.const_data_ptr<float>();
      auto* sum = gradient.data_ptr<float>();
      const auto* of_record = factors.const_data_ptr<float>();
      for (std::int64_t r = 0; r < side.size(0); ++r, row += width) {
        const float factor = of_record[r];
        if (factor == 0.0F) continue;  // a record that was left out may hold anything
        for (std::int64_t j = 0; j < width; ++j) sum[j] += factor * row[j];
      }
    };
    add(by_weight_, weight_gradient_);
    add(by_bias_, bias_gradient_);
    return;
  }
  if (factors.defined()) {
    weight_gradient_.addmv_(by_weight_.t(), factors);
    bias_gradient_.addmv_(by_bias_.t(), factors);
  } else {
    weight_gradient_.add_(by_weight_.sum(0));
    bias_gradient_.add_(by_bias_.sum(0));
  }
}

}  // namespace tsdp::dp
