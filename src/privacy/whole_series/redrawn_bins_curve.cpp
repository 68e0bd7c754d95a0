#include "privacy/whole_series/redrawn_bins_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "allocation_renyi.h"
#include "epoch_bounds.h"
#include "lognormal_sum.h"
#include "privacy/accountant/composition.h"
#include "privacy/accountant/point_indices.h"
#include "privacy/accountant/profile_loss.h"
#include "privacy/accountant/root_finding.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

constexpr const char* by_composition =
    "composition of the exact pair of an epoch of balls in bins, both directions (Choquette-Choo et al. 2025, Lemma "
    "3.2; "
    "Zhu et al. 2022, Theorem 10)";
constexpr const char* by_divergences =
    "Rényi divergences of epochs of balls in bins, added up (Schuchardt and Kalinin 2026, Lemmas 3.2 and 3.4)";
constexpr const char* by_fixed_batches = "fixed batches, a Gaussian mechanism (joint convexity)";
constexpr const char* by_one_epoch = "balls in bins of one epoch (Choquette-Choo et al. 2025, Lemma 3.2)";
constexpr const char* by_sums = "the sum of an epoch's releases, composed over epochs";

/// Points per standard deviation of an epoch's loss. Cells of width h add kh²/6 to the variance of the sum: 0.07 %
/// here.
constexpr double points_per_deviation = 16.0;
/// From the 6th deviation on, cells widen with the loss.
constexpr double fine_deviations = 2.0;
constexpr std::size_t most_points = 4096;
constexpr std::int64_t many_orders = 128;
constexpr double most_work = 4e6;  // of a table of sums

/// δ(ε) of `uses` uses by the divergences of one, at whole orders from 2 on.
double by_orders(const std::vector<double>& divergences, double epsilon, double uses) {
  double least = 1.0;
  for (std::size_t order = 2; order < divergences.size(); ++order)
    least =
        std::min(least, delta_of_renyi(uses * (1.0 + 1e-15) * divergences[order], static_cast<double>(order), epsilon));
  return least;
}

}  // namespace

/// What is known of one epoch: the losses of both directions, from above and from below, and divergences of a removal.
///
/// With Y = S/b, G(α) = E[(α − Y)₊] and C = G′, its distribution function under Q. Y has a density, so the chord c_i of
/// G over [α_i, α_i (1 + η)] is C(t_i) for some t_i in between, and
///   P(Y ≤ t_i) = t_i c_i − G(t_i) ∈ [A_i, A_i + η α_i (c_{i+1} − c_{i−1})],   A_i = α_i c_i − G(α_i),
/// as that is sup_t (t c_i − G(t)), and C moves by no more than c_{i+1} − c_{i−1} between α_i and α_i (1 + η). So c and
/// A give the masses of the cells (t_i, t_{i+1}] under Q and P, and releasing the cell alone is post-processing.
struct RedrawnBinsCurve::OneEpoch {
  struct Point {
    std::int64_t index;
    long double alpha, value, error;  ///< G(α) and what it is off by at most
    long double chord, chord_error;
  };

  OneEpoch(std::int64_t bins, double noise_multiplier)
      : removal(renyi_remove_independent(bins, noise_multiplier, 1, many_orders)) {
    const auto b = static_cast<long double>(bins);
    const auto mu = 1.0L / static_cast<long double>(noise_multiplier);
    if (mu > 30.0L || mu < 1e-4L) return;
    // E_Q[(S/b)²] − 1 = (e^{μ²} − 1)/b.
    const double deviation = std::sqrt(std::log1p(static_cast<double>(std::expm1(mu * mu) / b)));
    const double step = std::exp2(std::floor(std::log2(deviation / points_per_deviation)));
    if (step < 1e-6) return;  // errors of G would hide what it says
    eta = std::min(0x1p-17L, 0.25L * static_cast<long double>(step));
    // Where one variable is as large as it is once in 1e20 draws, and the others are what they may be.
    constexpr double far = 9.3;
    const double largest = 8.0 * deviation + std::log1p(static_cast<double>(std::expm1(far * mu + 0.5L * mu * mu) / b));
    const auto indices = point_indices(step, fine_deviations * deviation, largest, most_points);
    std::vector<std::int64_t> all;
    const auto least = -static_cast<std::int64_t>(10.0 * deviation / step);  // sums have no heavy tail below
    for (auto at = indices.rbegin(); at != indices.rend(); ++at)
      if (*at > 0 && -*at >= least) all.push_back(-*at);
    all.insert(all.end(), indices.begin(), indices.end());
    // The larger its largest threshold, the longer a table takes: smaller ones serve most points.
    const auto stage = static_cast<std::int64_t>(2.0 * deviation / step);
    std::int64_t reached = all.front() - 1;
    std::vector<Point> points;
    std::unique_ptr<LognormalSum> sum;
    for (const auto index : all) {
      if (index > reached) {
        reached = index <= 0 ? stage : std::max(index, reached + std::max(stage, reached / 3));
        const auto end = static_cast<long double>(static_cast<double>(reached) * step) + 2.0L * eta;
        sum = std::make_unique<LognormalSum>(bins, mu, b * std::exp(1.000001L * end), most_work);
        if (!sum->made()) break;
      }
      add_point(points, *sum, index, b, mu, step);
    }
    if (points.size() < 8) return;
    make(points, indices, step);
  }

  void add_point(std::vector<Point>& points, const LognormalSum& sum, std::int64_t index, long double b, long double mu,
                 double step) const {
    constexpr auto unit = std::numeric_limits<long double>::epsilon();
    const auto alpha = std::exp(static_cast<long double>(static_cast<double>(index) * step));
    const auto at = sum.below(b * alpha);
    const auto next = sum.below(b * alpha * (1.0L + eta));
    // Thresholds and μ are off by 4 units of themselves. G grows by at most 1 per unit of α, and by at most
    // E X|z − μ| = E|z| < 1 per unit of μ, X one of the variables of which Y is the mean.
    const auto rounding = 8.0L * unit * (alpha + mu);
    const auto error = at.error / b + rounding;
    if (!std::isfinite(at.value) || !std::isfinite(next.value) || !std::isfinite(error + next.error)) return;
    points.push_back({index, alpha, at.value / b, error, (next.value - at.value) / b / (eta * alpha),
                      (error + next.error / b + rounding) / (eta * alpha) * 1.01L});
  }

  void make(const std::vector<Point>& points, const std::vector<std::int64_t>& indices, double step) {
    constexpr auto unit = std::numeric_limits<long double>::epsilon();
    std::vector<ProfilePoint> remove, add;
    for (const auto& p : points) {
      const auto upper = p.value + p.error;
      remove.push_back({p.index, upper + (1.0L - p.alpha)});
      add.push_back({-p.index, upper / p.alpha * (1.0L + 4.0L * unit)});
    }
    // Beyond tables, divergences bound the profile.
    for (const auto index : indices)
      if (index > points.back().index)
        remove.push_back({index, static_cast<long double>(by_orders(removal, static_cast<double>(index) * step, 1.0))});
    std::reverse(add.begin(), add.end());
    std::vector<LossCell> removed_cells, added_cells;
    for (std::size_t i = 1; i + 2 < points.size(); ++i) {
      const auto& p = points[i];
      const auto& q = points[i + 1];
      const auto q_mass = q.chord - p.chord;
      const auto q_off = p.chord_error + q.chord_error;
      const auto p_mass = q.alpha * q.chord - q.value - (p.alpha * p.chord - p.value);
      const auto p_off = p.alpha * p.chord_error + q.alpha * q.chord_error + p.error + q.error;
      // By how much P(Y ≤ t) may exceed A at either end.
      const auto beyond = [&](std::size_t j) {
        return eta * points[j].alpha *
               (points[j + 1].chord - points[j - 1].chord + points[j + 1].chord_error + points[j - 1].chord_error);
      };
      removed_cells.push_back({p_mass - p_off - beyond(i), q_mass + q_off});
      added_cells.push_back({q_mass - q_off, p_mass + p_off + beyond(i + 1)});
    }
    set(removed, dominating_loss(remove, step), removed_cells, step);
    set(added, dominating_loss(add, step), added_cells, step);
  }

  /// Null where no table of sums can be made, or errors hide all masses.
  struct Losses {
    std::unique_ptr<Composer> upper, lower;
  };
  static void set(Losses& losses, LossDistribution upper, const std::vector<LossCell>& cells, double step) {
    losses.upper = std::make_unique<Composer>(ProductLoss(std::move(upper)));
    if (std::any_of(cells.begin(), cells.end(), [](const auto& cell) { return cell.first > 0.0L; }))
      losses.lower = std::make_unique<Composer>(ProductLoss(dominated_loss(cells, step)));
  }
  [[nodiscard]] Losses& of(Direction direction) { return direction == Direction::remove ? removed : added; }

  Losses removed, added;
  long double eta = 0.0L;
  std::vector<double> removal;
};

RedrawnBinsCurve::RedrawnBinsCurve(std::int64_t bins, double noise_multiplier, std::optional<Direction> only)
    : bins_(bins),
      noise_multiplier_(noise_multiplier),
      only_(only),
      drawn_once_(bins, noise_multiplier, only),
      cap_(noise_multiplier),
      sums_(noise_multiplier, (1.0 - 1e-15) / std::sqrt(static_cast<double>(bins))) {}

RedrawnBinsCurve::~RedrawnBinsCurve() = default;

RedrawnBinsCurve::OneEpoch& RedrawnBinsCurve::one_epoch() {
  if (!one_) one_ = std::make_unique<OneEpoch>(bins_, noise_multiplier_);
  return *one_;
}

double RedrawnBinsCurve::composed(Composer* side, double epsilon, std::uint64_t uses, double none) {
  if (side == nullptr) return none;
  try {
    const auto theta = best_tilt_for_epsilon(side->loss(), uses, epsilon);
    // A little below the best tilt windows are narrower, and their charges smaller.
    const double near = side->compose(uses, 0.8 * theta).delta(epsilon);
    const double best = side->compose(uses, theta).delta(epsilon);
    return side->loss().rounding() == Rounding::pessimistic ? std::min(near, best) : std::max(near, best);
  } catch (const OutOfReach&) { return none; }
}

double RedrawnBinsCurve::by_renyi(Direction direction, double epsilon, std::uint64_t uses) {
  return direction == Direction::remove ? by_orders(one_epoch().removal, epsilon, static_cast<double>(uses))
                                        : delta_add_independent(bins_, noise_multiplier_, uses, epsilon);
}

RedrawnBinsCurve::End RedrawnBinsCurve::upper(Direction direction, double epsilon, std::uint64_t uses) {
  End out{cap_.delta(epsilon, uses).upper, by_fixed_batches};
  if (uses == 0 || bins_ == 1) return out;
  const auto take = [&](double delta, const char* by) {
    if (delta < out.delta) out = {delta, by};
  };
  take(by_renyi(direction, epsilon, uses), by_divergences);
  take(composed(one_epoch().of(direction).upper.get(), epsilon, uses, 1.0), by_composition);
  return out;
}

RedrawnBinsCurve::End RedrawnBinsCurve::upper(double epsilon, std::uint64_t uses) {
  if (only_) return upper(*only_, epsilon, uses);
  const auto removed = upper(Direction::remove, epsilon, uses);
  const auto added = upper(Direction::add, epsilon, uses);
  return removed.delta >= added.delta ? removed : added;
}

RedrawnBinsCurve::End RedrawnBinsCurve::lower(double epsilon, std::uint64_t uses) {
  End out{uses == 0 ? 0.0 : sums_.delta(epsilon, uses).lower, by_sums};
  if (uses == 0 || bins_ == 1) return out;  // of one bin the sum is all there is
  for (const auto direction : {Direction::remove, Direction::add}) {
    if (only_ && *only_ != direction) continue;
    const double found = composed(one_epoch().of(direction).lower.get(), epsilon, uses, 0.0);
    if (found > out.delta) out = {found, by_composition};
  }
  return out;
}

Interval RedrawnBinsCurve::find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) {
  if (uses == 0) return {0.0, 0.0};
  if (uses == 1) {  // bins of one epoch are drawn once
    why.upper = why.lower = by_one_epoch;
    return drawn_once_.delta(epsilon, 1, precision);
  }
  const auto above = upper(epsilon, uses);
  const auto below = lower(epsilon, uses);
  why.upper = above.by;
  why.lower = below.by;
  return in_order({below.delta, above.delta});
}

Interval RedrawnBinsCurve::find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) {
  if (uses == 1) {
    why.upper = why.lower = by_one_epoch;
    return drawn_once_.epsilon(delta, 1, precision);
  }
  const Interval cap = cap_.epsilon(delta, uses, precision);
  why.upper = why.lower = by_fixed_batches;
  if (uses == 0 || cap.upper == 0.0) return cap;
  const auto log_delta = std::log(delta);
  // The end of [0, most] at which `delta_at` falls to delta: not above it on the side that is asked for.
  const auto crossing = [&](double most, auto delta_at) {
    const auto over = [&](double e) { return std::log(std::max(delta_at(e), 1e-320)) - log_delta; };
    const double at_zero = over(0.0);
    const double at_most = over(most);
    if (at_zero <= 0.0) return std::pair{0.0, 0.0};
    if (at_most > 0.0) return std::pair{most, most};
    return bracket_root(over, 0.0, at_zero, most, at_most, 1e-2 * precision);
  };
  const auto up = [&](double e) { return upper(e, uses).delta; };
  const auto down = [&](double e) { return lower(e, uses).delta; };
  const double high = crossing(cap.upper, up).second;
  const double low = crossing(high, down).first;
  why.upper = upper(high, uses).by;
  why.lower = lower(low, uses).by;
  return in_order({low, high});
}

std::uint64_t RedrawnBinsCurve::search_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  limit = std::min(limit, max_uses_ever);
  // Fixed batches cost no less, so what they certify needs no check.
  return most_epochs(cap_.max_uses(epsilon, delta, limit, precision), limit,
                     [&](std::uint64_t uses) { return certifies(epsilon, delta, uses, precision); });
}

Certificate RedrawnBinsCurve::methods() const {
  return {cat("the least of: ", by_composition, "; ", by_one_epoch, "; ", by_divergences, "; ", by_fixed_batches),
          cat("the largest of: ", by_composition, "; ", by_one_epoch, "; ", by_sums),
          {}};
}

}  // namespace tsdp::privacy
