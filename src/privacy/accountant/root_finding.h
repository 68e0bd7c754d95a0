// Roots of monotone functions, as brackets whose ends were both evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace tsdp::privacy {

/// A root of a falling function by bisection with secant steps (Illinois): ends (low, high) with f(low) > 0 ≥ f(high),
/// high − low ≤ tolerance · high.
template <class Function>
std::pair<double, double> bracket_root(Function f, double low, double f_low, double high, double f_high,
                                       double tolerance) {
  int side = 0;
  for (int i = 0; i < 100 && high - low > tolerance * high; ++i) {
    double middle = (low * f_high - high * f_low) / (f_high - f_low);
    // Aim a little to the far side of the secant's root, so that both ends close in.
    const double least = 0.02 * (high - low);
    if (!(middle > low + least)) middle = low + std::max(least, 0.3 * tolerance * high);
    if (!(middle < high - least)) middle = high - std::max(least, 0.3 * tolerance * high);
    if (!(middle > low && middle < high)) middle = 0.5 * (low + high);
    const double value = f(middle);
    if (value > 0.0) {
      low = middle;
      f_low = value;
      if (side == 1) f_high *= 0.5;
      side = 1;
    } else {
      high = middle;
      f_high = value;
      if (side == -1) f_low *= 0.5;
      side = -1;
    }
  }
  return {low, high};
}

/// The largest k ≤ limit with excess(k) ≤ 0, for an increasing function (0 counts as within); with slack > 0 only
/// within that share.
template <class Excess>
std::uint64_t most_within(Excess excess, std::uint64_t k, std::uint64_t limit, double slack) {
  double value = excess(k);
  // Invariants: `good` is within (0 trivially), `bad` is not (limit + 1 if unknown).
  std::uint64_t good = 0;
  std::uint64_t bad = limit + 1;
  double at_good = 0.0;
  double at_bad = 0.0;
  bool know_good = false;
  bool know_bad = false;
  int rounds = 0;
  while (true) {
    if (value <= 0.0) {
      good = k;
      at_good = value;
      know_good = true;
    } else {
      bad = k;
      at_bad = value;
      know_bad = true;
    }
    if (good + 1 >= bad || (know_good && static_cast<double>(bad - good) <= slack * static_cast<double>(good)))
      return good;
    const double log_good = std::log(static_cast<double>(std::max<std::uint64_t>(good, 1)));
    const double log_bad = std::log(static_cast<double>(bad));
    double next = 0.0;
    ++rounds;
    if (know_good && know_bad && rounds % 6 != 0) {
      // Secant in log k, aimed slightly beyond the root on alternate sides so that the bracket closes to one.
      const double root = std::exp(log_good + (log_bad - log_good) * at_good / (at_good - at_bad));
      next = rounds % 2 == 0 ? std::floor(root) : std::floor(root) + 1.0;
    } else if (know_good && know_bad) {
      next = std::floor(0.5 * (static_cast<double>(good) + static_cast<double>(bad)));
    } else {
      // One side only: the slope of log δ in log k depends on μ; step by factors that grow.
      const double factor = std::exp2(std::min(rounds, 6) * 0.25);
      next = know_good ? std::ceil(static_cast<double>(good) * factor) : std::floor(static_cast<double>(bad) / factor);
    }
    k = static_cast<std::uint64_t>(std::clamp(next, static_cast<double>(good + 1), static_cast<double>(bad - 1)));
    value = excess(k);
  }
}

}  // namespace tsdp::privacy
