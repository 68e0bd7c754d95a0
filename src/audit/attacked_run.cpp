#include "audit/attacked_run.h"

#include <string>
#include <utility>

#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::audit {

data::PreparedData data_of(const Config& config, const privacy::SeriesLengths& lengths,
                           const std::function<std::vector<float>(std::int64_t series, std::int64_t length)>& values) {
  data::PreparedData out;
  out.dataset.name = "audit";
  out.dataset.frequency = data::Frequency::parse(config.dataset.frequency);
  for (std::int64_t s = 0; s < lengths.count(); ++s) {
    out.split.training_length.push_back(lengths[s]);
    data::Series series{std::to_string(s), 0, values(s, lengths[s])};
    if (config.augmentation.context_noise > 0.0 || config.augmentation.forecast_noise > 0.0)
      series.exact.assign(series.values.begin(), series.values.end());
    out.dataset.series.push_back(std::move(series));
  }
  const auto& covariates = config.dataset.covariate_columns;
  // What they are does not matter where they are public. Where they are protected, this attacks the values alone.
  out.dataset.covariates = {"", covariates, {{0, std::vector<float>(covariates.size()), 0, true}}};
  out.dataset.owner = lengths.grouped().of;
  return out;
}

Config attacked(Config config, const privacy::Noise& noise, std::uint64_t epochs) {
  config.privacy.noise_multiplier = noise.multiplier;
  config.privacy.noise_mechanism = privacy::StrategyKind::identity;
  if (noise.strategy) {
    config.privacy.noise_mechanism = privacy::StrategyKind::file;
    config.privacy.noise_coefficients = "those of the audited run";
    config.privacy.noise_recursion = noise.strategy->recursion();
  }
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
