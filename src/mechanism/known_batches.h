// What a run costs whoever knows which windows every step uses.
#pragma once

#include <cstdint>
#include <optional>

#include "tsdp/mechanism/training_method.h"

namespace tsdp::mechanism {

/// An ε, rounded up, for which `steps` steps are (ε, δ)-differentially private for someone who knows the batches of all
/// of them, as the ranks of a run do: nothing is amplified. For the mechanism's own relation.
///
/// Object: the releases of `steps` steps, given all randomness of the sampler. docs/proofs/known-batches.md: they are
/// dominated by N(s √k, σ²) against N(0, σ²), in units of C, where a record of one series takes part in at most k steps
/// and moves the sum of each by at most s. None where coins draw windows inside a series, so that s has no public
/// bound, and for correlated noise.
[[nodiscard]] std::optional<double> epsilon_of_known_batches(const PrivateMechanism& mechanism, std::uint64_t steps,
                                                             double delta);

}  // namespace tsdp::mechanism
