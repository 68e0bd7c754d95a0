#include "autoregression.h"

#include <cmath>

#include "models/scalers.h"

namespace tsdp::models {
namespace {

// Any program that links this file knows the model: `model.name: autoregression`.
const bool registered = register_model({"autoregression"}, factory_of<Autoregression>());

}  // namespace

Autoregression::Autoregression(const ModelOptions& options, const at::TensorOptions& tensor_options)
    : Forecaster(options) {
  // First every parameter is declared, then all are allocated as one flat buffer, then layers are built over it.
  const auto map = declare_linear("map", width * options.prediction_length, options.context_length);
  allocate(tensor_options, StudentTHead::declare(parameters_, "head", width), width);
  map_ = linear(map);
}

void Autoregression::initialise(RandomStream& stream) {
  initialise_uniform(stream, [&](const auto& entry) {
    const auto inputs = entry.name.starts_with("map") ? options_.context_length : width;
    return 1.0 / std::sqrt(static_cast<double>(inputs));
  });
}

Forecaster::Hidden Autoregression::forward(const WindowBatch& batch) {
  const auto scale = mean_scale(batch.past_target, batch.past_observed, options_.default_scale);
  const auto steps = tape_.apply(*map_, tape_.constant(batch.past_target / scale));
  return {tape_.view(steps, {batch.size(), options_.prediction_length, width}), scale};
}

std::int64_t Autoregression::bytes_per_window() const {
  return 2 * 4 * (options_.context_length + (width + 3) * options_.prediction_length);
}

std::string Autoregression::script() const {
  return std::string(mean_scale_script()) + R"(
def distribution(self, past_target: Tensor, past_observed: Tensor, time_features: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    affine_scale = self.mean_scale(past_target, past_observed)
    steps = torch.linear(past_target / affine_scale, self.map_weight, self.map_bias).reshape(past_target.size(0), -1, 4)
)" + student_t_script("head") +
         "    return df, loc, scale, affine_scale\n";
}

}  // namespace tsdp::models
