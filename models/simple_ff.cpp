#include "simple_ff.h"

#include <cmath>

#include "student_t.h"

namespace tsdp::models {

SimpleFeedForward::SimpleFeedForward(const ModelOptions& options, const at::TensorOptions& tensor_options)
    : Forecaster(options) {
  const auto w0 = parameters_.declare("nn.0.weight", {width, options.context_length});
  const auto b0 = parameters_.declare("nn.0.bias", {width});
  const auto w2 = parameters_.declare("nn.2.weight", {width * options.prediction_length, width});
  const auto b2 = parameters_.declare("nn.2.bias", {width * options.prediction_length});
  const auto head = declare_student_t_head(parameters_, "args_proj.proj", width);
  parameters_.allocate(tensor_options);
  const auto linear = [&](std::size_t weight, std::size_t bias) {
    return std::make_unique<dp::Linear>(parameters_.value(weight), parameters_.value(bias), parameters_.gradient(weight),
                                        parameters_.gradient(bias));
  };
  first_ = linear(w0, b0);
  second_ = linear(w2, b2);
  head_ = make_student_t_head(parameters_, head, width);
  layer_list_ = {first_.get(), second_.get(), head_.get()};
}

void SimpleFeedForward::initialise(RandomStream& stream) {
  // nn.*: weights uniform on ±0.07, biases 0 (GluonTS); heads as PyTorch's default, ±1/sqrt(inputs).
  auto values = at::zeros({parameters_.count()}, at::kDouble);
  auto* out = values.data_ptr<double>();
  for (const auto& entry : parameters_.entries()) {
    const bool body = entry.name.rfind("nn.", 0) == 0;
    const bool bias = entry.name.ends_with("bias");
    if (body && bias) continue;
    const double bound = body ? 0.07 : 1.0 / std::sqrt(static_cast<double>(width));
    for (std::int64_t i = 0; i < entry.count; ++i) out[entry.offset + i] = bound * (2.0 * stream.uniform() - 1.0);
  }
  parameters_.values().copy_(values);
}

const at::Tensor& SimpleFeedForward::raw_outputs(const at::Tensor& past_target) {
  affine_scale_ = past_target.abs().mean(1, /*keepdim=*/true).clamp_min_(1e-5);
  scaled_ = past_target.div(affine_scale_);
  hidden_ = at::relu(first_->forward(scaled_));
  const auto& steps = second_->forward(hidden_);
  return head_->forward(steps.view({-1, options_.prediction_length, width}));
}

at::Tensor SimpleFeedForward::losses(const WindowBatch& batch) {
  const auto& raw = raw_outputs(batch.past_target);
  const auto weights = batch.future_observed.div(batch.future_observed.sum(1, true).clamp_min_(1.0));
  auto result = student_t_loss(raw, batch.future_target, affine_scale_, weights);
  raw_gradient_ = std::move(result.raw_gradient);
  return result.losses;
}

void SimpleFeedForward::backward(double seed) {
  if (seed != 1.0) raw_gradient_.mul_(seed);
  const auto by_steps = head_->backward(raw_gradient_, true);
  const auto by_hidden = second_->backward(by_steps.view({by_steps.size(0), -1}), true);
  first_->backward(at::threshold_backward(by_hidden, hidden_, 0.0), false);
}

StudentT SimpleFeedForward::predict(const at::Tensor& past_target, const at::Tensor& /*past_observed*/) {
  const auto& raw = raw_outputs(past_target);
  return student_t_of(raw, affine_scale_);
}

std::string SimpleFeedForward::script() const {
  return R"(
def distribution(self, past_target: Tensor, past_observed: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    affine_scale = past_target.abs().mean(dim=1, keepdim=True).clamp(min=1e-5)
    hidden = torch.relu(torch.linear(past_target / affine_scale, self.nn_0_weight, self.nn_0_bias))
    steps = torch.linear(hidden, self.nn_2_weight, self.nn_2_bias)
    steps = steps.reshape(past_target.size(0), -1, 64)
    weight = torch.cat([self.args_proj_proj_0_weight, self.args_proj_proj_1_weight, self.args_proj_proj_2_weight])
    bias = torch.cat([self.args_proj_proj_0_bias, self.args_proj_proj_1_bias, self.args_proj_proj_2_bias])
    raw = torch.linear(steps, weight, bias))" +
         student_t_script() + "    return df, loc, scale, affine_scale\n";
}

}  // namespace tsdp::models
