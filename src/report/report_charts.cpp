#include "report_charts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calendar_ticks.h"
#include "evaluation/truth.h"
#include "plain_words.h"
#include "plot/line_plot.h"
#include "tsdp/base/text.h"

namespace tsdp::exporting {
namespace {

// A chart is never shown smaller than this many pixels, not even on a narrow phone, so its texts keep their size.
constexpr double chart_width = 300.0;
constexpr double chart_height = 230.0;
constexpr std::size_t most_points = 120;  // of a loss curve
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Places in the plots' palette of colours and dashes.
constexpr std::size_t blue = 0;
constexpr std::size_t orange = 1;
constexpr std::size_t grey = 5;
constexpr std::size_t full = 0;
constexpr std::size_t dashed = 1;
constexpr std::size_t dotted = 2;

struct Point {
  double epoch;
  double value;
};

/// The logged values of `name` over epochs.
std::vector<Point> logged(const ReportContent& content, const char* name) {
  std::vector<Point> out;
  for (const auto& line : content.metrics) {
    const double value = number_in(line, name);
    const double step = number_in(line, "step");
    if (std::isfinite(value) && std::isfinite(step))
      out.push_back({step / static_cast<double>(std::max<std::int64_t>(content.steps_per_epoch, 1)), value});
  }
  return out;
}

PlotSeries curve(std::string name, std::size_t colour, std::size_t dash) {
  PlotSeries s{};
  s.name = std::move(name);
  s.colour = colour;
  s.dash = dash;
  return s;
}

/// Medians of groups of neighbouring points, with a band from the 10th to the 90th percentile of each.
PlotSeries grouped(PlotSeries s, const std::vector<Point>& points) {
  const auto size = std::max<std::size_t>(1, (points.size() + most_points - 1) / most_points);
  for (std::size_t begin = 0; begin < points.size(); begin += size) {
    const auto end = std::min(points.size(), begin + size);
    std::vector<double> values;
    double epochs = 0.0;
    for (std::size_t i = begin; i < end; ++i) {
      values.push_back(points[i].value);
      epochs += points[i].epoch;
    }
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
      return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
    };
    s.x.push_back(epochs / static_cast<double>(end - begin));
    s.y.push_back(at(0.5));
    if (size > 1) {
      s.band_lower.push_back(at(0.1));
      s.band_upper.push_back(at(0.9));
    }
  }
  return s;
}

PlotSeries as_logged(PlotSeries s, const std::vector<Point>& points) {
  // Thinned out from the end, which must be kept.
  const auto stride = std::max<std::size_t>(1, (points.size() + most_points - 1) / most_points);
  for (std::size_t i = (points.size() + stride - 1) % stride; i < points.size(); i += stride) {
    s.x.push_back(points[i].epoch);
    s.y.push_back(points[i].value);
  }
  return s;
}

LinePlot plot_of(std::string title, std::string description, PlotPanel panel) {
  LinePlot plot{};
  plot.title = std::move(title);
  plot.description = std::move(description);
  plot.panels.push_back(std::move(panel));
  return plot;
}

PlotAxis axis(std::string label) {
  PlotAxis a{};
  a.label = std::move(label);
  return a;
}

}  // namespace

std::string score_text(double score) { return std::isfinite(score) ? rounded(score, 4) : std::string("–"); }

std::string forecast_chart(const ReportForecast& f, const ReportContent& content) {
  const auto horizon = f.truth.size();
  const auto before = static_cast<double>(f.past.size());
  PlotPanel panel{};
  panel.x = axis(f.moments.empty() ? cat("steps of ", content.step, " from the forecast's start")
                                   : cat("time, in steps of ", content.step));
  panel.x.lower = -before;
  panel.x.upper = std::max<double>(static_cast<double>(horizon) - 1.0, 1.0 - before);
  // The finest ticks whose labels do not overlap.
  for (std::size_t most = 5; most > 0; --most) {
    PlotTicks ticks;
    for (const auto& tick : calendar_ticks(f.moments, most)) {
      ticks.at.push_back(static_cast<double>(tick.step) - before);
      ticks.labels.push_back(tick.label);
    }
    if (!ticks.at.empty()) panel.x.ticks.push_back(std::move(ticks));
  }
  panel.y = axis("value, in units of the data");
  panel.x_rules = {-0.5};
  auto wide = curve("90 % band", orange, full);
  auto narrow = curve("50 % band", orange, full);
  auto median = curve("median forecast", orange, dashed);
  auto truth = curve("truth", blue, full);
  for (std::size_t k = 0; k < horizon; ++k) {
    const auto at = static_cast<double>(k);
    for (auto* s : {&wide, &narrow}) {
      s->x.push_back(at);
      s->y.push_back(nan);
    }
    wide.band_lower.push_back(f.quantiles[0].at(k));
    narrow.band_lower.push_back(f.quantiles[1].at(k));
    median.x.push_back(at);
    median.y.push_back(f.quantiles[2].at(k));
    narrow.band_upper.push_back(f.quantiles[3].at(k));
    wide.band_upper.push_back(f.quantiles[4].at(k));
  }
  for (std::size_t i = 0; i < f.past.size(); ++i) {
    truth.x.push_back(static_cast<double>(i) - before);
    truth.y.push_back(f.past[i]);
  }
  for (std::size_t k = 0; k < horizon; ++k) {
    truth.x.push_back(static_cast<double>(k));
    truth.y.push_back(f.truth[k]);
  }
  auto naive = curve("seasonal naive", grey, dotted);
  for (std::size_t k = 0; k < f.seasonal_naive.size(); ++k) {
    naive.x.push_back(static_cast<double>(k));
    naive.y.push_back(f.seasonal_naive[k]);
  }
  panel.series = {std::move(wide), std::move(narrow), std::move(naive), std::move(truth), std::move(median)};
  auto plot = plot_of(cat("Series ", f.series, ", forecast from ", f.start),
                      cat("Truth before and after the forecast's start, the forecast's median with 50 % and 90 % "
                          "bands, and seasonal naive; ",
                          f.why, "."),
                      std::move(panel));
  plot.legend = false;
  return plot.page_svg(chart_width, chart_height);
}

std::string forecast_legend() {
  const auto sample = [](const std::string& shapes, const char* name) {
    return cat("<li><svg class=\"tsdp-plot sample\" viewBox=\"0 0 38 16\" aria-hidden=\"true\">", shapes, "</svg>",
               name, "</li>\n");
  };
  return cat(
      "<ul class=\"legend\">\n", sample("<path class=\"line c0 d0\" d=\"M0 8H38\"/>", "truth"),
      sample("<path class=\"line c1 d1\" d=\"M0 8H38\"/>", "median forecast"),
      sample("<path class=\"line c5 d2\" d=\"M0 8H38\"/>", "seasonal naive"),
      sample("<path class=\"band f1\" d=\"M0 1H38V15H0Z\"/><path class=\"band f1\" d=\"M0 1H38V15H0Z\"/>", "50 % band"),
      sample("<path class=\"band f1\" d=\"M0 1H38V15H0Z\"/>", "90 % band"),
      sample("<path class=\"rule\" d=\"M19 0V16\"/>", "the forecast's start"), "</ul>\n");
}

std::string score_chart(const ReportContent& content) {
  struct Bar {
    std::string name;
    double value;
  };
  std::vector<Bar> bars;
  double most = 0.0;
  for (const auto& score : content.scores) {
    const double value = number_in(score.metrics, "mean_weighted_quantile_loss");
    if (!std::isfinite(value) || value < 0.0) continue;
    bars.push_back({score.name, value});
    most = std::max(most, value);
  }
  if (bars.empty() || !(most > 0.0)) return {};
  // A name is above its bar, where there is room for it, and the number at the end of the bar.
  constexpr double left = 26.0;
  constexpr double right = 62.0;
  constexpr double row = 46.0;
  constexpr double top = 6.0;
  const double length = chart_width - left - right;
  const double bottom = top + row * static_cast<double>(bars.size());
  const auto ticks = plot_ticks(0.0, most, AxisScale::linear, 4);
  const auto at = [&](double value) { return left + length * value / most; };
  const auto text = [](double x, double y, const char* classes, const char* anchor, const std::string& content_text) {
    return cat("<text x=\"", rounded(x, 6), "\" y=\"", rounded(y, 6), "\" class=\"", classes, "\" text-anchor=\"",
               anchor, "\">", xml_escaped(content_text), "</text>\n");
  };
  std::string body;
  std::string names;
  for (const double tick : ticks) {
    body += cat("<path class=\"grid\" d=\"M", rounded(at(tick), 6), " ", top, "V", bottom, "\"/>\n");
    body += text(at(tick), bottom + 16.0, "tick", "middle", tick_label(tick, AxisScale::linear));
  }
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double y = top + row * static_cast<double>(i);
    const auto* colour = i == 0 ? "f0" : "f5";
    body += text(left + 4.0, y + 16.0, "label", "start", bars[i].name);
    body += cat("<path class=\"bar ", colour, "\" d=\"M", left, " ", y + 21.0, "H", rounded(at(bars[i].value), 6),
                "v18H", left, "Z\"/>\n");
    body += text(at(bars[i].value) + 5.0, y + 35.0, "label", "start", score_text(bars[i].value));
    names += cat(i > 0 ? "; " : "", bars[i].name, " ", score_text(bars[i].value));
  }
  body += cat("<path class=\"frame\" d=\"M", left, " ", top, "V", bottom, "H", left + length, "\"/>\n");
  body += text(left + length / 2.0, bottom + 35.0, "label x-label", "middle", "CRPS (lower is better)");
  body += cat("<text class=\"label y-label\" text-anchor=\"middle\" transform=\"translate(14 ",
              rounded((top + bottom) / 2.0, 6), ") rotate(-90)\">forecaster</text>\n");
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tsdp-plot\" role=\"img\" viewBox=\"0 0 ", chart_width,
             " ", bottom + 42.0,
             "\">\n<title>CRPS of each forecaster</title>\n<desc>Bars of CRPS, lower is better: ", xml_escaped(names),
             ".</desc>\n<rect class=\"paper\" width=\"", chart_width, "\" height=\"", bottom + 42.0, "\"/>\n", body,
             "</svg>\n");
}

std::string loss_chart(const ReportContent& content) {
  const auto training = logged(content, "loss");
  const auto validation = logged(content, "validation_loss");
  if (training.empty() && validation.empty()) return {};
  PlotPanel panel{};
  panel.x = axis("epoch");
  panel.y = axis("loss a window");
  panel.x.lower = 0.0;
  panel.x.upper =
      std::max(training.empty() ? 0.0 : training.back().epoch, validation.empty() ? 0.0 : validation.back().epoch);
  if (!training.empty()) panel.series.push_back(grouped(curve("training batches", blue, full), training));
  if (!validation.empty()) panel.series.push_back(as_logged(curve("validation part", orange, dashed), validation));
  return plot_of(
             "Loss over epochs",
             cat(content.loss,
                 ", a window: logged training batches, where there are many as medians with their 10 % to 90 % band, "
                 "and the mean over the validation part."),
             std::move(panel))
      .page_svg(chart_width, chart_height);
}

std::string epsilon_chart(const ReportContent& content) {
  const auto points = logged(content, "epsilon_upper");
  if (points.empty()) return {};
  PlotPanel panel{};
  panel.x = axis("epoch");
  panel.y = axis("epsilon, upper bound");
  panel.x.lower = panel.y.lower = 0.0;
  // The cost of a count of steps covers every smaller count: a staircase that is nowhere below the truth.
  auto spent = curve("spent", blue, full);
  spent.staircase = true;
  double epoch = 0.0;
  for (const auto& point : points) {
    spent.x.push_back(epoch);
    spent.y.push_back(point.value);
    epoch = point.epoch;
  }
  spent.x.push_back(epoch);
  spent.y.push_back(points.back().value);
  panel.x.upper = epoch;
  panel.series.push_back(std::move(spent));
  if (const double target = number_in(content.ledger, "target_epsilon"); std::isfinite(target)) {
    auto line = curve("target", grey, dashed);
    line.x = {0.0, epoch};
    line.y = {target, target};
    line.staircase = true;
    panel.series.push_back(std::move(line));
  }
  return plot_of("Epsilon over epochs", "The proven upper bound of epsilon at the run's delta, and the target.",
                 std::move(panel))
      .page_svg(chart_width, chart_height);
}

std::string clipping_chart(const ReportContent& content) {
  const auto points = logged(content, "clipped_share");
  if (points.empty()) return {};
  PlotPanel panel{};
  panel.x = axis("epoch");
  panel.y = axis("share of gradients clipped");
  panel.x.lower = panel.y.lower = 0.0;
  panel.x.upper = points.back().epoch;
  panel.y.upper = 1.0;
  panel.series.push_back(grouped(curve("clipped", blue, full), points));
  return plot_of("Clipped gradients over epochs",
                 "Share of a batch's gradients that were longer than the clip norm; where many batches were logged, "
                 "medians with the 10 % to 90 % band.",
                 std::move(panel))
      .page_svg(chart_width, chart_height);
}

std::string attack_chart(const ReportContent& content) {
  const auto& rates = content.false_positive_rates;
  if (rates.size() < 2 || rates.size() != content.true_positive_rates.size()) return {};
  PlotPanel panel{};
  panel.x = axis("false alarms (false-positive rate)");
  panel.y = axis("hits (true-positive rate)");
  panel.x.lower = panel.y.lower = 0.0;
  panel.x.upper = panel.y.upper = 1.0;
  auto best = curve("best attacker, at most", orange, full);
  best.x = rates;
  best.y = content.true_positive_rates;
  auto guess = curve("guessing", grey, dotted);
  guess.x = {0.0, 1.0};
  guess.y = {0.0, 1.0};
  guess.staircase = false;
  panel.series = {std::move(best), std::move(guess)};
  return plot_of("What the best attacker can achieve",
                 "The most hits that any attacker can have at each share of false alarms; the diagonal is what "
                 "guessing without the model achieves.",
                 std::move(panel))
      .page_svg(chart_width, chart_width * 0.92);
}

}  // namespace tsdp::exporting
