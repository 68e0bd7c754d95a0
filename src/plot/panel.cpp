#include "panel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "svg.h"
#include "tsdp/base/text.h"

namespace tsdp::plot {
namespace {

constexpr std::size_t few_points = 20;  // that many points or fewer are shown one by one

bool shows(double value, AxisScale scale) {
  return std::isfinite(value) && (scale == AxisScale::linear || value > 0.0);
}

/// An axis with its ends and its place on the paper: `from` is where `lower` lies.
struct Axis {
  AxisScale scale;
  double lower;
  double upper;
  double from = 0.0;
  double to = 1.0;

  [[nodiscard]] double at(double value) const {
    const auto shown = [&](double v) { return scale == AxisScale::log10 ? std::log10(v) : v; };
    return from + (to - from) * ((shown(value) - shown(lower)) / (shown(upper) - shown(lower)));
  }
};

Axis axis_of(const PlotAxis& wanted, std::span<const double> values, std::size_t most_ticks) {
  const bool log = wanted.scale == AxisScale::log10;
  double lower = std::numeric_limits<double>::infinity();
  double upper = -lower;
  for (const double value : values) {
    if (!shows(value, wanted.scale)) continue;
    lower = std::min(lower, value);
    upper = std::max(upper, value);
  }
  if (lower > upper) lower = upper = 1.0;
  // Differences must stay finite, and powers of ten on log axes normal numbers.
  const double least = log ? 1e-300 : -1e300;
  lower = std::clamp(lower, least, 1e300);
  upper = std::clamp(upper, least, 1e300);
  const bool fixed_lower = wanted.lower && shows(*wanted.lower, wanted.scale);
  const bool fixed_upper = wanted.upper && shows(*wanted.upper, wanted.scale);
  if (fixed_lower) lower = std::clamp(*wanted.lower, least, 1e300);
  if (fixed_upper) upper = std::clamp(*wanted.upper, least, 1e300);
  if (!(lower < upper * (log ? 1.0 - 1e-6 : 1.0)) || (!log && upper - lower < 1e-9 * std::abs(upper))) {
    // A single value, or given ends the wrong way round: something around it.
    const double room = log ? 0.0 : lower == 0.0 ? 1.0 : 0.1 * std::abs(lower);
    if (fixed_lower && !fixed_upper) {
      upper = log ? 10.0 * lower : lower + room;
    } else {
      if (fixed_lower) lower = upper;
      lower = log ? lower / 2.0 : lower - room;
      upper = log ? lower * 4.0 : lower + 2.0 * room;
    }
  }
  if (log && upper / lower >= 10.0) {
    if (!fixed_lower) lower = std::pow(10.0, std::floor(std::log10(lower) + 1e-9));
    if (!fixed_upper) upper = std::pow(10.0, std::ceil(std::log10(upper) - 1e-9));
  } else {
    const double step = nice_step((upper - lower) / static_cast<double>(most_ticks));
    if (!fixed_upper) upper = step * std::ceil(upper / step - 1e-9);
    const double down = step * std::floor(lower / step + 1e-9);
    if (!fixed_lower && (!log || down > 0.0)) lower = down;
  }
  return {wanted.scale, lower, upper};
}

/// The curve, its interruptions and its band within one panel.
std::string curve(const PlotSeries& s, const Style& style, const Axis& x, const Axis& y) {
  const auto colour = style.colour % light_colours.size();
  std::string out;
  const auto usable = [&](std::size_t i) { return shows(s.x[i], x.scale) && shows(s.y[i], y.scale); };
  if (!s.band_lower.empty()) {
    const auto in_band = [&](std::size_t i) {
      return shows(s.x[i], x.scale) && shows(s.band_upper[i], y.scale) && std::isfinite(s.band_lower[i]);
    };
    const auto floor_of = [&](std::size_t i) {
      return y.at(shows(s.band_lower[i], y.scale) ? s.band_lower[i] : y.lower);
    };
    for (std::size_t begin = 0; begin < s.x.size();) {
      std::size_t end = begin;
      std::string there;
      std::string back;
      for (; end < s.x.size() && in_band(end); ++end) {
        const auto px = put(x.at(s.x[end]));
        if (s.staircase && end > begin) {
          there += cat(" ", px, " ", put(y.at(s.band_upper[end - 1])));
          back = cat(" ", px, " ", put(floor_of(end - 1)), back);
        }
        there += cat(" ", px, " ", put(y.at(s.band_upper[end])));
        back = cat(" ", px, " ", put(floor_of(end)), back);
      }
      if (end > begin + 1) out += cat("<path class=\"band f", colour, "\" d=\"M", there.substr(1), back, "Z\"/>\n");
      begin = end + (end == begin ? 1 : 0);
    }
  }
  std::string path;
  std::string dots;
  const bool all_dots = !s.staircase && s.x.size() <= few_points;
  for (std::size_t begin = 0; begin < s.x.size();) {
    std::size_t end = begin;
    for (; end < s.x.size() && usable(end); ++end) {
      const auto px = put(x.at(s.x[end]));
      const auto py = put(y.at(s.y[end]));
      path += end == begin ? cat("M", px, " ", py) : s.staircase ? cat("H", px, "V", py) : cat("L", px, " ", py);
    }
    for (std::size_t i = begin; i < end; ++i)
      if (all_dots || end == begin + 1)  // a point between two interruptions would not be seen otherwise
        dots += cat("<circle class=\"f", colour, "\" cx=\"", put(x.at(s.x[i])), "\" cy=\"", put(y.at(s.y[i])),
                    "\" r=\"2.6\"/>\n");
    begin = end + (end == begin ? 1 : 0);
  }
  if (!path.empty())
    out += cat("<path class=\"", stroke_classes(style), "\" d=\"", path, "\"><title>", xml_escaped(s.name),
               "</title></path>\n");
  return out + dots;
}

struct Tick {
  double at;
  std::string label;
};

/// The panel between its axes, which are placed: grid, labels, curves.
std::string inside_axes(const PlotPanel& panel, const Place& place, const std::vector<Style>& styles,
                        const Sizes& sizes, const Axis& x, const Axis& y, const std::vector<Tick>& x_ticks,
                        const std::vector<Tick>& y_ticks) {
  const double left = x.from, right = x.to, bottom = y.from, top = y.to;
  std::string out = "<g>\n";
  if (!panel.title.empty()) out += text_at(left, place.top + 13.0, "panel", "start", panel.title);
  for (const auto& [place_x, label] : x_ticks) {
    out += line_at(x.at(place_x), top, x.at(place_x), bottom, "grid");
    out += text_at(x.at(place_x), bottom + 16.0, "tick", "middle", label);
  }
  for (const auto& [place_y, label] : y_ticks) {
    out += line_at(left, y.at(place_y), right, y.at(place_y), "grid");
    out += text_at(left - 6.0, y.at(place_y) + 0.35 * sizes.small_text, "tick", "end", label);
  }
  out += line_at(left, top, left, bottom, "frame");
  out += line_at(left, bottom, right, bottom, "frame");
  if (!panel.x.label.empty())
    out += text_at((left + right) / 2.0, bottom + 33.0, "label x-label", "middle", panel.x.label);
  if (!panel.y.label.empty()) {
    const auto at = cat(put(place.left + sizes.text), " ", put((top + bottom) / 2.0));
    out += cat("<text class=\"label y-label\" text-anchor=\"middle\" transform=\"translate(", at, ") rotate(-90)\">",
               xml_escaped(panel.y.label), "</text>\n");
  }
  // An inner svg cuts off what lies beyond the axes, without an id that could clash when plots share a page.
  constexpr double edge = 2.0;
  const auto box =
      cat(put(left - edge), " ", put(top - edge), " ", put(right - left + 2 * edge), " ", put(bottom - top + 2 * edge));
  out += cat("<svg x=\"", put(left - edge), "\" y=\"", put(top - edge), "\" width=\"", put(right - left + 2 * edge),
             "\" height=\"", put(bottom - top + 2 * edge), "\" viewBox=\"", box, "\">\n");
  for (const double rule : panel.x_rules)
    if (shows(rule, x.scale)) out += line_at(x.at(rule), top, x.at(rule), bottom, "rule");
  for (std::size_t i = 0; i < panel.series.size(); ++i) out += curve(panel.series[i], styles[i], x, y);
  return out + "</svg>\n</g>\n";
}

}  // namespace

std::string stroke_classes(const Style& style) {
  return cat("line c", style.colour % light_colours.size(), " d", style.dash % dashes.size());
}

std::string panel_svg(const PlotPanel& panel, const Place& place, const std::vector<Style>& styles,
                      const Sizes& sizes) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const auto& s : panel.series)
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (!shows(s.x[i], panel.x.scale)) continue;
      if (shows(s.y[i], panel.y.scale)) {
        xs.push_back(s.x[i]);
        ys.push_back(s.y[i]);
      }
      if (!s.band_lower.empty()) {
        ys.push_back(s.band_lower[i]);
        ys.push_back(s.band_upper[i]);
      }
    }
  const auto most_x = static_cast<std::size_t>(std::max(3.0, place.width / 60.0));
  const auto most_y = static_cast<std::size_t>(std::max(3.0, place.height / 36.0));
  auto x = axis_of(panel.x, xs, most_x);
  auto y = axis_of(panel.y, ys, most_y);
  const auto shown_of = [](const PlotTicks& wanted, const Axis& axis) {
    std::vector<Tick> ticks;
    for (std::size_t i = 0; i < wanted.at.size(); ++i)
      if (shows(wanted.at[i], axis.scale) && wanted.at[i] >= axis.lower && wanted.at[i] <= axis.upper)
        ticks.push_back(
            {wanted.at[i], wanted.labels.empty() ? tick_label(wanted.at[i], axis.scale) : wanted.labels[i]});
    return ticks;
  };
  // Ticks that may be taken, the finest first.
  const auto ticks_of = [](const PlotAxis& wanted, const Axis& axis, std::size_t most) {
    auto sets = wanted.ticks;
    for (auto fewer = most; wanted.ticks.empty() && fewer > 0; --fewer)
      sets.push_back({plot_ticks(axis.lower, axis.upper, axis.scale, fewer)});
    return sets;
  };
  const auto y_ticks = shown_of(ticks_of(panel.y, y, most_y).front(), y);
  double widest = 0.0;
  for (const auto& tick : y_ticks) widest = std::max(widest, text_width(tick.label, sizes.small_text));
  const double left = place.left + (panel.y.label.empty() ? 0.0 : 1.5 * sizes.text) + widest + 8.0;
  // The last tick's label may be centred on the edge.
  std::vector<Tick> x_ticks;
  double right = place.left + place.width;
  for (const auto& ticks : ticks_of(panel.x, x, most_x)) {
    x_ticks = shown_of(ticks, x);
    right = place.left + place.width -
            std::max(14.0, x_ticks.empty() ? 0.0 : 0.5 * text_width(x_ticks.back().label, sizes.small_text) + 2.0);
    const Axis drawn{x.scale, x.lower, x.upper, left, right};
    const auto apart = [&](const Tick& a, const Tick& b) {
      return drawn.at(b.at) - drawn.at(a.at) >=
             0.5 * (text_width(a.label, sizes.small_text) + text_width(b.label, sizes.small_text)) +
                 0.5 * sizes.small_text;
    };
    if (std::adjacent_find(x_ticks.begin(), x_ticks.end(),
                           [&](const Tick& a, const Tick& b) { return !apart(a, b); }) == x_ticks.end())
      break;
  }
  const double top = place.top + (panel.title.empty() ? 8.0 : 24.0);
  const double bottom = place.top + place.height - (panel.x.label.empty() ? 20.0 : 40.0);
  x.from = left;
  x.to = right;
  y.from = bottom;
  y.to = top;

  return inside_axes(panel, place, styles, sizes, x, y, x_ticks, y_ticks);
}

}  // namespace tsdp::plot
