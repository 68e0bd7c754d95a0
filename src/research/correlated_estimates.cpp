#include "research/correlated_estimates.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <functional>

#include "privacy/matrix/conditional_composition.h"
#include "privacy/terms/checks.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {

SampledProfile::SampledProfile(const Strategy& strategy, std::int64_t bins, std::int64_t epochs,
                               double noise_multiplier, Direction direction, std::int64_t samples, const Draws& draws) {
  if (bins < 1 || bins > most_bins)
    throw UsageError(cat("batches: found ", bins, "; expected an integer from 1 to ", most_bins));
  if (samples < 2 || samples > most_samples)
    throw UsageError(cat("samples: found ", samples, "; expected an integer from 2 to ", most_samples));
  check_noise_multiplier_of_mechanism(noise_multiplier);
  if (direction == Direction::symmetrised) throw Error(ExitCode::failure, "losses are drawn in one direction");
  if (!strategy.non_negative())
    throw PrivacyError("balls in bins: a strategy matrix with negative entries is not covered");
  const Gram gram(strategy, bins, epochs, Gram::Side::upper);
  const double variance = noise_multiplier * noise_multiplier;
  Eigen::MatrixXd h(bins, bins);
  for (Eigen::Index i = 0; i < bins; ++i)
    for (Eigen::Index j = 0; j < bins; ++j) h(i, j) = gram.at(i, j) / variance;
  // H = Pᵀ L D Lᵀ P, of a matrix that may be singular.
  const Eigen::LDLT<Eigen::MatrixXd> parts(h);
  const Eigen::VectorXd deviation = parts.vectorD().cwiseMax(0.0).cwiseSqrt();
  // a_i = ⟨y, m_i⟩/σ² − H_ii/2: the logarithm of dN(m_i, σ²I)/dN(0, σ²I).
  constexpr std::int64_t block = 256;
  Eigen::MatrixXd a(bins, block);
  losses_.reserve(static_cast<std::size_t>(samples));
  for (std::int64_t done = 0; done < samples; done += block) {
    draws.normals({a.data(), static_cast<std::size_t>(bins * block)});
    a = deviation.asDiagonal() * a;
    a = parts.matrixL() * a;
    a = parts.transpositionsP().transpose() * a;
    a.colwise() -= 0.5 * h.diagonal();
    for (std::int64_t k = 0; k < std::min(block, samples - done); ++k) {
      auto column = a.col(k);
      if (direction == Direction::remove)
        column += h.col(static_cast<Eigen::Index>(draws.below(static_cast<std::uint64_t>(bins))));
      const double most = column.maxCoeff();
      const double loss = most + std::log((column.array() - most).exp().sum() / static_cast<double>(bins));
      losses_.push_back(direction == Direction::remove ? loss : -loss);
    }
  }
  std::sort(losses_.begin(), losses_.end(), std::greater<>());
}

Estimate SampledProfile::delta(double epsilon) const {
  double sum = 0.0;
  double squares = 0.0;
  for (const double loss : losses_) {
    if (!(loss > epsilon)) break;
    const double part = -std::expm1(epsilon - loss);
    sum += part;
    squares += part * part;
  }
  const auto n = static_cast<double>(losses_.size());
  const double mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean) / (n - 1.0))};
}

double SampledProfile::epsilon(double wanted) const {
  if (!(wanted > 0.0) || !(wanted < 1.0))
    throw UsageError(cat("delta: found ", wanted, "; expected a number in (0, 1)"));
  double low = 0.0;
  double high = std::max(losses_.front(), 0.0);
  if (delta(low).value <= wanted) return low;
  while (high - low > 1e-9 * high) {
    const double middle = 0.5 * (low + high);
    (delta(middle).value > wanted ? low : high) = middle;
  }
  return high;
}

namespace {

/// Gives the steps of every epoch but the first each position's largest hazard of that epoch: the published rule, which
/// is NOT a bound.
void take_largest_of_epoch(const Means& means, Hazards& hazards) {
  for (std::int64_t from_step = means.bins; from_step < means.steps; from_step += means.bins) {
    const auto to = std::min(from_step + means.bins, means.steps);
    std::vector<double> largest(static_cast<std::size_t>(means.bins), 0.0);  // from the last position on
    for (auto n = from_step; n < to; ++n) {
      const auto& own = hazards[static_cast<std::size_t>(n)];
      for (std::size_t k = 0; k < own.size(); ++k) largest[k] = std::max(largest[k], own[own.size() - 1 - k]);
    }
    for (auto n = from_step; n < to; ++n) {
      auto& own = hazards[static_cast<std::size_t>(n)];
      for (std::size_t k = 0; k < own.size(); ++k) own[own.size() - 1 - k] = largest[k];
    }
  }
}

/// λ̄ of the published rule: the later epochs spend δ_E/k on every step and take each position's largest hazard of the
/// epoch.
Hazards published_hazards(const Means& means, double sigma, double spent_delta, Direction direction, HazardMode mode,
                          std::optional<std::size_t> family = std::nullopt) {
  const auto epochs = static_cast<double>((means.steps + means.bins - 1) / means.bins);
  auto out = hazards_of(
      means, sigma, direction,
      [&](std::int64_t n) {
        return n < means.bins ? spent_delta / (epochs * static_cast<double>(means.bins)) : spent_delta / epochs;
      },
      mode, family);
  take_largest_of_epoch(means, out);
  return out;
}

}  // namespace

std::vector<double> top_hazards(const Strategy& strategy, std::int64_t bins, std::int64_t epochs,
                                double noise_multiplier, double spent_delta, Direction direction, HazardRule rule,
                                std::optional<std::size_t> family) {
  const Means means(strategy, bins, epochs);
  const auto all = rule == HazardRule::published
                       ? published_hazards(means, noise_multiplier, spent_delta, direction, HazardMode::sharp, family)
                       : union_hazards(means, noise_multiplier, spent_delta, direction, HazardMode::sharp, family);
  std::vector<double> out;
  for (const auto& hazards : all) out.push_back(hazards.empty() ? 1.0 : hazards.back());
  return out;
}

namespace {

/// Both directions of the published rule.
class Published {
 public:
  Published(const Strategy& strategy, std::int64_t bins, std::int64_t epochs, double noise_multiplier, double spent)
      : remove_(made(strategy, bins, epochs, noise_multiplier, spent, Direction::remove)),
        add_(made(strategy, bins, epochs, noise_multiplier, spent, Direction::add)) {}
  [[nodiscard]] double delta(double epsilon) const { return std::max(remove_.delta(epsilon), add_.delta(epsilon)); }

 private:
  static ConditionalComposition made(const Strategy& strategy, std::int64_t bins, std::int64_t epochs, double sigma,
                                     double spent, Direction direction) {
    Means means(strategy, bins, epochs);
    auto hazards = published_hazards(means, sigma, spent, direction, HazardMode::all_in);
    return {std::move(means), sigma, spent, direction, std::move(hazards)};
  }
  ConditionalComposition remove_, add_;
};

}  // namespace

double published_delta(const Strategy& strategy, std::int64_t bins, std::int64_t epochs, double noise_multiplier,
                       double epsilon, double spent_delta) {
  return Published(strategy, bins, epochs, noise_multiplier, spent_delta).delta(epsilon);
}

double published_epsilon(const Strategy& strategy, std::int64_t bins, std::int64_t epochs, double noise_multiplier,
                         double delta) {
  if (!(delta > 0.0) || !(delta < 1.0)) throw UsageError(cat("delta: found ", delta, "; expected a number in (0, 1)"));
  const Published rule(strategy, bins, epochs, noise_multiplier, 0.5 * delta);
  double low = 0.0;
  if (rule.delta(low) <= delta) return low;
  double high = 1.0;
  while (rule.delta(high) > delta) {
    if (high > 500.0)
      throw OutOfReach(cat("noise multiplier: found ", noise_multiplier,
                           ", at which the published rule gives no epsilon below ", high));
    high *= 2.0;
  }
  while (high - low > 1e-4 * high) {
    const double middle = 0.5 * (low + high);
    (rule.delta(middle) > delta ? low : high) = middle;
  }
  return high;
}

}  // namespace tsdp::privacy
