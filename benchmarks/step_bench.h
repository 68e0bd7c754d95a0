// A training step: private, not private, and the plain loop over windows.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/ATen.h>

#include "timing.h"

namespace tsdp::bench {

struct StepSetting {
  std::string model;
  at::Device device;
  std::int64_t batch, context, forecast;
  std::int64_t width_factor;
};

/// One row for each of "private", "private-prior" (starting as seasonal naive of season 24), "private-series" (four
/// windows a series), the same with correlated noise of four bands or two buffers, "nonprivate", "loop", and on a
/// device that records also "private-replayed", "nonprivate-replayed": times side by side, and the memory each needs
/// beyond what the process held before it (step_mb).
void bench_step(Json& rows, const StepSetting& setting, double seconds);

/// Times and memory against batch, context and width, and the exponents of their growth: rows "scaling" and "exponent".
void bench_scaling(Json& rows, const std::string& model, const at::Device& device, double seconds);

}  // namespace tsdp::bench
