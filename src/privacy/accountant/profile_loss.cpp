#include "privacy/accountant/profile_loss.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>

#include "tsdp/base/error.h"

namespace tsdp::privacy {
namespace {

constexpr auto unit = std::numeric_limits<long double>::epsilon();

struct Vertex {
  std::int64_t index;
  long double alpha, value;
};

/// Masses by their place on the grid.
class Masses {
 public:
  void add(std::int64_t index, double mass) {
    if (index == 0) at_zero_ += mass;
    else (index > 0 ? by_distance_[index].plus : by_distance_[-index].minus) += mass;
  }
  void put(LossDistribution& into) const {
    into.at_zero = at_zero_;
    for (const auto& [index, point] : by_distance_) into.points.push_back({index, point.plus, point.minus});
  }

 private:
  double at_zero_ = 0.0;
  std::map<std::int64_t, LossDistribution::Point> by_distance_;
};

long double slope(const Vertex& from, const Vertex& to) { return (to.value - from.value) / (to.alpha - from.alpha); }

/// The points that the largest convex function below them touches, the first one being (0, 1), up to its least value.
std::vector<Vertex> touched(const std::vector<ProfilePoint>& points, double step) {
  std::vector<Vertex> out = {{0, 0.0L, 1.0L}};
  for (const auto& point : points) {
    const auto alpha = std::exp(static_cast<long double>(static_cast<double>(point.index) * step));
    // α is off by a unit of itself, and a profile falls by at most one per unit of α.
    const Vertex next{point.index, alpha, std::min(1.0L, point.upper + 4.0L * unit * (alpha + 1.0L))};
    if (!(next.value < out.back().value)) continue;  // a profile does not rise
    while (out.size() > 1 && slope(out[out.size() - 2], out.back()) >= slope(out.back(), next)) out.pop_back();
    out.push_back(next);
  }
  return out;
}

}  // namespace

LossDistribution dominating_loss(const std::vector<ProfilePoint>& points, double step) {
  const auto vertices = touched(points, step);
  if (vertices.size() < 2) throw Error(ExitCode::failure, "a profile that is known nowhere below 1");
  LossDistribution out;
  out.rounding = Rounding::pessimistic;
  out.step = step;
  Masses masses;
  long double charged = 0.0L;
  for (std::size_t i = 1; i < vertices.size(); ++i) {
    const auto& at = vertices[i];
    const auto before = slope(vertices[i - 1], at);
    const auto after = i + 1 < vertices.size() ? slope(at, vertices[i + 1]) : 0.0L;
    masses.add(at.index, static_cast<double>(std::max(0.0L, at.alpha * (after - before))));
    charged += 8.0L * unit * at.alpha * (std::abs(before) + std::abs(after));
  }
  masses.put(out);
  out.infinite_mass = static_cast<double>(vertices.back().value + charged) * (1.0 + 1e-15);
  out.relative_error = 1e-15;  // of masses as doubles
  return out;
}

LossDistribution dominated_loss(const std::vector<LossCell>& cells, double step) {
  struct Atom {
    double loss, mass;
  };
  std::vector<Atom> atoms;
  for (const auto& cell : cells)
    if (cell.first > 0.0L && cell.second > 0.0L)
      atoms.push_back({static_cast<double>(std::log(cell.first / cell.second)), static_cast<double>(cell.first)});
  if (atoms.empty()) throw Error(ExitCode::failure, "no cell of a loss has mass");
  LossDistribution out;
  out.rounding = Rounding::optimistic;
  out.step = step;
  // The middle of cells that lie between two points; below 0, so that sums of many are still asked at an ε above 0.
  out.offset = -0.5 * step;
  const auto index_of = [&](double loss, double charge) {
    return static_cast<std::int64_t>(std::floor((loss + charge - out.offset) / step));
  };
  double least = std::numeric_limits<double>::infinity();
  for (double charge = 0.5 * step; charge > 1e-3 * step; charge *= 0.5) {
    double lowered = 0.0;
    for (const auto& atom : atoms)
      lowered +=
          atom.mass * (atom.loss - (out.offset + step * static_cast<double>(index_of(atom.loss, charge)) - charge));
    if (lowered < least) least = lowered, out.loss_error = charge;
  }
  Masses masses;
  for (const auto& atom : atoms) masses.add(index_of(atom.loss, out.loss_error), atom.mass);
  masses.put(out);
  out.loss_error += 1e-14 * (out.largest_loss() + step);
  out.relative_error = 1e-13;  // of sums of masses as doubles
  return out;
}

}  // namespace tsdp::privacy
