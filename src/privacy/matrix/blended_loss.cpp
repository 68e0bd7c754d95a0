#include "blended_loss.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "privacy/accountant/fourier.h"
#include "privacy/terms/numbers.h"
#include "privacy/terms/out_of_reach.h"
#include "tsdp/base/error.h"

namespace tsdp::privacy {
namespace {

/// Cells of all transforms together (256 MB), and of one.
constexpr double most_cells_together = 1 << 25;
constexpr double most_cells = 1 << 20;
constexpr std::size_t most_points = std::size_t{1} << 16;

double largest_plus(const std::vector<LossDistribution>& losses) {
  double largest = 1e-300;
  for (const auto& d : losses) largest = std::max(largest, d.largest_plus());
  return largest;
}

double largest_loss(const std::vector<LossDistribution>& losses) {
  double largest = 1e-300;
  for (const auto& d : losses) largest = std::max(largest, d.largest_loss());
  return largest;
}

struct TooWide {};

/// F of one pair's tilted masses.
struct Transform {
  std::vector<double> values;  // complex numbers
  double log_mass;
};

/// F of the tilted masses of all losses on a circle of `size` cells, to nearest.
std::vector<Transform> transforms_of(const std::vector<LossDistribution>& losses, double theta, std::int64_t size) {
  const double h = losses.front().step;
  std::vector<Transform> transforms;
  transforms.reserve(losses.size());
  for (const auto& d : losses) {
    Transform out{std::vector<double>(static_cast<std::size_t>(size) + 2, 0.0), cumulants(d, theta).value};
    const auto put = [&](std::int64_t index, double mass) {
      if (!(mass > 0.0)) return;
      auto& value = out.values[static_cast<std::size_t>(((index % size) + size) % size)];
      value += mass * std::exp(theta * static_cast<double>(index) * h - out.log_mass);
    };
    put(0, d.at_zero);
    for (const auto& p : d.points) {
      put(p.index, p.plus);
      put(-p.index, p.minus);
    }
    fourier::forward(out.values.data(), size);
    transforms.push_back(std::move(out));
  }
  return transforms;
}

/// (1 − share) e^a + share e^b, from the larger exponent on: its logarithm, and b's share of it.
struct LogMixture {
  LogMixture(double a, double b, double share_of_b) : top(std::max(a, b)) {
    const double of_a = (1.0 - share_of_b) * std::exp(a - top);
    const double of_b = share_of_b * std::exp(b - top);
    share = of_b / (of_a + of_b);
    value = top + std::log(of_a + of_b);
  }
  double top, value = 0.0, share = 0.0;
};

/// Sums over all steps.
struct Totals {
  std::vector<double> shares;  // τ of every step: b's of its tilted mass
  double log_scale = 0.0;      // K
  double infinite_mass = 0.0;
  double loss_error = 0.0;
  double relative_errors = 0.0;
};

/// τ and K, to nearest, and what the steps' losses are off by, summed up from above.
Totals totals_of(const std::vector<BlendedLoss::Step>& steps, const std::vector<LossDistribution>& losses,
                 const std::vector<Transform>& transforms, double theta) {
  const double furthest_up = largest_plus(losses);
  Totals totals;
  for (const auto& s : steps) {
    const LogMixture mass(transforms[s.a].log_mass, transforms[s.b].log_mass, s.share);
    totals.shares.push_back(mass.share);
    totals.log_scale += mass.value;
    const auto& da = losses[s.a];
    const auto& db = losses[s.b];
    totals.infinite_mass += (1.0 - s.share) * da.infinite_mass + s.share * db.infinite_mass;
    totals.loss_error += std::max(da.loss_error, db.loss_error);
    totals.relative_errors +=
        std::max(da.relative_error, db.relative_error) +
        roundoff * (24.0 + 4.0 * (theta * furthest_up + std::abs(mass.value)) + 8.0 * std::abs(mass.top));
  }
  totals.infinite_mass *= 1.0 + 1e-12;
  return totals;
}

/// Π (1 − τ) F_a + τ F_b over all steps on a circle of `size` cells, to nearest, a block of frequencies at a time.
std::vector<double> product_of(const std::vector<BlendedLoss::Step>& steps, const std::vector<double>& shares,
                               const std::vector<Transform>& transforms, std::int64_t size) {
  const auto half = static_cast<std::size_t>(size / 2 + 1);
  std::vector<double> product(static_cast<std::size_t>(size) + 2);
  for (std::size_t m = 0; m < half; ++m) product[2 * m] = 1.0, product[2 * m + 1] = 0.0;
  constexpr std::size_t block = 512;
  for (std::size_t from = 0; from < half; from += block) {
    const auto to = std::min(from + block, half);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double* a = transforms[steps[i].a].values.data();
      const double* b = transforms[steps[i].b].values.data();
      const double t = shares[i];
      double* p = product.data();
      for (std::size_t m = from; m < to; ++m) {
        const double re = a[2 * m] + t * (b[2 * m] - a[2 * m]);
        const double im = a[2 * m + 1] + t * (b[2 * m + 1] - a[2 * m + 1]);
        const double x = p[2 * m];
        const double y = p[2 * m + 1];
        p[2 * m] = x * re - y * im;
        p[2 * m + 1] = x * im + y * re;
      }
      // Products below 1e-60 are dropped: next to 1e-16 that is nothing.
      if (i % 8 == 7)
        for (std::size_t m = from; m < to; ++m)
          if (std::abs(p[2 * m]) + std::abs(p[2 * m + 1]) < 1e-60) p[2 * m] = p[2 * m + 1] = 0.0;
    }
  }
  return product;
}

/// The part of the tilted sum that lies beyond a place.
struct Beyond {
  double sum = 0.0;    // Σ_{jh > place} w(jh − place) t_j
  double sizes = 0.0;  // of its terms
};

/// Of the tilted sum's masses t_j in the window, to nearest. `masses`: N t_j on its circle.
Beyond sum_beyond(double place, double h, const Window& window, const std::vector<double>& masses) {
  const auto size = window.cells;
  const auto n = static_cast<double>(size);
  const auto end = window.first + size;
  Beyond out;
  for (auto j = std::max(window.first,
                         static_cast<std::int64_t>(std::min(std::floor(place / h) + 1.0, static_cast<double>(end))));
       j < end; ++j) {
    const double over = static_cast<double>(j) * h - place;
    const double term = std::exp(-window.theta * over) * -std::expm1(-over) *
                        masses[static_cast<std::size_t>(((j % size) + size) % size)] / n;
    out.sum += term;
    out.sizes += std::abs(term);
  }
  return out;
}

}  // namespace

BlendedLoss::BlendedLoss(std::vector<DominatingPair> pairs, std::vector<Step> steps, Direction direction,
                         double weight_error)
    : pairs_(std::move(pairs)), steps_(std::move(steps)), direction_(direction), weight_error_(weight_error) {
  if (direction == Direction::symmetrised) throw Error(ExitCode::failure, "steps are composed in one direction");
  for (const auto& s : steps_)
    if (s.a >= pairs_.size() || s.b >= pairs_.size() || !(s.share >= 0.0) || !(s.share <= 1.0))
      throw Error(ExitCode::failure, "a step mixes two pairs that there are");
  std::vector<double> square;
  for (const auto& pair : pairs_) {
    const double own = loss_scale(pair, direction).deviation;
    square.push_back(own * own);
  }
  double sum = 0.0;
  for (const auto& s : steps_) sum += (1.0 - s.share) * square[s.a] + s.share * square[s.b];
  deviation_ = std::sqrt(std::max(sum, 1e-300));
}

/// E e^{θL} of a step is (1 − t) E_a + t E_b, and so are the moments of the tilted loss.
Cumulants BlendedLoss::sums(const std::vector<LossDistribution>& losses, double theta) const {
  std::vector<Cumulants> own;
  own.reserve(losses.size());
  for (const auto& d : losses) own.push_back(cumulants(d, theta));
  Cumulants sum{0.0, 0.0, 0.0};
  for (const auto& s : steps_) {
    const auto& a = own[s.a];
    const auto& b = own[s.b];
    const LogMixture mass(a.value, b.value, s.share);
    const double t = mass.share;
    sum.value += mass.value;
    sum.mean += (1.0 - t) * a.mean + t * b.mean;
    sum.variance += (1.0 - t) * a.variance + t * b.variance + t * (1.0 - t) * (b.mean - a.mean) * (b.mean - a.mean);
  }
  return sum;
}

/// All on one grid. Weights that are off by w of themselves move P by as much of itself and the loss by w; borders of
/// cells are found by Newton's method to a few units of the loss's terms, which are at most about 1 where terms cancel.
std::vector<LossDistribution> BlendedLoss::discretised(double step, double fine, double tail) const {
  while (true) {
    std::vector<LossDistribution> out;
    double least = step;
    for (const auto& pair : pairs_) {
      out.push_back(discretise(pair, step, fine, Rounding::pessimistic, tail, most_points, direction_));
      out.back().relative_error += 1.01 * weight_error_;
      out.back().loss_error += 1.01 * weight_error_ + 64.0 * roundoff;
      least = std::min(least, out.back().step);
    }
    if (std::all_of(out.begin(), out.end(), [&](const auto& d) { return d.step == least; })) return out;
    step = least;
  }
}

Window BlendedLoss::window_of(const std::vector<LossDistribution>& losses, double theta) const {
  const double h = losses.front().step;
  const double furthest_up = largest_plus(losses);
  const double furthest = largest_loss(losses);
  const double allowed = std::min(most_cells, most_cells_together / static_cast<double>(losses.size()));
  for (int attempt = 0;; ++attempt) {
    const auto at = sums(losses, theta);
    if (!std::isfinite(at.value) || !std::isfinite(at.mean) || !std::isfinite(at.variance))
      throw OutOfReach("the privacy loss is too large to be composed: ask for a larger noise multiplier");
    const double deviation = std::sqrt(std::max(at.variance, 1e-300));
    // Chernoff's bound at either end, which holds for any s > 0.
    const auto edge = [&](double sign) {
      double best = sign * std::numeric_limits<double>::infinity();
      for (const double multiple : {9.6, 7.0, 4.8, 12.0, 3.0, 1.8, 1.0, 0.5, 0.25}) {
        const double moved = theta + sign * multiple / deviation;
        if (moved >= 0.0 ? moved * furthest_up > 690.0 : -moved * furthest > 690.0) continue;
        const double e = sign * (sums(losses, moved).value - at.value - log_outside) / (multiple / deviation);
        best = sign > 0.0 ? std::min(best, e) : std::max(best, e);
        if (std::abs(best - at.mean) <= 10.5 * deviation) break;
      }
      return best;
    };
    const double first = std::floor(edge(-1.0) / h) - 1.0;
    const double cells = std::ceil(edge(1.0) / h) + 1.0 - first + 1.0;
    if (cells <= allowed) {
      const auto size = fourier::good_size(std::max<std::int64_t>(static_cast<std::int64_t>(cells), 64));
      return {theta, static_cast<std::int64_t>(first), size};
    }
    if (attempt >= 8) throw TooWide{};
    theta *= 0.8;
  }
}

BlendedLoss::Answer BlendedLoss::composed(const std::vector<LossDistribution>& losses, double wanted_theta,
                                          double epsilon) const {
  const double h = losses.front().step;
  const auto window = window_of(losses, wanted_theta);
  const double theta = window.theta;
  const auto size = window.cells;
  const auto n = static_cast<double>(size);
  // Each coefficient of a transform is off by 8 u log₂N of the masses (Higham 2002, §24.1), as in tilted_transform.cpp.
  const double transform_error = roundoff * (8.0 * std::log2(n) * 1.001 + 4.0);
  const auto transforms = transforms_of(losses, theta, size);
  const auto all = totals_of(steps_, losses, transforms, theta);
  auto product = product_of(steps_, all.shares, transforms, size);
  const auto half = static_cast<std::size_t>(size / 2 + 1);
  const auto steps = static_cast<double>(steps_.size());
  // Factors are at most 1 + e, so all of them are off by at most (1 + e)^steps − 1.
  const double product_error = std::expm1(1.001 * steps * (transform_error + 16.0 * roundoff));
  double magnitudes = 0.0;
  for (std::size_t m = 0; m < half; ++m)
    magnitudes += (m == 0 || m + 1 == half ? 1.0 : 2.0) * std::hypot(product[2 * m], product[2 * m + 1]);
  fourier::backward(product.data(), size);
  // A transform back is a mean of `size` terms, each of which rounds at log₂N stages.
  const double mass_error = product_error + transform_error * magnitudes / n + 4.0 * roundoff;

  const double shift = all.loss_error + 8.0 * roundoff * (epsilon + h);
  const double place = std::max(0.0, epsilon - shift);
  // The part of the window's mass that lies beyond ε.
  const auto beyond = sum_beyond(place, h, window, product);
  const double c = std::exp(log_c(theta));
  // Arguments of w are off by 4 units of ε, which `shift` carries; exponents by 2θ units of their losses.
  const double reach = std::max(0.0, (static_cast<double>(window.first + size) * h - place));
  const double error = c * 4.0 * std::exp(log_outside) + mass_error * 1.001 * (c + 1.0 / (h * theta * (1.0 + theta))) +
                       beyond.sizes * roundoff * (n + 32.0 + 4.0 * theta * reach);
  const double relative = std::expm1(all.relative_errors) + 1e-12;
  const double log_front = all.log_scale - theta * place;
  const double missing = std::max(0.0, shift - epsilon);
  const auto scaled = [&](double inner) {
    return std::exp(std::min(log_front + std::log(inner), 1.0)) * (1.0 + relative);
  };
  // The sum of the logarithms is off by `steps` units of theirs.
  const double of_sums = 4.0 * roundoff * steps * (std::abs(all.log_scale) + theta * place + 1.0);
  const double value =
      (scaled(std::max(beyond.sum, 0.0) + error) * (1.0 + of_sums) + all.infinite_mass + missing * (1.0 + relative)) *
      (1.0 + 1e-13);
  return {std::isnan(value) ? 1.0 : std::min(1.0, value), scaled(error)};
}

double BlendedLoss::largest_addition() const {
  const auto largest = [&](std::size_t i) {
    const auto& first = pairs_[i].components().front();
    return first.mean > 0.0 ? std::numeric_limits<double>::infinity()
                            : -std::log(first.weight) + 2.0 * weight_error_ + 16.0 * roundoff;
  };
  double sum = 0.0;
  for (const auto& s : steps_) sum += std::max(largest(s.a), largest(s.b));
  return sum * (1.0 + 1e-12);
}

BlendedLoss::Tilt BlendedLoss::best_tilt(double epsilon, double precision) const {
  const auto steps = static_cast<double>(steps_.size());
  const double one = deviation_ / std::sqrt(steps);
  // It is found again once it is known which tails matter: without the others it may be larger.
  double theta = 0.0;
  double tail = 0.0;
  for (int round = 0; round < 2; ++round) {
    const auto scout = discretised(one / 6.0, one, tail);
    double low = std::log(1e-6);
    double high = std::log(600.0 / largest_plus(scout));
    const auto bound = [&](double log_theta) {
      const double tilt = std::exp(log_theta);
      return sums(scout, tilt).value - tilt * epsilon + log_c(tilt);
    };
    constexpr double golden = 0.6180339887498949;
    double x = high - golden * (high - low), y = low + golden * (high - low);
    double at_x = bound(x), at_y = bound(y);
    while (high - low > 0.03) {
      if (at_x <= at_y) {
        high = y, y = x, at_y = at_x;
        x = high - golden * (high - low), at_x = bound(x);
      } else {
        low = x, x = y, at_x = at_y;
        y = low + golden * (high - low), at_y = bound(y);
      }
    }
    theta = std::exp(0.5 * (low + high));
    const double rough = std::exp(std::min({0.0, at_x, at_y}));
    tail = std::max(1e-4 * precision * rough / steps, 1e-36);
  }
  return {theta, tail};
}

double BlendedLoss::delta(double epsilon, double precision) const {
  if (!(epsilon >= 0.0) || !std::isfinite(epsilon))
    throw Error(ExitCode::failure, "epsilon is a finite number of at least 0");
  if (steps_.empty()) return 0.0;
  if (direction_ == Direction::add && epsilon > largest_addition()) return 0.0;
  const auto steps = static_cast<double>(steps_.size());
  const double one = deviation_ / std::sqrt(steps);
  const auto [theta, tail] = best_tilt(epsilon, precision);
  // Cells of width h add at most h²/6 to the variance of a step's loss, which moves log δ by ½θ(1 + θ) times as much;
  // near the middle of the loss its deviation counts instead. Cells of the tail have the relative width `share`.
  const double relevant = epsilon > 3.0 * deviation_ ? theta : std::max(theta, 1.0 / deviation_);
  // Where losses are bounded and ε is near their bound, θ grows without bound; δ is then next to nothing.
  double h = std::max(0.9 * std::sqrt(12.0 * precision / (relevant * steps * (1.0 + theta))),
                      one * std::sqrt(precision) / 16.0);
  const double share = std::min(1.25 * std::sqrt(precision), h / one);
  double best = 1.0;
  for (int attempt = 0; attempt < 12; ++attempt, h *= 2.0) {
    try {
      const auto losses = discretised(h, h / share, tail);
      // The best tilt may lie near the one from which windows grow; a little below it charges are larger but mostly
      // still negligible.
      for (const double tilt : {0.8, 1.0}) {
        const auto found = composed(losses, tilt * theta, epsilon);
        best = std::min(best, found.delta);
        if (found.charge < 0.1 * precision * best) break;
      }
      return best;
    } catch (const TooWide&) {
      // A coarser grid.
    } catch (const OutOfReach&) {
      if (attempt == 11) throw;
    }
  }
  throw OutOfReach("the composition would need a transform that is too large: ask for less precision or fewer steps");
}

}  // namespace tsdp::privacy
