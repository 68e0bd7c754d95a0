// Numbers, texts and lines as plots write them in SVG.
#pragma once

#include <string>
#include <string_view>

namespace tsdp::plot {

/// Room that a text needs, generously: fonts differ from machine to machine.
[[nodiscard]] double text_width(std::string_view text, double size);

/// A coordinate with at most two decimals, always with a point, whatever the locale.
[[nodiscard]] std::string put(double value);

/// A text, and a straight line, of these classes of the style sheet.
[[nodiscard]] std::string text_at(double x, double y, std::string_view classes, std::string_view anchor,
                                  std::string_view content);
[[nodiscard]] std::string line_at(double x1, double y1, double x2, double y2, std::string_view classes);

}  // namespace tsdp::plot
