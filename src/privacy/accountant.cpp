#include "tsdp/privacy/accountant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "composition.h"
#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::privacy {
namespace {

constexpr int coarsest_denominator = 4;  // step = deviation / 4 at refinement 0, finer by √2 each
constexpr double most_cells = 1 << 19;   // a side
constexpr int most_refinements = 8;      // of a bracket that does not close as the law of variances says

void check_delta(double delta) {
  // Truncated tails leave up to max_uses_ever · 4e-36 of infinite loss: a smaller delta could not be answered.
  if (!(delta >= 1e-25) || !(delta < 1.0))
    throw PrivacyError(cat("delta: found ", delta, "; a number from 1e-25 to below 1 is expected"));
}
void check_epsilon(double epsilon) {
  if (!(epsilon >= 0.0) || !std::isfinite(epsilon))
    throw PrivacyError(cat("epsilon: found ", epsilon, "; a finite number of at least 0 is expected"));
}
void check_uses(std::uint64_t uses) {
  if (uses > Accountant::max_uses_ever)
    throw PrivacyError(cat("steps: found ", uses, "; at most ", Accountant::max_uses_ever, " are accounted for"));
}
void check_precision(double precision) {
  if (!(precision >= 1e-7) || !(precision <= 0.5))
    throw PrivacyError(cat("precision: found ", precision, "; a relative width in [1e-7, 0.5] is expected"));
}

/// A root of a falling function by bisection with secant steps (Illinois): ends (low, high) with f(low) > 0 ≥ f(high),
/// high − low ≤ tolerance · high.
template <class Function>
std::pair<double, double> bracket_root(Function f, double low, double f_low, double high, double f_high, double tolerance) {
  int side = 0;
  for (int i = 0; i < 100 && high - low > tolerance * high; ++i) {
    double middle = (low * f_high - high * f_low) / (f_high - f_low);
    // Aim a little to the far side of the secant's root, so that both ends close in.
    const double least = 0.02 * (high - low);
    if (!(middle > low + least)) middle = low + std::max(least, 0.3 * tolerance * high);
    if (!(middle < high - least)) middle = high - std::max(least, 0.3 * tolerance * high);
    if (!(middle > low && middle < high)) middle = 0.5 * (low + high);
    const double value = f(middle);
    if (value > 0.0) {
      low = middle;
      f_low = value;
      if (side == 1) f_high *= 0.5;
      side = 1;
    } else {
      high = middle;
      f_high = value;
      if (side == -1) f_low *= 0.5;
      side = -1;
    }
  }
  return {low, high};
}

double log_or_floor(double value) { return std::log(std::max(value, 1e-320)); }

}  // namespace

struct Accountant::Grids {
  std::optional<LossDistribution> upper;
  std::optional<LossDistribution> lower;
};

Accountant::Accountant(DominatingPair pair) : pair_(std::move(pair)), scale_(loss_scale(pair_)) {}
Accountant::~Accountant() = default;
Accountant::Accountant(Accountant&&) noexcept = default;
Accountant& Accountant::operator=(Accountant&&) noexcept = default;

int Accountant::refinement_for(double precision) const {
  // Pessimistic minus optimistic variance is h²/4 a use, so the relative width of ε is about (h/s)²/8.
  return std::max(0, static_cast<int>(std::ceil(std::log2(1.0 / (64.0 * precision)))));
}

bool Accountant::can_refine(int refinement) const {
  return scale_.largest_loss / (scale_.deviation / coarsest_denominator * std::exp2(-0.5 * refinement)) <= most_cells;
}

Accountant::Grids& Accountant::grids(int refinement) {
  auto& slot = grids_[refinement];
  if (!slot) slot = std::make_unique<Grids>();
  return *slot;
}

double Accountant::step_of(int refinement) const {
  return std::max(scale_.deviation / coarsest_denominator * std::exp2(-0.5 * refinement),
                  scale_.largest_loss / most_cells);
}

const LossDistribution& Accountant::upper_side(int refinement) {
  auto& made = grids(refinement).upper;
  if (!made) made.emplace(discretise(pair_, step_of(refinement), Rounding::pessimistic));
  return *made;
}

const LossDistribution& Accountant::lower_side(int refinement) {
  auto& made = grids(refinement).lower;
  if (!made) made.emplace(discretise(pair_, step_of(refinement), Rounding::optimistic));
  return *made;
}

Interval Accountant::delta(double epsilon, std::uint64_t uses, double precision) {
  check_epsilon(epsilon);
  check_uses(uses);
  check_precision(precision);
  if (uses == 0) return {0.0, 0.0};
  Interval best{0.0, 1.0};
  double width = std::numeric_limits<double>::infinity();
  const int first = refinement_for(precision);
  for (int refinement = first;; refinement += 2) {
    const auto& up = upper_side(refinement);
    best.upper = std::min(best.upper, Composition(up, uses, best_tilt_for_epsilon(up, uses, epsilon)).delta(epsilon));
    const auto& low = lower_side(refinement);
    best.lower = std::max(best.lower, Composition(low, uses, best_tilt_for_epsilon(low, uses, epsilon)).delta(epsilon));
    const double before = std::exchange(width, (best.upper - best.lower) / best.upper);
    // A bracket that a finer grid does not narrow is held open by rounding: it is what it is.
    if (width <= precision || width > 0.8 * before || !can_refine(refinement + 2) ||
        refinement >= first + most_refinements)
      return best;
  }
}

double Accountant::least_certified_epsilon(double delta, std::uint64_t uses, int refinement, double tolerance) {
  const auto& grid = upper_side(refinement);
  const double log_delta = std::log(delta);
  double theta = best_tilt_for_delta(grid, uses, delta).theta;
  double best = std::numeric_limits<double>::infinity();
  // The tilt that Chernoff's bound likes at δ may be tuned for an ε far above the true one (few uses, heavy tail); the
  // charge for rounding then dominates, and tuning again at the ε just found removes it.
  for (int round = 0; round < 6; ++round) {
    const Composition composition(grid, uses, theta);
    const auto above = [&](double e) { return log_or_floor(composition.delta(e)) - log_delta; };
    double low = 0.0;
    double at_low = above(0.0);
    if (at_low <= 0.0) return 0.0;
    double high = std::isfinite(best) ? best : scale_.deviation * std::sqrt(static_cast<double>(uses));
    double at_high = above(high);
    while (at_high > 0.0) {
      low = high;
      at_low = at_high;
      high *= 1.25;
      if (high > 1e12) return best;  // even infinite loss has more mass than δ
      at_high = above(high);
    }
    for (double down = 0.8 * high; low < down; down *= 0.8) {
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
    const bool settled = composition.charge(found) < 0.01 * tolerance * delta || found > 0.999 * best;
    best = std::min(best, found);
    if (settled) break;
    theta = best_tilt_for_epsilon(grid, uses, best);
  }
  return best;
}

double Accountant::largest_refuted_epsilon(double delta, std::uint64_t uses, int refinement, double tolerance,
                                           double upper) {
  const auto& grid = lower_side(refinement);
  const Composition composition(grid, uses, best_tilt_for_epsilon(grid, uses, upper));
  const double log_delta = std::log(delta);
  const auto below = [&](double e) { return log_or_floor(composition.delta(e)) - log_delta; };
  // From the upper end downwards: the tilt is tuned for there, far below it the charge exceeds the value.
  double high = upper;
  double at_high = below(high);
  for (double shrink = 1e-5; shrink < 1.0; shrink *= 2.0) {
    const double e = upper * (1.0 - shrink);
    const double value = below(e);
    if (value > 0.0) return bracket_root(below, e, value, high, at_high, tolerance).first;
    high = e;
    at_high = value;
  }
  return 0.0;
}

Interval Accountant::epsilon(double delta, std::uint64_t uses, double precision) {
  check_delta(delta);
  check_uses(uses);
  check_precision(precision);
  if (uses == 0) return {0.0, 0.0};
  const double tolerance = 1e-2 * precision;
  Interval best{0.0, std::numeric_limits<double>::infinity()};
  double width = std::numeric_limits<double>::infinity();
  const int first = refinement_for(precision);
  for (int refinement = first;; refinement += 2) {
    best.upper = std::min(best.upper, least_certified_epsilon(delta, uses, refinement, tolerance));
    if (best.upper == 0.0) return {0.0, 0.0};
    if (std::isfinite(best.upper))
      best.lower = std::max(best.lower, largest_refuted_epsilon(delta, uses, refinement, tolerance, best.upper));
    const double before = std::exchange(width, (best.upper - best.lower) / best.upper);
    // A bracket that a finer grid does not narrow is held open by rounding: it is what it is.
    if (width <= precision || width > 0.8 * before || !can_refine(refinement + 2) ||
        refinement >= first + most_refinements)
      return best;
  }
}

std::uint64_t Accountant::max_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  check_epsilon(epsilon);
  check_delta(delta);
  check_precision(precision);
  limit = std::min(limit, max_uses_ever);
  if (limit == 0) return 0;
  const auto& grid = upper_side(refinement_for(precision));
  const double log_delta = std::log(delta);
  // log δ_k(ε) − log δ on the upper side; increasing in log k up to the rounding that is charged.
  const auto excess = [&](std::uint64_t k) {
    try {
      const double theta = best_tilt_for_epsilon(grid, k, epsilon);
      return log_or_floor(Composition(grid, k, theta).delta(epsilon)) - log_delta;
    } catch (const PrivacyError&) {
      return -log_delta;  // too large to be composed: not certified (as δ = 1)
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
  const double guess = std::clamp(std::pow(mu_low / scale_.deviation, 2.0), 1.0, static_cast<double>(limit));
  auto k = static_cast<std::uint64_t>(guess);
  double value = excess(k);
  // Invariants: `good` is certified (0 trivially), `bad` is not (limit + 1 if unknown).
  std::uint64_t good = 0;
  std::uint64_t bad = limit + 1;
  double at_good = 0.0;
  double at_bad = 0.0;
  bool know_good = false;
  bool know_bad = false;
  int rounds = 0;
  while (true) {
    if (value <= 0.0) {
      good = k;
      at_good = value;
      know_good = true;
    } else {
      bad = k;
      at_bad = value;
      know_bad = true;
    }
    if (good + 1 >= bad) return good;
    const double log_good = std::log(static_cast<double>(std::max<std::uint64_t>(good, 1)));
    const double log_bad = std::log(static_cast<double>(bad));
    double next = 0.0;
    ++rounds;
    if (know_good && know_bad && rounds % 6 != 0) {
      // Secant in log k, aimed slightly beyond the root on alternate sides so that the bracket closes to one.
      const double root = std::exp(log_good + (log_bad - log_good) * at_good / (at_good - at_bad));
      next = rounds % 2 == 0 ? std::floor(root) : std::floor(root) + 1.0;
    } else if (know_good && know_bad) {
      next = std::floor(0.5 * (static_cast<double>(good) + static_cast<double>(bad)));
    } else {
      // One side only: the slope of log δ in log k is about μ-dependent; step by factors that grow.
      const double factor = std::exp2(std::min(rounds, 6) * 0.25);
      next = know_good ? std::ceil(static_cast<double>(good) * factor) : std::floor(static_cast<double>(bad) / factor);
    }
    k = static_cast<std::uint64_t>(std::clamp(next, static_cast<double>(good + 1), static_cast<double>(bad - 1)));
    value = excess(k);
  }
}

double calibrate_noise(const std::function<bool(double)>& enough, double tolerance) {
  double low = 1e-2;
  double high = 1.0;
  while (!enough(high)) {
    low = high;
    high *= 2.0;
    if (high > 1e6) throw PrivacyError("noise multiplier: not even 1e6 keeps within the budget; ask for fewer steps");
  }
  if (low < high / 2.0 && low < 1.0) {
    while (low < high && enough(std::max(low, high / 2.0)) && high > 2e-2) high /= 2.0;
    low = std::max(low, high / 2.0);
  }
  while (high / low > 1.0 + tolerance) {
    const double middle = std::sqrt(low * high);
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace tsdp::privacy
