// Public candidates beside a network, and their mixture by how each did on the series' own past.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tsdp/settings/mixture.h"

namespace tsdp::models {

/// TorchScript: the method
///   mixture(self, past_target, past_observed, features, asked, uniform) -> Tuple[Tensor, Tensor, Tensor]
/// of pasts of Mixture::past_length values, from a method `network` of the same form for pasts of self.network_length
/// values. What it is stands at Mixture (tsdp/settings/mixture.h). It reads one window's own past alone, and no weight.
/// It uses self.prediction_length, mixture_windows, mixture_stride, candidate_count, longest_season, from_samples,
/// lower_bound, upper_bound, self.spreads, which is mixture_spreads(), and self.ages (J), the weights of the windows.
[[nodiscard]] std::string mixture_script(const Mixture& mixture);

/// The weight of the window that begins j = 1, 2, … strides before the coming one.
[[nodiscard]] inline double mixture_weight(std::int64_t window) {
  return std::exp(-static_cast<double>(window) / 14.0);
}
/// The grid of spreads s.
[[nodiscard]] const std::vector<double>& mixture_spreads();

}  // namespace tsdp::models
