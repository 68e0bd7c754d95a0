#include "forecaster.h"

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::models {

WindowBatch WindowBatch::rows(std::int64_t begin, std::int64_t count) const {
  if (begin == 0 && count == size()) return *this;
  return {past_target.narrow(0, begin, count), past_observed.narrow(0, begin, count),
          future_target.narrow(0, begin, count), future_observed.narrow(0, begin, count),
          time_features.defined() ? time_features.narrow(0, begin, count) : time_features};
}

at::Tensor Forecaster::losses(const WindowBatch& batch) {
  tape_.clear();
  const auto hidden = forward(batch);
  end_ = hidden.value;
  const auto [target, weights] = scored(batch);
  return head_->losses(tape_[end_], target, hidden.affine_scale, weights);
}

std::unique_ptr<Forecaster> Forecaster::replica() const {
  auto shared = options_;
  shared.parameter_values = parameters_.values();
  return make_model(name(), shared, parameters_.values().options());
}

void Forecaster::backward() { tape_.backward(end_, head_->hidden_gradient()); }

StudentT Forecaster::distribution(const WindowBatch& batch) {
  tape_.clear();
  const auto hidden = forward(batch);
  return student_t_of(head_->raw(tape_[hidden.value]), hidden.affine_scale);
}

Forecaster::Scored Forecaster::scored(const WindowBatch& batch) const {
  return {batch.future_target, batch.future_observed / batch.future_observed.sum(1, true).clamp_min_(1.0)};
}

std::size_t Forecaster::declare_linear(const std::string& prefix, std::int64_t outputs, std::int64_t inputs) {
  const auto place = parameters_.declare(prefix + ".weight", {outputs, inputs});
  parameters_.declare(prefix + ".bias", {outputs});
  return place;
}

void Forecaster::allocate(const at::TensorOptions& tensor_options, std::size_t head, std::int64_t head_width) {
  if (parameters_.count() > options_.most_parameters)
    throw DataError(cat("sizes of ", parameters_.count(), " parameters; found ", options_.most_parameters));
  parameters_.allocate(tensor_options, options_.parameter_values);
  head_ = std::make_unique<StudentTHead>(parameters_, head, head_width);
  layer_list_.push_back(head_.get());
}

std::unique_ptr<dp::Linear> Forecaster::linear(std::size_t first) {
  auto layer = std::make_unique<dp::Linear>(parameters_.value(first), parameters_.value(first + 1),
                                            parameters_.gradient(first), parameters_.gradient(first + 1));
  layer_list_.push_back(layer.get());
  return layer;
}

std::unique_ptr<dp::LayerNorm> Forecaster::layer_norm(std::size_t first) {
  auto layer = std::make_unique<dp::LayerNorm>(parameters_.value(first), parameters_.value(first + 1),
                                               parameters_.gradient(first), parameters_.gradient(first + 1));
  layer_list_.push_back(layer.get());
  return layer;
}

void Forecaster::initialise_uniform(RandomStream& stream,
                                    const std::function<double(const dp::ParameterBuffer::Entry&)>& bound) {
  auto values = at::zeros({parameters_.count()}, at::kDouble);
  auto* out = values.data_ptr<double>();
  for (const auto& entry : parameters_.entries()) {
    const double width = bound(entry);
    if (width == 0.0) continue;
    for (std::int64_t i = 0; i < entry.count; ++i) out[entry.offset + i] = width * (2.0 * stream.uniform() - 1.0);
  }
  parameters_.values().copy_(values);
}

}  // namespace tsdp::models
