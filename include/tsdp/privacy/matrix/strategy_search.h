// Strategy matrices of least error for a given number of bands or buffers.
//
// What is minimised: mean_error() · squared_sensitivity() (strategy.h) over N = bins · epochs steps, that is
//   (1/N) ‖E C⁻¹‖²_F · Σ_{n < N} s_n²,   s_n = Σ_{j < epochs, j·bins ≤ n} c_{n − j·bins}.
// It does not depend on the scale of C, so the first coefficient is 1. For several epochs it depends on the number of
// bins too: what one record adds in one epoch may still be there in the next.
//
// Sources: McKenna, "Scaling up the Banded Matrix Factorization Mechanism" (ICLR 2025); Kalinin et al. (2025) for
// banded inverses; Dvijotham et al. (FOCS 2024) and McMahan et al., "A Hassle-free Algorithm for Strong Differential
// Privacy in Federated Learning Systems" (2024) for buffers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::privacy {

/// Most buffers that are searched for: more would gain nothing that double precision could hold.
inline constexpr std::int64_t most_buffers = 8;

/// For band_mf: a p-banded C with c_0 = 1 and c_j ≥ 0. `bands`, p, is from 1 to N and may be more than the bins; bins
/// and epochs are at least 1, N at most Strategy::most_steps. Throws UsageError for numbers out of range.
///
/// A local minimum, searched from the square-root coefficients and never worse than those (likewise for inverses and
/// buffers). The same arguments give the same numbers on one machine. O(N p) per evaluation, with a few hundred
/// evaluations.
[[nodiscard]] NoiseRecursion best_bands(std::int64_t bands, std::int64_t bins, std::int64_t epochs);

/// For band_inv_mf: a p-banded C⁻¹ with q_0 = 1 and q_j ≤ 0 for j ≥ 1. The signs imply C ≥ 0, since
/// c_t = −Σ_{j ≥ 1} q_j c_{t−j}. Where p is small compared to the bins, the best inverse has these signs anyway;
/// elsewhere some q_j are 0. Arguments, errors and cost as for best_bands.
[[nodiscard]] NoiseRecursion best_inverse_bands(std::int64_t bands, std::int64_t bins, std::int64_t epochs);

/// For blt: ω > 0, θ distinct in (0, 1) and decreasing, Σ ω_j/θ_j < 1, which keeps the decays of C⁻¹ in (0, 1) too.
/// `buffers`, d, is from 1 to most_buffers; bins, epochs and errors as for best_bands. If fewer buffers do as well,
/// some decays lie close together or some weights are tiny: short runs and many epochs seldom use more than 3. O(N d)
/// per evaluation, with some hundreds of evaluations for each number of buffers up to d.
[[nodiscard]] NoiseRecursion best_buffers(std::int64_t buffers, std::int64_t bins, std::int64_t epochs);

/// What a user may ask for.
struct WantedStrategy {
  StrategyKind kind = StrategyKind::identity;
  std::int64_t bands = 4;    ///< p, for bsr, bisr, band_mf and band_inv_mf; at most N counts
  std::int64_t buffers = 2;  ///< d, for blt
  std::optional<NoiseRecursion> coefficients = {};  ///< for `file`
  std::string coefficients_file = {};               ///< the name that error messages about them use
};

/// The matrix for runs of `epochs` epochs of `bins` steps. Throws UsageError for numbers out of range and for file
/// without coefficients, DataError for coefficients that make no matrix of that many steps.
[[nodiscard]] Strategy planned_strategy(const WantedStrategy& wanted, std::int64_t bins, std::int64_t epochs);

/// Reads the coefficients in a file: JSON, the first column of C as a list of numbers, or {"inverse": […]}. Throws
/// DataError that names the file unless they are those of a strategy matrix.
[[nodiscard]] NoiseRecursion read_coefficients(const std::filesystem::path& file);
/// The text that it reads back; for a banded or banded inverse form.
[[nodiscard]] std::string coefficients_text(const NoiseRecursion& recursion);

}  // namespace tsdp::privacy
