#include "tsdp/privacy/accountant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "composition.h"
#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::privacy {
namespace {


// Cells of a window beyond which no finer grid is tried: where few and where many uses leave high frequencies.
constexpr double finest_window = 1 << 22;
constexpr double finest_window_of_many = 1 << 27;

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

/// The most k ≤ limit with excess(k) ≤ 0, for an increasing function (0 counts as within); with slack > 0 only within
/// that share.
template <class Excess>
std::uint64_t most_within(Excess excess, std::uint64_t k, std::uint64_t limit, double slack) {
  double value = excess(k);
  // Invariants: `good` is within (0 trivially), `bad` is not (limit + 1 if unknown).
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
    if (good + 1 >= bad || (know_good && static_cast<double>(bad - good) <= slack * static_cast<double>(good))) return good;
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

double log_or_floor(double value) { return std::log(std::max(value, 1e-320)); }

}  // namespace

struct Accountant::Grid {
  Grid(const DominatingPair& pair, double step, double fine)
      : upper(discretise(pair, step, fine, Rounding::pessimistic, most_points)),
        lower(discretise(pair, step, fine, Rounding::optimistic, most_points)) {}
  static constexpr std::size_t most_points = std::size_t{1} << 16;
  Composer upper;
  Composer lower;
};

Accountant::Accountant(DominatingPair pair)
    : pair_(std::move(pair)),
      scale_(loss_scale(pair_)),
      scout_(std::make_unique<Composer>(
          discretise(pair_, scale_.deviation / 6.0, scale_.deviation, Rounding::pessimistic))) {}
Accountant::~Accountant() = default;
Accountant::Accountant(Accountant&&) noexcept = default;
Accountant& Accountant::operator=(Accountant&&) noexcept = default;

// Cells of width h add kh²/6 to the variance of the k-fold loss on the pessimistic side and take kh²/12 away on the other,
// which moves log δ by ½θ(1+θ) times as much and ε by ½(1+θ) times: the bracket of ε is k(1+θ)h²/8 wide.
// Cells of the tail have relative width η: one jump of size l, where the profile falls at rate κ, has its δ off by
// (κηl)²/8. Steps of 2^¼ let near queries share grids.
Accountant::Grid& Accountant::grid_for(std::uint64_t uses, double theta, double per_epsilon, double share,
                                       double precision) {
  const double k = static_cast<double>(uses);
  // The window's width on the scout's grid tells how fine a grid can still be composed.
  const auto window = window_of(scout_->distribution(), uses, theta, 1e15);
  const bool many = k * std::log(0.5 + 0.5 * scout_->distribution().at_zero) < -120.0;
  const double finest = static_cast<double>(window.cells) * scout_->distribution().step /
                        (many ? finest_window_of_many : finest_window);
  const double wanted = std::max(finest, 0.9 * std::sqrt(8.0 * precision * per_epsilon / (k * (1.0 + theta))));
  const double step_level = std::floor(4.0 * std::log2(std::min(wanted, 8.0 * scale_.largest_loss) / scale_.deviation));
  const double share_level = std::floor(4.0 * std::log2(std::min(share, 2.5 * std::sqrt(precision))));
  auto& slot = grids_[{static_cast<int>(step_level), static_cast<int>(share_level)}];
  if (!slot) {
    const double step = scale_.deviation * std::exp2(0.25 * step_level);
    slot = std::make_unique<Grid>(pair_, step, step / std::exp2(0.25 * share_level));
  }
  return *slot;
}

namespace {

/// Decay rate −d log H/dε of one use's profile at ε, times ε.
double relative_decay(const DominatingPair& pair, double epsilon) {
  const double near = pair.symmetrised_profile(epsilon);
  const double far = pair.symmetrised_profile(1.01 * epsilon);
  return near > 0.0 && far > 0.0 && far < near ? 100.0 * std::log(near / far) : 100.0;
}

/// Chooses precisions of grids until a bracket is as narrow as wanted: widths go with the precision asked of the grid, so
/// a first bracket, cheap and never far off, tells the next grid; one that a finer grid no longer narrows is held open
/// by rounding.
class Narrowing {
 public:
  explicit Narrowing(double wanted) : wanted_(0.6 * wanted), precision_(std::max(wanted_, 5e-4)) {}
  [[nodiscard]] double precision() const { return precision_; }
  /// Whether to go on after a bracket of this relative width.
  [[nodiscard]] bool goes_on(double width) {
    if (width <= wanted_ || ++rounds_ == 6 || width > 0.9 * before_ || precision_ < 1e-12) return false;
    before_ = width;
    reached_ = precision_;
    precision_ *= std::clamp(0.6 * wanted_ / width, 1.0 / 256.0, 0.5);
    return true;
  }
  /// Whether to go on after a grid that was out of reach.
  [[nodiscard]] bool goes_on_milder() {
    if (++rounds_ >= 6) return false;
    precision_ = reached_ > 0.0 ? std::sqrt(reached_ * precision_) : 16.0 * precision_;
    return true;
  }

 private:
  double wanted_;
  double precision_;
  double reached_ = 0.0;
  double before_ = std::numeric_limits<double>::infinity();
  int rounds_ = 0;
};

}  // namespace

Interval Accountant::delta(double epsilon, std::uint64_t uses, double precision) {
  check_epsilon(epsilon);
  check_uses(uses);
  check_precision(precision);
  if (uses == 0) return {0.0, 0.0};
  const double theta = best_tilt_for_epsilon(scout_->distribution(), uses, epsilon);
  // A relative change of δ is θ times a change of ε; near the middle of the loss its deviation counts instead.
  const double deviation = std::sqrt(static_cast<double>(uses)) * scale_.deviation;
  const double relevant = epsilon > 3.0 * deviation ? theta : std::max(theta, 1.0 / deviation);
  Interval best{0.0, scout_->compose(uses, theta).delta(epsilon)};
  // Where single jumps make up δ the tail's cells have to be fine.
  const double jumps = epsilon > 0.0 ? static_cast<double>(uses) * pair_.symmetrised_profile(epsilon) : 0.0;
  const double decay = jumps > 1e-3 * best.upper ? relative_decay(pair_, epsilon) : 0.0;
  for (Narrowing narrowing(precision);;) {
    try {
      const double share = decay > 0.0 ? 0.9 * std::sqrt(8.0 * narrowing.precision()) / decay : 1.0;
      auto& grid = grid_for(uses, relevant, 1.0 / relevant, share, narrowing.precision());
      best.upper = std::min(best.upper, grid.upper.compose(uses, theta).delta(epsilon));
      best.lower = std::max(best.lower, grid.lower.compose(uses, theta).delta(epsilon));
    } catch (const PrivacyError&) {
      if (narrowing.goes_on_milder()) continue;
      return best;  // a finer grid is out of reach: the bracket is what it is
    }
    if (!narrowing.goes_on((best.upper - best.lower) / best.upper)) return best;
  }
}

double Accountant::least_certified_epsilon(double delta, std::uint64_t uses, Composer& side, double theta, double start,
                                           double tolerance) {
  const double log_delta = std::log(delta);
  double best = std::numeric_limits<double>::infinity();
  // The tilt that Chernoff's bound likes at δ may be tuned for an ε far above the true one (few uses, heavy tail); the
  // charge for rounding then dominates, and tuning again at the ε just found removes it.
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
    const bool settled = composition.charge(found) < 0.01 * tolerance * delta || found > 0.999 * best;
    best = std::min(best, found);
    if (settled) break;
    theta = best_tilt_for_epsilon(scout_->distribution(), uses, best);
  }
  return best;
}

double Accountant::largest_refuted_epsilon(double delta, std::uint64_t uses, Composer& side, double tolerance,
                                           double upper) {
  const auto composition = side.compose(uses, best_tilt_for_epsilon(scout_->distribution(), uses, upper));
  const double log_delta = std::log(delta);
  const auto below = [&](double e) { return log_or_floor(composition.delta(e)) - log_delta; };
  // From the upper end downwards: the tilt is tuned for there, far below it the charge exceeds the value.
  double high = upper;
  double at_high = below(high);
  for (double shrink = 1e-6; shrink < 1.0; shrink *= 2.0) {
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
  // A coarse bound tells near which ε the grids have to be good.
  double theta = best_tilt_for_delta(scout_->distribution(), uses, delta);
  const double start = std::max(scale_.deviation * std::sqrt(static_cast<double>(uses)), 1e-300);
  Interval best{0.0, least_certified_epsilon(delta, uses, *scout_, theta, start, 0.02)};
  for (Narrowing narrowing(precision); best.upper > 0.0;) {
    const double tolerance = 1e-2 * narrowing.precision();
    const double relevant = std::isfinite(best.upper) ? best.upper : start;
    try {
      if (std::isfinite(best.upper)) theta = best_tilt_for_epsilon(scout_->distribution(), uses, relevant);
      const bool jumps = static_cast<double>(uses) * pair_.symmetrised_profile(relevant) > 1e-3 * delta;
      const double share =
          jumps ? 0.9 * std::sqrt(8.0 * narrowing.precision() / relative_decay(pair_, relevant)) : 1.0;
      auto& grid = grid_for(uses, theta, relevant, share, narrowing.precision());
      best.upper = std::min(best.upper, least_certified_epsilon(delta, uses, grid.upper, theta, relevant, tolerance));
      if (best.upper == 0.0) break;
      if (std::isfinite(best.upper))
        best.lower = std::max(best.lower, largest_refuted_epsilon(delta, uses, grid.lower, tolerance, best.upper));
    } catch (const PrivacyError&) {
      if (narrowing.goes_on_milder()) continue;
      break;  // a finer grid is out of reach: the bracket is what it is
    }
    const double width = (best.upper - best.lower) / best.upper;
    if (!narrowing.goes_on(std::isfinite(best.upper) ? width : 1.0)) break;
  }
  return best;
}

std::uint64_t Accountant::max_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  check_epsilon(epsilon);
  check_delta(delta);
  check_precision(precision);
  limit = std::min(limit, max_uses_ever);
  if (limit == 0) return 0;
  const double log_delta = std::log(delta);
  // log δ_k(ε) − log δ on the upper side of a grid; increasing in log k up to the rounding that is charged.
  const auto excess = [&](Composer& composer, std::uint64_t k) {
    try {
      const double theta = best_tilt_for_epsilon(scout_->distribution(), k, epsilon);
      return log_or_floor(composer.compose(k, theta).delta(epsilon)) - log_delta;
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
  // The scout tells k within some percent, and with it the grid on which the answer is certified.
  const auto rough = most_within([&](std::uint64_t k) { return excess(*scout_, k); }, static_cast<std::uint64_t>(guess),
                                 limit, 0.02);
  const auto about = std::max<std::uint64_t>(rough, 1);
  const double theta = best_tilt_for_epsilon(scout_->distribution(), about, epsilon);
  auto& grid = grid_for(about, theta, std::max(epsilon, scale_.deviation), 1.0, precision);
  return most_within([&](std::uint64_t k) { return excess(grid.upper, k); }, about, limit, 0.0);
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
