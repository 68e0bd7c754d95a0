#include "tsdp/privacy/loss_distribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp::privacy {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2;  // rounding unit 2⁻⁵³

// Gauss–Legendre with 8 nodes on [−1, 1].
constexpr std::array<double, 4> nodes = {0.1834346424956498049, 0.5255324099163289858, 0.7966664774136267396,
                                         0.9602898564975362317};
constexpr std::array<double, 4> weights = {0.3626837833783619830, 0.3137066458778872873, 0.2223810344533744706,
                                           0.1012285362903762591};

// P-tail beyond this many σ right of the largest mean: 4e-36, and it is charged as infinite loss.
constexpr double reach = 12.5;

// Relative error of a mass. Quadrature: a panel is at most σ/4 wide and changes no exponent by more than ½, the
// integrand is then within e^{±2} of an exponential of rate below 2 over the half panel, and 8 nodes leave less than
// 1e-14; rounding of the terms (all positive) below 1e-14. 1e-13 leaves a margin of five.
constexpr double mass_error = 1e-13;

struct CellMasses {
  double q = 0.0;       // e^{base} ∫ q
  double excess = 0.0;  // e^{base} ∫ q (e^{L − base} − 1), base the loss the caller names
};

/// Integrals of e^{base} q and of e^{base} q (e^{L(x) − base} − 1) over [from, to], by panels on which the integrand is
/// tame. Scaled so because P-mass is e^{L} times Q-mass: far out Q-mass underflows where P-mass does not.
CellMasses integrate(const DominatingPair& pair, double from, double to, double base) {
  const double sigma = pair.sigma();
  const double widest = std::min(0.25 * sigma, 0.5 * sigma * sigma / pair.largest_mean());
  const auto panels = std::max(1.0, std::ceil((to - from) / widest));
  const double half = 0.5 * (to - from) / panels;
  // Where e^L is representable the difference e^{L−base} − 1 = (excess − expm1(base)) e^{−base} needs no logarithm;
  // its rounding is that of L by a few units, which `loss_error` carries.
  const double base_excess = std::expm1(base);
  const double base_scale = std::exp(-base);
  const bool direct = std::isfinite(pair.excess(to)) && std::isfinite(base_excess);
  CellMasses sum;
  for (double panel = 0.0; panel < panels; panel += 1.0) {
    const double middle = from + (2.0 * panel + 1.0) * half;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const double sign : {-1.0, 1.0}) {
        const double x = middle + sign * half * nodes[i];
        const double mass = weights[i] * half * pair.scaled_density_q(x, base);
        sum.q += mass;
        sum.excess += mass * (direct ? (pair.excess(x) - base_excess) * base_scale : std::expm1(pair.loss(x) - base));
      }
    }
  }
  return sum;
}

/// Mass of loss exactly 0: 1 − P(x > x₀) − Q(x > x₀), to absolute 4 units.
double atom_at_zero(const DominatingPair& pair, double zero) {
  return 1.0 - std::exp(pair.log_tail_p(zero)) - std::exp(pair.log_tail_q(zero));
}

/// Borders x_i = L^{−1}(loss_i) for increasing losses, each search started from the one before.
std::vector<double> borders(const DominatingPair& pair, const std::vector<double>& losses) {
  std::vector<double> x(losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) x[i] = pair.inverse_loss(losses[i]);
  return x;
}

/// Connect the dots (Doroshenko et al. 2022; notes D.16), in the form that keeps each cell's P- and Q-mass: the mass of
/// the cell of losses [ih, (i+1)h] goes to its two ends as Q-masses a, b with
///   b = ∫ q (e^{L−ih} − 1) / (e^h − 1),   a = ∫ q − b,   and P-masses a e^{ih}, b e^{(i+1)h}.
/// A mean-preserving spread of the likelihood ratio only raises every hockey-stick divergence, so the result
/// dominates. Tails: P beyond the grid becomes infinite loss; Q beyond (losses below −nh) is raised to −nh.
LossDistribution pessimistic(const DominatingPair& pair, double step, std::int64_t n) {
  LossDistribution out;
  out.rounding = Rounding::pessimistic;
  out.step = step;
  out.half_size = n;
  out.mass.assign(static_cast<std::size_t>(2 * n + 1), 0.0);
  std::vector<double> losses(static_cast<std::size_t>(n + 1));
  for (std::int64_t i = 0; i <= n; ++i) losses[static_cast<std::size_t>(i)] = step * static_cast<double>(i);
  const auto x = borders(pair, losses);
  auto* at_zero = out.mass.data() + n;
  const double gap = std::expm1(step);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto u = static_cast<std::size_t>(i);
    const auto cell = integrate(pair, x[u], x[u + 1], losses[u]);
    const double b = std::clamp(cell.excess / gap, 0.0, cell.q);
    const double a = cell.q - b;
    const double back = std::exp(-losses[u]);
    at_zero[i] += a;
    at_zero[i + 1] += b * (gap + 1.0);
    at_zero[-i] += a * back;
    at_zero[-i - 1] += b * back;
  }
  at_zero[0] += std::max(0.0, atom_at_zero(pair, x.front())) + 8.0 * unit;
  at_zero[-n] += std::exp(pair.log_tail_q(x.back())) * (1.0 + mass_error);
  out.infinite_mass = std::exp(pair.log_tail_p(x.back())) * (1.0 + mass_error);
  out.relative_error = mass_error;
  // L and the borders carry a few relative units; parameters were rounded to doubles before (4 units of L).
  out.loss_error = 32.0 * unit * (1.0 + out.largest_loss());
  return out;
}

/// Merging outputs is post-processing: the pair of merged masses is dominated by the original (data processing). Cell i
/// is chosen so that its merged loss log(P(cell)/Q(cell)) is i·h up to r_i; max |r_i| is charged as loss error. The
/// cell around 0 is symmetric, so its loss is exactly 0. Mass beyond the last cell is dropped, which only lowers.
LossDistribution optimistic(const DominatingPair& pair, double step, std::int64_t n) {
  LossDistribution out;
  out.rounding = Rounding::optimistic;
  out.step = step;
  out.half_size = n;
  out.mass.assign(static_cast<std::size_t>(2 * n + 1), 0.0);
  const auto cells = static_cast<std::size_t>(n);  // cell c holds loss (c+1)·h
  std::vector<double> losses(cells + 1);
  for (std::size_t c = 0; c <= cells; ++c) losses[c] = (static_cast<double>(c) + 0.5) * step;
  std::vector<double> x;
  std::vector<double> q(cells);
  std::vector<double> p(cells);
  std::vector<double> residual(cells);
  // A residual r costs k·r in ε; the fixed point gains three digits in the first round and little after the fifth.
  constexpr int rounds = 6;
  const double tolerance = 1e-9 * step;
  std::size_t kept = cells;
  for (int round = 0; round < rounds; ++round) {
    x = borders(pair, losses);
    double worst = 0.0;
    kept = cells;
    for (std::size_t c = 0; c < cells; ++c) {
      const double target = static_cast<double>(c + 1) * step;
      const auto cell = integrate(pair, x[c], x[c + 1], target);
      q[c] = cell.q * std::exp(-target);
      p[c] = cell.q + cell.excess;
      residual[c] = cell.q > 0.0 ? std::log1p(cell.excess / cell.q) : 0.0;
      // Cells of the right tail that carry next to nothing need not converge; from the first such one on they are
      // dropped. (With tiny σ there are such cells between 0 and P's mode as well; those are kept.)
      if ((p[c] < 1e-28 && x[c] > pair.largest_mean()) || !(std::abs(residual[c]) < step)) {
        kept = c;
        break;
      }
      worst = std::max(worst, std::abs(residual[c]));
    }
    if (worst <= tolerance || round + 1 == rounds) break;
    double previous = 0.0;
    for (std::size_t c = 0; c < kept; ++c) {
      losses[c] -= c == 0 ? residual[0] : 0.5 * (previous + residual[c]);
      previous = residual[c];
    }
    if (kept < losses.size()) losses[kept] -= previous;
    for (std::size_t c = 1; c < losses.size(); ++c) losses[c] = std::max(losses[c], losses[c - 1] + 0.05 * step);
    losses[0] = std::max(losses[0], 0.05 * step);
  }
  auto* at_zero = out.mass.data() + n;
  double worst = 0.0;
  for (std::size_t c = 0; c < kept; ++c) {
    const auto i = static_cast<std::int64_t>(c) + 1;
    at_zero[i] = p[c];
    at_zero[-i] = q[c];
    worst = std::max(worst, std::abs(residual[c]));
  }
  const double zero = pair.inverse_loss(0.0);
  const auto centre = integrate(pair, zero, x.front(), 0.0);
  at_zero[0] = std::max(0.0, atom_at_zero(pair, zero) - 8.0 * unit) + 2.0 * centre.q + centre.excess;
  out.relative_error = mass_error;
  out.loss_error = worst + 32.0 * unit * (1.0 + out.largest_loss());
  return out;
}

}  // namespace

LossDistribution discretise(const DominatingPair& pair, double step, Rounding rounding, std::int64_t max_half_size) {
  if (!(step > 0.0) || !std::isfinite(step))
    throw PrivacyError(cat("grid distance: found ", step, "; a positive finite number is expected"));
  const double largest = pair.loss(pair.largest_mean() + reach * pair.sigma());
  const double cells = std::ceil(largest / step);
  if (!(cells <= static_cast<double>(max_half_size)))
    throw PrivacyError(cat("the privacy loss reaches ", largest, " and would need ", cells, " cells of width ", step,
                           "; at most ", max_half_size, " are allowed"));
  const auto n = std::max<std::int64_t>(1, static_cast<std::int64_t>(cells));
  return rounding == Rounding::pessimistic ? pessimistic(pair, step, n) : optimistic(pair, step, n);
}

LossScale loss_scale(const DominatingPair& pair) {
  const double zero = pair.inverse_loss(0.0);
  const double end = pair.largest_mean() + reach * pair.sigma();
  const double width = std::min(0.25 * pair.sigma(), 0.5 * pair.sigma() * pair.sigma() / pair.largest_mean());
  const auto panels = static_cast<int>(std::ceil((end - zero) / width));
  const double half = 0.5 * (end - zero) / panels;
  double first = 0.0;
  double second = 0.0;
  for (int panel = 0; panel < panels; ++panel) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const double sign : {-1.0, 1.0}) {
        const double x = zero + half * (2.0 * panel + 1.0 + sign * nodes[i]);
        const double loss = pair.loss(x);
        const double q = weights[i] * half * pair.density_q(x);
        const double p = weights[i] * half * pair.scaled_density_q(x, loss);
        first += (p - q) * loss;
        second += (p + q) * loss * loss;
      }
    }
  }
  return {std::sqrt(std::max(second - first * first, 0.0)), pair.loss(end)};
}

}  // namespace tsdp::privacy
