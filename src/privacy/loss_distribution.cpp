#include "tsdp/privacy/loss_distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gauss_rule.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/out_of_reach.h"

namespace tsdp::privacy {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2;  // rounding unit 2⁻⁵³

const GaussRule<4> rule4;
const GaussRule<8> rule8;
const auto& nodes4 = rule4.nodes;
const auto& weights4 = rule4.weights;
const auto& nodes8 = rule8.nodes;
const auto& weights8 = rule8.weights;

// P-tail beyond this many σ right of the largest mean: 4e-36, and it is charged as infinite loss.
constexpr double reach = 12.5;

// Losses within one cell stay so close that e^{loss} cannot overflow.
constexpr double widest_cell = 64.0;

// Panels times components beyond which a pair is refused (seconds of work; such losses leave no budget anyone states).
constexpr double most_work = 4e6;

// Components of larger means of at most this total weight count as infinite loss.
constexpr double negligible = 1e-45;

// Relative error of a mass. An n-point Gauss–Legendre rule over a panel of half width r leaves at most
// (64/15) M η^{−2n} r, M the integrand's largest modulus on the ellipse with foci at the ends and half axes summing to
// η r. The integrand is a Gaussian times exponentials: with change e = |d log| · 2r of its exponent over the panel,
// M ≤ e^{e η/4 + (r η/2σ)²/2} times its value in the middle.
//   n = 4, 2r ≤ 0.05 σ, e ≤ 0.05: η = 75 leaves 2e-14;   n = 8, 2r ≤ 0.25 σ, e ≤ 1: η = 30 leaves 1e-18
// of ∫q. Of ∫q (e^{L−l} − 1), whose integrand vanishes at one end, the eighth derivative in the rule's own error term
// leaves 1e-15.
// Rounding of the terms (all of one sign) adds less than 2e-14, mixture weights (structured_pairs) less than 1e-14.
// 1e-13 leaves a margin.
constexpr double mass_error = 1e-13;

struct CellMasses {
  double q = 0.0;       // e^{base} ∫ q
  double excess = 0.0;  // e^{base} ∫ q (e^{L − base} − 1), base the loss the caller names
};

/// Integrals of e^{base} q and of e^{base} q (e^{L(x) − base} − 1) over [from, to], by panels on which the integrand is
/// tame. Scaled so because P-mass is e^{L} times Q-mass: far out Q-mass underflows where P-mass does not.
CellMasses integrate(const DominatingPair& pair, double from, double to, double base) {
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

/// Mass of loss exactly 0: 1 − ρ_out (P(x > x₀) + Q(x > x₀)), to absolute 4 units.
double mass_at_zero(const DominatingPair& pair, double zero) {
  return 1.0 - pair.use_probability() * (std::exp(pair.log_tail_p(zero)) + std::exp(pair.log_tail_q(zero)));
}

/// Indices 0 = n₀ < n₁ < … of the points, reaching `largest`: distances 3^g, g growing with the loss. From distance d
/// to 3d the step between is 2d, so that cells of width d and 3d around their points meet.
std::vector<std::int64_t> point_indices(double step, double fine, double largest, std::size_t most) {
  if (!(largest / step < 1e18))
    throw OutOfReach(cat("the privacy loss reaches ", largest, ", too far for a grid of distance ", step));
  std::vector<std::int64_t> out{0};
  std::int64_t distance = 1;
  while (static_cast<double>(out.back()) * step < largest) {
    if (out.size() > most)
      throw OutOfReach(cat("the privacy loss reaches ", largest, " and would need more than ", most,
                             " points at distance ", step));
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

/// An x beyond which P, times the probability of use, has mass of at most `tail`; at most `reach` σ past the largest mean.
double end_of(const DominatingPair& pair, double tail) {
  double high = pair.largest_mean() + reach * pair.sigma();
  if (!(tail > 0.0)) return high;
  const double log_tail = std::log(tail / pair.use_probability());
  double low = pair.inverse_loss(0.0) + 0.1 * pair.sigma();
  if (!(pair.log_tail_p(low) > log_tail)) return low;
  while (high - low > 0.05 * pair.sigma()) {
    const double middle = 0.5 * (low + high);
    (pair.log_tail_p(middle) > log_tail ? low : high) = middle;
  }
  return high;
}

/// Connect the dots (Doroshenko et al. 2022; notes D.16), in the form that keeps each cell's P- and Q-mass: the mass of
/// the cell of losses [l, l + Δ] goes to its two ends as Q-masses a, b with
///   b = ∫ q (e^{L−l} − 1) / (e^Δ − 1),   a = ∫ q − b,   and P-masses a e^{l}, b e^{l+Δ}.
/// A mean-preserving spread of the likelihood ratio only raises every hockey-stick divergence, so the result
/// dominates. Tails: P beyond the grid becomes infinite loss; Q beyond (losses below the grid) is raised to its end.
void fill_pessimistic(LossDistribution& out, const DominatingPair& pair, const std::vector<std::int64_t>& index) {
  const double rho = pair.use_probability();
  const auto cells = index.size() - 1;
  out.points.resize(cells);
  const auto put = [&](std::size_t i, double plus, double minus) {
    if (i == 0) {
      out.at_zero += plus + minus;
    } else {
      out.points[i - 1].plus += plus;
      out.points[i - 1].minus += minus;
    }
  };
  double x = pair.inverse_loss(0.0);
  out.at_zero = std::max(0.0, mass_at_zero(pair, x)) + (8.0 + static_cast<double>(pair.components().size())) * unit;
  for (std::size_t i = 0; i < cells; ++i) {
    out.points[i].index = index[i + 1];
    const double low = static_cast<double>(index[i]) * out.step;
    const double width = static_cast<double>(index[i + 1] - index[i]) * out.step;
    const double next = pair.inverse_loss(static_cast<double>(index[i + 1]) * out.step, x);
    const auto cell = integrate(pair, x, next, low);
    const double b = rho * std::clamp(cell.excess / std::expm1(width), 0.0, cell.q);
    const double a = rho * cell.q - b;
    const double back = std::exp(-low);
    put(i, a, a * back);
    put(i + 1, b * std::exp(width), b * back);
    x = next;
  }
  out.points.back().minus += rho * std::exp(pair.log_tail_q(x)) * (1.0 + mass_error);
  out.infinite_mass += rho * std::exp(pair.log_tail_p(x)) * (1.0 + mass_error);
}

/// Merging outputs is post-processing: the pair of merged masses is dominated by the original (data processing).
/// Cell i is [b_{i−1}, b_i] with merged loss log(P(cell)/Q(cell)) equal to its point's; the cell around 0 is symmetric,
/// so its loss is exactly 0 whatever b_0 is. So b_i gives b_{i−1}, from the tail inwards; in that direction an
/// error of a border shrinks (masses grow), outwards it would grow. What remains of |merged loss − point| is charged as
/// loss error. Mass beyond the last cell, and between cells that cannot meet, is dropped, which only lowers.
void fill_optimistic(LossDistribution& out, const DominatingPair& pair, const std::vector<std::int64_t>& index) {
  const double rho = pair.use_probability();
  const double tolerance = 1e-9 * out.step;
  const auto last = index.size() - 1;
  const auto loss_of = [&](std::size_t i) { return static_cast<double>(index[i]) * out.step; };
  std::vector<double> dot(index.size());
  dot[0] = pair.inverse_loss(0.0);
  for (std::size_t i = 1; i <= last; ++i) dot[i] = pair.inverse_loss(loss_of(i), dot[i - 1]);
  out.points.resize(last);
  double outer = pair.inverse_loss(loss_of(last) + 0.5 * static_cast<double>(index[last] - index[last - 1]) * out.step,
                                   dot[last]);
  double share = 1.0;  // (dot − inner) / (outer − dot) of the cell before: a good start for the next
  double worst = 0.0;
  for (std::size_t i = last; i >= 1; --i) {
    const double target = loss_of(i);
    const double back = std::exp(-target);
    // ∂/∂border of ∫ e^{target} q (e^{L − target} − 1).
    const auto slope = [&](double x) {
      return pair.scaled_density_q(x, target) * std::expm1(pair.loss(x) - target);
    };
    const double width = dot[i] - dot[i - 1];
    const double least = dot[i - 1] + 1e-3 * width;
    double inner = std::clamp(dot[i] - share * (outer - dot[i]), least, dot[i] - 1e-3 * width);
    CellMasses cell = integrate(pair, inner, outer, target);
    double residual = std::log1p(cell.excess / cell.q);
    // Newton's method inside a bracket: the excess falls as the border moves inwards.
    double low = least;
    double high = dot[i];
    bool tried_least = false;
    bool fits = true;
    for (int round = 0; std::abs(residual) > tolerance && round < 100; ++round) {
      (cell.excess > 0.0 ? high : low) = inner;
      double next = inner + cell.excess / slope(inner);
      if (!(next > low && next < high)) {
        if (cell.excess > 0.0 && low == least && !tried_least) {
          next = least;
          tried_least = true;
        } else {
          next = 0.5 * (low + high);
        }
      }
      if (inner == least && cell.excess > 0.0) {  // the cell would have to reach beyond the next point
        fits = false;
        break;
      }
      if (next == inner) break;
      inner = next;
      cell = integrate(pair, inner, outer, target);
      residual = std::log1p(cell.excess / cell.q);
    }
    if (!fits) {
      // Leave a gap: the inner border half way between the points, the outer one drawn in to match.
      inner = dot[i] - 0.5 * width;
      low = dot[i];
      high = outer;
      for (int round = 0; round < 100; ++round) {
        outer = 0.5 * (low + high);
        cell = integrate(pair, inner, outer, target);
        residual = std::log1p(cell.excess / cell.q);
        if (std::abs(residual) <= tolerance || !(outer > low && outer < high)) break;
        (cell.excess > 0.0 ? high : low) = outer;
      }
    }
    if (!(std::abs(residual) <= 1e3 * tolerance)) {
      // Rounding of far, wide cells may keep a border from converging: such a cell is dropped, not charged.
      out.points[i - 1] = {index[i], 0.0, 0.0};
      outer = inner;
      continue;
    }
    share = std::clamp((dot[i] - inner) / (outer - dot[i]), 0.1, 10.0);
    worst = std::max(worst, std::abs(residual));
    out.points[i - 1] = {index[i], rho * (cell.q + cell.excess), rho * cell.q * back};
    outer = inner;
  }
  const auto centre = integrate(pair, dot[0], outer, 0.0);
  out.at_zero = std::max(0.0, mass_at_zero(pair, dot[0]) - (8.0 + static_cast<double>(pair.components().size())) * unit) + rho * (2.0 * centre.q + centre.excess);
  out.loss_error += worst;
}

}  // namespace

LossDistribution discretise(const DominatingPair& whole, double step, double fine, Rounding rounding, double tail,
                            std::size_t most_points) {
  if (!(step > 0.0) || !std::isfinite(step) || !(fine > 0.0) || !std::isfinite(fine))
    throw OutOfReach(cat("grid distance: found ", step, " and fine range ", fine,
                           "; positive finite numbers are expected"));
  const auto [pair, dropped] = whole.truncated(negligible);
  const double end = end_of(pair, tail);
  const double largest = pair.loss(end);
  const auto components = static_cast<double>(pair.components().size());
  const double rate = (end + pair.largest_mean()) / (pair.sigma() * pair.sigma());
  if (!(end * std::max(4.0 / pair.sigma(), rate) * components <= most_work))
    throw OutOfReach(cat("noise multiplier: found ", pair.sigma(), " with means up to ", pair.largest_mean(),
                           ": the privacy loss of one use reaches ", largest, ", beyond what is accounted for"));
  LossDistribution out;
  out.rounding = rounding;
  out.step = std::min({step, widest_cell, 0.25 * largest});
  // L̂ = L + η, a shift of the loss and a factor e^η of its mass. The exponent of the component that matters is
  // L + log(1/weight), formed from squares up to (mean/σ)² with 5 roundings, and the border's likewise; where the loss is
  // small so is its part (1 − e^{−L}). Border, parameters and log1p are relative: 32 units of L.
  double rarest = 1.0;
  for (const auto& c : pair.components()) rarest = std::min(rarest, c.weight);
  const double square = (pair.largest_mean() / pair.sigma()) * (pair.largest_mean() / pair.sigma());
  out.loss_error =
      unit * (-std::expm1(-largest) * 10.0 * (largest - std::log(rarest) + square) + (32.0 + components) * largest);
  // Densities are exponentials of squares up to (end/σ)²/2 (of the last cell's end: up to 1.5 times that), summed.
  out.relative_error =
      mass_error + 12.0 * unit * (end / pair.sigma()) * (end / pair.sigma()) + components * unit + out.loss_error;
  const auto index = point_indices(out.step, fine, largest, most_points);
  if (rounding == Rounding::pessimistic) {
    out.infinite_mass = dropped;
    fill_pessimistic(out, pair, index);
  } else {
    fill_optimistic(out, pair, index);
  }
  return out;
}

LossScale loss_scale(const DominatingPair& whole) {
  const auto pair = whole.truncated(negligible).pair;
  const double zero = pair.inverse_loss(0.0);
  const double end = pair.largest_mean() + reach * pair.sigma();
  const auto panels = static_cast<int>(std::clamp(std::ceil((end - zero) / (0.25 * pair.sigma())), 1.0, 1e5));
  const double half = 0.5 * (end - zero) / panels;
  double first = 0.0;
  double second = 0.0;
  for (int panel = 0; panel < panels; ++panel) {
    for (std::size_t i = 0; i < nodes4.size(); ++i) {
      for (const double sign : {-1.0, 1.0}) {
        const double x = zero + half * (2.0 * panel + 1.0 + sign * nodes4[i]);
        const double loss = pair.loss(x);
        const double q = weights4[i] * half * pair.density_q(x);
        const double p = weights4[i] * half * pair.scaled_density_q(x, loss);
        first += (p - q) * loss;
        second += (p + q) * loss * loss;
      }
    }
  }
  const double rho = pair.use_probability();
  return {std::sqrt(std::max(rho * second - rho * rho * first * first, 0.0)), pair.loss(end)};
}

}  // namespace tsdp::privacy
