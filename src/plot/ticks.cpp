#include "plot/ticks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace tsdp {
namespace {

std::vector<double> linear_ticks(double lower, double upper, std::size_t most) {
  const double step = nice_step((upper - lower) / static_cast<double>(std::max<std::size_t>(most, 1)));
  std::vector<double> ticks;
  const double last = std::floor(upper / step + 1e-9);
  for (double i = std::ceil(lower / step - 1e-9); i <= last && ticks.size() <= most; i += 1.0)
    ticks.push_back(i == 0.0 ? 0.0 : i * step);
  return ticks;
}

std::string superscript(int exponent) {
  constexpr std::array digits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out;
  for (const char c : std::to_string(exponent)) out += c == '-' ? "⁻" : digits[static_cast<std::size_t>(c - '0')];
  return out;
}

}  // namespace

double nice_step(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1.0 - 1e-9)) return factor * power;
  return 10.0 * power;
}

std::vector<double> plot_ticks(double lower, double upper, AxisScale scale, std::size_t most) {
  if (scale == AxisScale::linear) return linear_ticks(lower, upper, most);
  const auto first = static_cast<int>(std::ceil(std::log10(lower) - 1e-9));
  const auto last = static_cast<int>(std::floor(std::log10(upper) + 1e-9));
  std::vector<double> ticks;
  if (last - first >= 2) {
    const auto stride = static_cast<int>(std::max(
        1.0, nice_step(static_cast<double>(last - first) / static_cast<double>(std::max<std::size_t>(most, 1)))));
    for (int exponent = first; exponent <= last; ++exponent)
      if (exponent % stride == 0) ticks.push_back(std::pow(10.0, exponent));
    return ticks;
  }
  for (int exponent = first - 1; exponent <= last; ++exponent)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, exponent);
      if (tick >= lower * (1.0 - 1e-9) && tick <= upper * (1.0 + 1e-9)) ticks.push_back(tick);
    }
  // Less than about a factor 4: the scale is nearly linear.
  return ticks.size() >= 3 && ticks.size() <= most + 1 ? ticks : linear_ticks(lower, upper, most);
}

std::string tick_label(double value, AxisScale scale) {
  if (value == 0.0) return "0";
  const double size = std::abs(value);
  auto exponent = static_cast<int>(std::floor(std::log10(size) + 1e-9));
  const double mantissa = size / std::pow(10.0, exponent);
  const bool power = std::abs(mantissa - 1.0) < 1e-9;
  const std::string sign = value < 0.0 ? "−" : "";
  const auto digits = [](double number) {
    std::array<char, 40> buffer{};
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::general, 10).ptr;
    return std::string(buffer.data(), end);
  };
  if (power && scale == AxisScale::log10)
    return sign + (exponent == 0 ? "1" : exponent == 1 ? "10" : "10" + superscript(exponent));
  if (size >= 1e-3 * (1.0 - 1e-9) && size < 1e6) return sign + digits(size);
  return sign + (power ? "" : digits(mantissa) + "·") + "10" + superscript(exponent);
}

}  // namespace tsdp
