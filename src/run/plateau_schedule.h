// Halves the learning rate when the training loss stops falling.
#pragma once

#include <cstdint>
#include <limits>

namespace tsdp::training {

/// State of a schedule that halves the learning rate after more than `patience` looks in a row at which the loss was
/// not below (1 − 1e-4) times its least: PyTorch's ReduceLROnPlateau (factor 0.5), as GluonTS uses to train its DeepAR.
/// It reads the training loss, so it is for runs without privacy.
struct PlateauSchedule {
  double factor = 1.0;  ///< of the learning rate: 1, ½, ¼, …
  double least_loss = std::numeric_limits<double>::infinity();
  std::int64_t looks_since = 0;  ///< since the least loss, or the last halving

  /// Records a look at the loss. NaN does not count as lower.
  void look(double loss, std::int64_t patience) {
    // PyTorch's rule even for negative losses: it then takes a loss that is higher by a ten-thousandth for lower.
    if (loss < least_loss * (1.0 - 1e-4)) {
      least_loss = loss;
      looks_since = 0;
    } else if (++looks_since > patience) {
      factor *= 0.5;
      looks_since = 0;
    }
  }
};

}  // namespace tsdp::training
