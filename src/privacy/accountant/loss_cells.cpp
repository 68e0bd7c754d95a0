#include "loss_cells.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "gauss_rule.h"

namespace tsdp::privacy {
namespace {

const GaussRule<4> rule4;
const GaussRule<8> rule8;
const auto& nodes4 = rule4.nodes;
const auto& weights4 = rule4.weights;
const auto& nodes8 = rule8.nodes;
const auto& weights8 = rule8.weights;

}  // namespace

template <class Side>
CellMasses integrate(const Side& pair, double from, double to, double base) {
  const double sigma = pair.sigma();
  // |d log q|, |d log p| ≤ (|x| + largest mean)/σ² on either side of the means.
  const double rate = (std::max(std::abs(from), std::abs(to)) + pair.largest_mean()) / (sigma * sigma);
  const double width = to - from;
  const bool narrow = width <= 0.05 * sigma && width * rate <= 0.05;
  const double panels = narrow ? 1.0 : std::max(1.0, std::ceil(width * std::max(4.0 / sigma, rate)));
  const double half = 0.5 * width / panels;
  // Where e^L is representable the difference e^{L−base} − 1 = (excess − expm1(base)) e^{−base} needs no logarithm;
  // its rounding is that of L by a few units, which `loss_error` carries.
  const double base_excess = std::expm1(base);
  const double base_scale = std::exp(-base);
  const bool direct = std::isfinite(pair.excess(to)) && std::isfinite(base_excess);
  CellMasses sum;
  const auto add = [&](double x, double weight) {
    const double mass = weight * half * pair.scaled_density_q(x, base);
    sum.q += mass;
    sum.excess += mass * (direct ? (pair.excess(x) - base_excess) * base_scale : std::expm1(pair.loss(x) - base));
  };
  for (double panel = 0.0; panel < panels; panel += 1.0) {
    const double middle = from + (2.0 * panel + 1.0) * half;
    if (narrow) {
      for (std::size_t i = 0; i < nodes4.size(); ++i)
        for (const double sign : {-1.0, 1.0}) add(middle + sign * half * nodes4[i], weights4[i]);
    } else {
      for (std::size_t i = 0; i < nodes8.size(); ++i)
        for (const double sign : {-1.0, 1.0}) add(middle + sign * half * nodes8[i], weights8[i]);
    }
  }
  return sum;
}

template <class Side>
SideMasses spread(const Side& side, const std::vector<std::int64_t>& index, double step, double zero, double end) {
  const auto cells = index.size() - 1;
  SideMasses out(index.size());
  double x = zero;
  for (std::size_t i = 0; i < cells; ++i) {
    const double low = static_cast<double>(index[i]) * step;
    const double width = static_cast<double>(index[i + 1] - index[i]) * step;
    const bool last = i + 1 == cells;
    const double next =
        last && std::is_same_v<Side, Below> ? end : side.inverse_loss(static_cast<double>(index[i + 1]) * step, x);
    const auto cell = integrate(side, x, next, low);
    const double b = std::clamp(cell.excess / std::expm1(width), 0.0, cell.q);
    const double a = cell.q - b;
    const double back = std::exp(-low);
    out.heavy[i] += a;
    out.light[i] += a * back;
    out.heavy[i + 1] += b * std::exp(width);
    out.light[i + 1] += b * back;
    x = next;
  }
  out.heavy_beyond = std::exp(side.log_tail_p(x)) * (1.0 + mass_error);
  out.light_beyond = std::exp(side.log_tail_q(x)) * (1.0 + mass_error);
  return out;
}

namespace {

/// A cell [inner, outer] whose loss is to become that of its point.
struct Cell {
  double inner, outer;
  CellMasses masses;  // base: the point's loss
  double residual;  // merged loss − point
};

/// The cell between two borders, by quadrature (mass_error); its point has the loss `target`.
template <class Side>
Cell cell_between(const Side& side, double inner, double outer, double target) {
  const auto masses = integrate(side, inner, outer, target);
  return {inner, outer, masses, std::log1p(masses.excess / masses.q)};
}

/// Moves a cell's inner border until the merged loss is that of the point at `dot`, or as near as rounding allows; the
/// residual says how near. False if the border would have to lie further in than `least`.
template <class Side>
bool fit_inner_border(const Side& side, Cell& cell, double least, double dot, double target, double tolerance) {
  // ∂/∂border of ∫ e^{target} q (e^{L − target} − 1).
  const auto slope = [&](double x) { return side.scaled_density_q(x, target) * std::expm1(side.loss(x) - target); };
  // Newton's method inside a bracket: the excess falls as the border moves inwards.
  double low = least;
  double high = dot;
  bool tried_least = false;
  for (int round = 0; std::abs(cell.residual) > tolerance && round < 100; ++round) {
    (cell.masses.excess > 0.0 ? high : low) = cell.inner;
    double next = cell.inner + cell.masses.excess / slope(cell.inner);
    if (!(next > low && next < high)) {
      if (cell.masses.excess > 0.0 && low == least && !tried_least) {
        next = least;
        tried_least = true;
      } else {
        next = 0.5 * (low + high);
      }
    }
    if (cell.inner == least && cell.masses.excess > 0.0) return false;  // it would have to reach beyond the next point
    if (next == cell.inner) break;
    cell = cell_between(side, next, cell.outer, target);
  }
  return true;
}

/// The cell from `inner` outwards whose outer border, between the point at `dot` and `outer`, is drawn in until the
/// merged loss is the point's, or as near as rounding allows; the residual says how near.
template <class Side>
Cell drawn_in(const Side& side, double inner, double dot, double outer, double target, double tolerance) {
  double low = dot;
  double high = outer;
  Cell cell{};
  for (int round = 0; round < 100; ++round) {
    cell = cell_between(side, inner, 0.5 * (low + high), target);
    if (std::abs(cell.residual) <= tolerance || !(cell.outer > low && cell.outer < high)) break;
    (cell.masses.excess > 0.0 ? high : low) = cell.outer;
  }
  return cell;
}

}  // namespace

template <class Side>
MergedCells merge(const Side& side, const std::vector<std::int64_t>& index, double step, double offset, double zero,
                  double outer, Unfitting unfitting) {
  const double tolerance = 1e-9 * step;
  const auto last = index.size() - 1;
  const auto loss_of = [&](std::size_t i) { return static_cast<double>(index[i]) * step + offset; };
  MergedCells out{SideMasses(index.size()), outer, 0.0};
  std::vector<double> dot(index.size());
  dot[0] = zero;
  for (std::size_t i = 1; i <= last; ++i) dot[i] = side.inverse_loss(loss_of(i), dot[i - 1]);
  double share = 1.0;  // (dot − inner) / (outer − dot) of the cell before: a good start for the next
  for (std::size_t i = last; i >= 1; --i) {
    const double target = loss_of(i);
    const double back = std::exp(-target);
    const double width = dot[i] - dot[i - 1];
    const double least = dot[i - 1] + 1e-3 * width;
    const double start = std::clamp(dot[i] - share * (outer - dot[i]), least, dot[i] - 1e-3 * width);
    auto cell = cell_between(side, start, outer, target);
    if (!fit_inner_border(side, cell, least, dot[i], target, tolerance)) {
      if (unfitting == Unfitting::joins) continue;
      // Leave a gap: the inner border half way between the points, the outer one drawn in to match.
      cell = drawn_in(side, dot[i] - 0.5 * width, dot[i], outer, target, tolerance);
    }
    if (std::abs(cell.residual) <= 1e3 * tolerance) {
      share = std::clamp((dot[i] - cell.inner) / (cell.outer - dot[i]), 0.1, 10.0);
      out.worst = std::max(out.worst, std::abs(cell.residual));
      out.masses.heavy[i] = cell.masses.q + cell.masses.excess;
      out.masses.light[i] = cell.masses.q * back;
    }  // else rounding of far, wide cells kept a border from converging: such a cell is dropped, not charged
    outer = cell.inner;
  }
  out.border = outer;
  return out;
}

template CellMasses integrate(const Above&, double, double, double);
template CellMasses integrate(const Below&, double, double, double);
template SideMasses spread(const Above&, const std::vector<std::int64_t>&, double, double, double);
template SideMasses spread(const Below&, const std::vector<std::int64_t>&, double, double, double);
template MergedCells merge(const Above&, const std::vector<std::int64_t>&, double, double, double, double, Unfitting);
template MergedCells merge(const Below&, const std::vector<std::int64_t>&, double, double, double, double, Unfitting);

}  // namespace tsdp::privacy
