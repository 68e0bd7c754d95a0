// The attack by extreme data for the configured forecaster.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "audit/attack.h"
#include "audit/attacked_run.h"
#include "audit/neighbours.h"
#include "models/forecaster.h"
#include "tsdp/privacy/terms/scheme.h"
#include "tsdp/settings/config.h"

namespace tsdp::audit {

/// Values of the changed places; everything else is 0.
struct Extremes {
  float first = 0.0F;
  float second = 0.0F;
};

/// The attacker's view of the configured forecaster.
struct Projection {
  Extremes extremes;
  at::Tensor direction;  ///< unit vector, double precision
  at::Tensor blank;      ///< a unit vector orthogonal to it and to what untouched windows have, otherwise random
  double offset = 0.0;   ///< of the sum of a batch without touched windows, with replacement
  Shape shape;
};

/// Chooses the values of two neighbouring data sets for a forecaster with its weights as they are.
class DataAttack {
 public:
  DataAttack(const Config& config, const privacy::SubsamplingScheme& scheme, const Neighbours& neighbours,
             models::Forecaster& model);

  /// The extremes, among those tried, that move the clipped gradients of touched windows furthest, and what follows
  /// from them.
  [[nodiscard]] Projection best();

  [[nodiscard]] static std::vector<float> values(const Extremes& extremes, const Neighbours& neighbours,
                                                 std::int64_t series, std::int64_t length, bool second);

 private:
  /// Clipped gradients of single windows of the changed series, one per row, in multiples of C.
  at::Tensor gradients(const Extremes& extremes, bool second, const std::vector<std::int64_t>& starts);

  /// The law of Σ moves over the drawn touched windows, on a grid; `moves` holds those of evenly spaced windows.
  [[nodiscard]] std::vector<Component> law_of(const at::Tensor& moves) const;

  /// Gradients of at most `most` of the touched windows, evenly spaced, on D and on D′.
  std::pair<at::Tensor, at::Tensor> touched(const Extremes& extremes, std::size_t most);

  /// Mean over windows of a series of zeros.
  at::Tensor untouched();

  const Config& config_;
  const privacy::SubsamplingScheme& scheme_;
  const Neighbours& neighbours_;
  models::Forecaster& model_;
  Clipped clipped_;
};

}  // namespace tsdp::audit
