#include "privacy/accountant/loss_distribution.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "gauss_rule.h"
#include "half_lines.h"
#include "loss_cells.h"
#include "point_indices.h"
#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

const GaussRule<4> rule4;
const auto& nodes4 = rule4.nodes;
const auto& weights4 = rule4.weights;

// P-tail beyond this many σ right of the largest mean: 4e-36, and it is charged as infinite loss.
constexpr double reach = 12.5;

// Losses within one cell stay so close that e^{loss} cannot overflow.
constexpr double widest_cell = 64.0;

// Panels times components beyond which a pair is refused (seconds of work; such losses leave no budget anyone states).
constexpr double most_work = 4e6;

// Components of larger means of at most this total weight count as infinite loss.
constexpr double negligible = 1e-45;

/// Mass of loss exactly 0: 1 − ρ_out (P(x > x₀) + Q(x > x₀)), to absolute 4 units.
double mass_at_zero(const DominatingPair& pair, double zero) {
  return 1.0 - pair.use_probability() * (std::exp(pair.log_tail_p(zero)) + std::exp(pair.log_tail_q(zero)));
}

/// An x beyond which the heavier measure, times the probability of use, has mass of at most `tail`; at most `reach` σ
/// past the largest mean. `zero`: where the loss is 0.
template <class Side>
double end_of(const Side& pair, double zero, double log_tail) {
  double high = pair.largest_mean() + reach * pair.sigma();
  if (log_tail == -infinity) return high;
  double low = zero + 0.1 * pair.sigma();
  if (!(pair.log_tail_p(low) > log_tail)) return low;
  while (high - low > 0.05 * pair.sigma()) {
    const double middle = 0.5 * (low + high);
    (pair.log_tail_p(middle) > log_tail ? low : high) = middle;
  }
  return high;
}

/// Symmetrised: ρ_out times one side and its mirror image, and the mass that is left at 0.
void fill_symmetrised(LossDistribution& out, const DominatingPair& pair, const std::vector<std::int64_t>& index,
                      double end) {
  const Above above(pair);
  const double rho = pair.use_probability();
  const double zero = pair.inverse_loss(0.0);
  const double at_zero = mass_at_zero(pair, zero);
  const double zero_error = (8.0 + static_cast<double>(pair.components().size())) * roundoff;
  const auto put = [&](const SideMasses& side) {
    out.points.reserve(index.size());
    for (std::size_t i = 1; i < index.size(); ++i)
      out.points.push_back({index[i], rho * side.heavy[i], rho * side.light[i]});
  };
  if (out.rounding == Rounding::pessimistic) {
    // Tails: P beyond the grid becomes infinite loss; Q beyond (losses below the grid) is raised to its end.
    const auto side = spread(above, index, out.step, zero, end);
    put(side);
    out.at_zero = std::max(0.0, at_zero) + zero_error + rho * (side.heavy[0] + side.light[0]);
    out.points.back().minus += rho * side.light_beyond;
    out.infinite_mass += rho * side.heavy_beyond;
    return;
  }
  // The cell around 0 is symmetric, so its loss is exactly 0 wherever it ends.
  const auto last = index.size() - 1;
  const double half_cell = 0.5 * static_cast<double>(index[last] - index[last - 1]) * out.step;
  const double outer = pair.inverse_loss(static_cast<double>(index[last]) * out.step + half_cell, end);
  const auto side = merge(above, index, out.step, 0.0, zero, outer, Unfitting::draws_in);
  put(side.masses);
  const auto centre = integrate(above, zero, side.border, 0.0);
  out.at_zero = std::max(0.0, at_zero - zero_error) + rho * (2.0 * centre.q + centre.excess);
  out.loss_error += side.worst;
}

/// An optimistic distribution on a grid that is moved.
struct Moved {
  LossDistribution distribution;
  double off;  ///< loss of the middle less the offset, in direction `remove`
  double lost;  ///< by how much rounding the middle down lowers the mean loss, and what merging costs if it is wide
};

/// Some outputs beside the loss 0: those above it, and those below.
struct Outputs {
  CellMasses above, below;  // base 0
  [[nodiscard]] double p() const { return above.q + above.excess + below.q; }
  [[nodiscard]] double q() const { return above.q + below.q + below.excess; }
  /// Their merged loss in direction `remove`.
  [[nodiscard]] double loss() const { return std::log1p((above.excess - below.excess) / q()); }
};

/// What one direction is made of: both half lines, and the points and the end of each.
struct BothSides {
  Above above;
  Below below;
  double zero;  ///< where the loss is 0, seen from above
  const std::vector<std::int64_t>& index_above;
  const std::vector<std::int64_t>& index_below;
  double end_above, end_below;
  bool remove;  ///< the direction; else add
};

/// Puts masses at the points, unrounded: those under the first measure of the direction, heavier where losses are
/// positive (`up`) and lighter where they are negative (`down`).
void put_points(LossDistribution& into, const BothSides& sides, const SideMasses& up, const SideMasses& down) {
  // One rule of distances makes both lists: the shorter is the beginning of the longer.
  const auto& longest = sides.index_above.size() > sides.index_below.size() ? sides.index_above : sides.index_below;
  const auto at = [](const std::vector<double>& masses, std::size_t i) { return i < masses.size() ? masses[i] : 0.0; };
  into.points.reserve(longest.size());
  for (std::size_t i = 1; i < longest.size(); ++i)
    into.points.push_back({longest[i], at(up.heavy, i), at(down.light, i)});
}

/// One direction from above: the cells of both sides, spread to their ends.
void fill_pessimistic(LossDistribution& out, const BothSides& sides) {
  const auto high = spread(sides.above, sides.index_above, out.step, sides.zero, sides.end_above);
  const auto low = spread(sides.below, sides.index_below, out.step, -sides.zero, sides.end_below);
  const auto& up = sides.remove ? high : low;
  const auto& down = sides.remove ? low : high;
  put_points(out, sides, up, down);
  out.at_zero = up.heavy[0] + down.light[0];
  // Past the last point's x, losses go on and may be less far out than the point itself: their mass goes to the one
  // before.
  (down.light.size() > 2 ? out.points[down.light.size() - 3].minus : out.at_zero) += down.light_beyond;
  out.infinite_mass += up.heavy_beyond;
}

/// Adds `mass` of the loss offset + `beyond`, from below: to the nearest point that is not above it. Returns by how
/// much that lowers its loss.
double add_rounded_down(LossDistribution& found, double beyond, double mass) {
  auto& points = found.points;
  if (beyond >= 0.0) {
    const auto reached = static_cast<std::int64_t>(beyond / found.step * (1.0 - 1e-14));
    const auto past =
        std::find_if(points.begin(), points.end(), [&](const auto& point) { return point.index > reached; });
    (past == points.begin() ? found.at_zero : std::prev(past)->plus) += mass;
    return beyond - (past == points.begin() ? 0.0 : static_cast<double>(std::prev(past)->index) * found.step);
  }
  const auto needed = static_cast<std::int64_t>(std::ceil(-beyond / found.step * (1.0 + 1e-14)));
  auto at = std::find_if(points.begin(), points.end(), [&](const auto& point) { return point.index >= needed; });
  if (at == points.end()) at = points.insert(at, {needed, 0.0, 0.0});
  at->minus += mass;
  return beyond + static_cast<double>(at->index) * found.step;
}

/// The middle's outputs in two parts, of which the first has a merged loss of at least the grid's next point above the
/// whole one's, as far as that is possible: the outputs of the least loss are the second. `beyond_of` is a part's loss
/// less the offset, at least, in the direction that is discretised; `whole` are all outputs, from 0 to the borders.
template <class Beyond>
std::pair<Outputs, Outputs> split_middle(const Outputs& whole, double border_above, double border_below, double step,
                                         const BothSides& sides, const Beyond& beyond_of) {
  const double point = std::ceil(beyond_of(whole) / step) * step;
  const double target = point + 1e-13 * std::abs(point);
  // Losses are least below 0 in direction `remove`, and above it in direction `add`.
  const double from = sides.remove ? -sides.zero : sides.zero;
  const double border = sides.remove ? border_below : border_above;
  const auto between = [&](double low, double high) {
    Outputs out;
    if (sides.remove) out.below = integrate(sides.below, low, high, 0.0);
    else out.above = integrate(sides.above, low, high, 0.0);
    return out;
  };
  const auto first_part = [&](double cut) {
    auto out = between(from, cut);
    (sides.remove ? out.above : out.below) = sides.remove ? whole.above : whole.below;
    return out;
  };
  double low = from;
  double high = border;
  Outputs best = first_part(low);
  if (!(beyond_of(best) >= target)) return {whole, {}};  // not even without any of them
  while (high - low > 1e-6 * (border - from)) {
    const double middle = 0.5 * (low + high);
    const auto found = first_part(middle);
    if (beyond_of(found) >= target) {
      low = middle;
      best = found;
    } else {
      high = middle;
    }
  }
  return {best, between(low, border)};
}

/// One direction from below, on the grid moved by `offset` (direction `remove`): merged cells of both sides, and what
/// is left in the middle, which is merged too, in two parts at most. `empty` says all but the masses.
Moved moved_by(double offset, const LossDistribution& empty, const BothSides& sides) {
  const auto high =
      merge(sides.above, sides.index_above, empty.step, offset, sides.zero, sides.end_above, Unfitting::joins);
  const auto low =
      merge(sides.below, sides.index_below, empty.step, -offset, -sides.zero, sides.end_below, Unfitting::joins);
  const Outputs middle{integrate(sides.above, sides.zero, high.border, 0.0),
                       integrate(sides.below, -sides.zero, low.border, 0.0)};
  // In the other direction losses have the other sign. Each of the two integrals is off by 1e-13 of itself.
  const auto beyond_of = [&](const Outputs& part) {
    const double off = part.loss() - offset;
    return (sides.remove ? off : -off) -
           2.0 * mass_error * (part.above.excess + part.below.excess) / std::min(part.p(), part.q());
  };
  LossDistribution found = empty;
  put_points(found, sides, sides.remove ? high.masses : low.masses, sides.remove ? low.masses : high.masses);
  found.offset = sides.remove ? offset : -offset;
  found.loss_error += std::max(high.worst, low.worst);
  const auto add = [&](const Outputs& part) {
    const double mass = sides.remove ? part.p() : part.q();
    const double beyond = beyond_of(part);
    if (!std::isfinite(beyond)) return 0.0;  // next to no outputs, which are dropped
    return mass * add_rounded_down(found, beyond, mass);
  };
  // Less is lost by two parts where the whole lies in the upper half between two points.
  const double beyond = beyond_of(middle) / empty.step;
  double lost = 0.0;
  if (beyond - std::floor(beyond) > 0.5) {
    const auto [first, second] = split_middle(middle, high.border, low.border, empty.step, sides, beyond_of);
    lost = add(first);
    lost += add(second);
  } else {
    lost = add(middle);
  }
  const double width = sides.above.loss(high.border) + sides.below.loss(low.border);
  const double mass = sides.remove ? middle.p() : middle.q();
  if (width > 2.0 * empty.step) lost += 0.125 * mass * width * width;
  return {std::move(found), middle.loss() - offset, lost};
}

/// One direction from below, on the moved grid that costs least of those tried. `empty` says all but the masses.
///
/// What is left in the middle is merged too, and its loss is rounded down to the grid. The whole grid is moved a
/// little, so that this costs least: to where most mass lies. That is the middle itself, or, for small σ, the bounded
/// end of the losses below.
LossDistribution best_moved(const LossDistribution& empty, const BothSides& sides) {
  const double step = empty.step;
  auto best = moved_by(0.0, empty, sides);
  const auto consider = [&](double offset) {
    auto found = moved_by(std::clamp(offset, -0.49 * step, 0.49 * step), empty, sides);
    const double off = found.off;
    if (found.lost < best.lost) best = std::move(found);
    return off;
  };
  // Negligible next to what cells of width h cost otherwise, h²/8 and more.
  const double enough = 0.02 * step * std::min(step, 1.0);
  const double far = std::abs(sides.below.loss(sides.end_below));
  if (best.lost > enough && std::isfinite(far) && far > 0.5 * step) {
    const double border = sides.below.inverse_loss(far - 0.5 * step, 0.0);
    const auto cell = integrate(sides.below, border, sides.end_below, far);
    const double target = far + std::log1p(cell.excess / cell.q);
    consider(std::round(target / step) * step - target);
  }
  // Offsets at which the middle's loss is on the grid, by secants. Where losses below end in what is almost an atom,
  // the middle joins it.
  const auto beside = [&](double off) { return off - std::round(off / step) * step; };
  double offset = 0.0;
  double off = best.off;
  double slope = -1.0;
  for (int round = 0; best.lost > enough && round < 6; ++round) {
    // A little to the side on which it is rounded down by next to nothing.
    const double next = offset - (beside(off) - (sides.remove ? 0.1 : -0.1) * enough) / slope;
    const double found = consider(next);
    if (next == offset || std::abs(next) > 0.49 * step) break;
    slope = (found - off) / (next - offset);
    if (slope > -0.2) {
      // The middle moves along with the grid. Half a cell further it may be another one.
      if (best.lost > 20.0 * enough) consider(std::copysign(0.49 * step, next));
      break;
    }
    slope = std::max(slope, -4.0);
    offset = next;
    off = found;
  }
  return std::move(best.distribution);
}

/// One direction: losses of both sides, of which one is the mirror image of the other's in the other direction.
void fill_directed(LossDistribution& out, const DominatingPair& pair, const std::vector<std::int64_t>& index_above,
                   const std::vector<std::int64_t>& index_below, double end_above, double end_below,
                   Direction direction) {
  const BothSides sides{Above(pair), Below(pair), pair.inverse_loss(0.0),        index_above, index_below,
                        end_above,   end_below,   direction == Direction::remove};
  if (out.rounding == Rounding::pessimistic) fill_pessimistic(out, sides);
  else out = best_moved(out, sides);
}

}  // namespace

double LossDistribution::largest_plus() const {
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    if (point->plus > 0.0) return step * static_cast<double>(point->index);
  return 0.0;
}

LossDistribution discretise(const DominatingPair& whole, double step, double fine, Rounding rounding, double tail,
                            std::size_t most_points, Direction direction) {
  if (!(step > 0.0) || !std::isfinite(step) || !(fine > 0.0) || !std::isfinite(fine))
    throw OutOfReach(
        cat("grid distance: found ", step, " and fine range ", fine, "; expected positive finite numbers"));
  const auto [pair, dropped] = whole.truncated(negligible);
  const bool directed = direction != Direction::symmetrised;
  const double log_tail = std::log(tail / pair.use_probability());
  const double zero = pair.inverse_loss(0.0);
  const double end = end_of(Above(pair), zero, log_tail);
  const double end_below = directed ? end_of(Below(pair), -zero, log_tail) : end;
  const double largest_above = pair.loss(end);
  const double largest_below = directed ? Below(pair).loss(end_below) : 0.0;
  const double largest = std::max(largest_above, largest_below);
  const auto components = static_cast<double>(pair.components().size());
  const double rate = (end + pair.largest_mean()) / (pair.sigma() * pair.sigma());
  if (!(end * std::max(4.0 / pair.sigma(), rate) * components <= most_work))
    throw OutOfReach(cat("noise multiplier: found ", pair.sigma(), " with means up to ", pair.largest_mean(),
                         ": the privacy loss of one use reaches ", largest, ", beyond what is accounted for"));
  LossDistribution out;
  out.rounding = rounding;
  out.step = std::min({step, widest_cell, 0.25 * largest});
  // L̂ = L + η, a shift of the loss and a factor e^η of its mass. The exponent of the component that matters is
  // L + log(1/weight), formed from squares up to (mean/σ)² with 5 roundings, and the border's likewise; where the loss
  // is small so is its part (1 − e^{−L}). Border, parameters and log1p are relative: 32 units of L.
  double rarest = 1.0;
  for (const auto& c : pair.components()) rarest = std::min(rarest, c.weight);
  const double square = (pair.largest_mean() / pair.sigma()) * (pair.largest_mean() / pair.sigma());
  out.loss_error =
      roundoff * (-std::expm1(-largest) * 10.0 * (largest - std::log(rarest) + square) + (32.0 + components) * largest);
  // Below, the border of loss ℓ comes from log(1 − (1 − e^{−ℓ})/q), whose argument is off by two units: e^ℓ − 1 of them
  // in ℓ.
  if (directed && pair.components().size() > 1) out.loss_error += 8.0 * roundoff * std::expm1(largest_below);
  // Densities are exponentials of squares up to (end/σ)²/2 (of the last cell's end: up to 1.5 times that), summed.
  out.relative_error = mass_error + 12.0 * roundoff * (end / pair.sigma()) * (end / pair.sigma()) +
                       components * roundoff + out.loss_error;
  auto above = point_indices(out.step, fine, largest_above, most_points);
  if (rounding == Rounding::pessimistic) out.infinite_mass = dropped;
  if (!directed) {
    fill_symmetrised(out, pair, above, end);
    return out;
  }
  auto below = point_indices(out.step, fine, largest_below, most_points);
  if (rounding == Rounding::optimistic) {
    // Outermost cells reach out to the ends: their points lie well within.
    for (auto [index, most] : {std::pair{&above, largest_above}, std::pair{&below, largest_below}})
      while (index->size() > 1 && (static_cast<double>(index->back()) + 0.5) * out.step > most * (1.0 - 1e-6))
        index->pop_back();
  }
  fill_directed(out, pair, above, below, end, end_below, direction);
  return out;
}

std::vector<std::int64_t> point_indices(double step, double fine, double largest, std::size_t most) {
  if (!(largest / step < 1e18))
    throw OutOfReach(cat("the privacy loss reaches ", largest, ", too far for a grid of distance ", step));
  std::vector<std::int64_t> out{0};
  std::int64_t distance = 1;
  while (static_cast<double>(out.back()) * step < largest) {
    if (out.size() > most)
      throw OutOfReach(
          cat("the privacy loss reaches ", largest, " and would need more than ", most, " points at distance ", step));
    const double coarser = 3.0 * static_cast<double>(distance);
    if (static_cast<double>(out.back()) * step >= coarser * fine && coarser * step <= widest_cell) {
      out.push_back(out.back() + 2 * distance);
      distance *= 3;
    } else {
      out.push_back(out.back() + distance);
    }
  }
  return out;
}

LossScale loss_scale(const DominatingPair& whole, Direction direction) {
  const auto pair = whole.truncated(negligible).pair;
  const double zero = pair.inverse_loss(0.0);
  const double end = pair.largest_mean() + reach * pair.sigma();
  double first = 0.0;
  double second = 0.0;
  std::vector<std::pair<double, double>> atoms;  // loss and mass, of one direction
  // Σ over the half line from x₀ to `end`; heavier and lighter measure count as `heavy` and `light` say.
  const auto add = [&](const auto& side, double from, double heavy, double light) {
    const auto panels = static_cast<int>(std::clamp(std::ceil((end - from) / (0.25 * pair.sigma())), 1.0, 1e5));
    const double half = 0.5 * (end - from) / panels;
    for (int panel = 0; panel < panels; ++panel) {
      for (std::size_t i = 0; i < nodes4.size(); ++i) {
        for (const double sign : {-1.0, 1.0}) {
          const double x = from + half * (2.0 * panel + 1.0 + sign * nodes4[i]);
          const double loss = side.loss(x);
          const double q = light * weights4[i] * half * side.scaled_density_q(x, 0.0);
          const double p = heavy * weights4[i] * half * side.scaled_density_q(x, loss);
          first += (p - q) * loss;
          second += (p + q) * loss * loss;
          if (direction != Direction::symmetrised) atoms.emplace_back(p > 0.0 ? loss : -loss, p + q);
        }
      }
    }
  };
  switch (direction) {
    case Direction::symmetrised: {
      add(Above(pair), zero, 1.0, 1.0);
      const double rho = pair.use_probability();
      return {std::sqrt(std::max(rho * second - rho * rho * first * first, 0.0)), pair.loss(end)};
    }
    case Direction::remove:
      add(Above(pair), zero, 1.0, 0.0);
      add(Below(pair), -zero, 0.0, 1.0);
      break;
    case Direction::add:
      add(Above(pair), zero, 0.0, 1.0);
      add(Below(pair), -zero, 1.0, 0.0);
      break;
  }
  // About the mean: where nearly all mass has one loss, the difference of the moments is lost. A floor for what is left
  // of that.
  double spread = 0.0;
  for (const auto& [loss, mass] : atoms) spread += mass * (loss - first) * (loss - first);
  return {std::max(std::sqrt(spread), 1e-6 * std::abs(first)), std::max(pair.loss(end), Below(pair).loss(end))};
}

}  // namespace tsdp::privacy
