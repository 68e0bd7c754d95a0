#include "forecaster.h"

#include <algorithm>
#include <cmath>

#include "scalers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::models {

WindowBatch WindowBatch::rows(std::int64_t begin, std::int64_t count) const {
  if (begin == 0 && count == size()) return *this;
  return {past_target.narrow(0, begin, count), past_observed.narrow(0, begin, count),
          future_target.narrow(0, begin, count), future_observed.narrow(0, begin, count),
          time_features.defined() ? time_features.narrow(0, begin, count) : time_features};
}

WindowBatch Forecaster::imputed(const WindowBatch& batch) const {
  if (!options_.imputes || options_.prior.kind != PriorKind::none) return batch;
  // If nothing is missing, what follows changes nothing; asking a GPU would take longer.
  if (batch.past_target.is_cpu() && batch.past_observed.all().item<bool>() && batch.future_observed.all().item<bool>())
    return batch;
  auto out = batch;
  const auto mean = context_mean(batch.past_target, batch.past_observed, options_.context_length);
  out.past_target = at::where(batch.past_observed.gt(0.0), batch.past_target, mean);
  out.future_target = at::where(batch.future_observed.gt(0.0), batch.future_target, mean);
  return out;
}

at::Tensor Forecaster::losses(const WindowBatch& given) {
  const auto batch = imputed(given);
  tape_.clear();
  const auto hidden = forward(batch);
  end_ = hidden.value;
  const auto [target, weights] = scored(batch);
  if (!hidden.naive.defined()) return head_->losses(tape_[end_], target, hidden.affine_scale, weights);
  // y = naive + growth · x: −log p(y) = −log p(x) + log growth.
  auto difference = target - hidden.naive;
  if (!hidden.growth.defined()) return head_->losses(tape_[end_], difference, hidden.affine_scale, weights);
  return head_->losses(tape_[end_], difference.div_(hidden.growth), hidden.affine_scale, weights)
      .add_(weights.mv(hidden.growth.log()));
}

Frame Forecaster::frame(const WindowBatch& batch, const at::Tensor& mean_scale) const {
  return frame_of(options_.prior, batch.past_target, batch.past_observed, options_.prediction_length, mean_scale);
}

dp::Tape::Value Forecaster::with_covariates(dp::Tape::Value steps, const WindowBatch& batch) {
  const auto rows = tape_.view(steps, {batch.size(), options_.prediction_length, -1});
  const auto count = options_.covariates;
  if (count == 0) return rows;
  const auto& features = batch.time_features;
  const auto past = past_length();
  const auto age = features.size(2) - 1;  // 0 in the padding before a series alone
  const auto known = features.narrow(2, age - count, count);
  const auto places = features.narrow(1, 0, past).narrow(2, age, 1).ne(0).to(features.scalar_type()).sum(1, true);
  const auto mean = known.narrow(1, 0, past).sum(1, true) / places.clamp_min(1.0);
  const auto ahead = known.narrow(1, past, options_.prediction_length);
  return tape_.beside(rows, at::cat({ahead - mean, mean.expand_as(ahead)}, 2));
}

std::string Forecaster::covariates_script() const {
  if (options_.covariates == 0) return "";
  return cat(R"(
def beside(self, steps: Tensor, features: Tensor) -> Tensor:
    past = features.size(1) - self.prediction_length
    age = features.size(2) - 1
    known = features[:, :, age - )",
             options_.covariates, R"(:age]
    places = features[:, :past, age:].ne(0.0).to(features.dtype).sum(dim=1, keepdim=True)
    mean = known[:, :past].sum(dim=1, keepdim=True) / places.clamp(min=1.0)
    ahead = known[:, past:]
    return torch.cat([steps, ahead - mean, mean.expand_as(ahead)], 2)
)");
}

std::string Forecaster::script_steps() const {
  return cat("    steps = steps.reshape(past_target.size(0), self.prediction_length, -1)\n",
             options_.covariates > 0 ? "    steps = self.beside(steps, time_features)\n" : "");
}

void Forecaster::start_at_prior(const std::string& head, const std::vector<std::string>& last) {
  if (options_.covariates > 0)
    for (std::size_t i = 0; i < parameters_.entries().size(); ++i)
      if (const auto& name = parameters_.entries()[i].name; name.starts_with(head + ".") && name.ends_with("weight")) {
        auto weight = parameters_.value(i);
        weight.narrow(1, weight.size(1) - 2 * options_.covariates, 2 * options_.covariates).zero_();
      }
  if (options_.prior.kind == PriorKind::none) return;
  const auto inverse_softplus = [](double x) { return std::log(std::expm1(x)); };
  const auto& entries = parameters_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& name = entries[i].name;
    auto value = parameters_.value(i);
    if (std::any_of(last.begin(), last.end(), [&](const auto& prefix) { return name.starts_with(prefix); }))
      value.zero_();
    if (!name.starts_with(head + ".")) continue;
    const auto map = name[head.size() + 1] - '0';  // 0: df, 1: location, 2: scale
    if (name.ends_with("bias")) {
      value.fill_(map == 0   ? inverse_softplus(first_degrees - 2.0)
                  : map == 1 ? 0.0
                             : inverse_softplus(first_scale(options_.prior)));
      continue;
    }
    value.zero_();
    if (last.empty()) continue;
    std::vector<std::int64_t> own;
    for (std::int64_t unit = 0; unit < value.size(1) - 2 * options_.covariates; ++unit)
      if ((unit % 4 == 1 ? 2 : unit % 4 == 3 ? 0 : 1) == map) own.push_back(unit);
    for (const auto unit : own) value.select(1, unit).fill_(1.0 / std::sqrt(static_cast<double>(own.size())));
  }
}

std::string Forecaster::script_frame(const std::string& mean_scale) const {
  if (options_.prior.kind == PriorKind::none)
    return cat("    affine_scale = ", mean_scale, "\n    scaled = past_target / affine_scale\n");
  return cat("    scaled, affine_scale, naive, growth = self.frame(past_target, past_observed, ", mean_scale, ")\n");
}

std::string Forecaster::script_end() const {
  return options_.prior.kind == PriorKind::none
             ? "    return df, loc, scale, affine_scale\n"
             : "    return df, loc * growth + naive / affine_scale, scale * growth, affine_scale\n";
}

std::unique_ptr<Forecaster> Forecaster::replica() const {
  auto shared = options_;
  shared.parameter_values = parameters_.values();
  return make_model(name(), shared, parameters_.values().options());
}

void Forecaster::backward() { tape_.backward(end_, head_->hidden_gradient()); }

StudentT Forecaster::distribution(const WindowBatch& given) {
  const auto batch = imputed(given);
  tape_.clear();
  const auto hidden = forward(batch);
  auto out = student_t_of(head_->raw(tape_[hidden.value]), hidden.affine_scale);
  if (hidden.naive.defined()) {
    if (hidden.growth.defined()) {
      out.loc.mul_(hidden.growth);
      out.scale.mul_(hidden.growth);
    }
    out.loc.add_(hidden.naive / hidden.affine_scale);
  }
  return out;
}

Forecaster::Scored Forecaster::scored(const WindowBatch& batch) const {
  return {batch.future_target, batch.future_observed / batch.future_observed.sum(1, true).clamp_min_(1.0)};
}

std::size_t Forecaster::declare_linear(const std::string& prefix, std::int64_t outputs, std::int64_t inputs) {
  const auto place = parameters_.declare(prefix + ".weight", {outputs, inputs}, trains_all());
  parameters_.declare(prefix + ".bias", {outputs});
  return place;
}

void Forecaster::allocate(const at::TensorOptions& tensor_options, std::size_t head, std::int64_t head_width) {
  if (parameters_.count() > options_.most_parameters)
    throw DataError(cat("sizes of ", parameters_.count(), " parameters; found ", options_.most_parameters));
  const auto seen = longest_season();
  if (options_.prior.kind != PriorKind::none && (options_.prior.season < 1 || options_.prior.season > seen))
    throw UsageError(cat("season of the prior: found ", options_.prior.season, "; expected 1 to ", seen,
                         ", of which the model sees a whole one"));
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
