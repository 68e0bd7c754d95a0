#include "game_profiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "balanced.h"
#include "privacy/terms/numbers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// Distance of points, in deviations of the loss: chords add a share of its square/6 to the variance.
constexpr double spacing = 1.0 / 60.0;

}  // namespace

GameProfiles::GameProfiles(double step, double deviation) : step_(step), deviation_(deviation) {
  if (!(step > 0.0) || !std::isfinite(step) || !(deviation > 0.0) || !std::isfinite(deviation))
    throw Error(ExitCode::failure,
                "profiles of a game: the grid's step and the deviation are expected to be positive and finite");
  rows_.push_back({1, {0.0}, 0.0});
}

std::int64_t GameProfiles::stride(std::size_t t) const {
  const double wanted = spacing * deviation_ * std::sqrt(static_cast<double>(t)) / step_;
  std::int64_t out = 1;
  while (static_cast<double>(2 * out) <= wanted && out < (std::int64_t{1} << 30)) out *= 2;
  return out;
}

void GameProfiles::add(const std::vector<double>& values, double error) {
  Row row{stride(rows_.size()), {}, error};
  for (std::size_t n = 0; n < values.size(); n += static_cast<std::size_t>(row.stride)) row.values.push_back(values[n]);
  rows_.push_back(std::move(row));
}

void GameProfiles::add(Row row) {
  const bool sound =
      row.stride == stride(rows_.size()) && !row.values.empty() && std::isfinite(row.error) && row.error >= 0.0 &&
      std::all_of(row.values.begin(), row.values.end(), [](double x) { return std::isfinite(x) && x >= 0.0; });
  if (!sound) throw Error(ExitCode::failure, "profiles of a game: a row that no round leaves");
  rows_.push_back(std::move(row));
}

double GameProfiles::profile(std::size_t t, double epsilon) const {
  if (t == 0) return 0.0;
  const auto& row = rows_.at(t);
  const auto& d = row.values;
  const double step = step_ * static_cast<double>(row.stride);
  const auto last = static_cast<double>(d.size() - 1);
  const double place = std::min(epsilon / step * (1.0 - 1e-15), last);
  const auto low = static_cast<std::size_t>(place);
  const auto high = std::min(low + 1, d.size() - 1);
  const auto at = [&](std::size_t n) { return (d[n] + row.error) * std::exp(0.5 * step * static_cast<double>(n)); };
  const double from = step * static_cast<double>(low);
  const double share =
      high == low ? 0.0 : std::clamp(std::expm1(std::max(0.0, epsilon - from)) / std::expm1(step), 0.0, 1.0);
  // A chord of a convex, falling function of α.
  return std::min(1.0, (at(low) + share * (at(high) - at(low))) * (1.0 + 1e-12));
}

LossDistribution GameProfiles::loss(std::size_t t, std::int64_t every, double tail_mass) const {
  const auto& row = rows_.at(t);
  if (every < row.stride || every % row.stride != 0)
    throw Error(ExitCode::failure,
                cat("profiles of a game: a grid of ", every, " steps is no multiple of ", row.stride));
  const auto& d = row.values;
  const auto points = every / row.stride;
  const double step = step_ * static_cast<double>(every);
  // α_c: the first point at which the profile is at most `tail_mass`.
  const auto last = static_cast<std::int64_t>(d.size() - 1) / points;
  if (last < 1)
    throw Error(ExitCode::failure,
                cat("profiles of a game: ", t, " rounds reach no further than one step of the grid"));
  std::int64_t cut = 1;
  const auto balanced = [&](std::int64_t i) { return d[static_cast<std::size_t>(i * points)]; };
  while (cut < last && balanced(cut) * std::exp(0.5 * step * static_cast<double>(cut)) > tail_mass) ++cut;
  const auto count = static_cast<std::size_t>(cut) + 1;

  // One side, in the units of W at z > 1, convex; the other is its mirror image.
  std::vector<double> z(count), f(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double root = std::exp(0.5 * step * static_cast<double>(i));
    z[i] = root * root;
    f[i] = balanced(static_cast<std::int64_t>(i)) * root;
  }
  falling_hull(z, f);
  const auto side = [&](std::int64_t i) {
    const auto k = std::abs(i);
    // Beyond the cut f is constant: a tail of profile, and of mass, that goes to infinite loss.
    const auto inside = std::min(k, cut);
    return f[static_cast<std::size_t>(inside)] * std::exp(-0.5 * step * static_cast<double>(k));
  };
  LossDistribution out;
  out.rounding = Rounding::pessimistic;
  out.step = step;
  const SecondDifference difference(step);
  const auto mass = [&](std::int64_t i) {
    return std::max(0.0, difference(side, i) + 16.0 * roundoff * difference.magnitude(side, i));
  };
  out.at_zero = mass(0);
  for (std::int64_t i = 1; i <= cut; ++i) {
    const double root = std::exp(0.5 * step * static_cast<double>(i));
    const double m = mass(i);
    if (m > 0.0) out.points.push_back({i, m * root, m / root});
  }
  const double root = std::exp(0.5 * step * static_cast<double>(cut));
  out.infinite_mass = (f.back() + root * row.error) * (1.0 + 1e-12);
  out.relative_error = 1e-13;
  return out;
}

}  // namespace tsdp::privacy
