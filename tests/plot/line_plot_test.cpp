#include "plot/line_plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tsdp {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// What is wrong with `text` as an XML element, or nothing: tags nest, attributes are quoted and given once, and '&'
/// begins one of the entities of XML.
std::string fault_of(std::string_view text) {
  std::vector<std::string> open;
  bool seen = false;
  const auto entities_fault = [](std::string_view content) -> std::string {
    for (auto at = content.find('&'); at != std::string_view::npos; at = content.find('&', at + 1)) {
      bool known = false;
      for (const std::string_view entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"})
        known = known || content.substr(at, entity.size()) == entity;
      if (!known) return "a bare & in: " + std::string(content);
    }
    return {};
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto begin = text.find('<', i);
    const auto content = text.substr(i, begin == std::string_view::npos ? begin : begin - i);
    if (auto fault = entities_fault(content); !fault.empty()) return fault;
    if (open.empty() && content.find_first_not_of(" \n") != std::string_view::npos) return "text outside the element";
    if (begin == std::string_view::npos) break;
    const auto end = text.find('>', begin);
    if (end == std::string_view::npos) return "a tag without end";
    auto tag = text.substr(begin + 1, end - begin - 1);
    i = end + 1;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "a closing tag out of place: " + std::string(tag);
      open.pop_back();
      continue;
    }
    if (open.empty() && seen) return "a second element";
    seen = true;
    const bool empty = tag.ends_with('/');
    if (empty) tag.remove_suffix(1);
    const auto name_end = tag.find(' ');
    const auto name = tag.substr(0, name_end);
    std::vector<std::string_view> names;
    for (auto rest = name_end == std::string_view::npos ? std::string_view() : tag.substr(name_end); !rest.empty();) {
      const auto quote = rest.find("=\"");
      if (rest[0] != ' ' || quote == std::string_view::npos) return "broken attributes: " + std::string(tag);
      const auto close = rest.find('"', quote + 2);
      if (close == std::string_view::npos) return "an attribute without end: " + std::string(tag);
      if (auto fault = entities_fault(rest.substr(quote, close - quote)); !fault.empty()) return fault;
      for (const auto known : names)
        if (known == rest.substr(1, quote - 1)) return "an attribute given twice: " + std::string(tag);
      names.push_back(rest.substr(1, quote - 1));
      rest.remove_prefix(close + 1);
    }
    if (!empty) open.emplace_back(name);
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++times;
  return times;
}

/// The `d` of the path of the only curve.
std::string path_of(const std::string& svg) {
  const auto line = svg.find("<path class=\"line c0 d0\" d=\"");
  if (line == std::string::npos) return {};
  const auto begin = svg.find("d=\"M", line) + 3;
  return svg.substr(begin, svg.find('"', begin) - begin);
}

PlotSeries series(const std::string& name, std::vector<double> x, std::vector<double> y) {
  PlotSeries s;
  s.name = name;
  s.x = std::move(x);
  s.y = std::move(y);
  return s;
}

PlotPanel panel(PlotSeries s, AxisScale x = AxisScale::linear, AxisScale y = AxisScale::linear) {
  PlotPanel p;
  p.title = "panel";
  p.x = {"x", x, {}, {}};
  p.y = {"y", y, {}, {}};
  p.series.push_back(std::move(s));
  return p;
}

LinePlot plot(PlotPanel p) {
  LinePlot out;
  out.title = "title";
  out.panels.push_back(std::move(p));
  return out;
}

void expect_sound(const std::string& svg) {
  EXPECT_EQ(fault_of(svg), "") << svg;
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  for (const auto* bad : {"nan", "NaN", "inf", "Inf", "-0\"", "e+", "e-1"})
    EXPECT_EQ(svg.find(bad), std::string::npos) << bad << " in " << svg;
}

TEST(LinePlot, FaultFinderFindsFaults) {
  EXPECT_EQ(fault_of("<a b=\"c\"><d/>&amp;</a>\n"), "");
  for (const auto* bad :
       {"<a>", "<a></b>", "<a/><b/>", "<a b=c/>", "<a b=\"c/>", "<a>&</a>", "<a b=\"1\" b=\"2\"/>", "x"})
    EXPECT_NE(fault_of(bad), "") << bad;
}

TEST(LinePlot, IsWellFormedAndStandsAlone) {
  auto p = plot(panel(series("one", {1, 2, 3}, {1, 4, 9})));
  p.panels[0].series.push_back(series("two", {1, 2, 3}, {9, 4, 1}));
  p.panels.push_back(p.panels[0]);
  p.panels.push_back(p.panels[0]);
  p.columns = 2;
  p.notes = {std::string(500, 'n') + " and more", "second"};
  p.description = "About it.";
  const auto svg = p.svg();
  expect_sound(svg);
  EXPECT_EQ(svg.find("http", 40), std::string::npos);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find(" id=\""), std::string::npos);  // several plots may share a page
  EXPECT_NE(svg.find("<title>title</title>\n<desc>About it. "), std::string::npos);
  EXPECT_NE(svg.find("@media screen and (prefers-color-scheme:dark)"), std::string::npos);
  EXPECT_NE(svg.find("viewBox=\"0 0 "), std::string::npos);
  // One legend entry a name: text, and the titles of three curves.
  EXPECT_EQ(count(svg, ">one</text>"), 1U);
  EXPECT_EQ(count(svg, "<title>one</title>"), 3U);
  // Colour and dash tell the two apart.
  EXPECT_EQ(count(svg, "class=\"line c0 d0\""), 4U);
  EXPECT_EQ(count(svg, "class=\"line c1 d1\""), 4U);
}

TEST(LinePlot, EmptyPlotsAreDrawn) {
  expect_sound(LinePlot{}.svg());
  expect_sound(plot(PlotPanel{}).svg());
  for (const auto scale : {AxisScale::linear, AxisScale::log10}) {
    expect_sound(plot(panel(series("none", {}, {}), scale, scale)).svg());
    expect_sound(plot(panel(series("one", {1}, {1}), scale, scale)).svg());
    expect_sound(plot(panel(series("zero", {0, 1}, {0, 0}), scale, scale)).svg());
  }
}

TEST(LinePlot, EscapesText) {
  auto p = plot(panel(series("<b>&\"'", {1, 2}, {1, 2})));
  p.panels[0].series.push_back(series("]]>", {1, 2}, {2, 1}));
  p.title = "a < b & c > d";
  p.panels[0].title = "\"q\" 'a'";
  p.panels[0].x.label = "</text>";
  p.panels[0].y.label = std::string("\x01\x1b[0m\xff\xc0\x80 \xed\xa0\x80 end");
  p.description = "<desc>";
  p.notes = {"<&>"};
  const auto svg = p.svg();
  expect_sound(svg);
  EXPECT_NE(svg.find("a &lt; b &amp; c &gt; d"), std::string::npos);
  EXPECT_NE(svg.find("&lt;b&gt;&amp;&quot;&#39;"), std::string::npos);
  EXPECT_EQ(xml_escaped("δ(ε) ≤ 10⁻⁷ 𝛿"), "δ(ε) ≤ 10⁻⁷ 𝛿");
  EXPECT_EQ(xml_escaped(std::string_view("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(xml_escaped("\xC3"), "\xEF\xBF\xBD");  // cut short
  EXPECT_EQ(xml_escaped("\xE2\x82("), "\xEF\xBF\xBD\xEF\xBF\xBD(");
  EXPECT_EQ(xml_escaped("\xEF\xBF\xBE"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // not a character of XML
}

TEST(LinePlot, BreaksTheLineWherePointsCannotBeShown) {
  std::vector<double> x(60);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i + 1);
  auto y = x;
  EXPECT_EQ(count(path_of(plot(panel(series("s", x, y))).svg()), "M"), 1U);
  y[10] = not_a_number;
  y[20] = infinity;
  y[30] = -infinity;
  x[40] = not_a_number;
  y[50] = 0.0;
  y[55] = -1.0;
  const auto linear = plot(panel(series("s", x, y))).svg();
  expect_sound(linear);
  EXPECT_EQ(count(path_of(linear), "M"), 5U);
  EXPECT_EQ(count(path_of(linear), "L"), 60U - 4U - 5U);
  const auto log = plot(panel(series("s", x, y), AxisScale::log10, AxisScale::log10)).svg();
  expect_sound(log);
  EXPECT_EQ(count(path_of(log), "M"), 7U);
  EXPECT_EQ(count(path_of(log), "L"), 60U - 6U - 7U);
  EXPECT_EQ(count(log, "<circle"), 0U);
}

TEST(LinePlot, ShowsLonePointsAndShortCurvesAsDots) {
  std::vector<double> x(60);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i + 1);
  auto y = x;
  y[10] = y[12] = not_a_number;
  EXPECT_EQ(count(plot(panel(series("s", x, y))).svg(), "<circle"), 1U);
  EXPECT_EQ(count(plot(panel(series("s", {1, 2, 3}, {1, not_a_number, 3}))).svg(), "<circle"), 2U);
}

TEST(LinePlot, BandsReachTheAxisWhereTheirLowerEndIsZero) {
  auto s = series("s", {1, 2, 3, 4}, {1, 1e-3, 1e-6, not_a_number});
  s.band_lower = {0.5, 5e-4, 0.0, not_a_number};
  s.band_upper = {1, 1e-3, 1e-6, not_a_number};
  const auto svg = plot(panel(s, AxisScale::linear, AxisScale::log10)).svg();
  expect_sound(svg);
  EXPECT_EQ(count(svg, "class=\"band f0\""), 1U);
  s.staircase = true;
  expect_sound(plot(panel(s, AxisScale::linear, AxisScale::log10)).svg());
}

TEST(LinePlot, StaircasesHoldTheirValue) {
  auto s = series("s", {0, 1, 2}, {1, 2, 3});
  s.staircase = true;
  const auto path = path_of(plot(panel(s)).svg());
  EXPECT_EQ(count(path, "H"), 2U);
  EXPECT_EQ(count(path, "V"), 2U);
  EXPECT_EQ(count(path, "L"), 0U);
}

TEST(LinePlot, ExtremeNumbersStayOnThePaper) {
  using limits = std::numeric_limits<double>;
  for (const auto scale : {AxisScale::linear, AxisScale::log10})
    for (const auto& values : std::vector<std::vector<double>>{{limits::lowest(), limits::max()},
                                                               {limits::denorm_min(), limits::max()},
                                                               {limits::denorm_min(), limits::denorm_min()},
                                                               {1.0, std::nextafter(1.0, 2.0)},
                                                               {-1e-300, 1e-300}})
      expect_sound(plot(panel(series("s", values, values), scale, scale)).svg());
  // Given ends that make no sense.
  for (const auto& [lower, upper] : std::vector<std::pair<double, double>>{
           {1, 1}, {2, 1}, {0, 0}, {not_a_number, infinity}, {-1, -2}, {1e300, 1e308}, {5, not_a_number}}) {
    auto p = panel(series("s", {1, 2}, {1, 2}), AxisScale::log10, AxisScale::linear);
    p.x.lower = p.y.lower = lower;
    p.x.upper = p.y.upper = upper;
    expect_sound(plot(p).svg());
  }
}

TEST(LinePlot, VectorsOfDifferentLengthsAreRefused) {
  EXPECT_THROW(static_cast<void>(plot(panel(series("s", {1, 2}, {1}))).svg()), std::invalid_argument);
  auto s = series("s", {1, 2}, {1, 2});
  s.band_upper = {1, 2};
  EXPECT_THROW(static_cast<void>(plot(panel(s)).svg()), std::invalid_argument);
}

void expect_ticks(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12 * std::abs(expected[i]));
}

LinePlot band_and_curve() {
  LinePlot plot;
  plot.title = "A title";
  plot.notes = {"a note"};
  PlotPanel panel;
  panel.x.label = "time";
  panel.y.label = "value";
  PlotSeries band;
  band.name = "band";
  band.x = {0.0, 1.0, 2.0};
  band.y = {not_a_number, not_a_number, not_a_number};
  band.band_lower = {0.0, 0.0, 0.0};
  band.band_upper = {2.0, 3.0, 4.0};
  PlotSeries line;
  line.name = "line";
  line.x = {0.0, 1.0, 2.0};
  line.y = {1.0, 1.5, 2.0};
  panel.series = {band, line};
  plot.panels = {panel};
  return plot;
}

TEST(LinePlot, ForAPageHasNeitherStylesNorTitleNorNotes) {
  const auto plot = band_and_curve();
  const auto svg = plot.page_svg(300.0, 200.0);
  EXPECT_EQ(fault_of(svg), "");
  EXPECT_EQ(count(svg, "<style>"), 0U);
  EXPECT_EQ(count(svg, "class=\"title\""), 0U);
  EXPECT_EQ(count(svg, "a note"), 0U);
  EXPECT_EQ(count(svg, "<title>A title</title>"), 1U);
  EXPECT_EQ(count(svg, "x-label\""), 1U);
  EXPECT_EQ(count(svg, "y-label\""), 1U);
  EXPECT_EQ(count(svg, "class=\"tsdp-plot\" role=\"img\" viewBox=\"0 0 306 "), 1U) << svg;
  // Sizes in the sheet, dark only on screens.
  const auto sheet = plot_style_sheet();
  EXPECT_EQ(count(sheet, "@media screen and (prefers-color-scheme:dark)"), 1U);
  for (std::size_t at = sheet.find("font-size:"); at != std::string::npos; at = sheet.find("font-size:", at + 1))
    EXPECT_GE(std::stod(sheet.substr(at + 10)), 12.0);
}

TEST(LinePlot, BandsWithoutACurveAreBandsInTheLegend) {
  auto plot = band_and_curve();
  const auto with = plot.svg();
  EXPECT_EQ(fault_of(with), "");
  EXPECT_EQ(count(with, "class=\"band f0\""), 2U);  // itself and its sample
  EXPECT_EQ(count(with, "class=\"line c0"), 0U);
  EXPECT_EQ(count(with, "class=\"line c1"), 2U);
  plot.legend = false;
  const auto without = plot.svg();
  EXPECT_EQ(count(without, "class=\"band f0\""), 1U);
  EXPECT_EQ(count(without, ">band</text>"), 0U);
  EXPECT_EQ(count(without, "Curves: band; line."), 1U) << "those who cannot see are told all the same";
}

TEST(LinePlot, TakesGivenTicksAndRules) {
  auto plot = band_and_curve();
  plot.panels[0].x.ticks = {{{-24.0, 0.0, 1.25, 99.0}}};  // those beyond the axis are left out
  plot.panels[0].x_rules = {0.5};
  const auto svg = plot.svg();
  EXPECT_EQ(fault_of(svg), "");
  EXPECT_EQ(count(svg, ">1.25</text>"), 1U);
  EXPECT_EQ(count(svg, ">99</text>") + count(svg, ">−24</text>"), 0U);
  EXPECT_EQ(count(svg, "class=\"rule\""), 1U);
}

// The finest set of ticks whose labels stand apart; where the plot sets them itself, fewer.
TEST(LinePlot, LabelsOfTheXAxisStandApart) {
  auto plot = band_and_curve();
  const auto labels = [&](double width) {
    const auto svg = plot.page_svg(width, 200.0);
    std::vector<std::pair<double, std::string>> out;  // place and label
    const std::string mark = "class=\"tick\" text-anchor=\"middle\">";
    for (auto at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + 1)) {
      const auto x = svg.rfind("x=\"", at) + 3, begin = at + mark.size();
      out.emplace_back(std::stod(svg.substr(x)), svg.substr(begin, svg.find('<', begin) - begin));
    }
    return out;
  };
  plot.panels[0].x.lower = 0.0;
  plot.panels[0].x.upper = 10.0;
  for (const auto upper : {1.0, 1e5, 1e6, 9.9e8, 1e-9})
    for (const double width : {120.0, 200.0, 300.0, 450.0}) {
      plot.panels[0].x.upper = upper;
      const auto found = labels(width);
      for (std::size_t i = 1; i < found.size(); ++i) {
        const auto points = [](const std::string& text) {
          return static_cast<double>(
              std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
        };
        EXPECT_GE(found[i].first - found[i - 1].first,
                  0.5 * 0.58 * 12.5 * (points(found[i].second) + points(found[i - 1].second)))
            << upper << " " << width << " " << found[i].second;
      }
    }
  plot.panels[0].x.upper = 10.0;
  plot.panels[0].x.ticks = {{{1.0, 2.0, 3.0, 9.0}, {"06:00", "12:00", "18:00", "20 Oct"}},
                            {{2.0, 9.0}, {"12:00", "20 Oct"}}};
  EXPECT_EQ(labels(600.0).size(), 4U);
  EXPECT_EQ(labels(300.0).size(), 2U);
}

TEST(LinePlot, LinearTicksAreMultiplesOfOneTwoFive) {
  expect_ticks(plot_ticks(0, 1, AxisScale::linear, 5), {0, 0.2, 0.4, 0.6, 0.8, 1});
  expect_ticks(plot_ticks(-1, 1, AxisScale::linear, 4), {-1, -0.5, 0, 0.5, 1});
  expect_ticks(plot_ticks(1, 16, AxisScale::linear, 8), {2, 4, 6, 8, 10, 12, 14, 16});
  expect_ticks(plot_ticks(0.12, 0.19, AxisScale::linear, 4), {0.12, 0.14, 0.16, 0.18});
}

TEST(LinePlot, LogTicksAreDecadesOrOneTwoFive) {
  expect_ticks(plot_ticks(1e-3, 1e3, AxisScale::log10, 8), {1e-3, 1e-2, 1e-1, 1, 10, 100, 1000});
  expect_ticks(plot_ticks(1e-20, 1, AxisScale::log10, 6), {1e-20, 1e-15, 1e-10, 1e-5, 1});
  expect_ticks(plot_ticks(1, 10, AxisScale::log10, 6), {1, 2, 5, 10});
  expect_ticks(plot_ticks(0.3, 30, AxisScale::log10, 6), {0.5, 1, 2, 5, 10, 20});
  expect_ticks(plot_ticks(10, 12, AxisScale::log10, 4), {10, 10.5, 11, 11.5, 12});
}

TEST(LinePlot, TicksAreFewAndWithin) {
  for (const auto scale : {AxisScale::linear, AxisScale::log10})
    for (double lower = 1e-12; lower < 1e6; lower *= 7.3)
      for (double upper = 1.01 * lower; upper < 1e9; upper *= 3.7)
        for (const std::size_t most : {3U, 6U, 10U}) {
          const auto ticks = plot_ticks(lower, upper, scale, most);
          EXPECT_GE(ticks.size(), 1U) << lower << " " << upper;
          EXPECT_LE(ticks.size(), most + 1) << lower << " " << upper;
          for (std::size_t i = 0; i < ticks.size(); ++i) {
            EXPECT_GE(ticks[i], lower - 1e-6 * (upper - lower));
            EXPECT_LE(ticks[i], upper + 1e-6 * (upper - lower));
            if (i > 0) { EXPECT_GT(ticks[i], ticks[i - 1]); }
          }
        }
}

TEST(LinePlot, TickLabels) {
  constexpr auto linear = AxisScale::linear;
  constexpr auto log = AxisScale::log10;
  EXPECT_EQ(tick_label(0.0, linear), "0");
  EXPECT_EQ(tick_label(3 * 0.1, linear), "0.3");
  EXPECT_EQ(tick_label(-2.5, linear), "−2.5");
  EXPECT_EQ(tick_label(1000.0, linear), "1000");
  EXPECT_EQ(tick_label(2e-5, linear), "2·10⁻⁵");
  EXPECT_EQ(tick_label(1e-5, linear), "10⁻⁵");
  EXPECT_EQ(tick_label(-5e7, linear), "−5·10⁷");
  EXPECT_EQ(tick_label(1e-3, log), "10⁻³");
  EXPECT_EQ(tick_label(0.1, log), "10⁻¹");
  EXPECT_EQ(tick_label(1.0, log), "1");
  EXPECT_EQ(tick_label(10.0, log), "10");
  EXPECT_EQ(tick_label(1e12, log), "10¹²");
  EXPECT_EQ(tick_label(0.5, log), "0.5");
  EXPECT_EQ(tick_label(5e-8, log), "5·10⁻⁸");
}

}  // namespace
}  // namespace tsdp
