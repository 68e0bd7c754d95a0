#include "grid_policy.h"

#include <cmath>

#include "privacy/terms/out_of_reach.h"

namespace tsdp::privacy {
namespace {

// Cells of a window beyond which no finer grid is tried: where few and where many uses leave high frequencies.
constexpr double finest_window = 1 << 21;
constexpr double finest_window_of_many = 1 << 27;

constexpr std::size_t most_points = std::size_t{1} << 16;

}  // namespace

UseScale scale_of(const std::vector<MechanismUse>& mechanisms) {
  UseScale out;
  out.draws = 0.0;
  double square = 0.0;
  for (const auto& m : mechanisms) {
    const auto own = loss_scale(m.pair, m.direction);
    const auto draws = static_cast<double>(m.uses);
    out.draws += draws;
    square += draws * own.deviation * own.deviation;
    out.largest_loss = std::max(out.largest_loss, own.largest_loss);
  }
  out.deviation = std::sqrt(square / out.draws);
  return out;
}

Cut::Cut(const std::vector<MechanismUse>& mechanisms, const UseScale& scale, double tail)
    : mechanisms_(mechanisms),
      scale_(scale),
      tail_(tail),
      scout_(discretised(scale.deviation / 6.0, scale.deviation, Rounding::pessimistic), 1 << 17) {}

ProductLoss Cut::discretised(double step, double fine, Rounding rounding) const {
  // A pair whose losses are all small gets a smaller step than was asked for; all parts lie on one grid.
  while (true) {
    std::vector<ProductLoss::Part> parts;
    double least = step;
    for (const auto& m : mechanisms_) {
      parts.push_back({discretise(m.pair, step, fine, rounding, tail_, most_points, m.direction), m.uses});
      least = std::min(least, parts.back().distribution.step);
    }
    if (std::all_of(parts.begin(), parts.end(), [&](const auto& part) { return part.distribution.step == least; }))
      return ProductLoss(std::move(parts));
    step = least;
  }
}

double Cut::rough_delta(double epsilon, std::uint64_t uses) {
  try {
    return scout_.compose(uses, tilt_for_epsilon(uses, epsilon)).delta(epsilon);
  } catch (const OutOfReach&) { return 1.0; }
}

std::shared_ptr<Cut::Grid> Cut::grid_for(std::uint64_t uses, double theta, double per_epsilon, double share,
                                         double precision) {
  const double k = static_cast<double>(uses) * scale_.draws;
  // The window's width on the scout's grid tells how fine a grid can still be composed.
  const auto window = window_of(scout_.loss(), uses, theta, 1e15);
  const double finest = static_cast<double>(window.cells) * scout_.loss().step() /
                        (high_frequencies_vanish(scout_.loss(), uses) ? finest_window_of_many : finest_window);
  const double wanted = std::max(finest, 0.9 * std::sqrt(8.0 * precision * per_epsilon / (k * (1.0 + theta))));
  const double step_level = std::floor(4.0 * std::log2(std::min(wanted, 8.0 * scale_.largest_loss) / scale_.deviation));
  // Where most losses are far larger than h, their cells must not be wider than h.
  const double share_level =
      std::floor(4.0 * std::log2(std::min({share, 2.5 * std::sqrt(precision), wanted / scale_.deviation})));
  constexpr std::size_t most_grids = 3;
  const std::pair key{static_cast<int>(step_level), static_cast<int>(share_level)};
  if (grids_.size() >= most_grids && !grids_.contains(key))
    grids_.clear();  // saves memory, at the price of making them again
  auto& slot = grids_[key];
  if (!slot) {
    const double step = scale_.deviation * std::exp2(0.25 * step_level);
    const double fine = step / std::exp2(0.25 * share_level);
    slot = std::make_shared<Grid>(*this, step, fine);
  }
  return slot;  // shared: another question may drop it from here
}

}  // namespace tsdp::privacy
