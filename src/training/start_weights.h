// Puts the weights of an earlier model into one about to be trained.
#pragma once

#include <memory>
#include <vector>

#include "models/forecaster.h"
#include "tsdp/settings/start.h"

namespace tsdp::training {

/// Sets the weights that a run of these options begins with: drawn with `seed` (they are no secret), or those of
/// `start`. If `start` forecasts more steps, the weights of the first steps are taken: a forecaster's last layer has
/// its rows step by step, and the steps do not depend on each other. The model keeps these weights as its start. Throws
/// DataError for weights that have other shapes or are not finite.
void initialise(models::Forecaster& model, std::int64_t seed, const std::optional<mechanism::StartWeights>& start);

/// The networks of these weights that forecasts of a model of `config` are mixed with. Throws as `initialise` does.
[[nodiscard]] std::vector<std::shared_ptr<const models::Forecaster>> networks_of(
    const Config& config, const std::vector<mechanism::StartWeights>& weights);

}  // namespace tsdp::training
