// Bounds of how likely the posterior of a record's bin is to be large: the tail bounds behind the hazards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "privacy/terms/numbers.h"

namespace tsdp::privacy {

/// A z with Φ(z) ≤ β, close to the largest; −∞ if there is none.
[[nodiscard]] double quantile(double beta);

inline constexpr std::size_t most_families = 6;
/// 1/t of the families of weights. The hottest two are exponentials, the others their tenth and hundredth powers.
[[nodiscard]] const std::array<double, most_families>& coldness();

/// β, its quantile, and that of 1e-9 β.
struct Level {
  double beta = 0.0;
  double z = -infinity;
  double z_counted = -infinity;
};

/// What is known of the bins before a step: their Gram matrix so far, and which of them are the same so far.
class Prefix {
 public:
  explicit Prefix(std::int64_t bins);

  [[nodiscard]] double at(std::size_t i, std::size_t j) const { return gram_[i * bins_ + j]; }
  [[nodiscard]] const double* row(std::size_t i) const { return gram_.data() + i * bins_; }
  /// Columns of row i that are not 0.
  [[nodiscard]] const std::vector<std::uint32_t>& beside(std::size_t i) const { return beside_[i]; }
  /// Bins with the same number have had the same means in every step so far.
  [[nodiscard]] std::size_t alike(std::size_t i) const { return alike_[i]; }
  [[nodiscard]] double largest() const { return largest_; }

  void add(const double* means);

 private:
  std::size_t bins_;
  std::vector<double> gram_;
  std::vector<std::vector<std::uint32_t>> beside_;
  std::vector<std::size_t> alike_;
  std::vector<std::size_t> order_;
  std::size_t classes_ = 1;
  double largest_ = 0.0;
};

/// Lower bounds of quantiles of L_i(y) = log (1/r) Σ_{j ∈ J} N(y|μ_j)/N(y|μ_i), for one bin i and r others J, where y
/// is drawn from N(ρ, σ²I), ρ one of the means (remove: a mixture of all b of them, uniform) or 0 (add).
///
/// For weights ψ on J, by Jensen's inequality, L_i ≥ Σ_j ψ_j L_{i,j} − KL(ψ‖uniform), which is Gaussian with
///   ν = ⟨ρ, ψ̄ − μ_i⟩/σ² + (‖μ_i‖² − Σ_j ψ_j ‖μ_j‖²)/2σ² − KL,   ξ = ‖μ_i − ψ̄‖/σ,   ψ̄ = Σ_j ψ_j μ_j.
/// So P[L_i < τ] ≤ mean over ρ of min over ψ of Φ((τ − ν)/ξ): wherever L_i is below τ, so is the Gaussian.
/// Weights: softmax_j(−‖μ_i − μ_j‖²/t) for five t, and the uniform ones. Any are valid.
///
/// Rounding: with M the largest ‖μ‖², entries of the Gram matrix after n steps are off by (n + 2) u M, means under ψ by
/// b + 4 units of M more (weights are what they are: they are divided by their sum). So ν is taken lower by four times
/// (n + 2b + 32) u M/σ² and by the error of logarithms in KL; ξ² is taken higher or lower by six times as much,
/// whichever makes Φ larger.
class TailBound {
 public:
  TailBound(const Prefix& prefix, std::int64_t bins, double sigma, bool remove, double& work,
            std::optional<std::size_t> family);

  /// A τ with P[L_i < τ] ≤ β, close to the largest that the bound gives; −∞ if there is none. `steps`: of the prefix.
  double quantile_of(std::size_t i, const std::vector<std::size_t>& others, const Level& level, double steps);

 private:
  /// Values of ρ that are told apart: one for `add`.
  [[nodiscard]] std::size_t centre_count() const { return shares_.empty() ? std::size_t{1} : shares_.size(); }

  /// P[L_i < τ] of the bin that was prepared, from above: the mean over ρ of the least Φ((τ − ν)/ξ) of all families.
  double chance_below(double tau, const Level& level);

  /// Ends between which the quantile of β lies, to nearest: the lower end is safe only once it is checked.
  [[nodiscard]] std::pair<double, double> range_of_quantile(const Level& level) const;

  /// ν and ξ of bin i for all families of weights, ν from below and ξ on the side that makes Φ larger.
  void prepare(std::size_t i, const std::vector<std::size_t>& others, double steps);

  /// d_j = ‖μ_i − μ_j‖² of all others, to nearest; returns the least and the largest.
  std::pair<double, double> find_distances(std::size_t i, const std::vector<std::size_t>& others);

  /// Weights of one family, not yet divided by their sum: e^{a_j}, a_j = −(d_j − least)/t, to nearest; what is below
  /// e^{−40} is left out. Any are valid. Returns Σ e^a and Σ a e^a. Families are made in their order.
  std::pair<double, double> weigh(std::size_t family, double nearest);

  /// Divides the weights by their sum, and mixes rows of the Gram matrix: y = Σ_j ψ_j G_j, to nearest. Returns Σ_j ψ_j
  /// ‖μ_j‖².
  double mix(const std::vector<std::size_t>& others, double sum);

  const Prefix& prefix_;
  std::size_t bins_;
  double inverse_;
  double& work_;
  std::optional<std::size_t> only_;
  std::vector<std::size_t> centres_;  // one bin of those that are alike; none for `add`
  std::vector<double> shares_;
  std::size_t families_ = 0;
  std::vector<double> centres_of_;  // ν, by family and centre
  double wide_[most_families] = {};  // ξ from above
  double over_wide_[most_families] = {}, over_narrow_[most_families] = {};
  std::vector<double> distance_, weight_, warm_, hot_, mixed_, least_;
};

}  // namespace tsdp::privacy
