#include "tsdp/privacy/accountant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "composition.h"
#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::privacy {
namespace {

// Cells of a window beyond which no finer grid is tried: where few and where many uses leave high frequencies.
constexpr double finest_window = 1 << 21;
constexpr double finest_window_of_many = 1 << 27;

// The best tilt may lie close to the phase transition where windows grow; a little below it they are several times
// narrower, for charges that are a few times larger and mostly negligible still. So that is tried first.
constexpr double modest_tilt = 0.8;

/// Whether what is charged for transforms and window is of no account in a δ of about `value` that is wanted to a
/// relative precision.
bool negligible(double charge, double value, double precision) { return charge < 0.1 * precision * value; }

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

/// All that is made for one cut of the tail: jumps of the loss that at most `tail` of P's mass exceeds are kept.
/// Composed sums are the narrower the lower the cut; what is cut off is charged k times.
class Accountant::Cut {
 public:
  /// Both sides on one grid.
  struct Grid {
    Composer upper;
    Composer lower;
  };

  Cut(const DominatingPair& pair, const LossScale& scale, double tail)
      : pair_(pair),
        scale_(scale),
        tail_(tail),
        scout_(discretise(pair, scale.deviation / 6.0, scale.deviation, Rounding::pessimistic, tail, most_points), 1 << 17) {}

  /// A coarse upper side, on which tilts are chosen.
  [[nodiscard]] Composer& scout() { return scout_; }
  [[nodiscard]] double tilt_for_epsilon(std::uint64_t uses, double epsilon) const {
    return best_tilt_for_epsilon(scout_.distribution(), uses, epsilon);
  }
  /// An upper bound of δ(ε) from the scout: certified, coarse.
  [[nodiscard]] double rough_delta(double epsilon, std::uint64_t uses) {
    try {
      return scout_.compose(uses, tilt_for_epsilon(uses, epsilon)).delta(epsilon);
    } catch (const PrivacyError&) {
      return 1.0;  // out of the scout's reach
    }
  }
  /// The grid on which k uses, with tilt θ, give brackets of ε of about `precision` times `per_epsilon`; cells of the
  /// tail have at most the relative width `share`.
  ///
  /// Cells of width h add kh²/6 to the variance of the k-fold loss on the pessimistic side and take kh²/12 away on the
  /// other, which moves log δ by ½θ(1+θ) times as much and ε by ½(1+θ) times: the bracket of ε is k(1+θ)h²/8 wide.
  /// Cells of the tail have relative width η: one jump of size l, where the profile falls at rate κ, has its δ off by
  /// (κηl)²/8. Steps of 2^¼ let near queries share grids.
  std::shared_ptr<Grid> grid_for(std::uint64_t uses, double theta, double per_epsilon, double share, double precision) {
    const double k = static_cast<double>(uses);
    // The window's width on the scout's grid tells how fine a grid can still be composed.
    const auto window = window_of(scout_.distribution(), uses, theta, 1e15);
    const double finest =
        static_cast<double>(window.cells) * scout_.distribution().step /
        (high_frequencies_vanish(scout_.distribution(), uses) ? finest_window_of_many : finest_window);
    const double wanted = std::max(finest, 0.9 * std::sqrt(8.0 * precision * per_epsilon / (k * (1.0 + theta))));
    const double step_level = std::floor(4.0 * std::log2(std::min(wanted, 8.0 * scale_.largest_loss) / scale_.deviation));
    // (Where most losses are far larger than h their cells must not be wider than it.)
    const double share_level =
        std::floor(4.0 * std::log2(std::min({share, 2.5 * std::sqrt(precision), wanted / scale_.deviation})));
    constexpr std::size_t most_grids = 3;
    const std::pair key{static_cast<int>(step_level), static_cast<int>(share_level)};
    if (grids_.size() >= most_grids && !grids_.contains(key)) grids_.clear();  // memory, at the price of making them again
    auto& slot = grids_[key];
    if (!slot) {
      const double step = scale_.deviation * std::exp2(0.25 * step_level);
      const double fine = step / std::exp2(0.25 * share_level);
      slot.reset(new Grid{Composer(discretise(pair_, step, fine, Rounding::pessimistic, tail_, most_points)),
                          Composer(discretise(pair_, step, fine, Rounding::optimistic, tail_, most_points))});
    }
    return slot;  // shared: another question may drop it from here
  }

 private:
  static constexpr std::size_t most_points = std::size_t{1} << 16;

  const DominatingPair& pair_;
  const LossScale& scale_;
  double tail_;
  Composer scout_;
  std::map<std::pair<int, int>, std::shared_ptr<Grid>> grids_;
};

struct Accountant::State {
  DominatingPair pair;
  LossScale scale;
  std::map<int, std::shared_ptr<Cut>> cuts;
};

Accountant::Accountant(DominatingPair pair) : state_(new State{std::move(pair), {}, {}}) {
  state_->scale = loss_scale(state_->pair);
}
Accountant::~Accountant() = default;
Accountant::Accountant(Accountant&&) noexcept = default;
Accountant& Accountant::operator=(Accountant&&) noexcept = default;

const DominatingPair& Accountant::pair() const noexcept { return state_->pair; }

std::shared_ptr<Accountant::Cut> Accountant::cut_for(double delta, std::uint64_t uses, double precision) {
  // What is cut off may add a hundredth of the wanted width to δ. Levels of e^4 let near queries share.
  constexpr double deepest = -84.0;
  const double wanted = std::log(std::max(0.01 * precision * delta / static_cast<double>(uses), 1e-300));
  const int level = static_cast<int>(std::floor(std::max(wanted, deepest) / 4.0));
  constexpr std::size_t most_cuts = 4;
  if (state_->cuts.size() >= most_cuts && !state_->cuts.contains(level)) state_->cuts.clear();
  auto& slot = state_->cuts[level];
  if (!slot) slot = std::make_shared<Cut>(state_->pair, state_->scale, 4 * level <= deepest ? 0.0 : std::exp(4.0 * level));
  return slot;
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
    if (width <= wanted_ || ++rounds_ >= 10) return false;
    if (coarser_ || !(width <= 0.9 * before_) || precision_ < 1e-12) {
      // Held open by rounding, which costs less on coarser grids.
      if (!coarser_) precision_ = 5e-4;
      coarser_ = true;
      precision_ *= 16.0;
      return precision_ < 0.5;
    }
    before_ = width;
    reached_ = precision_;
    precision_ *= std::clamp(0.6 * wanted_ / width, 1.0 / 256.0, 0.5);
    return true;
  }
  /// Whether to make another bracket at the same precision.
  [[nodiscard]] bool tries_again() { return ++rounds_ < 8; }
  /// Whether to go on after a grid that was out of reach.
  [[nodiscard]] bool goes_on_milder() {
    if (++rounds_ >= 10) return false;
    if (coarser_) {
      precision_ *= 16.0;
      return precision_ < 0.5;
    }
    precision_ = reached_ > 0.0 ? std::sqrt(reached_ * precision_) : 16.0 * precision_;
    return true;
  }

 private:
  double wanted_;
  double precision_;
  double reached_ = 0.0;
  double before_ = std::numeric_limits<double>::infinity();
  int rounds_ = 0;
  bool coarser_ = false;
};

}  // namespace

Interval Accountant::delta(double epsilon, std::uint64_t uses, double precision) {
  check_epsilon(epsilon);
  check_uses(uses);
  check_precision(precision);
  if (uses == 0) return {0.0, 0.0};
  const auto& pair = state_->pair;
  if (uses == 1) return pair.profile_bracket(epsilon);
  const double deviation = std::sqrt(static_cast<double>(uses)) * state_->scale.deviation;
  const double jumps = epsilon > 0.0 ? static_cast<double>(uses) * pair.symmetrised_profile(epsilon) : 0.0;
  const double decay = jumps > 0.0 ? relative_decay(pair, epsilon) : 1.0;
  Interval best{0.0, cut_for(0.0, uses, precision)->rough_delta(epsilon, uses)};
  double tilt = modest_tilt;
  for (Narrowing narrowing(precision);;) {
    const double before = best.upper;
    try {
      const auto cut = cut_for(before, uses, narrowing.precision());
      const double theta = cut->tilt_for_epsilon(uses, epsilon);
      // A relative change of δ is θ times a change of ε; near the middle of the loss its deviation counts instead.
      const double relevant = epsilon > 3.0 * deviation ? theta : std::max(theta, 1.0 / deviation);
      // Where single jumps make up δ the tail's cells have to be fine.
      const double share = jumps > 1e-3 * before
                               ? 0.9 * std::sqrt(8.0 * narrowing.precision()) / decay
                               : 1.0;
      const auto grid = cut->grid_for(uses, relevant, 1.0 / relevant, share, narrowing.precision());
      while (true) {
        const auto above = grid->upper.compose(uses, tilt * theta);
        const auto below = grid->lower.compose(uses, tilt * theta);
        best.upper = std::min(best.upper, above.delta(epsilon));
        best.lower = std::max(best.lower, below.delta(epsilon));
        if (tilt == 1.0 || negligible(std::max(above.charge(epsilon), below.charge(epsilon)), best.upper, precision)) break;
        tilt = 1.0;  // from now on
      }
    } catch (const PrivacyError&) {
      if (narrowing.goes_on_milder()) continue;
      return best;  // a finer grid is out of reach: the bracket is what it is
    }
    if (best.upper < 0.1 * before && narrowing.tries_again()) continue;  // the tail was cut for another δ
    if (!narrowing.goes_on((best.upper - best.lower) / best.upper)) return best;
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
    const bool settled = negligible(composition.charge(found), delta, 100.0 * tolerance) || (round > 0 && found > 0.999 * best);
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
    // From the upper end downwards: the tilt is tuned for there, far below it the charge exceeds the value.
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
    const auto above = [&](double e) { return log_or_floor(end(state_->pair.profile_bracket(e))) - std::log(delta); };
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
  return {least([](const Interval& i) { return i.lower; }).first, least([](const Interval& i) { return i.upper; }).second};
}

Interval Accountant::epsilon(double delta, std::uint64_t uses, double precision) {
  check_delta(delta);
  check_uses(uses);
  check_precision(precision);
  if (uses == 0) return {0.0, 0.0};
  if (uses == 1) return epsilon_of_one(delta, 1e-2 * precision);
  const auto cut = cut_for(delta, uses, precision);
  // A coarse bound tells near which ε the grids have to be good.
  double theta = best_tilt_for_delta(cut->scout().distribution(), uses, delta);
  const double start = std::max(state_->scale.deviation * std::sqrt(static_cast<double>(uses)), 1e-300);
  Interval best{0.0, std::numeric_limits<double>::infinity()};
  try {
    best.upper = least_certified_epsilon(delta, uses, *cut, cut->scout(), modest_tilt * theta, start, 0.02);
  } catch (const PrivacyError&) {
    // Out of the scout's reach.
  }
  for (Narrowing narrowing(precision); best.upper > 0.0;) {
    const double tolerance = 1e-2 * narrowing.precision();
    const double relevant = std::isfinite(best.upper) ? best.upper : start;
    try {
      if (std::isfinite(best.upper)) theta = cut->tilt_for_epsilon(uses, relevant);
      const bool jumps = static_cast<double>(uses) * state_->pair.symmetrised_profile(relevant) > 1e-3 * delta;
      const double share =
          jumps ? 0.9 * std::sqrt(8.0 * narrowing.precision() / relative_decay(state_->pair, relevant)) : 1.0;
      const auto grid = cut->grid_for(uses, theta, relevant, share, narrowing.precision());
      best.upper = std::min(best.upper, least_certified_epsilon(delta, uses, *cut, grid->upper, modest_tilt * theta, relevant,
                                                                tolerance));
      if (best.upper == 0.0) break;
      if (std::isfinite(best.upper))
        best.lower = std::max(best.lower, largest_refuted_epsilon(delta, uses, *cut, grid->lower, tolerance, best.upper));
    } catch (const PrivacyError&) {
      if (narrowing.goes_on_milder()) continue;
      break;  // a finer grid is out of reach: the bracket is what it is
    }
    const double width = (best.upper - best.lower) / best.upper;
    if (!narrowing.goes_on(std::isfinite(best.upper) ? width : 1.0)) break;
  }
  if (!std::isfinite(best.upper))
    throw PrivacyError(cat("delta: found ", delta, "; after ", uses,
                           " uses no finite epsilon can be certified for it, only for a larger one"));
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
    } catch (const PrivacyError&) {
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
  const double guess = std::clamp(std::pow(mu_low / state_->scale.deviation, 2.0), 1.0, static_cast<double>(limit));
  // A scout tells k within some percent, and with it the cut and the grid on which the answer is certified.
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
      return std::max(rough, most_within([&](std::uint64_t k) { return excess(*cut, grid->upper, k); }, about, limit, 0.0));
    } catch (const PrivacyError&) {
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
    } catch (const PrivacyError&) {
      return false;
    }
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
