// A forecaster as a TorchScript module: its network, or the mixture that its forecasts are part of.
#pragma once

#include <cstdint>
#include <memory>

#include <torch/csrc/jit/api/module.h>

#include "forecaster.h"

namespace tsdp::models {

/// P: how many past values a forecast of `model`, a network, reads, those of its mixture counted.
[[nodiscard]] std::int64_t forecast_reach(const Forecaster& model);

/// The forecaster of the weights that training of `model` began with. Throws Error if it has not kept them.
[[nodiscard]] std::unique_ptr<Forecaster> start_of(const Forecaster& model);

/// The module that exporting::make_module describes, of a network and what it is mixed with. The weights are a copy.
[[nodiscard]] torch::jit::Module script_module(const Forecaster& model, bool sampled_forecasts = false);

}  // namespace tsdp::models
