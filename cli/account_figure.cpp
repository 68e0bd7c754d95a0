#include "account_figure.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <numeric>

#include <nlohmann/json.hpp>

#include "plot/line_plot.h"
#include "program.h"
#include "research/paper_figures.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const figures::Figure& figure) {
  Json out;
  out["figure"] = figure.name;
  out["title"] = figure.title;
  out["notes"] = figure.notes;
  out["panels"] = Json::array();
  for (const auto& panel : figure.panels) {
    Json one;
    one["panel"] = panel.title;
    one["series"] = Json::array();
    for (const auto& series : panel.series) {
      Json curve;
      curve["series"] = series.name;
      curve["theorem"] = series.theorem;
      curve["bound"] = series.bound_name();
      if (!series.rigorous()) curve["rigorous"] = false;
      curve["points"] = Json::array();
      for (const auto& p : series.points) {
        Json point;
        if (figure.x_name == "steps") {
          point["steps"] = static_cast<std::uint64_t>(p.x);
        } else {
          point[figure.x_name] = p.x;
        }
        point["compositions"] = p.uses;
        point[figure.y_name] = {{"lower", p.y.lower}, {"upper", p.y.upper}};
        curve["points"].push_back(std::move(point));
      }
      one["series"].push_back(std::move(curve));
    }
    out["panels"].push_back(std::move(one));
  }
  return out;
}

}  // namespace

void check_plot_name(const std::optional<std::string>& plot, const std::optional<std::string>& csv) {
  if (!plot) return;
  const auto file = std::filesystem::path(*plot).lexically_normal();
  auto ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  if (ending != ".svg") throw UsageError(cat("--plot: found '", *plot, "'; expected a name that ends in .svg"));
  if (csv && std::filesystem::path(*csv).lexically_normal() == file)
    throw UsageError(cat("--plot: found '", *plot, "', the file of --csv; expected another one"));
}

int run_figure(const std::string& name, const FigureOptions& options) {
  check_plot_name(options.plot, options.csv);
  const auto is_one_of = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto& of_samplers = figures::batch_sampler_figure_names();
  const auto& of_noise = figures::correlated_noise_figure_names();
  const double precision = options.precision.value_or(figures::figure_precision);
  const auto made = [&] {
    if (is_one_of(of_samplers)) return figures::batch_sampler_figure(name, options.points, precision);
    if (is_one_of(of_noise)) return figures::correlated_noise_figure(name, options.points);
    long long number = 0;
    if (!parse_int(name, number) || std::abs(number) > 1000)
      throw UsageError(cat("figure: found '", name, "'; expected the number of one of the paper's figures, or one of ",
                           join(of_samplers, ", "), ", ", join(of_noise, ", ")));
    return figures::paper_figure(static_cast<int>(number), options.points, precision);
  };
  const auto figure = made();
  std::vector<std::string> files;
  if (options.csv) {
    write_file_atomically(*options.csv, figures::figure_csv(figure));
    files.push_back(*options.csv);
  }
  if (options.plot) {
    write_file_atomically(*options.plot, figures::figure_plot(figure).svg());
    files.push_back(*options.plot);
  }
  if (options.json) {
    print_json(json_of(figure));
  } else if (!options.csv) {
    std::cout << figures::figure_csv(figure);
  } else {
    const auto curves = std::accumulate(figure.panels.begin(), figure.panels.end(), std::size_t{0},
                                        [](std::size_t n, const auto& panel) { return n + panel.series.size(); });
    print(cat("figure ", name, ": ", curves, " curves in ", figure.panels.size(),
              figure.panels.size() == 1 ? " panel" : " panels", ", written to ", join(files, " and "), "\n"));
  }
  return 0;
}

std::string profile_plot(const std::vector<double>& epsilons, const std::vector<double>& lower,
                         const std::vector<double>& upper, const std::string& title) {
  PlotPanel panel;
  panel.x.label = "ε";
  panel.y.label = "δ";
  // Log axes if the numbers spread over more than a decade and have logarithms.
  const auto spread = [](const std::vector<double>& values) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return !values.empty() && *least > 0.0 && *most > 20.0 * *least;
  };
  if (spread(epsilons)) panel.x.scale = AxisScale::log10;
  if (!epsilons.empty() && *std::min_element(epsilons.begin(), epsilons.end()) >= 0.0 && spread(upper))
    panel.y.scale = AxisScale::log10;

  // In the order of ε, whatever order was asked for.
  std::vector<std::size_t> order(epsilons.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return epsilons[a] < epsilons[b]; });
  PlotSeries series;
  series.name = "δ, upper end";
  for (const auto i : order) {
    series.x.push_back(epsilons[i]);
    series.y.push_back(upper.at(i));
    series.band_lower.push_back(lower.at(i));
    series.band_upper.push_back(upper.at(i));
  }
  panel.series.push_back(std::move(series));

  LinePlot plot;
  plot.title = title;
  plot.description = "Privacy profile: delta that remains at each epsilon, lower is better.";
  plot.panels.push_back(std::move(panel));
  plot.notes = {
      "The line is the upper end of the bracket of δ, which is never below the truth; the band reaches down to the "
      "lower end, where it is wide enough to be seen."};
  return plot.svg();
}

}  // namespace tsdp::cli
