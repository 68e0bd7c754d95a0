#include "training/step_time.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "training/model_setup.h"
#include "training/start_weights.h"
#include "training/step_engine.h"

namespace tsdp::training {

double seconds_per_step(const mechanism::Settled& run, at::Device device) {
  const auto& config = run.config;
  const auto& method = run.method;
  constexpr int looks = 4;  // the first warms up caches
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  const auto model = model_of(config, options);
  initialise(*model, config.training.seed, std::nullopt);
  model->network().keep_networks(networks_of(config, run.networks));
  StepEngine engine(*model, method, {});
  const auto windows = method.scheme().expected_windows();
  const auto past = model->past_length();
  const auto horizon = config.dataset.prediction_length;
  const auto ramp = [&](std::int64_t columns) {
    return at::linspace(0.0, 1.0, windows * columns, options).view({windows, columns});
  };
  const auto features = model->options().time_features;
  const models::WindowBatch batch{ramp(past), at::ones({windows, past}, options), ramp(horizon),
                                  at::ones({windows, horizon}, options),
                                  ramp((past + horizon) * features).view({windows, past + horizon, features}) - 0.5};
  // As many in each place as in a batch of the expected size.
  const auto& scheme = method.scheme();
  const auto lambda = scheme.parameters().subsequences_per_sequence;
  const auto parts = scheme.parts_of_a_series();
  const auto each = scheme.variables() * ((lambda + parts - 1) / parts);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < windows; ++i) places.push_back(i / each);
  const auto key = SecretKey::from_seed(0);
  double least = std::numeric_limits<double>::infinity();
  for (int look = 0; look < looks; ++look) {
    const auto start = std::chrono::steady_clock::now();
    engine.step(batch, places, key, static_cast<std::uint64_t>(look));
    static_cast<void>(model->parameters().values()[0].item<float>());  // waits for the device
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

}  // namespace tsdp::training
