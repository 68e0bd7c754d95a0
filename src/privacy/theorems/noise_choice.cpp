#include "privacy/theorems/noise_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "privacy/adaptive/adaptive_curve.h"
#include "privacy/matrix/correlated_noise.h"
#include "privacy/matrix/sampled_loss.h"
#include "privacy/terms/out_of_reach.h"
#include "privacy/whole_series/bounded_batches.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::privacy {
namespace {

// Where adaptive composition is chosen: with less noise its first answer takes more than 20 seconds, with more it saves
// less than a tenth of the steps.
constexpr double least_adaptive_sigma = 3.0;
constexpr double largest_adaptive_sigma = 12.0;

AppliedTheorem theorem_of(const NoiseTarget& target, const std::shared_ptr<const Strategy>& strategy, double sigma,
                          std::optional<SampledClaim> claim = {}) {
  return series_theorem(
      target.law, noise_by(strategy->kind() == StrategyKind::identity ? nullptr : strategy, sigma, std::move(claim)));
}

std::uint64_t uses_of(const NoiseTarget& target, const AppliedTheorem& theorem) {
  return theorem.uses_of_steps(static_cast<std::uint64_t>(target.epochs) *
                               static_cast<std::uint64_t>(theorem.steps_per_epoch));
}

bool certified(const NoiseTarget& target, const std::shared_ptr<const Strategy>& strategy, double sigma) {
  const auto theorem = theorem_of(target, strategy, sigma);
  return theorem.curve()->certifies(target.epsilon, target.delta, uses_of(target, theorem));
}

/// Throws PrivacyError where cuts of large batches take all of δ: twice their chance is what they cost at ε = 0,
/// whatever the noise.
void require_room_for_cuts(const AppliedTheorem& theorem, std::uint64_t uses, double delta) {
  if (theorem.cut.chance && !(2.0 * theorem.cut.chance(uses) < delta)) throw too_many_cuts(delta);
}

/// σ with seven digits, or the next one above it with which the uses stay within the target as all commands state it.
/// Calibration asks for δ(ε), on coarser grids; what epsilon() then gives may lie above the target by its rounding.
double as_stated(double sigma, const PrivacyTarget& target, const std::function<AppliedTheorem(double)>& theorem_at,
                 double precision) {
  constexpr int digits = 7;
  constexpr int most_tries = 60;
  double step = 2e-6;
  for (int tries = 0; tries < most_tries; ++tries) {
    sigma = std::stod(rounded_up(sigma, digits));
    if (sigma > 1e6) break;
    if (theorem_at(sigma).curve()->stays_within(target.epsilon, target.delta, target.uses, precision)) return sigma;
    sigma *= 1.0 + step;
    step = std::min(2.0 * step, 2e-3);
  }
  throw PrivacyError("noise multiplier: not even 1e6 keeps within the budget; ask for fewer steps");
}

}  // namespace

StepComposition chosen_composition(const AppliedTheorem& theorem) {
  const double sigma = theorem.noise_multiplier;
  return covers_adaptive_composition(theorem) && sigma >= least_adaptive_sigma && sigma <= largest_adaptive_sigma
             ? StepComposition::adaptive
             : StepComposition::symmetrised;
}

StepComposition chosen_composition(const PrivacyTarget& target,
                                   const std::function<AppliedTheorem(double)>& theorem_at) {
  if (!covers_adaptive_composition(theorem_at(1.0))) return StepComposition::symmetrised;
  // Adaptive composition needs less noise, at the lower edge by up to a seventh: the noise that is used has to be in
  // the range too.
  constexpr double least_symmetrised_sigma = 3.5;
  const double sigma = least_noise(target, theorem_at);
  return sigma >= least_symmetrised_sigma && sigma <= largest_adaptive_sigma ? StepComposition::adaptive
                                                                             : StepComposition::symmetrised;
}

double least_noise(const PrivacyTarget& target, const std::function<AppliedTheorem(double)>& theorem_at,
                   double tolerance, double precision) {
  const auto suffices = [&](const AppliedTheorem& theorem) {
    return theorem.curve()->certifies(target.epsilon, target.delta, target.uses, precision);
  };
  const auto at_one = theorem_at(1.0);
  require_room_for_cuts(at_one, target.uses, target.delta);
  if (at_one.composition == StepComposition::symmetrised)
    return as_stated(calibrate_noise([&](double sigma) { return suffices(theorem_at(sigma)); }, tolerance), target,
                     theorem_at, precision);

  // The noise that the symmetrised composition of the pair needs is enough: an adaptive curve certifies whatever that
  // composition does.
  const auto symmetrised = [&](double sigma) {
    auto theorem = theorem_at(sigma);
    theorem.composition = StepComposition::symmetrised;
    return theorem;
  };
  double enough = calibrate_noise([&](double sigma) { return suffices(symmetrised(sigma)); }, tolerance);
  double too_little = 0.0;
  // log ε of the steps as a line in log σ through the last two tries, its slope at first near that of the pair.
  constexpr double usual_saving = 0.87;  // of ε by adaptive composition, where steps are many
  constexpr double usual_slope = -1.2;
  constexpr int most_tries = 40;
  const double left = target.epsilon - theorem_at(1.0).pure_release;
  double slope = usual_slope;
  double next = enough * std::pow(1.0 / usual_saving, 1.0 / slope);
  double last_sigma = 0.0;
  double last_log = 0.0;
  for (int tries = 0; tries < most_tries && enough > too_little * (1.0 + tolerance); ++tries) {
    const bool inside =
        next > too_little * (1.0 + 0.2 * tolerance) && next < enough * (1.0 - 0.2 * tolerance);  // (false for NaN)
    const double sigma = inside ? next : too_little > 0.0 ? std::sqrt(too_little * enough) : 0.5 * enough;
    next = std::numeric_limits<double>::quiet_NaN();
    // Noise so small that its loss is beyond accounting is not enough.
    bool certified = false;
    double epsilon = std::numeric_limits<double>::infinity();
    try {
      const auto theorem = theorem_at(sigma);
      certified = suffices(theorem);
      epsilon = theorem.curve()->epsilon(target.delta, target.uses, precision).upper - theorem.pure_release;
    } catch (const OutOfReach&) { certified = false; }
    (certified ? enough : too_little) = sigma;
    if (!(epsilon > 0.0) || !std::isfinite(epsilon) || !(left > 0.0)) continue;
    const double log_excess = std::log(epsilon / left);
    if (last_sigma > 0.0 && std::abs(std::log(sigma / last_sigma)) > 1e-9) {
      const double found = (log_excess - last_log) / std::log(sigma / last_sigma);
      if (found < -0.2 && found > -5.0) slope = found;
    }
    last_sigma = sigma;
    last_log = log_excess;
    next = sigma * std::exp(-log_excess / slope) * (1.0 + 0.25 * tolerance);
    if (certified && next > sigma * (1.0 - tolerance)) break;
  }
  return as_stated(enough, target, theorem_at, precision);
}

double least_noise(const NoiseTarget& target, const std::shared_ptr<const Strategy>& strategy, double tolerance) {
  const auto theorem_at = [&](double sigma) { return theorem_of(target, strategy, sigma); };
  const auto at_one = theorem_at(1.0);
  const auto uses = uses_of(target, at_one);
  require_room_for_cuts(at_one, uses, target.delta);
  return as_stated(calibrate_noise([&](double sigma) { return certified(target, strategy, sigma); }, tolerance),
                   {target.epsilon, target.delta, uses}, theorem_at, default_precision);
}

Noise least_sampled_noise(const NoiseTarget& target, const std::shared_ptr<const Strategy>& strategy,
                          const std::function<SecretKey(int test)>& key_of) {
  constexpr double coarse = 0.1;  // of a test's draws: what an estimate takes
  constexpr double aimed_at = 0.75;  // of what passes
  constexpr double step = 1.015;  // from one test to the next
  constexpr double resolution = 5e-3;
  auto fallback = target;
  fallback.delta *= fallback_share;
  static_cast<void>(theorem_of(target, strategy, 1.0, SampledClaim{target.epsilon, target.delta, {}}));  // or throws
  const double enough = least_noise(fallback, strategy, 2e-3);
  const Gram gram(*strategy, target.law.batches, target.epochs, Gram::Side::upper);
  const auto plan = sampling_plan(target.delta);
  SampledLoss(gram, enough).check_work(plan.samples);
  const auto draws = static_cast<std::uint64_t>(std::ceil(coarse * static_cast<double>(plan.samples)));
  // Chooses what is tested, from draws of its own: nothing rests on it.
  const auto search = SecretKey::from_stream(SecretKey::from_seed(0), "noise by sampling: search", 0);
  const auto seems_enough = [&](double sigma) {
    if (sigma * SampledLoss::most_mu < std::sqrt(gram.largest_diagonal()) * 1.001) return false;
    const auto found = SampledLoss(gram, sigma).means(target.epsilon, draws, search);
    return std::max(found.remove, found.add) <= aimed_at * plan.most_mean;
  };
  if (seems_enough(enough)) {
    double high = enough;
    double low = 0.5 * enough;
    while (low > 0.01 && seems_enough(low)) high = low, low *= 0.5;
    while (high > low * (1.0 + resolution)) {
      const double middle = std::sqrt(low * high);
      (seems_enough(middle) ? high : low) = middle;
    }
    for (int test = 0; test < most_sampled_tests && high < enough; ++test, high *= step) {
      const SampledClaim claim{target.epsilon, target.delta, key_of(test)};
      const double sigma = std::stod(rounded_up(high, 7));
      if (passes(claim, *strategy, target.law.batches, target.epochs, sigma)) return noise_by(strategy, sigma, claim);
    }
  }
  return noise_by(strategy, least_noise(fallback, strategy));
}

std::span<const StrategyKind> searched_kinds() {
  static constexpr std::array kinds = {StrategyKind::identity, StrategyKind::bsr,         StrategyKind::bisr,
                                       StrategyKind::band_mf,  StrategyKind::band_inv_mf, StrategyKind::blt};
  return kinds;
}

namespace {

/// A matrix that is tried with a law.
struct Candidate {
  SeriesLaw law;
  std::shared_ptr<const Strategy> strategy;
  double mean_error, unamplified;
};

/// The share of the series that a step draws on average.
double share_of(const SeriesLaw& law) {
  return law.rate ? *law.rate / static_cast<double>(law.groups) : 1.0 / static_cast<double>(law.batches);
}

/// What is tried with a law, by its error without amplification.
std::vector<Candidate> candidates_of(const SeriesLaw& law, std::int64_t epochs, const WantedStrategy& sizes,
                                     bool independent) {
  std::vector<Candidate> out;
  const auto add = [&](const SeriesLaw& with, StrategyKind kind, std::int64_t bands) {
    auto wanted = sizes;
    wanted.kind = kind;
    wanted.bands = bands;
    auto strategy = std::make_shared<const Strategy>(planned_strategy(wanted, with.batches, epochs));
    const double mean_error = strategy->mean_error();
    const double unamplified = mean_error * squared_sensitivity(*strategy, with.batches, epochs);
    out.push_back({with, std::move(strategy), mean_error, unamplified});
  };
  if (independent || !searches_correlated_noise(law)) {
    add(law, StrategyKind::identity, 1);
  } else if (law.sampler == TopLevel::cyclic_poisson) {
    for (const auto& grouped : cyclic_laws(law)) {
      if (grouped.groups == 1) add(grouped, StrategyKind::identity, 1);
      else
        for (const auto kind : {StrategyKind::band_mf, StrategyKind::bsr}) add(grouped, kind, grouped.groups);
    }
  } else {
    for (const auto kind : searched_kinds()) add(law, kind, sizes.bands);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& one, const auto& other) { return one.unamplified < other.unamplified; });
  return out;
}

}  // namespace

PricedStrategy least_total_error(const NoiseTarget& target, const WantedStrategy& sizes, double tolerance) {
  return least_total_error({target.law}, target, sizes, /*independent=*/false, tolerance);
}

PricedStrategy least_total_error(const std::vector<SeriesLaw>& laws, const NoiseTarget& target,
                                 const WantedStrategy& sizes, bool independent, double tolerance) {
  PricedStrategy best;
  double least = std::numeric_limits<double>::infinity();  // best.total_error by its share
  std::exception_ptr why_none;
  for (const auto& of_laws : laws) {
    for (const auto& [law, strategy, mean_error, unamplified] :
         candidates_of(of_laws, target.epochs, sizes, independent)) {
      auto of_law = target;
      of_law.law = law;
      const double share = share_of(law);
      try {
        if (best.strategy) {
          const double most = std::min(share * std::sqrt(least / mean_error) / (1.0 + tolerance), 1e6);
          if (most < 0.01 || !certified(of_law, strategy, most)) continue;
        }
        const double sigma = least_noise(of_law, strategy, tolerance);
        const double total = sigma * sigma * mean_error;
        if (total / (share * share) < least) {
          best = {law, strategy, sigma, total};
          least = total / (share * share);
        }
      } catch (const PrivacyError&) {
        // A target out of reach for one kind may not be for another.
        if (!why_none) why_none = std::current_exception();
      }
    }
  }
  if (!best.strategy) std::rethrow_exception(why_none);
  return best;
}

}  // namespace tsdp::privacy
