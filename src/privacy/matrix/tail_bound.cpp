#include "tail_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tsdp::privacy {
namespace {

/// Φ(z) from above. erfc is off by a few units, and by 3z² of its argument's, where that is not below 1e-300.
double below_at_most(double z) {
  if (z > 38.0) return 1.0;
  return std::min(1.0, 0.5 * std::erfc(-z / std::sqrt(2.0)) * (1.0 + 1e-12) + 1e-300);
}

}  // namespace

double quantile(double beta) {
  double low = -38.5;
  double high = 38.5;
  if (!(below_at_most(low) <= beta)) return -infinity;
  while (high - low > 1e-12 * std::max(1.0, std::abs(low))) {
    const double middle = 0.5 * (low + high);
    (below_at_most(middle) <= beta ? low : high) = middle;
  }
  return low;
}

const std::array<double, most_families>& coldness() {
  static const std::array<double, most_families> all = {0.0, 0.1, std::sqrt(0.1), 1.0, std::sqrt(10.0), 10.0};
  return all;
}

Prefix::Prefix(std::int64_t bins)
    : bins_(static_cast<std::size_t>(bins)),
      gram_(bins_ * bins_, 0.0),
      beside_(bins_),
      alike_(bins_, 0),
      order_(bins_) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

void Prefix::add(const double* means) {
  std::vector<std::size_t> moved;
  for (std::size_t i = 0; i < bins_; ++i)
    if (means[i] > 0.0) moved.push_back(i);
  for (const auto i : moved)
    for (const auto j : moved) {
      double& entry = gram_[i * bins_ + j];
      if (entry == 0.0) beside_[i].push_back(static_cast<std::uint32_t>(j));
      entry += means[i] * means[j];
      if (entry == 0.0) beside_[i].pop_back();  // what underflows counts as 0: off by next to nothing
    }
  for (const auto i : moved) largest_ = std::max(largest_, at(i, i));
  if (classes_ == bins_) return;  // no two are alike any more
  std::sort(order_.begin(), order_.end(),
            [&](auto i, auto j) { return std::pair{alike_[i], means[i]} < std::pair{alike_[j], means[j]}; });
  std::vector<std::size_t> next(bins_);
  std::size_t number = 0;
  for (std::size_t k = 0; k < bins_; ++k) {
    if (k > 0 && (alike_[order_[k]] != alike_[order_[k - 1]] || means[order_[k]] != means[order_[k - 1]])) ++number;
    next[order_[k]] = number;
  }
  alike_ = std::move(next);
  classes_ = number + 1;
}

TailBound::TailBound(const Prefix& prefix, std::int64_t bins, double sigma, bool remove, double& work,
                     std::optional<std::size_t> family)
    : prefix_(prefix),
      bins_(static_cast<std::size_t>(bins)),
      inverse_(1.0 / (sigma * sigma)),
      work_(work),
      only_(family) {
  if (!remove) return;
  // Bins that are alike count as one, weighted by their number.
  std::vector<std::size_t> first(bins_, bins_);
  for (std::size_t i = 0; i < bins_; ++i) {
    auto& slot = first[prefix.alike(i)];
    if (slot == bins_) {
      slot = centres_.size();
      centres_.push_back(i);
      shares_.push_back(0.0);
    }
    shares_[slot] += 1.0;
  }
  for (auto& share : shares_) share /= static_cast<double>(bins_);
}

double TailBound::quantile_of(std::size_t i, const std::vector<std::size_t>& others, const Level& level, double steps) {
  const double beta = level.beta;
  prepare(i, others, steps);
  auto [low, high] = range_of_quantile(level);
  low -= 1e-10 * (1.0 + std::abs(low));
  double f_low = chance_below(low, level);
  for (int round = 0; round < 40 && !(f_low <= beta); ++round) {
    low -= std::ldexp(1e-9, round) * (1.0 + std::abs(low));
    f_low = chance_below(low, level);
  }
  if (!(f_low <= beta)) return -infinity;
  if (high - low <= 3e-10 * (1.0 + std::abs(low))) return low;
  double f_high = chance_below(high, level);
  if (f_high <= beta) return high;
  // Bisection with secant steps of log P, which is smooth (Illinois): `low` stays on the safe side.
  double g_low = std::log(f_low / beta);
  double g_high = std::log(f_high / beta);
  int side = 0;
  for (int round = 0; round < 100 && high - low > 2e-9; ++round) {
    double middle = (low * g_high - high * g_low) / (g_high - g_low);
    const double least = std::max(0.01 * (high - low), 1e-9);
    middle = std::clamp(middle - 5e-10, std::min(low + least, high), std::max(high - least, low));
    if (!(middle > low && middle < high)) middle = 0.5 * (low + high);
    const double value = chance_below(middle, level);
    if (value <= beta) {
      low = middle;
      g_low = std::log(value / beta);
      if (side == 1) g_high *= 0.5;
      side = 1;
    } else {
      high = middle;
      g_high = std::log(value / beta);
      if (side == -1) g_low *= 0.5;
      side = -1;
    }
  }
  return low;
}

double TailBound::chance_below(double tau, const Level& level) {
  const auto count = centre_count();
  // Where Φ is below 1e-9 β, it is replaced by 1e-9 β, which is more.
  const double least_counted = 1e-9 * level.beta;
  const double z_counted = level.z_counted;
  std::fill(least_.begin(), least_.end(), infinity);
  for (std::size_t f = 0; f < families_; ++f) {
    const double* centre = centres_of_.data() + f * count;
    const double of_wide = over_wide_[f];
    const double of_narrow = over_narrow_[f];
    double* least = least_.data();
    for (std::size_t k = 0; k < count; ++k) {
      const double over = tau - centre[k];
      const double z = over * (over < 0.0 ? of_wide : of_narrow);
      least[k] = z < least[k] ? z : least[k];
    }
  }
  double sum = 0.0;
  for (std::size_t k = 0; k < count; ++k)
    sum += (least_[k] <= z_counted ? least_counted : below_at_most(least_[k])) * (shares_.empty() ? 1.0 : shares_[k]);
  return sum * (1.0 + 1e-12);
}

std::pair<double, double> TailBound::range_of_quantile(const Level& level) const {
  const auto count = centre_count();
  // Where every ρ has Φ = β the mean is β, so that τ lies between the least and the largest of these places.
  double low = infinity;
  double high = -infinity;
  for (std::size_t k = 0; k < count; ++k) {
    double place = -infinity;
    for (std::size_t f = 0; f < families_; ++f)
      place = std::max(place, centres_of_[f * count + k] + std::min(level.z, 0.0) * wide_[f]);
    low = std::min(low, place);
    high = std::max(high, place);
  }
  return {low, high};
}

void TailBound::prepare(std::size_t i, const std::vector<std::size_t>& others, double steps) {
  const auto count = centre_count();
  const auto r = static_cast<double>(others.size());
  const auto b = static_cast<double>(bins_);
  const double off = (steps + 2.0 * b + 32.0) * roundoff * prefix_.largest() * inverse_;
  const double own = prefix_.at(i, i);
  for (auto* v : {&distance_, &weight_, &warm_, &hot_}) v->resize(others.size());
  least_.resize(count);
  const auto [nearest, furthest] = find_distances(i, others);
  centres_of_.assign(most_families * count, 0.0);
  families_ = 0;
  for (std::size_t family = 0; family < most_families; ++family) {
    if (family > 0 && nearest == furthest) break;  // the uniform weights once more
    const auto [sum, sum_of_exponents] = weigh(family, nearest);
    if (only_ && *only_ != family && nearest < furthest) continue;
    const double mean_exponent = sum_of_exponents / sum;
    // KL(ψ‖uniform) = Σ ψ log(r ψ), log ψ_j = a_j − log Σ e^a.
    const double divergence = std::log(r) - std::log(sum) + mean_exponent;
    const double divergence_off = (b + 512.0) * roundoff * (1.0 + std::log(r) + std::log(sum) - mean_exponent);
    const double square = mix(others, sum);
    double both = 0.0;
    for (std::size_t k = 0; k < others.size(); ++k)
      if (weight_[k] > 0.0) both += weight_[k] * mixed_[others[k]];
    const double width = (own - 2.0 * mixed_[i] + both) * inverse_;
    const double base = 0.5 * (own - square) * inverse_ - divergence - divergence_off - 4.0 * off;
    // Distances below ν count in 1/ξ from below, those above in 1/ξ from above (which is large where ξ may be 0).
    const double wide = std::sqrt(std::max(width + 6.0 * off, 1e-200)) * (1.0 + 4.0 * roundoff);
    const double narrow = std::sqrt(std::max(width - 6.0 * off, 1e-200)) * (1.0 - 4.0 * roundoff);
    wide_[families_] = wide;
    over_wide_[families_] = (1.0 - 8.0 * roundoff) / wide;
    over_narrow_[families_] = width - 6.0 * off > 1e-200 ? (1.0 + 8.0 * roundoff) / narrow : 1e300;
    double* out = centres_of_.data() + families_ * count;
    if (shares_.empty()) out[0] = base;
    else
      for (std::size_t k = 0; k < count; ++k)
        out[k] = base + (mixed_[centres_[k]] - prefix_.at(centres_[k], i)) * inverse_;
    ++families_;
  }
}

std::pair<double, double> TailBound::find_distances(std::size_t i, const std::vector<std::size_t>& others) {
  const double own = prefix_.at(i, i);
  double nearest = infinity;
  double furthest = 0.0;
  for (std::size_t k = 0; k < others.size(); ++k) {
    const auto j = others[k];
    distance_[k] = own + prefix_.at(j, j) - 2.0 * prefix_.at(i, j);
    nearest = std::min(nearest, distance_[k]);
    furthest = std::max(furthest, distance_[k]);
  }
  return {nearest, furthest};
}

std::pair<double, double> TailBound::weigh(std::size_t family, double nearest) {
  const double cold = coldness()[family];
  double sum = 0.0;
  double sum_of_exponents = 0.0;
  auto& powers = family % 2 == 0 ? warm_ : hot_;
  for (std::size_t k = 0; k < distance_.size(); ++k) {
    const double a = cold * (nearest - distance_[k]);
    double w = 0.0;
    if (family == 0) {
      w = 1.0;
    } else if (!(a < -40.0)) {
      const double p = powers[k];
      const double p2 = p * p;
      const double p4 = p2 * p2;
      w = family <= 2 ? std::exp(a) : p4 * p4 * p2;  // within 128 units of itself
    }
    if (family > 0) powers[k] = w;
    weight_[k] = w;
    sum += w;
    sum_of_exponents += w * a;
  }
  return {sum, sum_of_exponents};
}

double TailBound::mix(const std::vector<std::size_t>& others, double sum) {
  mixed_.assign(bins_, 0.0);
  double square = 0.0;
  for (std::size_t k = 0; k < others.size(); ++k) {
    if (weight_[k] == 0.0) continue;
    const auto j = others[k];
    const double psi = weight_[k] / sum;
    square += psi * prefix_.at(j, j);
    const auto& beside = prefix_.beside(j);
    const double* row = prefix_.row(j);
    work_ += static_cast<double>(beside.size());
    if (beside.size() * 4 > bins_)
      for (std::size_t l = 0; l < bins_; ++l) mixed_[l] += psi * row[l];
    else
      for (const auto l : beside) mixed_[l] += psi * row[l];
    weight_[k] = psi;
  }
  return square;
}

}  // namespace tsdp::privacy
