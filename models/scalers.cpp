#include "scalers.h"

namespace tsdp::models {

at::Tensor mean_scale(const at::Tensor& target, const at::Tensor& observed, double default_scale) {
  const auto count = observed.sum(-1, /*keepdim=*/true);
  const auto mean = (target * observed).abs_().sum(-1, /*keepdim=*/true).div_(count.clamp_min(1.0));
  return mean.masked_fill_(count.eq(0.0), default_scale).clamp_min_(least_mean_scale);
}

const char* mean_scale_script() {
  return R"(
def mean_scale(self, target: Tensor, observed: Tensor) -> Tensor:
    count = observed.sum(dim=-1, keepdim=True)
    mean = (target * observed).abs().sum(dim=-1, keepdim=True) / count.clamp(min=1.0)
    return mean.masked_fill(count == 0, self.default_scale).clamp(min=1e-10)
)";
}

at::Tensor context_mean(const at::Tensor& past, const at::Tensor& observed, std::int64_t context) {
  const auto first = past.size(1) - context;
  const auto seen = observed.narrow(1, first, context);
  return (past.narrow(1, first, context) * seen).sum(1, true).div_(seen.sum(1, true).clamp_min_(1.0));
}

const char* context_mean_script() {
  return R"(
def context_mean(self, past: Tensor, observed: Tensor, context: int) -> Tensor:
    seen = observed[:, past.size(1) - context:]
    return (past[:, past.size(1) - context:] * seen).sum(dim=1, keepdim=True) / seen.sum(dim=1, keepdim=True).clamp(min=1.0)
)";
}

}  // namespace tsdp::models
