#include "hazards.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"
#include "tail_bound.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

/// Multiplications for all tail bounds: two seconds.
constexpr double most_work = 2e9;

/// λ̄ of one bin, from above: 1/(1 + apart + others e^τ), where `apart` bins before it are alike and give 1 each, and
/// `others` give at least e^τ on average.
double hazard_at_most(double tau, double others, double apart) {
  const double hazard = 1.0 / (1.0 + apart + others * std::exp(tau));
  // Without a τ, only those alike are counted. e^τ is off by a few units.
  const double most =
      std::isfinite(tau) ? hazard * (1.0 + 16.0 * roundoff) : 1.0 / (1.0 + apart) * (1.0 + 4.0 * roundoff);
  return std::clamp(most, 1e-200, 1.0);  // (e^τ may overflow)
}

}  // namespace

std::vector<std::size_t> by_mean(const double* means, std::size_t bins) {
  std::vector<std::size_t> order(bins);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return means[i] < means[j]; });
  return order;
}

const std::vector<double>& hazard_temperatures() {
  static const auto all = [] {
    std::vector<double> out;
    for (const double cold : coldness()) out.push_back(1.0 / cold);
    return out;
  }();
  return all;
}

Hazards hazards_of(const Means& means, double sigma, Direction direction,
                   const std::function<double(std::int64_t)>& may_fail, HazardMode mode,
                   std::optional<std::size_t> family) {
  if (direction == Direction::symmetrised) throw Error(ExitCode::failure, "conditional composition has a direction");
  if (means.bins > most_composed_bins)
    throw OutOfReach(
        cat("bins: found ", means.bins, "; at most ", most_composed_bins, " can be composed step by step"));
  if (family && *family >= most_families) throw Error(ExitCode::failure, "a family of weights that is none");
  const auto b = static_cast<std::size_t>(means.bins);
  Prefix prefix(means.bins);
  double work = 0.0;
  Level level;
  Hazards all;
  for (std::int64_t n = 0; n < means.steps; ++n) {
    const double* now = means.values.data() + static_cast<std::size_t>(n) * b;
    const auto order = by_mean(now, b);
    // All bins at the least mean are one component.
    std::size_t first = 1;
    if (mode == HazardMode::sharp)
      while (first < b && now[order[first]] == now[order[0]]) ++first;
    // How many before a position have looked the same.
    std::vector<std::size_t> same(b), seen(b, 0);
    std::size_t needed = 0;
    for (std::size_t i = 0; i < b; ++i) {
      same[i] = seen[prefix.alike(order[i])]++;
      if (i >= first && same[i] < i) ++needed;
    }
    // Rounded down, so that all of them together stay within δ_E.
    const auto parts = std::max<std::size_t>(mode == HazardMode::all_in ? b - 1 : needed, 1);
    const double beta = may_fail(n) / static_cast<double>(parts) * (1.0 - 8.0 * roundoff);
    if (beta != level.beta) level = {beta, quantile(beta), quantile(1e-9 * beta)};
    std::vector<double> hazards;
    if (first < b) {
      TailBound tail(prefix, means.bins, sigma, direction == Direction::remove, work, family);
      std::vector<std::size_t> others;
      for (std::size_t i = first; i < b; ++i) {
        // P(z = i | z ≤ i, y) = 1/(1 + Σ_{j<i} N(y|μ_j)/N(y|μ_i)); those alike give 1 each.
        if (same[i] == i) {
          hazards.push_back(std::min(1.0, up(1.0 / (static_cast<double>(i) + 1.0))));
          continue;
        }
        others.clear();
        for (std::size_t j = 0; j < i; ++j)
          if (mode == HazardMode::all_in || prefix.alike(order[j]) != prefix.alike(order[i]))
            others.push_back(order[j]);
        const double apart = mode == HazardMode::all_in ? 0.0 : static_cast<double>(same[i]);
        const double tau = tail.quantile_of(order[i], others, level, static_cast<double>(n));
        hazards.push_back(hazard_at_most(tau, static_cast<double>(others.size()), apart));
      }
      if (work > most_work)
        throw OutOfReach(cat("correlated noise: ", means.steps, " steps of ", means.bins,
                             " batches are too many to be composed step by step"));
    }
    all.push_back(std::move(hazards));
    prefix.add(now);
  }
  return all;
}

Hazards union_hazards(const Means& means, double sigma, double spent_delta, Direction direction, HazardMode mode,
                      std::optional<std::size_t> family) {
  const auto steps = static_cast<double>(means.steps);
  const double of_step = steps > 1.0 ? spent_delta / (steps - 1.0) : 0.0;
  return hazards_of(means, sigma, direction, [&](std::int64_t) { return of_step; }, mode, family);
}

}  // namespace tsdp::privacy
