// The clipped sum of whole series, by a loop over them: no layer joins windows here.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "models/forecaster.h"
#include "tsdp/privacy/terms/terms.h"

namespace tsdp::test {

/// Gradient (double precision) that layer `layer` recorded of the last batch.
inline at::Tensor recorded_gradient(models::Forecaster& model, dp::Layer& layer) {
  const auto& gradients = model.parameters().gradients();
  gradients.zero_();
  layer.add_gradient({});
  return gradients.to(at::kDouble).clone();
}

/// Σ over records (windows of one place) of their clipped gradients 1/λ Σ_w g_w, in double precision; norms before
/// clipping to `norms`. Leaves the model's gradient buffer changed.
inline at::Tensor clipped_series_sum(models::Forecaster& model, const models::WindowBatch& batch,
                                     std::span<const std::int64_t> places, const privacy::Clipping& clipping,
                                     std::int64_t lambda, std::vector<double>& norms) {
  auto out = at::zeros_like(model.parameters().gradients(), at::kDouble);
  const auto windows = static_cast<std::int64_t>(places.size());
  for (std::int64_t first = 0; first < windows;) {
    auto end = first + 1;
    while (end < windows && places[static_cast<std::size_t>(end)] == places[static_cast<std::size_t>(first)]) ++end;
    // Window by window, or those that are forecast together: nothing of a batch's code is used.
    std::vector<at::Tensor> of_layers;
    for (auto w = first; w < end; w += model.variables()) {
      model.losses(batch.rows(w, model.variables()));
      model.backward();
      for (std::size_t l = 0; l < model.layers().size(); ++l) {
        const auto gradient = recorded_gradient(model, *model.layers()[l]) / static_cast<double>(lambda);
        if (of_layers.size() <= l) of_layers.push_back(gradient);
        else of_layers[l] = of_layers[l] + gradient;
      }
    }
    double square = 0.0;
    for (const auto& gradient : of_layers) square += gradient.square().sum().item<double>();
    const double norm = std::sqrt(square);
    norms.push_back(norm);
    for (const auto& gradient : of_layers) {
      double factor = std::min(1.0, clipping.norm / norm);
      if (clipping.kind == privacy::ClippingKind::automatic) factor = clipping.norm / (norm + 0.01);
      if (clipping.kind == privacy::ClippingKind::per_layer)
        factor = std::min(
            1.0, clipping.norm / std::sqrt(static_cast<double>(of_layers.size())) / gradient.norm().item<double>());
      out.add_(gradient * factor);
    }
    first = end;
  }
  return out;
}

}  // namespace tsdp::test
