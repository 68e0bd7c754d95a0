#include "allocation_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "privacy/terms/numbers.h"
#include "tsdp/base/error.h"

namespace tsdp::privacy {
namespace {

long double below(long double z) { return 0.5L * std::erfc(-z / std::numbers::sqrt2_v<long double>); }
/// Mass of N(0, 1) in (from, to), from the tail in which both lie: no cancellation beyond that of neighbours.
long double mass_between(long double from, long double to) {
  return from > 0.0L ? below(-from) - below(-to) : below(to) - below(from);
}
// Relative error of masses of cells and of what follows from them: differences of tails at a distance of 1e-3 lose 4 of
// 19 digits.
constexpr double cell_error = 1e-12;

/// A lognormal variable X = e^{s z − s²/2} in cells of z: masses of N(0, 1) and of the law weighted by X.
struct LognormalCells {
  std::vector<double> log_x;  // at the cells' ends
  std::vector<double> mass, mean;  // of cells: P and E[X; cell]
  double before, mean_beyond, beyond;

  LognormalCells(double s, double low, double high, std::size_t count) {
    const auto scale = static_cast<long double>(s);
    const auto at = [&](std::size_t i) {
      return static_cast<long double>(low) + (static_cast<long double>(high) - static_cast<long double>(low)) *
                                                 static_cast<long double>(i) / static_cast<long double>(count);
    };
    for (std::size_t i = 0; i <= count; ++i) {
      log_x.push_back(static_cast<double>(scale * at(i) - scale * scale / 2.0L));
      if (i == count) break;
      mass.push_back(static_cast<double>(mass_between(at(i), at(i + 1))));
      mean.push_back(static_cast<double>(mass_between(at(i) - scale, at(i + 1) - scale)));
    }
    before = static_cast<double>(below(at(0))) * (1.0 + cell_error);
    beyond = static_cast<double>(below(-at(count))) * (1.0 + cell_error);
    mean_beyond = static_cast<double>(below(scale - at(count))) * (1.0 + cell_error);
  }
};

}  // namespace

CommonAndOwn::CommonAndOwn(std::int64_t bins, double common, double own)
    : mu_(std::sqrt(common)), none_(!(own > 0.0)), own_(bins, none_ ? 1.0 : 1.0 / std::sqrt(own)) {
  if (!(common >= 0.0) || !(own >= 0.0) || !(common + own > 0.0))
    throw Error(ExitCode::failure, "a Gram matrix of negative entries");
  // H changes over the deviation of the bins' likelihood ratio; nobody needs more cells of x than this.
  const double deviation = std::sqrt(std::expm1(std::min(own, 50.0)) / static_cast<double>(bins));
  step_ = std::max({0.2 * std::min(deviation, 0.5), 20.0 * mu_ / 4000.0, 1e-5});
}

Interval CommonAndOwn::other(Direction direction, std::int64_t index) {
  const double epsilon = step_ * static_cast<double>(index);
  if (index < 0) {
    const auto opposite = other(direction == Direction::remove ? Direction::add : Direction::remove, -index);
    const double gamma = std::exp(epsilon);
    const double rest = -std::expm1(epsilon);
    return {std::max(0.0, (rest + gamma * opposite.lower) * (1.0 - 1e-14)),
            std::min(1.0, (rest + gamma * opposite.upper) * (1.0 + 1e-14))};
  }
  const auto end = end_of(direction);
  return index > end ? Interval{0.0, known_.at({direction, end}).upper} : of_own(direction, index);
}

const Interval& CommonAndOwn::of_own(Direction direction, std::int64_t index) {
  auto [slot, is_new] = known_.try_emplace({direction, index}, Interval{0.0, 1.0});
  if (is_new) slot->second = own_.delta(direction, step_ * static_cast<double>(index), 1, 1e-2);
  return slot->second;
}

std::int64_t CommonAndOwn::end_of(Direction direction) {
  const auto known = end_.find(direction);
  if (known != end_.end()) return known->second;
  const auto ends = [&](std::int64_t index) {
    return step_ * static_cast<double>(index) > 4.0 || of_own(direction, index).upper < 1e-14;
  };
  std::int64_t low = 0;
  std::int64_t high = 1;
  while (!ends(high)) low = std::exchange(high, 2 * high);
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (ends(middle) ? high : low) = middle;
  }
  of_own(direction, high);
  return end_[direction] = high;
}

Interval CommonAndOwn::delta(Direction direction, double epsilon) {
  if (none_) return gaussian_delta(epsilon, mu_);
  if (mu_ == 0.0) return own_.delta(direction, epsilon, 1, 1e-2);
  const auto mu = static_cast<long double>(mu_);
  const auto reach = 9.5L * mu + mu * mu / 2.0L;
  const auto e = static_cast<long double>(epsilon);
  const auto step = static_cast<long double>(step_);
  if (!(2.0L * reach / step < static_cast<long double>(most_nodes)) || !(e / step < 1e15L)) return {0.0, 1.0};
  const auto first = static_cast<std::int64_t>(std::floor((e - reach) / step));
  const auto last = static_cast<std::int64_t>(std::ceil((e + reach) / step));
  // Nodes by falling index, that is by rising x.
  struct Node {
    long double z, x;
    double upper, lower;  // of F
  };
  std::vector<Node> nodes;
  for (std::int64_t j = last; j >= first; --j) {
    const auto log_x = e - step * static_cast<long double>(j);
    const auto x = std::exp(log_x);
    const auto h = other(direction, j);
    nodes.push_back({log_x / mu + mu / 2.0L, x, static_cast<double>(x) * h.upper, static_cast<double>(x) * h.lower});
  }
  // Below the first node F is at most its value there; beyond the last F(x) ≤ x.
  long double upper =
      static_cast<long double>(nodes.front().upper) * below(nodes.front().z) + below(mu - nodes.back().z);
  long double lower = 0.0L;
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    const auto& left = nodes[i];
    const auto& right = nodes[i + 1];
    const auto light = mass_between(left.z, right.z);
    const auto heavy = mass_between(left.z - mu, right.z - mu);
    const auto to_right = std::clamp((heavy - light * left.x) / (right.x - left.x), 0.0L, light);
    upper +=
        (light - to_right) * static_cast<long double>(left.upper) + to_right * static_cast<long double>(right.upper);
    if (!(light > 1e-300L)) continue;
    const auto mean = std::clamp(heavy / light, left.x, right.x);
    auto least = static_cast<long double>(left.lower);  // F rises
    const auto prolonged = [&](const Node& from, const Node& through) {
      // The chord from a node taken at its upper end through one taken at its lower end.
      const auto slope =
          (static_cast<long double>(through.lower) - static_cast<long double>(from.upper)) / (through.x - from.x);
      least = std::max(least, static_cast<long double>(through.lower) + slope * (mean - through.x));
    };
    if (i > 0) prolonged(nodes[i - 1], left);
    if (i + 2 < nodes.size()) prolonged(nodes[i + 2], right);
    lower += light * least;
  }
  // Places of nodes are off by a few units, which moves F and masses by as many of themselves.
  constexpr double slack = 1e-11;
  return {std::max(0.0, static_cast<double>(lower) * (1.0 - slack)),
          std::min(1.0, static_cast<double>(upper) * (1.0 + slack) + 1e-300)};
}

std::int64_t LaplaceOfAddition::colours_for(const Gram& gram, std::int64_t bands) {
  const auto b = gram.bins();
  if (bands >= b) return b;
  bool corner = false;
  for (std::int64_t i = 0; i + 1 < bands; ++i)
    for (std::int64_t j = std::max(b - bands + 1 + i, i + bands); j < b; ++j) corner = corner || gram.at(i, j) > 0.0;
  if (!corner || b % bands == 0) return bands;
  const auto whole = b / bands;
  return std::min(b, bands + (b % bands + whole - 1) / whole);
}

namespace {
constexpr double log_step = 0.004;  // of t
}

LaplaceOfAddition::LaplaceOfAddition(const Gram& gram, double noise_multiplier, std::int64_t bands)
    : bins_(gram.bins()), colours_(colours_for(gram, bands)) {
  if (gram.largest_beyond(bands) > 0.0) throw Error(ExitCode::failure, "a Gram matrix with entries beyond its bands");
  std::vector<double> diagonal;
  for (std::int64_t i = 0; i < bins_; ++i)
    diagonal.push_back(gram.at(i, i) / (noise_multiplier * noise_multiplier) * (1.0 + 1e-15));
  std::sort(diagonal.begin(), diagonal.end(), std::greater<>());
  // φ grows with v: the largest of a class stands for all.
  constexpr double of_class = 1e-3;
  for (std::size_t i = 0; i < diagonal.size();) {
    std::size_t end = i;
    while (end < diagonal.size() && diagonal[end] >= diagonal[i] * (1.0 - (classes_.size() < 8 ? of_class : 0.05)))
      ++end;
    const LognormalCells of(std::sqrt(diagonal[i]), -9.0, 9.0, 4000);
    Class c{static_cast<double>(end - i), {}, {}, of.before};
    for (const double x : of.log_x) c.x.push_back(std::exp(x));
    c.weight.assign(c.x.size(), 0.0);
    for (std::size_t k = 0; k < of.mass.size(); ++k) {
      const double to_right = std::clamp((of.mean[k] - of.mass[k] * c.x[k]) / (c.x[k + 1] - c.x[k]), 0.0, of.mass[k]);
      c.weight[k] += of.mass[k] - to_right;
      c.weight[k + 1] += to_right;
    }
    c.weight.back() += of.beyond;
    classes_.push_back(std::move(c));
    i = end;
  }
}

double LaplaceOfAddition::log_product(std::int64_t index) {
  const auto found = known_.find(index);
  if (found != known_.end()) return found->second;
  const double s =
      std::exp(log_step * static_cast<double>(index)) * static_cast<double>(colours_) / static_cast<double>(bins_);
  double sum = 0.0;
  for (const auto& c : classes_) {
    double phi = c.near_zero;
    for (std::size_t k = 0; k < c.x.size(); ++k) phi += c.weight[k] * std::exp(-s * c.x[k]);
    // Exponents are off by s x units, which for terms that count is below 1e-13; masses as above.
    sum += c.count * (std::log(phi) + 2.0 * cell_error);
  }
  return known_[index] = sum / static_cast<double>(colours_);
}

double LaplaceOfAddition::delta(double epsilon) {
  // Any t gives a bound. Its logarithm is convex in t: golden section over a grid of log t.
  const auto value = [&](std::int64_t index) {
    const double log_t = log_step * static_cast<double>(index);
    return epsilon - 1.0 - log_t + std::exp(log_t - epsilon) * (1.0 + 1e-14) + log_product(index);
  };
  std::int64_t low = static_cast<std::int64_t>(std::log(1e-3) / log_step);
  std::int64_t high = static_cast<std::int64_t>(std::log(1e9) / log_step);
  while (high - low > 2) {
    const auto left = low + (high - low) * 382 / 1000;
    const auto right = std::max(left + 1, low + (high - low) * 618 / 1000);
    if (value(left) <= value(right)) high = right;
    else low = left;
  }
  double best = infinity;
  for (auto i = low; i <= high; ++i) best = std::min(best, value(i));
  return std::min(1.0, std::exp(best + 1e-13 * (std::abs(epsilon) + 30.0)) * (1.0 + 1e-14));
}

}  // namespace tsdp::privacy
