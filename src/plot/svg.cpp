#include "svg.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "plot/xml.h"
#include "tsdp/base/text.h"

namespace tsdp::plot {
namespace {

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

double text_width(std::string_view text, double size) { return 0.58 * size * static_cast<double>(code_points(text)); }

std::string put(double value) {
  value = std::isfinite(value) ? std::clamp(value, -1e5, 1e5) : 0.0;
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, 2).ptr;
  std::string text(buffer.data(), end);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string text_at(double x, double y, std::string_view classes, std::string_view anchor, std::string_view content) {
  return cat("<text x=\"", put(x), "\" y=\"", put(y), "\" class=\"", classes, "\" text-anchor=\"", anchor, "\">",
             xml_escaped(content), "</text>\n");
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view classes) {
  return cat("<path class=\"", classes, "\" d=\"M", put(x1), " ", put(y1), "L", put(x2), " ", put(y2), "\"/>\n");
}

}  // namespace tsdp::plot
