#include "audit/attacked_run.h"

#include <string>
#include <utility>

namespace tsdp::audit {

data::PreparedData data_of(const Config& config, const std::vector<std::int64_t>& lengths,
                           const std::function<std::vector<float>(std::int64_t series, std::int64_t length)>& values) {
  data::PreparedData out;
  out.dataset.name = "audit";
  out.dataset.frequency = data::Frequency::parse(config.dataset.frequency);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    data::Series series{std::to_string(s), 0, values(static_cast<std::int64_t>(s), lengths[s])};
    if (config.augmentation.context_noise > 0.0 || config.augmentation.forecast_noise > 0.0)
      series.exact.assign(series.values.begin(), series.values.end());
    out.dataset.series.push_back(std::move(series));
  }
  out.dataset.covariates.names = config.dataset.covariate_columns;  // public, so what they are does not matter: 0
  out.split.training_length = lengths;
  return out;
}

Config attacked(Config config, double noise_multiplier, std::uint64_t epochs) {
  config.privacy.noise_multiplier = noise_multiplier;
  config.privacy.target_epsilon = 1e12;
  config.optimizer.learning_rate = 1e-30;
  config.optimizer.weight_decay = 0.0;
  config.optimizer.gradient_norm_bound.reset();
  config.optimizer.plateau_looks.reset();
  config.training.max_epochs = static_cast<std::int64_t>(epochs);
  config.training.validate_every = *config.training.max_epochs + 1;
  config.training.checkpoint = ExportedWeights::last;
  config.training.checkpoint_seconds = 1e6;
  return config;
}

at::Tensor Clipped::sum(const models::WindowBatch& batch, std::span<const std::int64_t> places) {
  return (engine_.sum(batch, places) / clip_norm_).to(at::kFloat);
}

training::StepEngine::Options Clipped::options(const Config& config) {
  training::StepEngine::Options o;
  o.memory_budget = config.training.memory_mb.value_or(0) << 20;
  return o;
}

}  // namespace tsdp::audit
