// Figures 1 to 7 of Chua et al., "How Private are DP-SGD Implementations?" (ICML 2024).
#include "batch_sampler_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "privacy/theorems/series_law.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::figures {
namespace {

using privacy::TopLevel;

/// One of the figures: over noise multipliers at one δ, or over ε at one σ.
struct Setting {
  std::string name;
  std::int64_t batches;
  double delta;        // over noise multipliers; 0: over ε
  double sigma;        // over ε
  double last_epsilon;
  bool shuffled;       // whether it has the curve
  std::string note;
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {"B1", 10'000, 1e-6, 0.0, 0.0, true, ""},
      {"B2", 10, 0.0, 0.3, 30.0, false, ""},
      {"B3", 10'000, 0.0, 0.4, 14.0, true,
       "The paper prints 7.5e-5 at ε = 12 as a lower bound of shuffled batches; that is rounded up, even deterministic "
       "ones have 7.4744e-5."},
      {"B4", 100'000, 1e-6, 0.0, 0.0, true,
       "The paper's caption says T = 10,000; its text and values are for T = 100,000."},
      {"B5", 1'000, 1e-5, 0.0, 0.0, true, ""},
      {"B6", 1'000, 0.0, 0.8, 6.0, true, ""},
      {"B7", 1'000, 0.0, 1.0, 5.0, true,
       "The three values that the paper's text gives for ε = 1 are those of ε = 0.5."},
  };
  return all;
}

}  // namespace

const std::vector<std::string>& batch_sampler_figure_names() {
  static const auto names = [] {
    std::vector<std::string> out;
    for (const auto& setting : settings()) out.push_back(setting.name);
    return out;
  }();
  return names;
}

Figure batch_sampler_figure(const std::string& name, int points, double precision) {
  const auto& all = settings();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& setting) { return setting.name == name; });
  if (found == all.end())
    throw UsageError(cat("figure: found '", name, "'; expected one of ", join(batch_sampler_figure_names(), ", ")));
  if (points < 2) throw UsageError(cat("figure: found ", points, " points; expected at least 2"));
  const auto& s = *found;
  const bool over_noise = s.delta > 0.0;
  Figure figure{s.name,
                cat("Figure ", s.name, ": one epoch of ", s.batches, " batches, ",
                    over_noise ? cat("δ = ", s.delta) : cat("noise multiplier ", s.sigma)),
                over_noise ? "noise_multiplier" : "epsilon",
                {{"", {}}},
                1,
                {"Neighbours differ in one record, present or absent. Shuffled: between the events of the largest "
                 "coordinate and deterministic batches."},
                over_noise ? "epsilon" : "delta"};
  if (!s.note.empty()) figure.notes.push_back(s.note);
  const auto add = [&](const std::string& title, TopLevel sampler) {
    const auto theorem_at = [&](double sigma) { return privacy::series_theorem({sampler, s.batches}, sigma); };
    FigureSeries series;
    series.name = title;
    const auto uses_of = [&](const privacy::AppliedTheorem& theorem) {
      return theorem.uses_of_steps(static_cast<std::uint64_t>(s.batches));
    };
    const auto first = theorem_at(1.0);
    series.theorem = first.theorem;
    series.bound = first.bound;
    if (over_noise) {
      constexpr int steps = 20;
      for (int i = 0; i <= steps; ++i) {
        const double sigma = 0.4 + 1.0 * i / steps;
        const auto theorem = theorem_at(sigma);
        series.points.push_back(
            {sigma, uses_of(theorem), theorem.curve()->epsilon(s.delta, uses_of(theorem), precision)});
      }
    } else {
      const auto theorem = theorem_at(s.sigma);
      const auto curve = theorem.curve();
      bool negligible = false;  // then it stays so: δ falls in ε
      for (int i = 0; i < points; ++i) {
        const double epsilon = s.last_epsilon * i / (points - 1);
        const auto delta = negligible ? privacy::Interval{} : curve->delta(epsilon, uses_of(theorem), precision);
        negligible = negligible || delta.upper < negligible_delta;
        series.points.push_back(
            {epsilon, uses_of(theorem), negligible ? privacy::Interval{0.0, negligible_delta} : delta});
      }
    }
    figure.panels.front().series.push_back(std::move(series));
  };
  add("deterministic", TopLevel::deterministic);
  if (s.shuffled) add("shuffled", TopLevel::shuffled);
  add("Poisson", TopLevel::poisson);
  return figure;
}

LinePlot batch_sampler_plot(const Figure& figure) {
  LinePlot plot;
  plot.title = figure.title;
  plot.description = "Privacy of one epoch by the way that batches are made; lower is better.";
  plot.notes = figure.notes;
  const bool over_noise = figure.x_name == "noise_multiplier";
  // What lies further down is in the CSV.
  const double least = over_noise ? 1e-3 : 1e-15;
  for (const auto& panel : figure.panels) {
    PlotPanel drawn;
    drawn.x.label = over_noise ? "noise multiplier σ" : "ε";
    drawn.y.label = over_noise ? "ε" : "δ";
    drawn.y.scale = AxisScale::log10;
    for (const auto& series : panel.series) {
      PlotSeries line;
      line.name = series.name;
      for (const auto& p : series.points) {
        const bool shown = p.y.upper > least;
        line.x.push_back(p.x);
        line.y.push_back(shown ? p.y.upper : std::numeric_limits<double>::quiet_NaN());
        line.band_lower.push_back(std::max(p.y.lower, least));
        line.band_upper.push_back(line.y.back());
      }
      drawn.series.push_back(std::move(line));
    }
    plot.panels.push_back(std::move(drawn));
  }
  return plot;
}

}  // namespace tsdp::figures
