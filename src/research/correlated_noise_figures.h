// The pictures of the figures about correlated noise.
#pragma once

#include "research/paper_figures.h"

namespace tsdp::figures {

/// As figure_plot, for C1 … C6.
[[nodiscard]] LinePlot correlated_noise_plot(const Figure& figure);

}  // namespace tsdp::figures
