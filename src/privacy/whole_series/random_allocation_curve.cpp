#include "privacy/whole_series/random_allocation_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

#include "allocation_renyi.h"
#include "epoch_bounds.h"
#include "largest_coordinate.h"
#include "lognormal_sum.h"
#include "privacy/accountant/root_finding.h"
#include "rounded_sum.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/terms/terms.h"

namespace tsdp::privacy {

/// What is known for one k: sums of lognormal variables by the largest ε that they serve, 2^(range/2)/4, and the work
/// that they were allowed; and divergences of a removal by order. What one work has made no other is answered with, so
/// that no answer depends on what was asked before.
struct RandomAllocationCurve::Tables {
  std::uint64_t uses = 0;
  std::map<std::pair<int, double>, LognormalSum> by_range;  ///< and work
  std::map<std::tuple<Direction, int, double>, Ends> at_points;  ///< what tables of a work give at point_at(k)
  std::vector<double> removal;

  static constexpr int most = 12;    // ε = 16
  static constexpr int least = -16;  // ε = 1e-3
  static double end_of(int range) { return 0.25 * std::exp2(0.5 * range); }
  static constexpr int points = 32;  // per range: 1.1 % apart
  static double point_at(int k) { return 0.25 * std::exp2(0.5 / points * k); }
  static int last_point_to(double epsilon) {
    return static_cast<int>(std::floor(2.0 * points * std::log2(4.0 * epsilon)));
  }
  /// The range of ε; more than `most` where there is none.
  static int range_of(double epsilon) {
    return std::max(least, static_cast<int>(std::ceil(2.0 * std::log2(4.0 * std::max(epsilon, 1e-3)) - 1e-9)));
  }
  void begin(std::uint64_t for_uses) {
    if (uses == for_uses) return;
    uses = for_uses;
    by_range.clear();
    at_points.clear();
    removal.clear();
  }
  /// The table for ε; none where it would take more work.
  const LognormalSum* serving(std::int64_t bins, double noise_multiplier, double epsilon, double work) {
    const auto mu = std::sqrt(static_cast<long double>(uses)) / static_cast<long double>(noise_multiplier);
    const int range = range_of(epsilon);
    if (range > most) return nullptr;
    auto found = by_range.find({range, work});
    if (found == by_range.end()) {
      // A little beyond its end, as an ε next to it may round to either side.
      const auto threshold =
          static_cast<long double>(bins) * std::exp(1.000001L * static_cast<long double>(end_of(range)));
      found = by_range.emplace(std::pair{range, work}, LognormalSum(bins, mu, threshold, work)).first;
    }
    return found->second.made() ? &found->second : nullptr;
  }
};

namespace {
/// From this precision on, a grid suffices where a table would take a second.
constexpr double coarse = 5e-3;
/// And from this one on, closed forms suffice where a table would take more than a tenth of a second.
constexpr double quick = 1e-2;
/// From this ratio of its ends on, a table's error hides δ.
constexpr double hiding = 1.05;
bool hides_delta(const Interval& delta, double most = hiding) { return delta.upper > most * delta.lower; }

constexpr const char* by_exact_pair =
    "balls in bins with independent noise, exact pair (Choquette-Choo et al. 2025, Lemma 3.2)";
constexpr const char* by_smaller_epsilon =
    "balls in bins with independent noise at a smaller epsilon, where delta is no less (Choquette-Choo et al. 2025, "
    "Lemma 3.2)";
constexpr const char* by_divergences =
    "Rényi divergences of balls in bins (Schuchardt and Kalinin 2026, Lemmas 3.2 and 3.4)";
constexpr const char* by_fixed_batches = "fixed batches, a Gaussian mechanism (joint convexity)";
constexpr const char* by_events = "events of the largest coordinate";
}  // namespace

RandomAllocationCurve::RandomAllocationCurve(std::int64_t bins, double noise_multiplier, std::optional<Direction> only)
    : bins_(bins), noise_multiplier_(noise_multiplier), only_(only), cap_(noise_multiplier), tables_(new Tables) {
  if (bins < 1 || bins > largest_count)
    throw PrivacyError(cat("bins: found ", bins, "; expected an integer from 1 to ", largest_count));
}

RandomAllocationCurve::~RandomAllocationCurve() = default;

double RandomAllocationCurve::by_renyi(Direction direction, double epsilon, std::uint64_t uses) {
  if (direction == Direction::add) return delta_add_independent(bins_, noise_multiplier_, uses, epsilon);
  double least = 1.0;
  // Larger orders are made where the largest known one is the best, as (α − 1)(R_α − ε) is convex in α.
  constexpr std::int64_t few = 64;
  constexpr std::int64_t many = 512;
  auto& known = tables_->removal;
  while (true) {
    std::size_t best = 0;
    for (std::size_t a = 2; a < known.size(); ++a)
      if (const double delta = delta_of_renyi(known[a], static_cast<double>(a), epsilon); delta < least)
        least = delta, best = a;
    const bool at_end = known.empty() || best + 1 == known.size() || best == 0;
    if (!at_end || known.size() > static_cast<std::size_t>(many)) return least;
    known = renyi_remove_independent(bins_, noise_multiplier_, uses, known.empty() ? few : many);
  }
}

bool RandomAllocationCurve::by_table(Direction direction, double epsilon, std::uint64_t uses, double work,
                                     Ends& known) {
  const LognormalSum* table = tables_->serving(bins_, noise_multiplier_, epsilon, work);
  // An addition asks for a threshold below the mean, which smaller tables serve too.
  if (table == nullptr && direction == Direction::add) table = tables_->serving(bins_, noise_multiplier_, 0.0, work);
  if (table == nullptr) return false;
  const auto& sum = *table;
  const auto b = static_cast<long double>(bins_);
  const auto mu = std::sqrt(static_cast<long double>(uses)) / static_cast<long double>(noise_multiplier_);
  const auto gamma = std::exp(static_cast<long double>(epsilon));
  constexpr auto unit = std::numeric_limits<long double>::epsilon();
  long double value = 0.0L;
  long double error = 0.0L;
  // Thresholds and μ are off by 4 units of themselves. E[(K − S)₊] grows by at most one per unit of K; P moves by at
  // most 0.4 dμ in total variation, and a divergence by at most γ times that.
  if (direction == Direction::add) {
    const auto put = sum.below(b / gamma);
    value = put.value * gamma / b;
    error = put.error * gamma / b + unit * 8.0L * (1.0L + gamma * mu);
  } else {
    if (!(b * gamma <= sum.largest_threshold()))
      throw Error(ExitCode::failure, "a table that ends before its threshold");
    const auto put = sum.below(b * gamma);
    value = put.value / b + 1.0L - gamma;
    error = put.error / b + unit * 8.0L * gamma * (1.0L + mu);
  }
  if (!std::isfinite(value) || !std::isfinite(error)) return true;
  if (const double lower = static_cast<double>(value - error) * (1.0 - 1e-15); lower > known.delta.lower)
    known.delta.lower = lower, known.lower_by = by_exact_pair;
  if (const double upper = std::max(0.0, static_cast<double>(value + error) * (1.0 + 1e-15)); upper < known.delta.upper)
    known.delta.upper = upper, known.upper_by = by_exact_pair;
  return true;
}

RandomAllocationCurve::Reach RandomAllocationCurve::reach(double epsilon, std::uint64_t uses, double precision) const {
  const double mu = 1.0 / of_one_epoch(noise_multiplier_, uses);
  Reach out;
  out.tables = mu <= 30.0 && mu >= 1e-4;
  out.grid = out.tables && bins_ <= RoundedSum::most_bins && epsilon <= 600.0 && precision < quick;
  out.work =
      (out.grid && precision >= coarse) || precision >= quick ? LognormalSum::little_work : LognormalSum::most_work;
  return out;
}

RandomAllocationCurve::Ends RandomAllocationCurve::ends(Direction direction, double epsilon, std::uint64_t uses,
                                                        double precision) {
  Ends out{{0.0, cap_.delta(epsilon, uses).upper}, by_fixed_batches, ""};
  if (uses == 0) return out;
  tables_->begin(uses);
  const double sigma = of_one_epoch(noise_multiplier_, uses);
  const auto events_at = [&](double e) { return LargestCoordinate(bins_, 1.0, 0.0, sigma).best_event(e); };
  const auto take = [&](double upper, const char* why) {
    if (upper < out.delta.upper) out.delta.upper = upper, out.upper_by = why;
  };
  if (direction == Direction::remove) {
    out.delta.lower = events_at(epsilon);
    out.lower_by = by_events;
  }
  if (bins_ == 1) return out;  // (a Gaussian mechanism)
  take(by_renyi(direction, epsilon, uses), by_divergences);
  const auto how = reach(epsilon, uses, precision);
  // A table is asked first, as what it leaves open is asked elsewhere.
  auto with_table = out;
  const bool in_table = how.tables && by_table(direction, epsilon, uses, how.work, with_table);
  if (how.tables && !in_table && direction == Direction::add) {
    // Q(S < b/γ) − γ P(S < b/γ) is at most the probability that all of b variables are below b/γ.
    const auto b = static_cast<double>(bins_);
    const double at = (std::log(b) - epsilon) * sigma + 0.5 / sigma;
    take(std::exp(b * log_normal_tail(-at) * (1.0 - 1e-12)) * (1.0 + 1e-9), by_exact_pair);
  } else if (how.grid && direction == Direction::remove && (!in_table || hides_delta(with_table.delta))) {
    // Few bins far above their mean: the law on a grid.
    const auto found = RoundedSum::removal(bins_, 1.0 / sigma, epsilon);
    take(found.upper, by_exact_pair);
    if (found.lower > out.delta.lower) out.delta.lower = found.lower, out.lower_by = by_exact_pair;
  }
  out.without_table = out.delta.upper;
  out.without_table_by = out.upper_by;
  take(with_table.delta.upper, with_table.upper_by);
  if (with_table.delta.lower > out.delta.lower)
    out.delta.lower = with_table.delta.lower, out.lower_by = with_table.lower_by;
  out.delta = in_order(out.delta);
  return out;
}

void RandomAllocationCurve::refine(Direction direction, double epsilon, std::uint64_t uses, double precision,
                                   Ends& known) {
  if (uses == 0 || bins_ == 1 || !(known.delta.upper > (1.0 + 1e-7) * known.delta.lower) ||
      !(epsilon > Tables::point_at(Tables::points * Tables::least)))
    return;
  const auto how = reach(epsilon, uses, precision);
  if (!how.tables) return;
  // δ does not grow with ε, but a table's error does, from table to table by leaps, and tables end. So bounds at
  // smaller ε count too, at points of their own, so that no answer depends on earlier questions.
  const auto at_point = [&](int k) -> const Ends* {
    auto found = tables_->at_points.find({direction, k, how.work});
    if (found == tables_->at_points.end()) {
      Ends there{{0.0, 1.0}, "", ""};
      if (!by_table(direction, Tables::point_at(k), uses, how.work, there)) return nullptr;
      found = tables_->at_points.emplace(std::tuple{direction, k, how.work}, there).first;
    }
    return &found->second;
  };
  const auto take = [&](int k) {
    if (const auto* there = at_point(k);
        there != nullptr && Tables::point_at(k) <= epsilon && there->delta.upper < known.delta.upper)
      known.delta.upper = there->delta.upper, known.upper_by = by_smaller_epsilon;
  };
  const auto hides = [&](int k, double most) {  // whether errors hide δ at a point
    const auto* there = at_point(k);
    return there == nullptr || hides_delta(there->delta, most);
  };
  constexpr int first = Tables::points * Tables::least;
  take(std::clamp(Tables::points * (Tables::range_of(epsilon) - 1), first, Tables::points * Tables::most));
  const int end = Tables::last_point_to(epsilon) + 1;
  if (!hides(end, hiding)) return;
  // From here on tables count at points alone: between them the rounding of their values is larger than what δ falls.
  known.delta.upper = known.without_table, known.upper_by = known.without_table_by;
  // From where errors begin to hide δ, or tables end, and 64 points on, the sum of both is least.
  int seen = first - 1;
  int hidden = end;
  while (hidden - seen > 1) {
    const int middle = seen + (hidden - seen) / 2;
    (hides(middle, 2.0) ? hidden : seen) = middle;
  }
  for (int k = std::max(seen, first); k < std::min(end, hidden + 64); ++k) take(k);
}

Interval RandomAllocationCurve::delta(Direction direction, double epsilon, std::uint64_t uses, double precision) {
  auto out = ends(direction, epsilon, uses, precision);
  refine(direction, epsilon, uses, precision, out);
  return out.delta;
}

Interval RandomAllocationCurve::find_delta(double epsilon, std::uint64_t uses, double precision, Certificate& why) {
  if (uses == 0) return {0.0, 0.0};
  const auto first = only_.value_or(Direction::remove);
  auto worst = ends(first, epsilon, uses, precision);
  if (only_) {
    refine(first, epsilon, uses, precision, worst);
  } else {
    // The larger one counts, and the other is not evaluated twice for nothing.
    auto added = ends(Direction::add, epsilon, uses, precision);
    if (worst.delta.upper >= added.delta.upper) refine(first, epsilon, uses, precision, worst);
    if (added.delta.upper > worst.delta.upper) refine(Direction::add, epsilon, uses, precision, added);
    if (added.delta.lower > worst.delta.lower) worst.delta.lower = added.delta.lower, worst.lower_by = added.lower_by;
    if (added.delta.upper > worst.delta.upper) worst.delta.upper = added.delta.upper, worst.upper_by = added.upper_by;
  }
  why.upper = worst.upper_by;
  why.lower = worst.lower_by;
  return worst.delta;
}

Interval RandomAllocationCurve::find_epsilon(double delta, std::uint64_t uses, double precision, Certificate& why) {
  const Interval cap = cap_.epsilon(delta, uses, precision);
  why.upper = why.lower = by_fixed_batches;
  if (uses == 0 || cap.upper == 0.0) return cap;
  const auto out = searched(delta, uses, precision, cap.upper);
  // Finds what decides at either end.
  why.lower = this->delta(out.lower, uses, precision).why.lower;
  why.upper = this->delta(out.upper, uses, precision).why.upper;
  return out;
}

Interval RandomAllocationCurve::searched(double delta, std::uint64_t uses, double precision, double cap) {
  const auto log_delta = std::log(delta);
  const auto over = [&](double end) { return std::log(std::max(end, 1e-320)) - log_delta; };
  // Grids find roughly where it lies, and tables find it more closely.
  double looks = coarse;
  const auto above = [&](double e) { return over(this->delta(e, uses, looks).upper); };
  const auto below = [&](double e) { return over(this->delta(e, uses, looks).lower); };
  const double tolerance = 1e-3 * precision;
  double low = 0.0;
  double at_low = above(0.0);
  if (at_low <= 0.0) return {0.0, 0.0};
  // Upwards, so that no table serves more than it has to.
  double high = std::min(0.25, cap);
  double at_high = above(high);
  while (at_high > 0.0 && high < cap) {
    low = high;
    at_low = at_high;
    high = std::min(high * std::numbers::sqrt2, cap);
    at_high = above(high);
  }
  if (at_high > 0.0) return {0.0, cap};  // rounding alone can tell them apart
  if (precision < coarse) {
    const auto near = bracket_root(above, low, at_low, high, at_high, 1e-3);
    looks = precision;
    low = 0.98 * near.first;
    high = near.second;
    at_low = above(low);
    at_high = above(high);
    if (at_low <= 0.0) low = 0.0, at_low = above(0.0);
    if (at_high > 0.0) high = cap, at_high = above(high);
    if (at_high > 0.0) return {0.0, cap};
  }
  const auto [left, right] = bracket_root(above, low, at_low, high, at_high, tolerance);
  // Where both ends of δ are near each other, so are those of ε.
  if (below(left) > 0.0) return {left, right};
  const double at_zero = below(0.0);
  if (at_zero <= 0.0) return {0.0, right};
  return {bracket_root(below, 0.0, at_zero, left, below(left), tolerance).first, right};
}

bool RandomAllocationCurve::certifies(double epsilon, double delta, std::uint64_t uses, double precision) {
  if (cap_.certifies(epsilon, delta, uses, precision)) return true;
  if (only_ != Direction::add && uses > 0 &&
      LargestCoordinate(bins_, 1.0, 0.0, of_one_epoch(noise_multiplier_, uses)).best_event(epsilon) > delta)
    return false;
  // Divergences need no table.
  if (uses > 0 && bins_ > 1) {
    tables_->begin(uses);
    if ((only_ == Direction::add || by_renyi(Direction::remove, epsilon, uses) <= delta) &&
        (only_ == Direction::remove || by_renyi(Direction::add, epsilon, uses) <= delta))
      return true;
  }
  const auto first = this->delta(epsilon, uses, coarse);
  if (first.upper <= delta || first.lower > delta || precision >= coarse) return first.upper <= delta;
  return this->delta(epsilon, uses, precision).upper <= delta;
}

std::uint64_t RandomAllocationCurve::search_uses(double epsilon, double delta, std::uint64_t limit, double precision) {
  limit = std::min(limit, max_uses_ever);
  // Fixed batches cost no less, so what they certify needs no check.
  return most_epochs(cap_.max_uses(epsilon, delta, limit, precision), limit,
                     [&](std::uint64_t uses) { return certifies(epsilon, delta, uses); });
}

Certificate RandomAllocationCurve::methods() const {
  return {cat("the least of: ", by_exact_pair, "; ", by_divergences, "; ", by_fixed_batches),
          cat("the largest of: ", by_exact_pair, "; ", by_events),
          {}};
}

}  // namespace tsdp::privacy
