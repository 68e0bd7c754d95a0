// One panel of a line plot: its axes, its curves and their styles.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "plot/line_plot.h"

namespace tsdp::plot {

// Okabe and Ito's colours for all kinds of colour vision, darkened for contrast on white and lightened on black.
inline constexpr std::array light_colours = {"#0067a8", "#c44e00", "#00795a", "#a5407f", "#8a6d00", "#4a4a4a"};
inline constexpr std::array dark_colours = {"#5cb8f0", "#ff8c4d", "#35cf9f", "#ea9bcb", "#e8c33c", "#d0d0d0"};
// The first is a solid line. Lengths are in line widths of about 2 units.
inline constexpr std::array dashes = {"", "8 3", "2.5 2.5", "9 3 2.5 3", "14 4", "9 3 2.5 3 2.5 3"};
static_assert(light_colours.size() == dark_colours.size());

/// Sizes of texts and margins, in units of the picture.
struct Sizes {
  double gap;
  double text;
  double small_text;
};

/// Colour and dash pattern of a curve by number, modulo how many there are.
struct Style {
  std::size_t colour;
  std::size_t dash;
};

/// The classes of a curve of this style in the style sheet.
[[nodiscard]] std::string stroke_classes(const Style& style);

/// A rectangle of the picture.
struct Place {
  double left;
  double top;
  double width;
  double height;
};

/// The panel as SVG; `styles`: one for each of its series.
[[nodiscard]] std::string panel_svg(const PlotPanel& panel, const Place& place, const std::vector<Style>& styles,
                                    const Sizes& sizes);

}  // namespace tsdp::plot
