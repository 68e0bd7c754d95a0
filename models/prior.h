// What a forecaster knows before it is trained: a naive forecast of the window's own. It learns the difference.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/ATen.h>

#include "tsdp/settings/config.h"

namespace tsdp::models {

/// A window in units of its own. With a prior, y = naive_k + growth_k · s · t_k at step k, and the network gives the
/// law of t_k from (y − centre)/s of the past. All of it depends on this one window only.
struct Frame {
  at::Tensor input;         ///< (B, P): what the network reads
  at::Tensor scale;         ///< (B, 1): s > 0
  at::Tensor naive = {};    ///< (B, K) in units of the data; undefined without a prior
  at::Tensor growth = {};   ///< (K); undefined where it is 1
};

/// Without a prior: (y/scale, scale), where `mean_scale` (B, 1) is the model's own scale. With one, missing values
/// count as the mean of the observed ones, and s is at least 1e-3 of `mean_scale` and 1e-10:
///   seasonal_naive: naive_k is the value of the last season at k's place; s the mean absolute deviation of the past
///     from its mean, which is the centre; growth 1.
///   last_value: naive_k is the last value, which is also the centre; s the mean absolute difference of neighbours;
///     growth √k, k from 1, as for a random walk.
/// The input is cut at ±10. past (B, P), observed (B, P); `horizon` K. Requires season ≤ P.
[[nodiscard]] Frame frame_of(const Prior& prior, const at::Tensor& past, const at::Tensor& observed,
                             std::int64_t horizon, const at::Tensor& mean_scale);

/// The past with missing values filled by the mean of the observed ones among the last `context` (0 if there are none),
/// that mean, and s of the last `context` values: what frame_of and DeepAR have in common.
struct FilledPast {
  at::Tensor values;  ///< (B, P)
  at::Tensor mean, scale;  ///< (B, 1), of the last `context` values
};
[[nodiscard]] FilledPast filled_past(const Prior& prior, const at::Tensor& past, const at::Tensor& observed,
                                     std::int64_t context, const at::Tensor& mean_scale);

/// Scale of the first forecasts' Student-t law, in units of s, and its degrees of freedom.
[[nodiscard]] double first_scale(const Prior& prior);
inline constexpr double first_degrees = 5.0;
inline constexpr double largest_input = 10.0;
inline constexpr double least_share_of_mean_scale = 1e-3;

/// TorchScript: methods `filled_past(self, past, observed, context: int, mean_scale) -> Tuple[Tensor, Tensor, Tensor]`
/// and `frame(self, past, observed, mean_scale) -> Tuple[Tensor, Tensor, Tensor, Tensor]`, which calls it. Empty
/// without a prior.
[[nodiscard]] std::string filled_past_script(const Prior& prior);
[[nodiscard]] std::string frame_script(const Prior& prior);

}  // namespace tsdp::models
