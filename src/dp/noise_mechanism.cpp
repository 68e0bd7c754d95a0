#include "tsdp/dp/noise_mechanism.h"

#include "tsdp/dp/private_step.h"

namespace tsdp::dp {

void IndependentNoise::finish(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, const SecretKey& key,
                              std::uint64_t step, double scale) {
  finish_sum(gradient, parts, deviation_, RandomStream(key, noise_purpose, step), scale);
}

}  // namespace tsdp::dp
