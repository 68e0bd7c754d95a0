// Places on the axes of plots, and how they are labelled.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tsdp {

enum class AxisScale {
  linear,
  log10
};

/// Ticks within [lower, upper], increasing: multiples of 1, 2 or 5 times a power of ten, at most `most` + 1. On a log
/// axis of two decades or more: powers of ten, every one or evenly spaced. Requires lower < upper, on a log axis 0 <
/// lower.
[[nodiscard]] std::vector<double> plot_ticks(double lower, double upper, AxisScale scale, std::size_t most);

/// A tick for people: "0.25", "2·10⁻⁵"; on a log axis powers of ten as "10⁻³", "1", "10", "10²".
[[nodiscard]] std::string tick_label(double value, AxisScale scale);

/// The least of 1, 2, 5 times a power of ten that is at least `value` > 0.
[[nodiscard]] double nice_step(double value);

}  // namespace tsdp
