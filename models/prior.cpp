#include "prior.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scalers.h"
#include "tsdp/base/text.h"
#include "tsdp/dp/layer.h"

namespace tsdp::models {
namespace {

/// term(0) + … + term(count − 1), in parts that a vector holds.
template <typename Term>
float sum_of(std::int64_t count, const Term& term) {
  std::array<float, 16> parts{};
  const auto whole = count / 16 * 16;
  for (std::int64_t i = 0; i < whole; i += 16)
    for (std::size_t j = 0; j < 16; ++j) parts[j] += term(i + static_cast<std::int64_t>(j));
  float sum = 0.0F;
  for (const auto part : parts) sum += part;
  for (auto i = whole; i < count; ++i) sum += term(i);
  return sum;
}

/// One window of frame_of, whose comment explains the terms. Fills `input` and `naive`. Returns s.
float frame_row(const Prior& prior, const float* past, const float* observed, std::int64_t length, std::int64_t horizon,
                float mean_scale, float* input, float* naive) {
  const float count = sum_of(length, [&](std::int64_t i) { return observed[i]; });
  const float mean = sum_of(length, [&](std::int64_t i) { return past[i] * observed[i]; }) / std::max(count, 1.0F);
  auto* const values = input;
  for (std::int64_t i = 0; i < length; ++i) values[i] = observed[i] > 0.0F ? past[i] : mean;
  const bool walks = prior.kind == PriorKind::last_value;
  const bool of_differences = walks && length > 1;
  const auto terms = of_differences ? length - 1 : length;
  const float deviations = of_differences
                               ? sum_of(terms, [&](std::int64_t i) { return std::abs(values[i + 1] - values[i]); })
                               : sum_of(terms, [&](std::int64_t i) { return std::abs(values[i] - mean); });
  // In this order a spread that is not a number stays one, as in ATen.
  float scale = deviations / static_cast<float>(terms);
  const float least =
      std::max(mean_scale * static_cast<float>(least_share_of_mean_scale), static_cast<float>(least_mean_scale));
  if (scale < least) scale = least;
  const float last = values[length - 1];
  for (std::int64_t k = 0; k < horizon; ++k) naive[k] = walks ? last : values[length - prior.season + k % prior.season];
  const float centre = walks ? last : mean;
  const auto most = static_cast<float>(largest_input);
  for (std::int64_t i = 0; i < length; ++i) {
    const float x = (values[i] - centre) / scale;
    input[i] = x < -most ? -most : x > most ? most : x;
  }
  return scale;
}

/// √(k + 1) for step k. On the CPU not computed by ATen: see settle_vector_functions in training/step_engine.cpp.
/// Elsewhere not copied from the host, which would wait; roots in double precision are correctly rounded there, too.
at::Tensor growth_of_walks(std::int64_t horizon, const at::TensorOptions& options) {
  if (!options.device().is_cpu())
    return at::arange(1, horizon + 1, options.dtype(at::kDouble)).sqrt_().to(options.dtype());
  auto growth = at::empty({horizon}, at::kDouble);
  for (std::int64_t k = 0; k < horizon; ++k) growth.data_ptr<double>()[k] = std::sqrt(static_cast<double>(k + 1));
  return growth.to(options);
}

/// frame_of in one pass over each window, in float on the CPU.
Frame frame_by_kernel(const Prior& prior, const at::Tensor& pasts, const at::Tensor& seen, std::int64_t horizon,
                      const at::Tensor& mean_scales) {
  const auto past = dp::with_dense_rows(pasts);
  const auto observed = dp::with_dense_rows(seen);
  const auto mean_scale = mean_scales.contiguous();
  const auto windows = past.size(0);
  const auto length = past.size(1);
  Frame out{at::empty({windows, length}, past.options()), at::empty({windows, 1}, past.options()),
            at::empty({windows, horizon}, past.options())};
  at::parallel_for(0, windows, 64, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row)
      out.scale.data_ptr<float>()[row] =
          frame_row(prior, past.const_data_ptr<float>() + row * past.stride(0),
                    observed.const_data_ptr<float>() + row * observed.stride(0), length, horizon,
                    mean_scale.const_data_ptr<float>()[row], out.input.data_ptr<float>() + row * length,
                    out.naive.data_ptr<float>() + row * horizon);
  });
  if (prior.kind == PriorKind::last_value) out.growth = growth_of_walks(horizon, past.options());
  return out;
}

}  // namespace

FilledPast filled_past(const Prior& prior, const at::Tensor& past, const at::Tensor& observed, std::int64_t context,
                       const at::Tensor& mean_scale) {
  const auto first = past.size(1) - context;
  const auto mean = context_mean(past, observed, context);
  const auto values = at::where(observed.gt(0.0), past, mean);
  const auto recent = values.narrow(1, first, context);
  // A single value has no difference.
  const auto spread = prior.kind == PriorKind::last_value && context > 1
                          ? (recent.narrow(1, 1, context - 1) - recent.narrow(1, 0, context - 1)).abs_().mean(1, true)
                          : (recent - mean).abs_().mean(1, true);
  return {values, mean, at::maximum(spread, mean_scale * least_share_of_mean_scale).clamp_min_(least_mean_scale)};
}

Frame frame_of(const Prior& prior, const at::Tensor& past, const at::Tensor& observed, std::int64_t horizon,
               const at::Tensor& mean_scale) {
  if (prior.kind == PriorKind::none) return {past / mean_scale, mean_scale};
  if (dp::kernels_serve(past)) return frame_by_kernel(prior, past, observed, horizon, mean_scale);
  const auto length = past.size(1);
  const auto filled = filled_past(prior, past, observed, length, mean_scale);
  const auto last = filled.values.narrow(1, length - 1, 1);
  const bool walks = prior.kind == PriorKind::last_value;
  Frame out;
  out.scale = filled.scale;
  out.input = (filled.values - (walks ? last : filled.mean)).div_(filled.scale).clamp_(-largest_input, largest_input);
  if (walks) {
    out.naive = last.expand({past.size(0), horizon});
    out.growth = growth_of_walks(horizon, past.options());
  } else {
    const auto places = at::arange(horizon, at::TensorOptions(past.device()).dtype(at::kLong))
                            .remainder(prior.season)
                            .add_(length - prior.season);
    out.naive = filled.values.index_select(1, places);
  }
  return out;
}

double first_scale(const Prior& prior) { return prior.kind == PriorKind::last_value ? 1.0 : 0.45; }

std::string filled_past_script(const Prior& prior) {
  if (prior.kind == PriorKind::none) return "";
  const bool walks = prior.kind == PriorKind::last_value;
  const std::string by_mean = "spread = (recent - mean).abs().mean(dim=1, keepdim=True)\n";
  return cat(R"(
def filled_past(self, past: Tensor, observed: Tensor, context: int, mean_scale: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    mean = self.context_mean(past, observed, context)
    values = torch.where(observed > 0.0, past, mean)
    recent = values[:, past.size(1) - context:]
)",
             walks ? cat("    if context > 1:\n        spread = (recent[:, 1:] - recent[:, :-1]).abs().mean(dim=1, "
                         "keepdim=True)\n    else:\n        ",
                         by_mean)
                   : cat("    ", by_mean),
             "    return values, mean, torch.maximum(spread, mean_scale * ", least_share_of_mean_scale,
             ").clamp(min=", least_mean_scale, ")\n");
}

std::string frame_script(const Prior& prior) {
  if (prior.kind == PriorKind::none) return "";
  return cat(R"(
def frame(self, past: Tensor, observed: Tensor, mean_scale: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    values, mean, scale = self.filled_past(past, observed, past.size(1), mean_scale)
    horizon = self.prediction_length
)",
             prior.kind == PriorKind::last_value ? R"(    last = values[:, -1:]
    growth = torch.sqrt(torch.arange(1, horizon + 1, dtype=past.dtype, device=past.device))
    naive = last.expand(past.size(0), horizon)
    centre = last
)"
                                                 : cat("    season = ", prior.season, R"(
    places = torch.remainder(torch.arange(horizon, device=past.device), season) + (past.size(1) - season)
    naive = values.index_select(1, places)
    growth = torch.ones([horizon], dtype=past.dtype, device=past.device)
    centre = mean
)"),
             "    return ((values - centre) / scale).clamp(min=-", largest_input, ", max=", largest_input,
             "), scale, naive, growth\n");
}

}  // namespace tsdp::models
