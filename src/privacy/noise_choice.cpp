#include "tsdp/privacy/noise_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/privacy/accountant.h"
#include "tsdp/privacy/correlated_noise.h"

namespace tsdp::privacy {
namespace {

bool certified(const NoiseTarget& target, const std::shared_ptr<const Strategy>& strategy, double sigma) {
  const auto theorem = series_theorem(target.law, noise_by(strategy->kind() == StrategyKind::identity ? nullptr : strategy, sigma));
  const auto steps = static_cast<std::uint64_t>(target.epochs) * static_cast<std::uint64_t>(theorem.steps_per_epoch);
  return theorem.curve()->certifies(target.epsilon, target.delta, theorem.uses_of_steps(steps));
}

}  // namespace

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
