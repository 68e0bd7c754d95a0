// How long a training step takes on this machine, measured on made-up windows, so that none of the data is read.
#pragma once

#include <ATen/ATen.h>

#include "tsdp/settings/auto_settings.h"

namespace tsdp::training {

/// Seconds of one step of `run`, the least of a few measurements. Throws as model_of does.
[[nodiscard]] double seconds_per_step(const mechanism::Settled& run, at::Device device);

}  // namespace tsdp::training
