// Strategy matrices of correlated noise, and what they cost and gain.
//
// Training releases G + C⁻¹Z row by row, with G the N sums of clipped records and Z independent N(0, σ²): a function of
// CG + Z, so that C is what the accountant sees and C⁻¹ what the noise looks like. All C here are lower triangular and
// Toeplitz: the first column c determines them. Nothing is normalised: (λC, λσ) is the same mechanism, so a noise
// multiplier is meaningful only together with its c.
//
// Sources: Choquette-Choo et al., "Near-Exact Privacy Amplification for Matrix Mechanisms" (ICLR 2025), [CC]; Kalinin
// and Lampert, "Banded Square Root Matrix Factorization" (NeurIPS 2024); Kalinin et al. (2025) for banded inverses;
// McKenna, "Scaling up the Banded Matrix Factorization Mechanism" (ICLR 2025); Dvijotham et al., "Efficient and
// Near-Optimal Noise Generation for Streaming Differential Privacy" (FOCS 2024) for buffered linear Toeplitz matrices.
#pragma once

#include <cstdint>
#include <vector>

#include "tsdp/base/names.h"
#include "tsdp/privacy/terms/curve.h"

namespace tsdp::privacy {

/// With r_j the coefficients of (1 − x)^{−1/2} and r̃_j those of (1 − x)^{1/2}, and q the first column of C⁻¹:
///   identity: C = I.   bsr: c_j = r_j for j < p, else 0.   bisr: q_j = r̃_j for j < p, else 0.
///   band_mf, band_inv_mf: p-banded c (q) of least error (strategy_search.h).
///   blt: c_0 = 1, c_t = Σ_{j ≤ d} ω_j θ_j^{t−1}, ω and θ of least error.   file: c or q as given.
enum class StrategyKind {
  identity,
  bsr,
  bisr,
  band_mf,
  band_inv_mf,
  blt,
  file
};
constexpr Names<StrategyKind, 7> names_of(StrategyKind) {
  return {{{StrategyKind::identity, "identity"},
           {StrategyKind::bsr, "bsr"},
           {StrategyKind::bisr, "bisr"},
           {StrategyKind::band_mf, "band_mf"},
           {StrategyKind::band_inv_mf, "band_inv_mf"},
           {StrategyKind::blt, "blt"},
           {StrategyKind::file, "file"}}};
}

/// How x = C⁻¹z is computed from step to step.
///   banded:         x_t = (z_t − Σ_{1 ≤ j < p} c_j x_{t−j}) / c_0
///   banded_inverse: x_t = Σ_{0 ≤ j < p} q_j z_{t−j}
///   buffered:       x_t = z_t − Σ_j ω_j B_j, then B_j ← θ_j B_j + x_t
struct NoiseRecursion {
  enum class Form {
    banded,
    banded_inverse,
    buffered
  };
  Form form = Form::banded;
  std::vector<double> coefficients = {1.0};  ///< c_0 … c_{p−1} or q_0 … q_{p−1}; none if buffered
  std::vector<double> decays = {};  ///< θ, each in (0, 1)
  std::vector<double> weights = {};  ///< ω, as many as decays, each positive

  bool operator==(const NoiseRecursion&) const = default;
};

/// A strategy matrix for at most N steps.
class Strategy {
 public:
  static constexpr std::int64_t most_steps = 10'000'000;
  /// Limit on coefficients (of either kind) × steps: seconds of work.
  static constexpr double most_work = 2e9;
  /// How large entries of C⁻¹ may be beside its first: x = C⁻¹z is computed in double precision, so that C x is z to
  /// about 2^-53 times this and the sum of |c|, far below the grid of 2^-24 that noise is drawn on.
  static constexpr double most_growth = 1048576.0;
  /// steps N from 1 to most_steps. Throws UsageError for numbers that are not finite, a first coefficient that is not
  /// positive, numbers of `recursion` out of range, or a file's C⁻¹ that grows by more than most_growth.
  Strategy(StrategyKind kind, NoiseRecursion recursion, std::int64_t steps);

  [[nodiscard]] StrategyKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
  [[nodiscard]] const NoiseRecursion& recursion() const noexcept { return recursion_; }
  [[nodiscard]] bool is_identity() const noexcept;

  /// Brackets of |c_0| … |c_{N−1}|, widened by what rounding may have done to the recursions.
  [[nodiscard]] const std::vector<double>& column_lower() const noexcept { return lower_; }
  [[nodiscard]] const std::vector<double>& column_upper() const noexcept { return upper_; }
  /// Whether no entry of C itself is negative.
  [[nodiscard]] bool non_negative() const noexcept { return non_negative_; }
  /// Bands of C, if it is banded (p with c_j = 0 for j ≥ p); N otherwise.
  [[nodiscard]] std::int64_t bands() const noexcept { return bands_; }

  /// First columns of C and C⁻¹, N numbers each, to about 1e-15 of their largest.
  [[nodiscard]] std::vector<double> column() const;
  [[nodiscard]] std::vector<double> inverse() const;
  /// (1/N) ‖E C⁻¹‖²_F and the largest squared norm of a row of E C⁻¹, with E the matrix of prefix sums: the mean and
  /// the largest squared error of the N prefix sums for σ = 1.
  [[nodiscard]] double mean_error() const;
  [[nodiscard]] double max_error() const;

 private:
  StrategyKind kind_;
  NoiseRecursion recursion_;
  std::int64_t steps_;
  std::int64_t bands_ = 1;
  std::vector<double> lower_, upper_;
  bool non_negative_ = true;

  void check_inverse() const;
};

/// bsr and bisr with p bands, p ≥ 1. Throws UsageError for p < 1.
[[nodiscard]] NoiseRecursion square_root_bands(std::int64_t bands);
[[nodiscard]] NoiseRecursion inverse_square_root_bands(std::int64_t bands);

/// What a record adds to C G if it takes part in steps i, i + b, …, i + (k − 1)b with gradients of norm 1 that point
/// the same way: m_i = Σ_j |C|_{:, i + jb}, and the Gram matrix G_ij = ⟨m_i, m_j⟩ of all b places ([CC] Lemma 3.2).
/// Rounded to one side.
class Gram {
 public:
  enum class Side {
    lower,
    upper
  };
  /// b bins, k epochs, k b ≤ N. Throws UsageError if that does not hold, PrivacyError if b is more than most_bins (a
  /// gigabyte) or k b² more than most_work.
  static constexpr std::int64_t most_bins = 12288;
  static constexpr double most_work = 4e9;
  Gram(const Strategy& strategy, std::int64_t bins, std::int64_t epochs, Side side);
  /// A matrix as given (symmetric, b × b, row by row), for tests.
  Gram(std::vector<double> entries, std::int64_t bins);

  [[nodiscard]] std::int64_t bins() const noexcept { return bins_; }
  [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
    return entries_[static_cast<std::size_t>(i * bins_ + j)];
  }
  [[nodiscard]] double largest_diagonal() const noexcept { return largest_diagonal_; }
  [[nodiscard]] double least_diagonal() const noexcept { return least_diagonal_; }
  /// Largest and least entry off the diagonal; 0 where there is none.
  [[nodiscard]] double largest_beside() const noexcept { return largest_beside_; }
  [[nodiscard]] double least_beside() const noexcept { return least_beside_; }
  /// Largest entry with min(|i − j|, b − |i − j|) ≥ p; 0 where there is none.
  [[nodiscard]] double largest_beyond(std::int64_t bands) const;

 private:
  void look();
  std::int64_t bins_;
  std::vector<double> entries_;
  double largest_diagonal_ = 0.0, least_diagonal_ = 0.0, largest_beside_ = 0.0, least_beside_ = 0.0;
};

/// max_i ‖m_i‖², rounded to one side: the squared sensitivity for b batches in turn, k epochs. In O(k b).
[[nodiscard]] double squared_sensitivity(const Strategy& strategy, std::int64_t bins, std::int64_t epochs,
                                         Gram::Side side = Gram::Side::upper);

/// An upper bound of the squared sensitivity where every epoch has an order, or bins, of its own, so that parts of a
/// record in epochs m < l are (l − m − 1)b + 1 steps apart or more: with d_t = max_{s ≥ t} |c_s| and ḡ(x) = Σ_t d_t
/// d_{t+x}, kḡ(0) + 2 Σ_{x=1}^{k−1} (k − x) ḡ((x − 1)b + 1) (docs/proofs/correlated-noise.md, Theorem 3). In O(k b).
[[nodiscard]] double squared_sensitivity_of_own_orders(const Strategy& strategy, std::int64_t bins,
                                                       std::int64_t epochs);

}  // namespace tsdp::privacy
