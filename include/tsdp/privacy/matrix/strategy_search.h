// Strategy matrices of least error for a number of bands or buffers.
//
// What is minimised: mean_error() · squared_sensitivity() (strategy.h) over N = bins · epochs steps, that is
//   (1/N) ‖E C⁻¹‖²_F · Σ_{n < N} s_n²,   s_n = Σ_{j < epochs, j·bins ≤ n} c_{n − j·bins}.
// It does not depend on the scale of C, so the first coefficient is 1. For several epochs it depends on the number of bins too: what
// one record adds in one epoch may still be there in the next.
//
// Sources: McKenna, "Scaling up the Banded Matrix Factorization Mechanism" (ICLR 2025); Kalinin et al. (2025) for banded inverses;
// Dvijotham et al. (FOCS 2024) and McMahan et al., "A Hassle-free Algorithm for Strong Differential Privacy in Federated Learning
// Systems" (2024) for buffers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::privacy {

/// Most buffers that are searched for: more gain nothing that double precision could hold.
inline constexpr std::int64_t most_buffers = 8;

/// Of band_mf: a p-banded C, c_0 = 1 and c_j ≥ 0. `bands` p from 1 to N, and may be more than the bins; bins and epochs from 1 on, N
/// at most Strategy::most_steps. Throws UsageError for numbers out of range.
///
/// A local minimum, found from the square-root coefficients and never worse than those (of inverses and buffers likewise). The same
/// numbers for the same arguments on one machine. O(N p) an evaluation, a few hundred of them.
[[nodiscard]] NoiseRecursion best_bands(std::int64_t bands, std::int64_t bins, std::int64_t epochs);

/// Of band_inv_mf: a p-banded C⁻¹, q_0 = 1 and q_j ≤ 0 for j ≥ 1. The signs imply C ≥ 0, since c_t = −Σ_{j ≥ 1} q_j c_{t−j}. Where p is
/// small against the bins the best inverse has them anyway; elsewhere some q_j are 0. Arguments, errors and cost as for best_bands.
[[nodiscard]] NoiseRecursion best_inverse_bands(std::int64_t bands, std::int64_t bins, std::int64_t epochs);

/// Of blt: ω > 0, θ distinct in (0, 1) and falling, Σ ω_j/θ_j < 1, which keeps the decays of C⁻¹ in (0, 1) too. `buffers` d from 1
/// to most_buffers; bins, epochs and errors as for best_bands. Where fewer buffers do as well, some decays lie close together or
/// some weights are tiny: short runs and many epochs seldom use more than 3. O(N d) an evaluation, some hundreds of them for each
/// number of buffers up to d.
[[nodiscard]] NoiseRecursion best_buffers(std::int64_t buffers, std::int64_t bins, std::int64_t epochs);

/// What a user may ask for.
struct WantedStrategy {
  StrategyKind kind = StrategyKind::identity;
  std::int64_t bands = 4;    ///< p, of bsr, bisr, band_mf and band_inv_mf; at most N counts
  std::int64_t buffers = 2;  ///< d, of blt
  std::optional<NoiseRecursion> coefficients = {};  ///< of file
  std::string coefficients_file = {};               ///< what complaints about them name
};

/// The matrix for runs of `epochs` epochs of `bins` steps. Throws UsageError for numbers out of range and for file without coefficients,
/// DataError for coefficients that make no matrix of so many steps.
[[nodiscard]] Strategy planned_strategy(const WantedStrategy& wanted, std::int64_t bins, std::int64_t epochs);

/// The coefficients of a file: JSON, the first column of C as a list of numbers, or {"inverse": […]}. Throws DataError that names the file
/// unless they are those of a strategy matrix.
[[nodiscard]] NoiseRecursion read_coefficients(const std::filesystem::path& file);
/// What it reads back; of a banded or banded inverse form.
[[nodiscard]] std::string coefficients_text(const NoiseRecursion& recursion);

}  // namespace tsdp::privacy
