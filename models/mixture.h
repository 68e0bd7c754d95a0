// Public candidates beside a network, and their mixture by how each did on the series' own past.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tsdp/settings/mixture.h"

namespace tsdp::models {

/// What a mixture script needs to know of another network, in that network's steps: P, H, and how many steps of the
/// series one of them takes.
struct MixedNetwork {
  std::int64_t length, horizon, every;
};

/// TorchScript: the method
///   mixture(self, past_target, past_observed, features, asked, uniform, external) -> Tuple[Tensor, Tensor, Tensor]
/// of pasts of Mixture::past_length values, from a method `network` (for Candidate::start also self.start.network, for
/// network i of `networks` also self.network_i.network, for pasts of its own length) of the same form, but without
/// `external` (B, J + 1, E, 10, H: of the coming window, then of those that begin 1 to J strides earlier, the quantiles
/// 0.1, …, 0.9 and the mean by other programs, NaN if not known), for pasts of self.network_length values. What it is
/// stands at Mixture (tsdp/settings/mixture.h). It reads one window's own past alone. It uses self.prediction_length,
/// mixture_windows, mixture_stride, windows_in_a_stride, rows_together (the variables of a series), skips_outliers,
/// candidate_count, longest_season, shortest_read, from_samples, lower_bound, upper_bound, and self.spreads, which is
/// mixture_spreads(). Rows whose pasts are the same but for a stride have one record, which is worked out once.
[[nodiscard]] std::string mixture_script(const Mixture& mixture, const std::vector<MixedNetwork>& networks);

/// K: how many forecasts are mixed, the network's own counted.
[[nodiscard]] std::int64_t mixed_forecasts(const Mixture& mixture);

/// Numbers of a mixture that training changes (training.trainable: mixture); zeros change nothing.
struct MixtureParameter {
  std::string name;  ///< in the exported script; `mixture.` stands before it among the weights
  std::vector<std::int64_t> shape;
};
/// a and b (2, K), log t (1) and c (K) of Mixture (tsdp/settings/mixture.h).
[[nodiscard]] std::vector<MixtureParameter> mixture_parameters(const Mixture& mixture);

/// The grid of spreads s.
[[nodiscard]] const std::vector<double>& mixture_spreads();

}  // namespace tsdp::models
