#include "triangle_pairs.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "privacy/accountant/gauss_rule.h"
#include "privacy/accountant/normal_tail.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// Nodes reach this many deviations beyond the means of both laws; what lies further is charged.
constexpr double reach = 9.5;

// Each put is a difference of two products of a double and Φ: exponents of at most `reach` + its own deviations round Φ
// by reach² units.
constexpr double put_error = 1e-13;
constexpr double sum_error = 1e-12;

const GaussRule<8> rule;

/// A rectangle of (φ, θ), θ = φ + ψ. Only its part with φ ≤ θ/2 counts.
struct Cell {
  double phi_low, phi_high, theta_low, theta_high;

  /// Ḡ of Section 5, in units of the clip norm: above every triangle of the cell.
  [[nodiscard]] TriangleGram bound() const {
    const auto square = [](double x) { return x * x; };
    const double r = 4.0 * square(std::cos(phi_low));
    const double s = 4.0 * square(std::cos(std::max(0.0, theta_low - phi_high)));
    // T = 2 cos θ (cos θ + cos(2φ − θ)) falls in θ and in |2φ − θ|.
    const double first = 2.0 * phi_low - theta_high;
    const double last = 2.0 * phi_high - theta_low;
    const double least = first <= 0.0 && last >= 0.0 ? 0.0 : std::min(std::abs(first), std::abs(last));
    const double most = std::min(0.5 * std::numbers::pi, std::max(std::abs(first), std::abs(last)));
    const auto product = [](double theta, double difference) {
      const double c = std::max(0.0, std::cos(theta));
      return 2.0 * c * (c + std::max(0.0, std::cos(difference)));
    };
    const double t_high = product(theta_low, least);
    const double t_low = product(theta_high, most);
    // 1e-14 is more than all rounding above: entries are at most 4.
    const double d = 0.5 * (t_high - t_low) + 1e-14;
    return {r + d, s + d, 0.5 * (t_high + t_low)};
  }
};

/// By how much a pair exceeds what a triangle can have, relative to that, where `largest` is r of Theorem 4.4's pair:
/// in the variance of A/B for small q, which counts in the long run; and, reduced by a factor of ten, in the squared
/// distance of v and v′, on which losses of medium size depend where a few large ones make up the variance.
double excess(const TriangleGram& g, double largest) {
  return std::max((std::expm1(g.r) + std::expm1(g.s) - 2.0 * std::expm1(g.t)) / std::expm1(largest) - 1.0,
                  0.1 * ((g.r + g.s - 2.0 * g.t) / largest - 1.0));
}

TriangleGram scaled(const TriangleGram& g, double factor) { return {g.r * factor, g.s * factor, g.t * factor}; }

/// The most cells of a cover; if there are more, a coarser cover is made.
constexpr std::size_t most_cells = 6000;

void split(Cell cell, double factor, double most, std::vector<TriangleGram>& out) {
  if (cell.phi_low > 0.5 * cell.theta_high || out.size() > most_cells) return;
  cell.phi_high = std::min(cell.phi_high, 0.5 * cell.theta_high);
  const auto bound = scaled(cell.bound(), factor);
  if (excess(bound, 4.0 * factor) <= most) {
    out.push_back(bound);
    return;
  }
  const double phi = 0.5 * (cell.phi_low + cell.phi_high);
  const double theta = 0.5 * (cell.theta_low + cell.theta_high);
  const std::pair<Cell, Cell> by_phi{{cell.phi_low, phi, cell.theta_low, cell.theta_high},
                                     {phi, cell.phi_high, cell.theta_low, cell.theta_high}};
  const std::pair<Cell, Cell> by_theta{{cell.phi_low, cell.phi_high, cell.theta_low, theta},
                                       {cell.phi_low, cell.phi_high, theta, cell.theta_high}};
  const auto larger = [&](const std::pair<Cell, Cell>& halves) {
    return std::max(excess(scaled(halves.first.bound(), factor), 4.0 * factor),
                    excess(scaled(halves.second.bound(), factor), 4.0 * factor));
  };
  const auto& halves = larger(by_phi) < larger(by_theta) ? by_phi : by_theta;
  split(halves.first, factor, most, out);
  split(halves.second, factor, most, out);
}

/// a ⪯ b, with room for rounding.
bool is_below(const TriangleGram& a, const TriangleGram& b) {
  const double r = b.r - a.r;
  const double s = b.s - a.s;
  const double t = b.t - a.t;
  constexpr double room = 1e-14;
  return r >= room * b.r && s >= room * b.s && (r - room * b.r) * (s - room * b.s) >= t * t;
}

}  // namespace

std::vector<TriangleGram> triangle_cover(double sigma, double tolerance) {
  const double factor = (1.0 + 1e-15) / (sigma * sigma);
  // So that e^{4/σ²} is a double.
  if (!(4.0 * factor < 700.0))
    throw OutOfReach(
        cat("noise multiplier: found ", sigma, ", with which the privacy loss of a step is beyond any grid"));
  std::vector<TriangleGram> all;
  const Cell everything{0.0, 0.25 * std::numbers::pi, 0.0, 0.5 * std::numbers::pi};
  for (split(everything, factor, tolerance, all); all.size() > most_cells; split(everything, factor, tolerance, all)) {
    all.clear();
    tolerance *= 2.0;
  }
  // Of two equal ones, neither is below the other, so no cycle loses both.
  std::vector<TriangleGram> out;
  for (const auto& one : all)
    if (std::none_of(all.begin(), all.end(), [&](const TriangleGram& other) { return is_below(one, other); }))
      out.push_back(one);
  return out;
}

TriangleProfile::TriangleProfile(const TriangleGram& gram, double q, double spacing)
    : q_(q), deviation_(0.0), beyond_(0.0) {
  const double share = gram.r > 0.0 ? gram.t / gram.r : 0.0;  // ρ ≤ 1
  // Adds more than the rounding of the difference: a put grows with its deviation.
  deviation_ = std::sqrt(std::max(0.0, gram.s - share * gram.t) + 4e-16 * gram.s + 1e-24);
  const double width = std::sqrt(gram.r);
  if (gram.r == 0.0) {
    nodes_.push_back({1.0, 1.0, 1.0, 2e-15});
    return;
  }
  // z is standard normal under N(u) and has mean `width` under N(v); the density of N(v) is e^{width z − r/2}.
  const double span = 2.0 * reach + width;
  const auto cells = static_cast<int>(std::ceil(span / spacing));
  nodes_.resize(static_cast<std::size_t>(cells) + 1);
  const double step = span / cells;
  for (int i = 0; i <= cells; ++i) {
    const double z = -reach + step * i;
    auto& node = nodes_[static_cast<std::size_t>(i)];
    const double exponent = width * z - 0.5 * gram.r;
    // An exponential is off by its exponent's rounding: some units of the largest term.
    node = {std::exp(exponent), 0.0, std::exp(share * width * z - 0.5 * share * gram.t),
            4e-16 * (5.0 + std::abs(width * z) + gram.r)};
  }
  const double scale = 1.0 / std::expm1(width * step);
  for (int i = 0; i < cells; ++i) {
    // Mass p of the cell, and the share b of it that the chord puts at its upper end: ∫ φ(z) (e^{width (z − z_i)} − 1)
    // dz / (e^{width step} − 1).
    const double low = -reach + step * i;
    double p = 0.0;
    double b = 0.0;
    for (std::size_t k = 0; k < rule.nodes.size(); ++k)
      for (const double sign : {-1.0, 1.0}) {
        const double offset = 0.5 * step * (1.0 + sign * rule.nodes[k]);
        const double z = low + offset;
        const double mass = 0.5 * step * rule.weights[k] * std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi);
        p += mass;
        b += mass * std::expm1(width * offset);
      }
    b = std::clamp(b * scale, 0.0, p);
    nodes_[static_cast<std::size_t>(i)].weight += p - b;
    nodes_[static_cast<std::size_t>(i) + 1].weight += b;
  }
  // Below the first node and above the last one the put is at most the density: E[U; …] is a tail of N(v).
  beyond_ = (normal_tail(reach + width) + normal_tail(reach)) * (1.0 + 1e-12);
}

double TriangleProfile::upper(double epsilon) const {
  const double alpha = std::exp(epsilon);
  const double strike = (1.0 - q_) * std::expm1(epsilon) / q_;  // κ
  double sum = 0.0;
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    const double k = node->density - strike;
    // A put grows with k, by at most as much.
    double value = node->rounding * (node->density + strike);
    if (k > 0.0) {
      const double forward = alpha * node->mean;
      const double d = std::log(k / forward) / deviation_;
      // Past d = −30 the put is below e^{−400} of the strike.
      if (d > -30.0 - 0.5 * deviation_) {
        const double first = k * normal_tail(-d - 0.5 * deviation_);
        const double second = forward * normal_tail(0.5 * deviation_ - d);
        value += std::max(0.0, first - second) + put_error * (first + second);
      }
    } else if (-k > value) {
      break;
    }
    sum += node->weight * value;
  }
  return q_ * (sum * (1.0 + sum_error) + beyond_);
}

}  // namespace tsdp::privacy
