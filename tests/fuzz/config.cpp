// Configuration files: the resolved configuration, written as config.yaml, is read as itself, every number to the bit.
#include "tsdp/settings/config.h"

#include <tuple>

#include "fuzz.h"

using namespace tsdp;

namespace {

/// What rounding or quoting could change; the text alone would not show it, once it is rounded.
auto delicate(const Config& c) {
  return std::tuple(c.dataset.path, c.dataset.frequency, c.dataset.start, c.model.default_scale, c.model.lags,
                    c.augmentation.context_noise, c.augmentation.forecast_noise, c.privacy.v,
                    c.privacy.noise_multiplier, c.privacy.clip_norm, c.privacy.target_epsilon, c.privacy.delta,
                    c.optimizer.learning_rate, c.optimizer.weight_decay, c.optimizer.gradient_norm_bound,
                    c.training.seed, c.training.checkpoint_seconds);
}

}  // namespace

TSDP_FUZZ(input) {
  const auto file = fuzz::put("config.yaml", input);
  Config first;
  if (!fuzz::accepted([&] { first = read_config(file); }, {file.string() + ":"})) return;
  const auto resolved = fuzz::put("resolved.yaml", config_text(first));
  Config second;
  fuzz::expect(fuzz::accepted([&] { second = read_config(resolved); }), "what is written can be read");
  fuzz::expect(delicate(second) == delicate(first), "config.yaml is read as what it was written from");
  fuzz::expect(config_text(second) == config_text(first), "config.yaml is read as what it was written from");
}
