// How long a training step takes on this machine, measured on made-up windows, so that none of the data is read.
#pragma once

#include <ATen/ATen.h>

#include "tsdp/mechanism/training_method.h"
#include "tsdp/settings/config.h"

namespace tsdp::training {

/// Seconds of one step of `config` by `method`, the least of a few measurements. Throws as model_of does.
[[nodiscard]] double seconds_per_step(const Config& config, const mechanism::TrainingMethod& method, at::Device device);

}  // namespace tsdp::training
