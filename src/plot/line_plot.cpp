#include "plot/line_plot.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "panel.h"
#include "svg.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

using plot::dark_colours, plot::dashes, plot::light_colours;
using plot::line_at, plot::put, plot::text_at, plot::text_width;
using plot::panel_svg, plot::Sizes, plot::stroke_classes, plot::Style;

constexpr Sizes on_its_own = {16.0, 12.0, 11.0};
constexpr Sizes in_page = {3.0, 13.0, 12.5};  // room for a picture that is shown a little smaller than it is
constexpr double title_size = 17.0;
constexpr double line_height = 1.4;

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
