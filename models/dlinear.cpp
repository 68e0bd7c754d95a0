#include "dlinear.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "scalers.h"

namespace tsdp::models {

at::Tensor moving_average(const at::Tensor& rows, std::int64_t kernel) {
  const auto half = kernel / 2;
  if (dp::kernels_serve(rows)) {
    // A running sum in double precision: exact enough for any length, and one addition and one subtraction a place.
    const auto given = rows.contiguous();
    auto out = at::empty_like(given);
    const auto length = given.size(1);
    at::parallel_for(0, given.size(0), 16, [&](std::int64_t begin, std::int64_t end) {
      const double share = 1.0 / static_cast<double>(kernel);
      for (auto row = begin; row < end; ++row) {
        const auto* in = given.const_data_ptr<float>() + row * length;
        auto* to = out.data_ptr<float>() + row * length;
        const auto at = [&](std::int64_t place) {
          return static_cast<double>(in[std::clamp<std::int64_t>(place, 0, length - 1)]);
        };
        double sum = 0.0;
        for (std::int64_t place = -half; place <= half; ++place) sum += at(place);
        for (std::int64_t place = 0; place < length; ++place) {
          to[place] = static_cast<float>(sum * share);
          sum += at(place + half + 1) - at(place - half);
        }
      }
    });
    return out;
  }
  const auto padded = at::replication_pad1d(rows.unsqueeze(1), {half, half});
  return at::avg_pool1d(padded, {kernel}, {1}).squeeze(1);
}

DLinear::DLinear(const ModelOptions& options, const at::TensorOptions& tensor_options) : Forecaster(options) {
  const auto outputs = width() * options.prediction_length;
  const auto seasonal = declare_linear("linear_seasonal", outputs, options.context_length);
  const auto trend = declare_linear("linear_trend", outputs, options.context_length);
  allocate(tensor_options, StudentTHead::declare(parameters_, "args_proj.proj", head_inputs(width())),
           head_inputs(width()));
  seasonal_ = linear(seasonal);
  trend_ = linear(trend);
}

void DLinear::initialise(RandomStream& stream) {
  // linear_*: weights uniform on ±0.07, biases 0 (GluonTS); heads as PyTorch's default, ±1/sqrt(inputs).
  initialise_uniform(stream, [&](const auto& entry) {
    if (!entry.name.starts_with("linear_")) return 1.0 / std::sqrt(static_cast<double>(width()));
    return entry.name.ends_with("bias") ? 0.0 : 0.07;
  });
  start_at_prior("args_proj.proj", {"linear_"});
}

Forecaster::Hidden DLinear::forward(const WindowBatch& batch) {
  const auto scale = mean_scale(batch.past_target, batch.past_observed, options_.default_scale);
  const auto own = frame(batch, scale);
  const auto& scaled = own.input;
  const auto trend = moving_average(scaled, kernel);
  const auto steps =
      tape_.add(tape_.apply(*seasonal_, tape_.constant(scaled - trend)), tape_.apply(*trend_, tape_.constant(trend)));
  return {with_covariates(steps, batch), own.scale, own.naive, own.growth};
}

std::int64_t DLinear::bytes_per_window() const {
  return 4 * (4 * options_.context_length + (4 * head_inputs(width()) + 6) * options_.prediction_length);
}

std::string DLinear::script() const {
  return std::string(mean_scale_script()) + script_methods() + R"(
def distribution(self, past_target: Tensor, past_observed: Tensor, time_features: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
)" + script_frame("self.mean_scale(past_target, past_observed)") +
         R"(    trend = torch.avg_pool1d(torch.replication_pad1d(scaled.unsqueeze(1), [12, 12]), [25], [1]).squeeze(1)
    steps = torch.linear(scaled - trend, self.linear_seasonal_weight, self.linear_seasonal_bias)
    steps = steps + torch.linear(trend, self.linear_trend_weight, self.linear_trend_bias)
)" + script_steps() +
         student_t_script("args_proj_proj") + script_end();
}

}  // namespace tsdp::models
