// Exported models among the candidates that another model is mixed with.
#pragma once

#include <span>

#include <torch/csrc/jit/api/module.h>

#include "tsdp/data/dataset.h"
#include "tsdp/data/windows.h"

namespace tsdp::exporting {

/// Gives each model among `dataset.external` its forecasts of the windows from the places `indices`, and of the earlier
/// ones by which the mixture of `mixed` (make_module) judges its candidates. The models' code never runs; they work on
/// `device`. Throws DataError for a file that is no model, and UsageError, naming it, for a model of another step,
/// forecast length or covariates, or one that is mixed with forecasts of other programs itself.
void add_forecasts_of_models(data::Dataset& dataset, std::span<const data::WindowIndex> indices,
                             const torch::jit::Module& mixed, const at::Device& device);

}  // namespace tsdp::exporting
