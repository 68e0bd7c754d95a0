#include "tsdp/privacy/accountant/accountant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "grid_policy.h"
#include "privacy/terms/checks.h"
#include "privacy/terms/out_of_reach.h"
#include "root_finding.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

// The best tilt may lie close to the phase transition where windows grow; a little below it they are several times
// narrower, for charges that are a few times larger but mostly still negligible. So that is tried first.
constexpr double modest_tilt = 0.8;

/// Whether the charge for transforms and window is negligible in a δ of about `value` that is wanted to a relative
/// `precision`.
bool negligible(double charge, double value, double precision) { return charge < 0.1 * precision * value; }

void check_precision(double precision) {
  if (!(precision >= 1e-7) || !(precision <= 0.5))
    throw PrivacyError(cat("precision: found ", precision, "; expected a relative width in [1e-7, 0.5]"));
}

double log_or_floor(double value) { return std::log(std::max(value, 1e-320)); }

}  // namespace

struct Accountant::State {
  std::vector<MechanismUse> mechanisms;
  UseScale scale;
  std::map<int, std::shared_ptr<Cut>> cuts;
};

Accountant::Accountant(DominatingPair pair, Direction direction)
    : Accountant(std::vector<MechanismUse>{{std::move(pair), 1, direction}}) {}

Accountant::Accountant(std::vector<MechanismUse> mechanisms) : state_(new State{std::move(mechanisms), {}, {}}) {
  if (state_->mechanisms.empty()) throw PrivacyError("a composition: found no mechanism; expected at least one");
  for (const auto& m : state_->mechanisms)
    if (m.uses < 1 || m.uses > max_uses_ever)
      throw PrivacyError(cat("steps: found ", m.uses, "; from 1 to ", max_uses_ever, " are accounted for"));
  state_->scale = scale_of(state_->mechanisms);
  check_uses(1);
}

Accountant::~Accountant() = default;
Accountant::Accountant(Accountant&&) noexcept = default;
Accountant& Accountant::operator=(Accountant&&) noexcept = default;

void Accountant::check_uses(std::uint64_t uses) const {
  if (static_cast<double>(uses) * state_->scale.draws > static_cast<double>(max_uses_ever))
    throw PrivacyError(cat("steps: found ", uses, "; at most ", max_uses_ever, " are accounted for"));
}

const std::vector<MechanismUse>& Accountant::mechanisms() const noexcept { return state_->mechanisms; }

Certificate Accountant::methods() const {
  const char* why = "composition of dominating pairs (Schuchardt et al. 2025, Props. D.10 and D.13)";
  return {why, why, {}};
}

bool Accountant::is_single(std::uint64_t uses) const {
  return uses == 1 && state_->mechanisms.size() == 1 && state_->mechanisms.front().uses == 1;
}

double Accountant::profiles(double epsilon) const {
  double sum = 0.0;
  for (const auto& m : state_->mechanisms) sum += static_cast<double>(m.uses) * m.pair.profile(m.direction, epsilon);
  return sum;
}

double Accountant::largest_loss() const {
  double sum = 0.0;
  for (const auto& m : state_->mechanisms)
    sum += m.direction == Direction::add ? static_cast<double>(m.uses) * m.pair.largest_add_loss()
                                         : std::numeric_limits<double>::infinity();
  return sum * (1.0 + 1e-12);
}

double Accountant::relative_decay(double epsilon) const {
  const double near = profiles(epsilon);
  const double far = profiles(1.01 * epsilon);
  return near > 0.0 && far > 0.0 && far < near ? 100.0 * std::log(near / far) : 100.0;
}

std::shared_ptr<Cut> Accountant::cut_for(double delta, std::uint64_t uses, double precision) {
  // What is cut off may add a hundredth of the wanted width to δ. Levels of e^4 let nearby queries share.
  constexpr double deepest = -84.0;
  const double wanted =
      std::log(std::max(0.01 * precision * delta / (static_cast<double>(uses) * state_->scale.draws), 1e-300));
  const int level = static_cast<int>(std::floor(std::max(wanted, deepest) / 4.0));
  constexpr std::size_t most_cuts = 4;
  if (state_->cuts.size() >= most_cuts && !state_->cuts.contains(level)) state_->cuts.clear();
  auto& slot = state_->cuts[level];
  if (!slot)
    slot = std::make_shared<Cut>(state_->mechanisms, state_->scale, 4 * level <= deepest ? 0.0 : std::exp(4.0 * level));
  return slot;
}

Interval Accountant::find_delta(double epsilon, std::uint64_t uses, double precision, Certificate&) {
  return bracket_delta(epsilon, uses, precision, true);
}

double Accountant::upper_delta(double epsilon, std::uint64_t uses, double precision) {
  return bracket_delta(epsilon, uses, precision, false).upper;
}

Interval Accountant::bracket_delta(double epsilon, std::uint64_t uses, double precision, bool with_lower) {
  check_epsilon(epsilon);
  check_uses(uses);
  check_precision(precision);
  if (uses == 0) return {0.0, 0.0};
  if (epsilon >= static_cast<double>(uses) * largest_loss()) return {0.0, 0.0};
  if (is_single(uses))
    return state_->mechanisms.front().pair.profile_bracket(state_->mechanisms.front().direction, epsilon);
  const double deviation = std::sqrt(static_cast<double>(uses) * state_->scale.draws) * state_->scale.deviation;
  const double jumps = epsilon > 0.0 ? static_cast<double>(uses) * profiles(epsilon) : 0.0;
  const double decay = jumps > 0.0 ? relative_decay(epsilon) : 1.0;
  Interval best{0.0, cut_for(0.0, uses, precision)->rough_delta(epsilon, uses)};
  double tilt = modest_tilt;
  for (Narrowing narrowing(precision);;) {
    const double before = best.upper;
    // Without a lower end nothing tells whether a coarser grid would do.
    const double fine = with_lower ? narrowing.precision() : std::min(narrowing.precision(), 0.6 * precision);
    try {
      const auto cut = cut_for(before, uses, fine);
      const double theta = cut->tilt_for_epsilon(uses, epsilon);
      // A relative change of δ is θ times a change of ε; near the middle of the loss its deviation counts instead.
      const double relevant = epsilon > 3.0 * deviation ? theta : std::max(theta, 1.0 / deviation);
      // Where single jumps make up δ the tail's cells have to be fine.
      const double share = jumps > 1e-3 * before ? 0.9 * std::sqrt(8.0 * fine) / decay : 1.0;
      const auto grid = cut->grid_for(uses, relevant, 1.0 / relevant, share, fine);
      while (true) {
        const auto above = grid->upper().compose(uses, tilt * theta);
        best.upper = std::min(best.upper, above.delta(epsilon));
        double charge = above.charge(epsilon);
        if (with_lower) {
          const auto below = grid->lower().compose(uses, tilt * theta);
          best.lower = std::max(best.lower, below.delta(epsilon));
          charge = std::max(charge, below.charge(epsilon));
        }
        if (tilt == 1.0 || negligible(charge, best.upper, precision)) break;
        tilt = 1.0;  // from now on
      }
    } catch (const OutOfReach&) {
      if (narrowing.goes_on_milder()) continue;
      return best;  // a finer grid is out of reach: the bracket is what it is
    }
    if (best.upper < 0.1 * before && narrowing.tries_again()) continue;  // the tail was cut for another δ
    if (!with_lower || !narrowing.goes_on((best.upper - best.lower) / best.upper)) return best;
  }
}

bool Accountant::certifies(double epsilon, double delta, std::uint64_t uses, double precision) {
  check_epsilon(epsilon);
  check_delta(delta);
  check_uses(uses);
  check_precision(precision);
  if (uses == 0) return true;
  if (cut_for(delta, uses, precision)->rough_delta(epsilon, uses) <= delta) return true;
  for (double p = 0.1; p > precision; p *= 0.1) {
    const auto bracket = this->delta(epsilon, uses, p);
    if (bracket.upper <= delta) return true;
    if (bracket.lower > delta) return false;
  }
  return this->delta(epsilon, uses, precision).upper <= delta;
}

double Accountant::least_certified_epsilon(double delta, std::uint64_t uses, const Cut& cut, Composer& side,
                                           double theta, double start, double tolerance) {
  const double log_delta = std::log(delta);
  double best = std::numeric_limits<double>::infinity();
  // The tilt that Chernoff's bound prefers at δ may be tuned for an ε far above the true one (few uses, heavy tail);
  // the charge for rounding then dominates, and tuning again at the ε just found removes it.
  for (int round = 0; round < 6; ++round) {
    const auto composition = side.compose(uses, theta);
    const auto above = [&](double e) { return log_or_floor(composition.delta(e)) - log_delta; };
    double low = 0.0;
    double at_low = above(0.0);
    if (at_low <= 0.0) return 0.0;
    double high = std::isfinite(best) ? best : start;
    double at_high = above(high);
    while (at_high > 0.0) {
      low = high;
      at_low = at_high;
      high *= 1.25;
      if (high > 1e12) return best;  // even infinite loss has more mass than δ
      at_high = above(high);
    }
    for (double down = 0.9 * high; low < down; down *= 0.8) {
      const double value = above(down);
      if (value > 0.0) {
        low = down;
        at_low = value;
      } else {
        high = down;
        at_high = value;
      }
    }
    const double found = bracket_root(above, low, at_low, high, at_high, tolerance).second;
    const bool settled =
        negligible(composition.charge(found), delta, 100.0 * tolerance) || (round > 0 && found > 0.999 * best);
    best = std::min(best, found);
    if (settled) break;
    theta = cut.tilt_for_epsilon(uses, best);
  }
  return best;
}

double Accountant::largest_refuted_epsilon(double delta, std::uint64_t uses, const Cut& cut, Composer& side,
                                           double tolerance, double upper) {
  const double log_delta = std::log(delta);
  const double theta = cut.tilt_for_epsilon(uses, upper);
  double best = 0.0;
  for (const double tilt : {modest_tilt * theta, theta}) {
    const auto composition = side.compose(uses, tilt);
    const auto below = [&](double e) { return log_or_floor(composition.delta(e)) - log_delta; };
    // From the upper end downwards: the tilt is tuned for that end; far below it the charge exceeds the value.
    double high = upper;
    double at_high = below(high);
    for (double shrink = 1e-6; shrink < 1.0; shrink *= 2.0) {
      const double e = upper * (1.0 - shrink);
      const double value = below(e);
      if (value > 0.0) {
        best = std::max(best, bracket_root(below, e, value, high, at_high, tolerance).first);
        break;
      }
      high = e;
      at_high = value;
    }
    if (best > 0.0 && negligible(composition.charge(best), delta, 100.0 * tolerance)) break;
  }
  return best;
}

Interval Accountant::epsilon_of_one(double delta, double tolerance) const {
  // The closed form falls in ε: its upper end certifies, its lower refutes.
  const auto least = [&](auto end) {
    const auto& only = state_->mechanisms.front();
    const auto above = [&](double e) {
      return log_or_floor(end(only.pair.profile_bracket(only.direction, e))) - std::log(delta);
    };
    double low = 0.0;
    double at_low = above(low);
    if (at_low <= 0.0) return std::pair{0.0, 0.0};
    double high = std::max(state_->scale.deviation, 1e-6);
    double at_high = above(high);
    while (at_high > 0.0) {
      low = high;
      at_low = at_high;
      high *= 1.5;
      at_high = above(high);
    }
    return bracket_root(above, low, at_low, high, at_high, tolerance);
  };
  return {least([](const Interval& i) { return i.lower; }).first,
          least([](const Interval& i) { return i.upper; }).second};
}

Interval Accountant::find_epsilon(double delta, std::uint64_t uses, double precision, Certificate&) {
  check_delta(delta);
  check_uses(uses);
  check_precision(precision);
  if (uses == 0) return {0.0, 0.0};
  if (is_single(uses)) return epsilon_of_one(delta, 1e-6 * precision);
  const auto cut = cut_for(delta, uses, precision);
  // A coarse bound tells near which ε the grids have to be good.
  double theta = best_tilt_for_delta(cut->scout().loss(), uses, delta);
  const double start =
      std::max(state_->scale.deviation * std::sqrt(static_cast<double>(uses) * state_->scale.draws), 1e-300);
  Interval best{0.0, std::numeric_limits<double>::infinity()};
  try {
    best.upper = least_certified_epsilon(delta, uses, *cut, cut->scout(), modest_tilt * theta, start, 0.02);
  } catch (const OutOfReach&) {
    // Out of the scout's reach.
  }
  for (Narrowing narrowing(precision); best.upper > 0.0;) {
    const double tolerance = 1e-2 * narrowing.precision();
    const double relevant = std::isfinite(best.upper) ? best.upper : start;
    try {
      if (std::isfinite(best.upper)) theta = cut->tilt_for_epsilon(uses, relevant);
      const bool jumps = static_cast<double>(uses) * profiles(relevant) > 1e-3 * delta;
      const double share = jumps ? 0.9 * std::sqrt(8.0 * narrowing.precision() / relative_decay(relevant)) : 1.0;
      const auto grid = cut->grid_for(uses, theta, relevant, share, narrowing.precision());
      best.upper = std::min(best.upper, least_certified_epsilon(delta, uses, *cut, grid->upper(), modest_tilt * theta,
                                                                relevant, tolerance));
      if (best.upper == 0.0) break;
      if (std::isfinite(best.upper))
        best.lower =
            std::max(best.lower, largest_refuted_epsilon(delta, uses, *cut, grid->lower(), tolerance, best.upper));
    } catch (const OutOfReach&) {
      if (narrowing.goes_on_milder()) continue;
      break;  // a finer grid is out of reach: the bracket is what it is
    }
    const double width = (best.upper - best.lower) / best.upper;
    if (!narrowing.goes_on(std::isfinite(best.upper) ? width : 1.0)) break;
  }
  // The upper end once more, as finely as max_uses and calibrated noise decide, so that what they certify is not stated
  // as more.
  if (precision <= default_precision && best.upper > 0.0 && std::isfinite(best.upper)) {
    try {
      const auto fine = cut_for(delta, uses, finest_precision);
      theta = fine->tilt_for_epsilon(uses, best.upper);
      const auto grid = fine->grid_for(uses, theta, best.upper, 1.0, finest_precision);
      best.upper = std::min(best.upper, least_certified_epsilon(delta, uses, *fine, grid->upper(), modest_tilt * theta,
                                                                best.upper, 1e-8));
    } catch (const OutOfReach&) {
      // What is known is stated.
    }
  }
  best.upper = std::min(best.upper, static_cast<double>(uses) * largest_loss());
  best.lower = std::min(best.lower, best.upper);
  if (!std::isfinite(best.upper))
    throw PrivacyError(cat("delta: found ", delta, "; after ", uses,
                           " uses no finite epsilon can be certified for it, only for a larger one"));
  return best;
}

std::uint64_t Accountant::search_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  check_epsilon(epsilon);
  check_delta(delta);
  check_precision(precision);
  limit = std::min(limit, static_cast<std::uint64_t>(static_cast<double>(max_uses_ever) / state_->scale.draws));
  if (limit == 0) return 0;
  const double log_delta = std::log(delta);
  // log δ_k(ε) − log δ on the upper side of a grid; increasing in log k up to the rounding that is charged.
  double tilt = modest_tilt;
  const auto excess = [&](const Cut& cut, Composer& composer, std::uint64_t k) {
    try {
      const double theta = cut.tilt_for_epsilon(k, epsilon);
      auto composition = composer.compose(k, tilt * theta);
      double value = composition.delta(epsilon);
      if (tilt != 1.0 && !negligible(composition.charge(epsilon), value, precision)) {
        tilt = 1.0;  // from now on
        value = std::min(value, composer.compose(k, theta).delta(epsilon));
      }
      return log_or_floor(value) - log_delta;
    } catch (const OutOfReach&) {
      return log_or_floor(this->delta(epsilon, k, 0.01).upper) - log_delta;  // as certified, if less closely
    }
  };
  // First guess: Gaussian composition at the same deviation, δ_G(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).
  double mu_low = 1e-9;
  double mu_high = 1e6;
  for (int i = 0; i < 100; ++i) {
    const double mu = std::sqrt(mu_low * mu_high);
    const double a = log_normal_tail(epsilon / mu - mu / 2);
    const double b = log_normal_tail(epsilon / mu + mu / 2);
    (-std::exp(a) * std::expm1(epsilon + b - a) > delta ? mu_high : mu_low) = mu;
  }
  const double guess = std::clamp(std::pow(mu_low / state_->scale.deviation, 2.0) / state_->scale.draws, 1.0,
                                  static_cast<double>(limit));
  // A scout finds k within some percent, and with it the cut and the grid on which the answer is certified.
  const auto first =
      cut_for(delta, static_cast<std::uint64_t>(std::min(10.0 * guess, static_cast<double>(limit))), precision);
  const auto rough = most_within([&](std::uint64_t k) { return excess(*first, first->scout(), k); },
                                 static_cast<std::uint64_t>(guess), limit, 0.02);
  const auto about = std::max<std::uint64_t>(rough, 1);
  for (double p = precision; p < 0.5; p *= 16.0) {
    try {
      const auto cut = cut_for(delta, about, p);
      const double theta = cut->tilt_for_epsilon(about, epsilon);
      const auto grid = cut->grid_for(about, theta, std::max(epsilon, state_->scale.deviation), 1.0, p);
      return std::max(rough,
                      most_within([&](std::uint64_t k) { return excess(*cut, grid->upper(), k); }, about, limit, 0.0));
    } catch (const OutOfReach&) {
      // Too fine a grid for this pair: a coarser one.
    }
  }
  return rough;
}

double calibrate_noise(const std::function<bool(double)>& suffices, double tolerance) {
  // Noise so small that its loss is beyond accounting is not enough.
  const auto enough = [&](double sigma) {
    try {
      return suffices(sigma);
    } catch (const OutOfReach&) { return false; }
  };
  constexpr double most = 1e6;
  double low = 1e-2;
  double high = 1.0;
  while (!enough(high)) {
    if (high == most) throw PrivacyError("noise multiplier: not even 1e6 keeps within the budget; ask for fewer steps");
    low = high;
    high = std::min(2.0 * high, most);
  }
  if (high == 1.0) {
    while (high > 2e-2 && enough(0.5 * high)) high *= 0.5;
    low = std::max(low, 0.5 * high);
  }
  while (high / low > 1.0 + tolerance) {
    const double middle = std::sqrt(low * high);
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace tsdp::privacy
