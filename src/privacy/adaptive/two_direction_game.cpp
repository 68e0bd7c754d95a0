#include "two_direction_game.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "merged_steps.h"
#include "privacy/accountant/fourier.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::privacy {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2;
/// Values of the game, and shares of a kernel, that are not worth a product: what they would add is not claimed.
constexpr double negligible = 1e-14;
constexpr std::int64_t widest_window = std::int64_t{1} << 15;

}  // namespace

TwoDirectionGame::TwoDirectionGame(double q, double sigma, std::uint64_t uses, double epsilon, TwoDirectionSettings settings) {
  if (!(q > 0.0) || !(q < 1.0)) throw PrivacyError(cat("sampling probability: found ", q, "; a number in (0, 1) is expected"));
  if (!(sigma > 0.0) || !std::isfinite(sigma)) throw PrivacyError(cat("noise multiplier: found ", sigma, "; a positive finite number is expected"));
  const auto at_once = uses <= settings.most_decisions ? 1 : std::max<std::uint64_t>(1, uses / std::max<std::uint64_t>(1, settings.most_decisions / 4));
  const double several = std::sqrt(static_cast<double>(at_once));
  const auto factor = static_cast<std::int64_t>(several);
  // As of the whole game: large losses, of which there are few, do not widen the grid.
  const double deviation = q * std::sqrt(std::expm1(4.0 / (sigma * sigma)));
  const double bulk = std::sqrt(0.5 * std::numbers::pi) * 2.0 * q * std::erf(1.0 / (sigma * std::numbers::sqrt2));
  const double share = settings.share * std::clamp(std::sqrt(static_cast<double>(uses) / 2500.0), 1.0, 2.0);
  const double wanted = std::min(share * std::min(bulk, deviation), 0.05) * several;
  if (!(epsilon > 0.0) || !(epsilon / wanted < static_cast<double>(widest_window))) return;
  // (A finer grid than wanted would not be closer: a tiny ε is answered by the first point.)
  const double points = std::max(1.0, std::ceil(epsilon / wanted));
  step_ = std::max(wanted, epsilon) / points;
  while (step_ * points < epsilon) step_ = std::nextafter(step_, 1.0);

  const double fine = step_ / static_cast<double>(factor);
  const auto one = MergedSteps::one(q, sigma, fine);
  if (!one) return;
  for (const auto& [steps, rounds] : {std::pair{uses % at_once, std::uint64_t{1}}, std::pair{at_once, uses / at_once}}) {
    if (steps == 0) continue;
    const auto several_steps = one->repeated(steps, fine);
    if (!several_steps) return;
    play(several_steps->coarser(factor, fine), rounds);
  }
  played_ = true;
}

void TwoDirectionGame::play(const MergedSteps& k, std::uint64_t rounds) {
  const auto reach = static_cast<std::int64_t>(k.q.size());
  std::vector<double> balanced(k.q.size());
  for (std::size_t i = 0; i < balanced.size(); ++i) balanced[i] = k.q[i] * std::exp(0.5 * step_ * static_cast<double>(k.first + static_cast<std::int64_t>(i)));
  // Shares at the ends that are left out of products with D̃ ≥ 0; h̃ holds them.
  std::size_t low = 0;
  std::size_t high = balanced.size();
  for (double gone = balanced[low]; low + 1 < high && gone < negligible; gone += balanced[low]) ++low;
  for (double gone = balanced[high - 1]; low + 1 < high && gone < negligible; gone += balanced[high - 1]) --high;
  // h̃ at n of both signs: of (rL − 1)₊ − (r − 1)₊, at r = e^{nh}, over √r; 0 beyond the kernel. From the ends inwards: with S(n) = Σ q_i (e^{(n + i)h} − 1)₊
  // and T(j) = Σ_{i ≥ j} q_i, S(n + 1) = e^h S(n) + (e^h − 1) T(−n); likewise from below for n ≥ 0.
  const auto last_point = std::max(std::abs(k.first), std::abs(k.first + reach));
  std::vector<double> h(static_cast<std::size_t>(2 * last_point + 1), 0.0);
  const auto mass = [&](std::int64_t i) { return i < k.first || i >= k.first + reach ? 0.0 : k.q[static_cast<std::size_t>(i - k.first)]; };
  const auto balance = [&](std::int64_t n) { return std::exp(-0.5 * step_ * static_cast<double>(n)); };
  double sum = 0.0;
  double beyond = 0.0;
  for (auto n = -last_point; n <= 0; ++n) {
    h[static_cast<std::size_t>(n + last_point)] = sum * balance(n);
    beyond += mass(-n);
    sum = std::exp(step_) * sum + std::expm1(step_) * beyond;
  }
  sum = beyond = 0.0;
  for (auto n = last_point; n > 0; --n) {
    h[static_cast<std::size_t>(n + last_point)] = sum * balance(n);
    beyond += mass(-n);
    sum = std::exp(-step_) * sum - std::expm1(-step_) * beyond;
  }
  const auto at_h = [&](std::int64_t n) { return std::abs(n) > last_point ? 0.0 : h[static_cast<std::size_t>(n + last_point)]; };

  const auto from = k.first + static_cast<std::int64_t>(low);
  const auto to = k.first + static_cast<std::int64_t>(high);  // exclusive
  const auto margin = std::max(std::abs(from), std::abs(to));
  std::int64_t size = 0;  // of the circle
  double height = 0.0;    // max |b̂|
  std::vector<double> spectrum, buffer;
  for (std::uint64_t t = 0; t < rounds; ++t) {
    const auto before = static_cast<std::int64_t>(values_.size());
    const auto count = std::min<std::int64_t>(before + margin, widest_window);
    // Values at |n| < count depend on places up to count + margin, and on nothing that went round.
    if (const auto needed = before + count + margin + 2; needed > size) {
      size = fourier::good_size(std::max(needed, std::min<std::int64_t>(2 * needed, 2 * widest_window + margin)));
      spectrum.assign(static_cast<std::size_t>(size) + 2, 0.0);
      // Σ_i b_i D̃(n + i) is the convolution with b at −i.
      for (auto i = from; i < to; ++i) spectrum[static_cast<std::size_t>(((-i) % size + size) % size)] += balanced[static_cast<std::size_t>(i - k.first)];
      fourier::forward(spectrum.data(), size);
      height = 0.0;
      for (std::size_t f = 0; f + 1 < spectrum.size(); f += 2) height = std::max(height, std::hypot(spectrum[f], spectrum[f + 1]));
    }
    buffer.assign(static_cast<std::size_t>(size) + 2, 0.0);
    double squares = 0.0;
    for (std::int64_t n = 0; n < std::min(before, count); ++n) {
      const double value = values_[static_cast<std::size_t>(n)];
      buffer[static_cast<std::size_t>(n)] = value;
      if (n > 0) buffer[static_cast<std::size_t>(size - n)] = value;
      squares += 2.0 * value * value;
    }
    fourier::forward(buffer.data(), size);
    for (std::size_t f = 0; f + 1 < buffer.size(); f += 2) {
      const double real = buffer[f] * spectrum[f] - buffer[f + 1] * spectrum[f + 1];
      buffer[f + 1] = buffer[f] * spectrum[f + 1] + buffer[f + 1] * spectrum[f];
      buffer[f] = real;
    }
    fourier::backward(buffer.data(), size);
    // Two transforms and a product, each relative in the Euclidean norm (Higham 2002, Theorem 24.2, with room).
    const double scale = 1.0 / static_cast<double>(size);
    const double error = 3.0 * 8.0 * std::log2(static_cast<double>(size)) * unit * height * std::sqrt(squares) * (1.0 + 1e-6);
    absolute_error_ += error;
    const double least = std::max(negligible, 2.0 * error);
    values_.resize(static_cast<std::size_t>(count));
    for (std::int64_t n = 0; n < count; ++n) {
      // D̃ is even: the other direction is the same convolution at −n.
      const double one = buffer[static_cast<std::size_t>(n)] * scale + at_h(n);
      const double other = buffer[static_cast<std::size_t>(n == 0 ? 0 : size - n)] * scale + at_h(-n);
      values_[static_cast<std::size_t>(n)] = std::max({0.0, one, other});
    }
    while (values_.size() > 1 && values_.back() < least) values_.pop_back();
  }
  // Sums of non-negative products, e^{nh/2} and expm1 of them.
  const double largest = step_ * static_cast<double>(last_point) * 2.0;
  relative_error_ += static_cast<double>(rounds) * (32.0 + 4.0 * largest) * unit * (1.0 + 1e-6) + 16.0 * static_cast<double>(last_point) * unit;
  mismatch_ += static_cast<double>(rounds) * k.mismatch;
}

double TwoDirectionGame::at(std::size_t n) const {
  if (!played_ || n >= values_.size()) return 0.0;
  const double epsilon = step_ * static_cast<double>(n);
  const double value = (values_[n] * (1.0 - relative_error_) - absolute_error_) * std::exp(0.5 * epsilon) * (1.0 - (16.0 + 4.0 * epsilon) * unit);
  return std::max(0.0, value - 4.0 * mismatch_ * (1.0 + std::exp(epsilon)) * (1.0 + 1e-6));
}

double TwoDirectionGame::delta(double epsilon) const {
  if (!played_ || !(epsilon / step_ < static_cast<double>(values_.size()))) return 0.0;
  auto n = static_cast<std::size_t>(std::max(0.0, epsilon / step_));
  while (n > 0 && step_ * static_cast<double>(n - 1) >= epsilon) --n;
  while (step_ * static_cast<double>(n) < epsilon) ++n;
  // The product is rounded, and so the point may be 2u ε below ε: |dδ/dε| ≤ e^ε.
  return std::max(0.0, at(n) - 4.0 * unit * epsilon * std::exp(epsilon));
}

std::size_t TwoDirectionGame::last_of_at_least(double delta) const {
  auto n = values_.size() - 1;
  while (n > 0 && !(at(n) >= delta)) --n;
  return n;
}

double TwoDirectionGame::epsilon(double delta) const { return step_ * static_cast<double>(last_of_at_least(delta)) * (1.0 - 4.0 * unit); }

double TwoDirectionGame::likely_epsilon(double delta) const {
  const auto n = last_of_at_least(delta);
  const double above = at(n);
  if (!(above >= delta)) return 0.0;
  const double below = std::max(at(n + 1), 1e-300);
  return step_ * (static_cast<double>(n) + std::log(above / delta) / std::log(above / below));
}

double two_direction_epsilon(double q, double sigma, std::uint64_t uses, double delta, double guess, TwoDirectionSettings settings) {
  double best = 0.0;
  double next = guess;
  for (int tries = 0; tries < 3 && next > best * (1.0 + 1e-6); ++tries) {
    const TwoDirectionGame game(q, sigma, uses, next, settings);
    best = std::max(best, game.epsilon(delta));
    // A little below where it seems to be is most often certain.
    next = game.likely_epsilon(delta) * (1.0 - 1e-6);
  }
  return best;
}

}  // namespace tsdp::privacy
