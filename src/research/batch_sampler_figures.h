// The pictures of the figures about batch samplers.
#pragma once

#include "research/paper_figures.h"

namespace tsdp::figures {

/// As figure_plot, for B1 … B7.
[[nodiscard]] LinePlot batch_sampler_plot(const Figure& figure);

}  // namespace tsdp::figures
