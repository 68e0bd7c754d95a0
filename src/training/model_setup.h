// The model that a configuration asks for.
#pragma once

#include <memory>
#include <optional>

#include "models/forecaster.h"
#include "tsdp/data/feature_store.h"
#include "tsdp/settings/config.h"

namespace tsdp::training {

/// Sizes of the model of `config`. Throws UsageError for a frequency that cannot be read.
[[nodiscard]] models::ModelOptions model_options(const Config& config);

[[nodiscard]] std::unique_ptr<models::Forecaster> model_of(const Config& config,
                                                           const at::TensorOptions& tensor_options);

/// The time features of `dataset` for windows of `model`; none if it reads none.
[[nodiscard]] std::optional<data::FeatureStore> features_of(const models::Forecaster& model,
                                                            const data::Dataset& dataset);

}  // namespace tsdp::training
