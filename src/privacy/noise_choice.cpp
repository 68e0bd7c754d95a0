#include "tsdp/privacy/noise_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/privacy/accountant.h"
#include "tsdp/privacy/adaptive_curve.h"
#include "tsdp/privacy/correlated_noise.h"

namespace tsdp::privacy {
namespace {

bool certified(const NoiseTarget& target, const std::shared_ptr<const Strategy>& strategy, double sigma) {
  const auto theorem = series_theorem(target.law, noise_by(strategy->kind() == StrategyKind::identity ? nullptr : strategy, sigma));
  const auto steps = static_cast<std::uint64_t>(target.epochs) * static_cast<std::uint64_t>(theorem.steps_per_epoch);
  return theorem.curve()->certifies(target.epsilon, target.delta, theorem.uses_of_steps(steps));
}

}  // namespace

double least_noise(const PrivacyTarget& target, const std::function<AppliedTheorem(double)>& theorem_at, double tolerance, double precision) {
  const auto suffices = [&](const AppliedTheorem& theorem) { return theorem.curve()->certifies(target.epsilon, target.delta, target.uses, precision); };
  if (theorem_at(1.0).composition == StepComposition::symmetrised) return calibrate_noise([&](double sigma) { return suffices(theorem_at(sigma)); }, tolerance);

  // What the pair composed as it is needs is enough; what comes after the steps is left to the theorem's own curve.
  const double pure = theorem_at(1.0).pure_release;
  double enough = calibrate_noise([&](double sigma) { return Accountant(theorem_at(sigma).pair).certifies(target.epsilon - pure, target.delta, target.uses, precision); }, tolerance);
  double too_little = 0.0;
  // log ε as a line in log σ, its slope first that of the pair.
  const auto pair_epsilon = [&](double sigma) { return Accountant(theorem_at(sigma).pair).epsilon(target.delta, target.uses, precision).upper; };
  double slope = std::log(pair_epsilon(enough) / pair_epsilon(0.9 * enough)) / std::log(1.0 / 0.9);
  constexpr double usual_saving = 0.87;  // of ε by adaptive composition, where steps are many
  double next = enough * std::pow(1.0 / usual_saving, 1.0 / slope);
  double last_tried = 0.0;
  double epsilon_there = 0.0;
  for (int tries = 0; tries < 8 && enough > too_little * (1.0 + tolerance); ++tries) {
    const double sigma = std::clamp(next, std::max(too_little * (1.0 + 0.5 * tolerance), 0.5 * enough), enough * (1.0 - 0.25 * tolerance));
    // (Its upper end alone.)
    const auto theorem = composed_adaptively(theorem_at(sigma), AdaptiveCurve::longest_block);
    const double epsilon = theorem.curve()->epsilon(target.delta, target.uses, precision).upper;
    // (What is certified at the target itself counts; the other is where to look next.)
    const bool certified = suffices(theorem);
    (certified ? enough : too_little) = sigma;
    if (!std::isfinite(epsilon) || !(epsilon > pure)) {
      next = std::sqrt(enough * sigma);
      continue;
    }
    if (last_tried > 0.0 && std::abs(std::log(sigma / last_tried)) > 1e-9) {
      const double found = std::log((epsilon - pure) / (epsilon_there - pure)) / std::log(sigma / last_tried);
      if (found < -0.2 && found > -5.0) slope = found;
    }
    last_tried = sigma;
    epsilon_there = epsilon;
    next = sigma * std::pow((target.epsilon - pure) / (epsilon - pure), 1.0 / slope) * (1.0 + 0.25 * tolerance);
    if (certified && next > sigma * (1.0 - tolerance)) break;
  }
  return enough;
}

double least_noise(const NoiseTarget& target, const std::shared_ptr<const Strategy>& strategy, double tolerance) {
  return calibrate_noise([&](double sigma) { return certified(target, strategy, sigma); }, tolerance);
}

std::span<const StrategyKind> searched_kinds() {
  static constexpr std::array kinds = {StrategyKind::identity, StrategyKind::bsr, StrategyKind::bisr,
                                       StrategyKind::band_mf, StrategyKind::band_inv_mf, StrategyKind::blt};
  return kinds;
}

PricedStrategy least_total_error(const NoiseTarget& target, const WantedStrategy& sizes, double tolerance) {
  const auto bins = target.law.batches;
  struct Candidate {
    std::shared_ptr<const Strategy> strategy;
    double mean_error, unamplified;
  };
  std::vector<Candidate> tried;
  for (const auto kind : searched_kinds()) {
    if (kind != StrategyKind::identity && !covers_correlated_noise(target.law.sampler, target.law.reshuffle)) continue;
    auto wanted = sizes;
    wanted.kind = kind;
    auto strategy = std::make_shared<const Strategy>(planned_strategy(wanted, bins, target.epochs));
    const double mean_error = strategy->mean_error();
    const double unamplified = mean_error * squared_sensitivity(*strategy, bins, target.epochs);
    tried.push_back({std::move(strategy), mean_error, unamplified});
  }
  std::stable_sort(tried.begin(), tried.end(), [](const auto& a, const auto& b) { return a.unamplified < b.unamplified; });
  PricedStrategy best;
  std::exception_ptr why_none;
  for (const auto& [strategy, mean_error, unamplified] : tried) {
    try {
      if (best.strategy) {
        const double most = std::min(std::sqrt(best.total_error / mean_error) / (1.0 + tolerance), 1e6);
        if (most < 0.01 || !certified(target, strategy, most)) continue;
      }
      const double sigma = least_noise(target, strategy, tolerance);
      const double total = sigma * sigma * mean_error;
      if (!best.strategy || total < best.total_error) best = {strategy, sigma, total};
    } catch (const PrivacyError&) {
      // What is out of reach for one may not be for another.
      if (!why_none) why_none = std::current_exception();
    }
  }
  if (!best.strategy) std::rethrow_exception(why_none);
  return best;
}

}  // namespace tsdp::privacy
