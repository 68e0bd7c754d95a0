#include "simple_ff.h"

#include <cmath>

namespace tsdp::models {

SimpleFeedForward::SimpleFeedForward(const ModelOptions& options, const at::TensorOptions& tensor_options)
    : Forecaster(options) {
  const auto first = declare_linear("nn.0", width(), options.context_length);
  const auto second = declare_linear("nn.2", width() * options.prediction_length, width());
  allocate(tensor_options, StudentTHead::declare(parameters_, "args_proj.proj", head_inputs(width())),
           head_inputs(width()));
  first_ = linear(first);
  second_ = linear(second);
}

void SimpleFeedForward::initialise(RandomStream& stream) {
  // nn.*: weights uniform on ±0.07, biases 0 (GluonTS); heads as PyTorch's default, ±1/sqrt(inputs).
  initialise_uniform(stream, [&](const auto& entry) {
    if (!entry.name.starts_with("nn.")) return 1.0 / std::sqrt(static_cast<double>(width()));
    return entry.name.ends_with("bias") ? 0.0 : 0.07;
  });
  start_at_prior("args_proj.proj", {"nn.2."});
}

Forecaster::Hidden SimpleFeedForward::forward(const WindowBatch& batch) {
  const auto scale = batch.past_target.abs().mean(1, /*keepdim=*/true).clamp_min_(1e-5);
  const auto own = frame(batch, scale);
  const auto steps = tape_.apply(*second_, tape_.relu(tape_.apply(*first_, tape_.constant(own.input))));
  return {with_covariates(steps, batch), own.scale, own.naive, own.growth};
}

std::int64_t SimpleFeedForward::bytes_per_window() const {
  // Context, hidden layer and steps, each with its gradient.
  return 2 * 4 * (options_.context_length + width() + (head_inputs(width()) + 3) * options_.prediction_length);
}

std::string SimpleFeedForward::script() const {
  return script_methods() + R"(
def distribution(self, past_target: Tensor, past_observed: Tensor, time_features: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
)" + script_frame("past_target.abs().mean(dim=1, keepdim=True).clamp(min=1e-5)") +
         R"(    hidden = torch.relu(torch.linear(scaled, self.nn_0_weight, self.nn_0_bias))
    steps = torch.linear(hidden, self.nn_2_weight, self.nn_2_bias)
)" + script_steps() +
         student_t_script("args_proj_proj") + script_end();
}

}  // namespace tsdp::models
