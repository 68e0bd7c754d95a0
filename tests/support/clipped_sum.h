// The clipped sum of a batch, as a private step makes it.
#pragma once

#include <algorithm>

#include "dp/private_step.h"
#include "models/forecaster.h"

namespace tsdp::test {

/// Leaves the clipped sum of the whole batch in the model's gradient buffer; returns the norms.
inline at::Tensor clipped_sum(models::Forecaster& model, const models::WindowBatch& batch,
                              const dp::Clipping& clipping) {
  model.parameters().gradients().zero_();
  model.losses(batch);
  model.backward();
  auto whole = clipping;
  whole.summed = std::max<std::int64_t>(1, batch.size());
  return dp::add_clipped_sum(model.layers(), dp::Records::each_window(batch.size()), whole,
                             model.parameters().gradients().options());
}

}  // namespace tsdp::test
