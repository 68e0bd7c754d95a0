// Mechanisms so small that the law of a noisy step is a short Gaussian mixture.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

namespace tsdp::test {

/// The law of the summed gradient before noise: probability of −R … R at [value + R].
using Law = std::vector<double>;

inline Law convolve(const Law& a, const Law& b) {
  Law out(a.size() + b.size() - 1, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) out[i + j] += a[i] * b[j];
  return out;
}

/// `chosen` of the series, uniformly without replacement, each adding a draw from its law on −1 … 1.
inline Law step_law(const std::vector<Law>& series, int chosen) {
  const int count = static_cast<int>(series.size());
  Law out(static_cast<std::size_t>(2 * chosen + 1), 0.0);
  int subsets = 0;
  for (unsigned subset = 0; subset < (1U << count); ++subset) {
    if (std::popcount(subset) != chosen) continue;
    ++subsets;
    Law sum = {1.0};
    for (int s = 0; s < count; ++s)
      if ((subset >> s & 1U) != 0) sum = convolve(sum, series[static_cast<std::size_t>(s)]);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += sum[i];
  }
  for (auto& p : out) p /= subsets;
  return out;
}

/// H_alpha between the two laws after noise N(0, sigma^2): pieces between the roots of p - alpha q, by normal tails.
inline double hockey_stick(const Law& a, const Law& b, double alpha, double sigma) {
  const double reach = static_cast<double>(a.size() / 2);
  const auto mean = [&](std::size_t i) { return static_cast<double>(i) - reach; };
  const auto excess = [&](double x) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double z = (x - mean(i)) / sigma;
      sum += (a[i] - alpha * b[i]) * std::exp(-0.5 * z * z);
    }
    return sum;
  };
  const auto left_mass = [&](double x) {  // integral of p − alpha q up to x
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum += (a[i] - alpha * b[i]) * 0.5 * std::erfc(-(x - mean(i)) / (sigma * std::numbers::sqrt2));
    return sum;
  };
  constexpr int places = 160;
  const double end = reach + 9.0 * sigma;
  double before = -end;
  double value_before = excess(before);
  double piece = -1e3;  // the beginning of the present piece of one sign
  double total = 0.0;
  for (int i = 1; i <= places; ++i) {
    const double x = end * (2.0 * i / places - 1.0);
    const double value = excess(x);
    if ((value > 0.0) != (value_before > 0.0)) {
      double low = before;
      double high = x;
      for (int j = 0; j < 40; ++j) {
        const double middle = 0.5 * (low + high);
        ((excess(middle) > 0.0) == (value_before > 0.0) ? low : high) = middle;
      }
      total += std::max(0.0, left_mass(low) - left_mass(piece));
      piece = low;
    }
    before = x;
    value_before = value;
  }
  return total + std::max(0.0, left_mass(1e3) - left_mass(piece));
}

}  // namespace tsdp::test
