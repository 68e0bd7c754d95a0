// Line plots as self-contained SVG: no script, no font, no picture from elsewhere.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plot/ticks.h"
#include "plot/xml.h"

namespace tsdp {

/// Places on an axis, ascending, and their labels: as many as places, or none to show the numbers.
struct PlotTicks {
  std::vector<double> at;
  std::vector<std::string> labels = {};
};

struct PlotAxis {
  std::string label;
  AxisScale scale = AxisScale::linear;
  /// Ends of the axis; without them the data's, widened to round numbers. Ends that the scale cannot show (not finite;
  /// not positive on a log axis) count as not given.
  std::optional<double> lower;
  std::optional<double> upper;
  /// The finest ones first: the first whose labels stand apart is taken. If empty: at round numbers.
  std::vector<PlotTicks> ticks = {};
};

/// A curve. Points that an axis cannot show (not finite; not positive on a log axis) interrupt it. A series without any
/// point that can be shown, but with a band, is the band alone.
struct PlotSeries {
  std::string name;  ///< what the legend says; series of one name share its entry, colour and dash
  std::vector<double> x;
  std::vector<double> y;
  /// A band around the curve, both empty or as long as x. On a log axis a lower end of 0 reaches the axis' end.
  std::vector<double> band_lower;
  std::vector<double> band_upper;
  /// Colour and dash pattern by number (modulo how many there are); if not given, the name's place in the legend.
  std::optional<std::size_t> colour;
  std::optional<std::size_t> dash;
  bool staircase = false;  ///< a value holds until the next x
};

struct PlotPanel {
  std::string title;
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
  std::vector<double> x_rules = {};  ///< places on the x axis marked by a line from bottom to top
};

/// Panels in a grid under one title, with one legend below them.
struct LinePlot {
  std::string title;
  std::string description;  ///< for readers who cannot see it
  std::vector<PlotPanel> panels;
  std::size_t columns = 1;
  std::vector<std::string> notes;  ///< lines below the legend, wrapped
  bool legend = true;

  /// The picture as SVG text (UTF-8). It scales with its container (viewBox) and has a light and a dark colour scheme
  /// (prefers-color-scheme). People with colour-blindness can tell the colours apart, and the dashes also in grey. Any
  /// text is escaped. Throws std::invalid_argument if the vectors of a series, or ticks and their labels, differ in
  /// length.
  [[nodiscard]] std::string svg() const;

  /// The same for a page of HTML that holds plot_style_sheet() and shows the title and the notes itself: they are not
  /// drawn (the title stays for screen readers). A panel is `panel_width` × `panel_height` units; shown at one unit per
  /// pixel or larger, no text is below 12 pixels.
  [[nodiscard]] std::string page_svg(double panel_width, double panel_height) const;
};

/// What a page with plots of `page_svg` needs in a style element: colours for light and dark screens (light in print),
/// and sizes.
[[nodiscard]] std::string plot_style_sheet();

}  // namespace tsdp
