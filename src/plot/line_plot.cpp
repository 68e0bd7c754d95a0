#include "plot/line_plot.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

#include "tsdp/base/text.h"

namespace tsdp {
namespace {

// Okabe and Ito's colours for all kinds of colour vision, darkened for contrast on white and lightened on black.
constexpr std::array light_colours = {"#0067a8", "#c44e00", "#00795a", "#a5407f", "#8a6d00", "#4a4a4a"};
constexpr std::array dark_colours = {"#5cb8f0", "#ff8c4d", "#35cf9f", "#ea9bcb", "#e8c33c", "#d0d0d0"};
// The first is a solid line. Lengths are in line widths of about 2 units.
constexpr std::array dashes = {"", "8 3", "2.5 2.5", "9 3 2.5 3", "14 4", "9 3 2.5 3 2.5 3"};
static_assert(light_colours.size() == dark_colours.size());

/// Sizes of texts and margins, in units of the picture.
struct Sizes {
  double gap;
  double text;
  double small_text;
};
constexpr Sizes on_its_own = {16.0, 12.0, 11.0};
constexpr Sizes in_page = {3.0, 13.0, 12.5};  // room for a picture that is shown a little smaller than it is
constexpr double title_size = 17.0;
constexpr double line_height = 1.4;
constexpr std::size_t few_points = 20;  // that many points or fewer are shown one by one

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// Room that a text needs, generously: fonts differ from machine to machine.
double text_width(std::string_view text, double size) { return 0.58 * size * static_cast<double>(code_points(text)); }

/// A coordinate with at most two decimals, always with a point, whatever the locale.
std::string put(double value) {
  value = std::isfinite(value) ? std::clamp(value, -1e5, 1e5) : 0.0;
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, 2).ptr;
  std::string text(buffer.data(), end);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

bool shows(double value, AxisScale scale) {
  return std::isfinite(value) && (scale == AxisScale::linear || value > 0.0);
}

/// The least of 1, 2, 5 times a power of ten that is at least `value` > 0.
double nice_step(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1.0 - 1e-9)) return factor * power;
  return 10.0 * power;
}

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

std::string text_at(double x, double y, std::string_view classes, std::string_view anchor, std::string_view content) {
  return cat("<text x=\"", put(x), "\" y=\"", put(y), "\" class=\"", classes, "\" text-anchor=\"", anchor, "\">",
             xml_escaped(content), "</text>\n");
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view classes) {
  return cat("<path class=\"", classes, "\" d=\"M", put(x1), " ", put(y1), "L", put(x2), " ", put(y2), "\"/>\n");
}

/// Lines of at most `width`, broken at spaces.
std::vector<std::string> wrapped(std::string_view text, double width, double size) {
  std::vector<std::string> lines{""};
  for (const auto& word : split(text, ' ')) {
    auto& line = lines.back();
    if (!line.empty() && text_width(line, size) + text_width(word, size) + size > width) {
      lines.push_back(word);
    } else {
      if (!line.empty()) line += ' ';
      line += word;
    }
  }
  return lines;
}

struct Style {
  std::size_t colour;
  std::size_t dash;
};

std::string stroke_classes(const Style& style) {
  return cat("line c", style.colour % light_colours.size(), " d", style.dash % dashes.size());
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

/// Without the rules about where it applies.
std::string colours_and_sizes(const Sizes& sizes) {
  const auto scheme = [](const char* paper, const char* ink, const char* faint, const char* grid, const auto& colours) {
    std::string css =
        cat(".tsdp-plot .paper{fill:", paper, "}.tsdp-plot text{fill:", ink, "}.tsdp-plot .note{fill:", faint,
            "}.tsdp-plot .frame,.tsdp-plot .rule{stroke:", faint, "}.tsdp-plot .grid{stroke:", grid, "}");
    for (std::size_t i = 0; i < colours.size(); ++i)
      css += cat(".tsdp-plot .c", i, "{stroke:", colours[i], "}.tsdp-plot .f", i, "{fill:", colours[i], "}");
    return css;
  };
  std::string css =
      cat(".tsdp-plot{color-scheme:light dark}.tsdp-plot text{font-family:system-ui,'Segoe UI',Roboto,'Helvetica "
          "Neue',Arial,sans-serif;font-size:",
          sizes.text, "px}.tsdp-plot .title{font-size:", title_size,
          "px;font-weight:600}.tsdp-plot .panel{font-size:13px;font-weight:600}.tsdp-plot .tick,.tsdp-plot "
          ".note{font-size:",
          sizes.small_text,
          "px}.tsdp-plot path{fill:none}.tsdp-plot .frame,.tsdp-plot .grid{stroke-width:1}.tsdp-plot "
          ".rule{stroke-width:1;stroke-dasharray:3 3}.tsdp-plot .line{stroke-width:2;stroke-linejoin:round}.tsdp-plot "
          ".band{fill-opacity:0.2}");
  for (std::size_t i = 1; i < dashes.size(); ++i) css += cat(".tsdp-plot .d", i, "{stroke-dasharray:", dashes[i], "}");
  css += scheme("#ffffff", "#1c1e21", "#5a5f66", "#e3e5e8", light_colours);
  // On paper it stays light.
  return cat(css, "@media screen and (prefers-color-scheme:dark){",
             scheme("#15171b", "#eceef1", "#a3a9b2", "#2f333a", dark_colours), "}");
}

struct Place {
  double left;
  double top;
  double width;
  double height;
};

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

}  // namespace

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

std::string xml_escaped(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      ++i;
      if (c == '&') {
        out += "&amp;";
      } else if (c == '<') {
        out += "&lt;";
      } else if (c == '>') {
        out += "&gt;";
      } else if (c == '"') {
        out += "&quot;";
      } else if (c == '\'') {
        out += "&#39;";
      } else if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
        out += replacement;
      } else {
        out += static_cast<char>(c);
      }
      continue;
    }
    const std::size_t length = c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 1;
    bool good = length > 1 && i + length <= text.size();
    unsigned value = c & (0xFFU >> (length + 1));
    for (std::size_t k = 1; good && k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      good = (next & 0xC0U) == 0x80U;
      value = value << 6U | (next & 0x3FU);
    }
    // Overlong forms, surrogates, and the two code points that XML leaves out.
    good = good &&
           value >= (length == 2   ? 0x80U
                     : length == 3 ? 0x800U
                                   : 0x10000U) &&
           value < 0x110000U && !(value >= 0xD800U && value < 0xE000U) && value != 0xFFFEU && value != 0xFFFFU;
    out += good ? text.substr(i, length) : replacement;
    i += good ? length : 1;
  }
  return out;
}

namespace {

struct Drawing {
  const Sizes& sizes;
  double panel_width;
  double panel_height;
  std::size_t columns;
  bool on_its_own;  ///< with style sheet, title and notes
};

/// The names of all curves in the order of their appearance, each with the style of the first series that bears it, and
/// the styles of every panel's series.
struct Curves {
  std::vector<std::string> names;
  std::vector<Style> legend;
  std::vector<bool> band_alone;
  std::vector<std::vector<Style>> styles;
};

Curves curves_of(const std::vector<PlotPanel>& panels) {
  Curves out;
  for (const auto& panel : panels) {
    for (const auto* axis : {&panel.x, &panel.y})
      for (const auto& ticks : axis->ticks)
        if (!ticks.labels.empty() && ticks.labels.size() != ticks.at.size())
          throw std::invalid_argument(cat("line plot: axis '", axis->label, "' has ", ticks.at.size(), " ticks and ",
                                          ticks.labels.size(), " labels of them"));
    auto& of_panel = out.styles.emplace_back();
    for (const auto& s : panel.series) {
      const bool band = !s.band_lower.empty() || !s.band_upper.empty();
      if (s.y.size() != s.x.size() ||
          (band && (s.band_lower.size() != s.x.size() || s.band_upper.size() != s.x.size())))
        throw std::invalid_argument(cat("line plot: series '", s.name, "' has vectors of different lengths"));
      const auto known =
          static_cast<std::size_t>(std::find(out.names.begin(), out.names.end(), s.name) - out.names.begin());
      if (known == out.names.size()) {
        out.names.push_back(s.name);
        out.legend.push_back({s.colour.value_or(known), s.dash.value_or(known)});
        out.band_alone.push_back(band &&
                                 std::none_of(s.y.begin(), s.y.end(), [](double v) { return std::isfinite(v); }));
      }
      of_panel.push_back(out.legend[known]);
    }
  }
  return out;
}

/// The legend from `y` on, which is moved to its end.
std::string legend_svg(const Curves& curves, const Sizes& sizes, double width, double& y) {
  const auto& names = curves.names;
  const double gap = sizes.gap;
  std::string body;
  constexpr double sample = 38.0;
  double entry = 0.0;
  for (const auto& name : names) entry = std::max(entry, sample + 8.0 + text_width(name, sizes.text) + gap);
  const auto beside = std::max<std::size_t>(1, static_cast<std::size_t>((width - 2 * gap) / entry));
  // Filled column by column, as evenly as the number of rows allows.
  const std::size_t rows = (names.size() + beside - 1) / beside;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double at = gap + static_cast<double>(i / rows) * entry;
    const double line = y + (static_cast<double>(i % rows) + 0.6) * line_height * sizes.text;
    if (curves.band_alone[i]) {
      body += cat("<path class=\"band f", curves.legend[i].colour % light_colours.size(), "\" d=\"M", put(at), " ",
                  put(line - 6.0), "h", put(sample), "v12h", put(-sample), "Z\"/>\n");
    } else {
      body += line_at(at, line, at + sample, line, stroke_classes(curves.legend[i]));
    }
    body += text_at(at + sample + 8.0, line + 0.35 * sizes.text, "label", "start", names[i]);
  }
  y += static_cast<double>(rows) * line_height * sizes.text + 0.5 * gap;
  return body;
}

std::string description_of(const LinePlot& plot, const std::vector<std::string>& names) {
  std::string about = plot.description;
  for (const auto& panel : plot.panels) {
    if (!about.empty()) about += ' ';
    about += cat(panel.title.empty() ? "Panel" : panel.title, ": ", panel.y.label, " over ", panel.x.label, ".");
  }
  if (names.size() > 1) about += cat(" Curves: ", join(names, "; "), ".");
  return about;
}

std::string drawn(const LinePlot& plot, const Drawing& how) {
  const auto& panels = plot.panels;
  const auto& sizes = how.sizes;
  const double gap = sizes.gap;
  const auto curves = curves_of(panels);
  const std::size_t across = how.columns;
  const std::size_t down = (panels.size() + across - 1) / across;
  const double width_each = how.panel_width;
  const double height_each = how.panel_height;
  const double width = gap + static_cast<double>(across) * (width_each + gap);
  std::string body;
  double y = gap;
  const std::string title = how.on_its_own ? plot.title : "";
  for (const auto& line : title.empty() ? std::vector<std::string>{} : wrapped(title, width - 2 * gap, title_size)) {
    y += title_size;
    body += text_at(gap, y, "title", "start", line);
    y += 0.4 * title_size;
  }
  if (!title.empty()) y += 0.6 * gap;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const auto column = static_cast<double>(i % across);
    const auto row = static_cast<double>(i / across);
    body += panel_svg(panels[i],
                      {gap + column * (width_each + gap), y + row * (height_each + gap), width_each, height_each},
                      curves.styles[i], sizes);
  }
  y += static_cast<double>(down) * (height_each + gap);

  if (curves.names.size() > 1 && plot.legend) body += legend_svg(curves, sizes, width, y);
  for (const auto& note : how.on_its_own ? plot.notes : std::vector<std::string>{})
    for (const auto& line : wrapped(note, width - 2 * gap, sizes.small_text)) {
      y += line_height * sizes.small_text;
      body += text_at(gap, y, "note", "start", line);
    }
  const double height = y + gap;
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tsdp-plot\" role=\"img\" viewBox=\"0 0 ", put(width),
             " ", put(height), "\">\n<title>", xml_escaped(plot.title.empty() ? "Plot" : plot.title),
             "</title>\n<desc>", xml_escaped(description_of(plot, curves.names)), "</desc>\n",
             how.on_its_own ? cat("<style>", colours_and_sizes(sizes), "</style>\n") : std::string(),
             "<rect class=\"paper\" width=\"", put(width), "\" height=\"", put(height), "\"/>\n", body, "</svg>\n");
}

}  // namespace

std::string LinePlot::svg() const {
  const std::size_t across = std::clamp<std::size_t>(columns, 1, std::max<std::size_t>(panels.size(), 1));
  // Few panels get more room each.
  const double width = across == 1 ? 680.0 : across == 2 ? 450.0 : 370.0;
  const double height = across == 1 ? 420.0 : across == 2 ? 320.0 : 280.0;
  return drawn(*this, {on_its_own, width, height, across, true});
}

std::string LinePlot::page_svg(double panel_width, double panel_height) const {
  const std::size_t across = std::clamp<std::size_t>(columns, 1, std::max<std::size_t>(panels.size(), 1));
  return drawn(*this, {in_page, panel_width, panel_height, across, false});
}

std::string plot_style_sheet() { return colours_and_sizes(in_page); }

}  // namespace tsdp
