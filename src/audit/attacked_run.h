// What attacks on a run share: the data made for it, its configuration under attack and what its clipping leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/forecaster.h"
#include "training/step_engine.h"
#include "tsdp/mechanism/training_method.h"
#include "tsdp/settings/configured.h"

namespace tsdp::audit {

/// Tensors of an audit.
inline const auto on_cpu = at::TensorOptions().dtype(at::kFloat);

/// Series of `lengths`, and of their owners where these are known, with the values that `values` gives them.
[[nodiscard]] data::PreparedData data_of(
    const Config& config, const privacy::SeriesLengths& lengths,
    const std::function<std::vector<float>(std::int64_t series, std::int64_t length)>& values);

/// The same run with no end to its budget and with weights that stay as they are. Correlated noise has the coefficients
/// of `noise` for however many steps, not those that a search would find for them.
[[nodiscard]] Config attacked(Config config, const privacy::Noise& noise, std::uint64_t epochs);

/// What the clipping of a run leaves of given windows.
class Clipped {
 public:
  Clipped(models::Forecaster& model, const Config& config, const mechanism::TrainingMethod& method)
      : clip_norm_(config.privacy.clip_norm), engine_(model, method, options(config)) {}
  /// The clipped sum, in multiples of C.
  at::Tensor sum(const models::WindowBatch& batch, std::span<const std::int64_t> places);

 private:
  static training::StepEngine::Options options(const Config& config);

  double clip_norm_;
  training::StepEngine engine_;
};

}  // namespace tsdp::audit
