#include "prior.h"

#include <cmath>

#include "scalers.h"
#include "tsdp/base/text.h"

namespace tsdp::models {

FilledPast filled_past(const Prior& prior, const at::Tensor& past, const at::Tensor& observed, std::int64_t context, const at::Tensor& mean_scale) {
  const auto first = past.size(1) - context;
  const auto seen = observed.narrow(1, first, context);
  const auto mean = (past.narrow(1, first, context) * seen).sum(1, true).div_(seen.sum(1, true).clamp_min_(1.0));
  const auto values = at::where(observed.gt(0.0), past, mean);
  const auto recent = values.narrow(1, first, context);
  // (Of one value there is no difference.)
  const auto spread = prior.kind == PriorKind::last_value && context > 1
                          ? (recent.narrow(1, 1, context - 1) - recent.narrow(1, 0, context - 1)).abs_().mean(1, true)
                          : (recent - mean).abs_().mean(1, true);
  return {values, mean, at::maximum(spread, mean_scale * least_share_of_mean_scale).clamp_min_(least_mean_scale)};
}

Frame frame_of(const Prior& prior, const at::Tensor& past, const at::Tensor& observed, std::int64_t horizon, const at::Tensor& mean_scale) {
  if (prior.kind == PriorKind::none) return {past / mean_scale, mean_scale};
  const auto length = past.size(1);
  const auto filled = filled_past(prior, past, observed, length, mean_scale);
  const auto last = filled.values.narrow(1, length - 1, 1);
  const bool walks = prior.kind == PriorKind::last_value;
  Frame out;
  out.scale = filled.scale;
  out.input = (filled.values - (walks ? last : filled.mean)).div_(filled.scale).clamp_(-largest_input, largest_input);
  if (walks) {
    out.naive = last.expand({past.size(0), horizon});
    // (Not by ATen: see settle_vector_functions in training/step_engine.cpp.)
    auto growth = at::empty({horizon}, at::kDouble);
    for (std::int64_t k = 0; k < horizon; ++k) growth.data_ptr<double>()[k] = std::sqrt(static_cast<double>(k + 1));
    out.growth = growth.to(past.options());
  } else {
    const auto places = at::arange(horizon, at::TensorOptions(past.device()).dtype(at::kLong)).remainder(prior.season).add_(length - prior.season);
    out.naive = filled.values.index_select(1, places);
    out.growth = at::ones({horizon}, past.options());
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
    first = past.size(1) - context
    seen = observed[:, first:]
    mean = (past[:, first:] * seen).sum(dim=1, keepdim=True) / seen.sum(dim=1, keepdim=True).clamp(min=1.0)
    values = torch.where(observed > 0.0, past, mean)
    recent = values[:, first:]
)",
             walks ? cat("    if context > 1:\n        spread = (recent[:, 1:] - recent[:, :-1]).abs().mean(dim=1, keepdim=True)\n    else:\n        ", by_mean)
                   : cat("    ", by_mean),
             "    return values, mean, torch.maximum(spread, mean_scale * ", least_share_of_mean_scale, ").clamp(min=", least_mean_scale, ")\n");
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
             "    return ((values - centre) / scale).clamp(min=-", largest_input, ", max=", largest_input, "), scale, naive, growth\n");
}

}  // namespace tsdp::models
