#include "training/model_setup.h"

#include <utility>

#include "models/mixture_weights.h"

namespace tsdp::training {

models::ModelOptions model_options(const Config& config) {
  models::ModelOptions options;
  options.context_length = config.model.context_length.value();
  options.prediction_length = config.dataset.prediction_length;
  options.lags = config.model.lags;
  const auto frequency = data::Frequency::parse(config.dataset.frequency);
  options.time_features =
      static_cast<std::int64_t>(data::window_feature_names(frequency, config.dataset.covariate_columns).size());
  options.covariates = static_cast<std::int64_t>(config.dataset.covariate_columns.size());
  options.default_scale = config.model.default_scale;
  options.variables = joined_variables(config);
  options.imputes = config.model.missing_values == "mean";
  options.width_factor = config.model.width_factor;
  options.width = width_of(config);
  options.prior = prior_of(config);
  options.trainable = config.training.trainable.value_or(Trainable::all);
  options.mixture = mixture_of(config);
  if (config.dataset.lower_bound) options.lower_bound = *config.dataset.lower_bound;
  if (config.dataset.upper_bound) options.upper_bound = *config.dataset.upper_bound;
  return options;
}

std::unique_ptr<models::Forecaster> model_of(const Config& config, const at::TensorOptions& tensor_options) {
  auto model = models::make_model(config.model.name, model_options(config), tensor_options);
  if (config.training.trainable != Trainable::mixture) return model;
  return std::make_unique<models::MixtureWeights>(std::move(model));
}

std::optional<data::FeatureStore> features_of(const models::Forecaster& model, const data::Dataset& dataset) {
  if (!model.reads_time_features()) return std::nullopt;
  return data::FeatureStore(dataset, model.past_length(), model.options().prediction_length);
}

}  // namespace tsdp::training
