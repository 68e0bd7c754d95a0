// Figures 1 to 6 of Schuchardt and Kalinin, "Sampling-Free Privacy Accounting for Matrix Mechanisms under Random
// Allocation" (2026).
#include "correlated_noise_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "privacy/matrix/correlated_noise.h"
#include "privacy/matrix/hazards.h"
#include "privacy/terms/out_of_reach.h"
#include "privacy/theorems/series_law.h"
#include "privacy/whole_series/gaussian_curve.h"
#include "research/correlated_estimates.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/matrix/strategy_search.h"
#include "tsdp/random/random.h"

namespace tsdp::figures {
namespace {

using privacy::Direction;
using privacy::Strategy;
using privacy::StrategyKind;

/// A matrix of a figure: N steps in k epochs, with p bands or two buffers.
struct Setting {
  StrategyKind kind;
  std::int64_t steps, epochs, bands;

  [[nodiscard]] std::int64_t bins() const { return steps / epochs; }
  [[nodiscard]] std::shared_ptr<const Strategy> strategy() const {
    return std::make_shared<const Strategy>(privacy::planned_strategy({kind, bands, 2}, bins(), epochs));
  }
  [[nodiscard]] std::string title() const {
    const bool bare = kind == StrategyKind::identity || kind == StrategyKind::blt;
    return cat(name(kind), bare ? "" : cat(" p = ", bands), ", N = ", steps, ", k = ", epochs);
  }
};

FigureSeries series_of(std::string name, std::string theorem,
                       std::optional<privacy::Bound> bound = privacy::Bound::upper) {
  FigureSeries out;
  out.name = std::move(name);
  out.theorem = std::move(theorem);
  out.bound = bound;
  return out;
}

/// The name of conditional composition in a series' column of theorems.
constexpr const char* by_conditions = "docs/proofs/conditional-composition.md";

// ---- C1: Gram matrices
// -------------------------------------------------------------------------------------------------

Figure gram_figure() {
  Figure figure{"C1",
                "Figure C1: first row of the Gram matrix, 3,000 steps in 10 epochs",
                "bin",
                {},
                2,
                {"The paper shows whole matrices as pictures. Entry (0, j) over the diagonal one tells how they fall "
                 "off; nothing is normalised."},
                "share_of_diagonal"};
  for (const Setting& s :
       {Setting{StrategyKind::band_mf, 3000, 10, 64}, Setting{StrategyKind::bsr, 3000, 10, 64},
        Setting{StrategyKind::bisr, 3000, 10, 64}, Setting{StrategyKind::band_inv_mf, 3000, 10, 4}}) {
    const auto strategy = s.strategy();
    const privacy::Gram above(*strategy, s.bins(), s.epochs, privacy::Gram::Side::upper);
    const privacy::Gram below(*strategy, s.bins(), s.epochs, privacy::Gram::Side::lower);
    auto row = series_of("first row", "definition", privacy::Bound::tight);
    for (std::int64_t j = 0; j < s.bins(); ++j)
      row.points.push_back(
          {static_cast<double>(j), 1, {below.at(0, j) / above.at(0, 0), above.at(0, j) / below.at(0, 0)}});
    figure.panels.push_back({s.title(), {std::move(row)}});
  }
  return figure;
}

// ---- C2, C3: calibrated noise
// ------------------------------------------------------------------------------------------

constexpr double calibrated_delta = 1e-5;
constexpr double tolerance = 1e-2;

Figure noise_figure(const std::string& name, const std::vector<Setting>& settings, int points) {
  Figure figure{name,
                cat("Figure ", name, ": noise that a target needs, balls in bins, δ = 1e-5"),
                "epsilon",
                {},
                3,
                {"Upper ends of sigma, within 1 %. A method that certifies nothing with less noise than fixed batches "
                 "need has no point. The paper's third method draws samples and certifies nothing.",
                 "Coefficients are not normalised: c_0 = 1 where the paper may have |c| = 1."},
                "noise_multiplier"};
  // Each point is a calibration that takes some seconds.
  const int count = std::min(points, 5);
  struct Target {
    double epsilon, gaussian;  // σ of one use of the Gaussian mechanism
  };
  std::vector<Target> targets;
  for (int i = 0; i < count; ++i) {
    const double epsilon = 0.25 * std::pow(16.0, static_cast<double>(i) / (count - 1));
    targets.push_back({epsilon, privacy::calibrate_noise([&](double sigma) {
                         return privacy::GaussianCurve(sigma).certifies(epsilon, calibrated_delta, 1);
                       })});
  }
  for (const auto& s : settings) {
    const auto strategy = s.strategy();
    const auto uses = static_cast<std::uint64_t>(s.epochs);
    const privacy::SeriesLaw law{privacy::TopLevel::balls_in_bins, s.bins()};
    const double sensitivity = std::sqrt(privacy::squared_sensitivity(*strategy, s.bins(), s.epochs));
    FigurePanel panel{s.title(), {}};
    // auto certifies whatever some method does, so it starts there.
    std::vector<double> least(targets.size(), std::numeric_limits<double>::infinity());
    const auto add = [&](const char* method_name, const char* theorem,
                         std::optional<privacy::CorrelatedMethod> method) {
      auto series = series_of(method_name, theorem);
      for (std::size_t i = 0; i < targets.size(); ++i) {
        const double epsilon = targets[i].epsilon;
        const auto suffices = [&](double sigma) {
          const auto at = method
                              ? privacy::series_theorem(law, privacy::noise_by(strategy, sigma), std::nullopt, *method)
                              : privacy::series_theorem(law, sigma);
          try {
            return at.curve()->certifies(epsilon, calibrated_delta, uses);
          } catch (const privacy::OutOfReach&) { return false; }
        };
        const double fixed = sensitivity * targets[i].gaussian;
        auto& known = least[i];
        const bool all = method == privacy::CorrelatedMethod::automatic;
        double high = all ? std::min(known, fixed) : fixed;
        if (!all && !suffices(high)) continue;
        double low = high * (1.0 - tolerance);
        for (double factor = tolerance; low > 0.01 && suffices(low); factor = std::min(2.0 * factor, 0.5)) {
          high = low;
          low = high * (1.0 - factor);
        }
        while (high - low > tolerance * high) {
          const double middle = std::sqrt(low * high);
          (suffices(middle) ? high : low) = middle;
        }
        known = std::min(known, high);
        series.points.push_back({epsilon, uses, {low, high}});
      }
      if (!series.points.empty()) panel.series.push_back(std::move(series));
    };
    using Method = privacy::CorrelatedMethod;
    add("Rényi", "Lemmas 3.2 and 3.4", Method::renyi);
    add("conditional composition", by_conditions, Method::conditional);
    add("fixed batches", "series.deterministic", Method::deterministic);
    add("auto", "series.matrix", Method::automatic);
    if (s.kind == StrategyKind::identity) add("exact", "series.balls_in_bins", std::nullopt);
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

// ---- C4, C6: hazards
// ---------------------------------------------------------------------------------------------------

FigureSeries hazards_of(FigureSeries series, const Setting& s, const Strategy& strategy, double sigma, double spent,
                        privacy::HazardRule rule, std::optional<std::size_t> family) {
  const auto hazards =
      privacy::top_hazards(strategy, s.bins(), s.epochs, sigma, spent, Direction::remove, rule, family);
  for (std::size_t n = 0; n < hazards.size(); ++n)
    series.points.push_back({static_cast<double>(n + 1), static_cast<std::uint64_t>(n + 1), {0.0, hazards[n]}});
  return series;
}

Figure allocation_figure() {
  Figure figure{"C4",
                "Figure C4: largest hazard of every step by how the budget is shared, δ_E = 5e-6, removal",
                "steps",
                {},
                2,
                {"published: later epochs take the largest hazard of the epoch, each step at δ_E/k. That is no bound "
                 "(docs/accounting.md): it may fail about as many times too often as the epoch has steps."},
                "hazard"};
  for (const Setting& s : {Setting{StrategyKind::identity, 400, 4, 1}, Setting{StrategyKind::bsr, 400, 4, 4}})
    for (const double sigma : {2.0, 5.0}) {
      const auto strategy = s.strategy();
      FigurePanel panel{cat(s.title(), ", σ = ", sigma), {}};
      panel.series.push_back(hazards_of(series_of("union bound", by_conditions), s, *strategy, sigma, 5e-6,
                                        privacy::HazardRule::union_bound, {}));
      panel.series.push_back(hazards_of(series_of("published", "none", std::nullopt), s, *strategy, sigma, 5e-6,
                                        privacy::HazardRule::published, {}));
      figure.panels.push_back(std::move(panel));
    }
  return figure;
}

Figure family_figure() {
  Figure figure{"C6",
                "Figure C6: largest hazard of every step by the weights of the variational bound, δ_E = 1e-5, removal",
                "steps",
                {},
                2,
                {"Weights softmax(−|μ_i − μ_j|²/t); all: the best for each bin, which is what is accounted. The curve "
                 "of t = √10 lies on that of t = 10."},
                "hazard"};
  for (const Setting& s : {Setting{StrategyKind::bsr, 400, 4, 4}, Setting{StrategyKind::bisr, 400, 4, 4}})
    for (const double sigma : {2.0, 5.0}) {
      const auto strategy = s.strategy();
      FigurePanel panel{cat(s.title(), ", σ = ", sigma), {}};
      const auto add = [&](const std::string& title, std::optional<std::size_t> family) {
        panel.series.push_back(hazards_of(series_of(title, by_conditions), s, *strategy, sigma, 1e-5,
                                          privacy::HazardRule::union_bound, family));
      };
      const auto& temperatures = privacy::hazard_temperatures();
      for (std::size_t family = 0; family < temperatures.size(); ++family)
        if (family != 2) add(family == 0 ? "uniform" : cat("t = ", rounded(temperatures[family], 2)), family);
      add("all", {});
      figure.panels.push_back(std::move(panel));
    }
  return figure;
}

// ---- C5: what the hazards bound
// ----------------------------------------------------------------------------------------

Figure histogram_figure() {
  constexpr std::int64_t bins = 100;
  constexpr double sigma = 5.0;
  constexpr int samples = 20'000;
  Figure figure{
      "C5",
      "Figure C5: log (mean likelihood of the other bins / likelihood of the step's bin), independent noise, 4 epochs "
      "of 100, σ = 5",
      "log_ratio",
      {},
      3,
      {cat("Shares of ", samples, " draws of earlier outputs, from a fixed stream: an illustration, no bound.")},
      "share"};
  for (const std::int64_t step : {100, 101, 200, 201, 300, 301}) {
    // Before step n, bin i has taken part this often; ‖μ_i‖²/σ² follows, and the bins are orthogonal.
    const auto active = static_cast<std::size_t>((step - 1) % bins);
    std::vector<double> h;
    for (std::int64_t i = 0; i < bins; ++i)
      h.push_back(static_cast<double>((step - 1) / bins + (i < (step - 1) % bins ? 1 : 0)) / (sigma * sigma));
    RandomStream stream(SecretKey::from_seed(0), "figure C5", static_cast<std::uint64_t>(step));
    RandomStream which(SecretKey::from_seed(0), "figure C5, bins", static_cast<std::uint64_t>(step));
    std::vector<double> normal(bins), ratios;
    for (int k = 0; k < samples; ++k) {
      stream.normals(static_cast<std::uint64_t>(k) * bins, normal);
      const auto drawn = static_cast<std::size_t>(which.below(bins));
      double others = 0.0;
      double own = 0.0;
      for (std::size_t i = 0; i < h.size(); ++i) {
        const double a = std::sqrt(h[i]) * normal[i] + (i == drawn ? h[i] : 0.0) - 0.5 * h[i];
        if (i == active) own = a;
        else others += std::exp(a);
      }
      ratios.push_back(std::log(others / static_cast<double>(bins - 1)) - own);
    }
    std::vector<std::pair<std::int64_t, int>> counts;
    std::sort(ratios.begin(), ratios.end());
    const double width = (ratios.back() - ratios.front()) / 40.0;
    for (const double ratio : ratios) {
      const auto cell = static_cast<std::int64_t>(std::floor(ratio / width));
      if (counts.empty() || counts.back().first != cell) counts.emplace_back(cell, 0);
      ++counts.back().second;
    }
    auto series = series_of("share of draws", "none", std::nullopt);
    for (const auto& [cell, count] : counts) {
      const double share = static_cast<double>(count) / samples;
      series.points.push_back({width * (static_cast<double>(cell) + 0.5), 2, {share, share}});
    }
    figure.panels.push_back({cat("step ", step), {std::move(series)}});
  }
  return figure;
}

}  // namespace

const std::vector<std::string>& correlated_noise_figure_names() {
  static const std::vector<std::string> names = {"C1", "C2", "C3", "C4", "C5", "C6"};
  return names;
}

Figure correlated_noise_figure(const std::string& name, int points) {
  if (points < 2) throw UsageError(cat("figure: found ", points, " points; expected at least 2"));
  if (name == "C1") return gram_figure();
  if (name == "C2")
    return noise_figure(name,
                        {{StrategyKind::identity, 100, 1, 1},
                         {StrategyKind::identity, 1000, 1, 1},
                         {StrategyKind::identity, 1000, 10, 1},
                         {StrategyKind::bsr, 100, 1, 4},
                         {StrategyKind::bsr, 100, 1, 64},
                         {StrategyKind::bsr, 1000, 10, 4}},
                        points);
  if (name == "C3")
    return noise_figure(name,
                        {{StrategyKind::bisr, 100, 1, 4},
                         {StrategyKind::bisr, 100, 1, 64},
                         {StrategyKind::bisr, 1000, 10, 4},
                         {StrategyKind::blt, 100, 1, 1},
                         {StrategyKind::band_mf, 100, 1, 64},
                         {StrategyKind::band_inv_mf, 100, 1, 4}},
                        points);
  if (name == "C4") return allocation_figure();
  if (name == "C5") return histogram_figure();
  if (name == "C6") return family_figure();
  throw UsageError(cat("figure: found '", name, "'; expected one of ", join(correlated_noise_figure_names(), ", ")));
}

LinePlot correlated_noise_plot(const Figure& figure) {
  LinePlot plot;
  plot.title = figure.title;
  plot.description = "Accounting for correlated noise under balls in bins.";
  plot.columns = static_cast<std::size_t>(figure.columns);
  plot.notes = figure.notes;
  const bool noise = figure.y_name == "noise_multiplier";
  for (const auto& panel : figure.panels) {
    PlotPanel drawn;
    drawn.title = panel.title;
    drawn.x.label = noise                          ? "ε"
                    : figure.x_name == "log_ratio" ? "log ratio"
                    : figure.x_name == "steps"     ? "step"
                                                   : "bin";
    drawn.y.label = noise                                  ? "noise multiplier σ"
                    : figure.y_name == "share_of_diagonal" ? "share of the diagonal"
                                                           : figure.y_name;
    if (noise) drawn.x.scale = drawn.y.scale = AxisScale::log10;
    if (figure.y_name == "hazard") drawn.y.scale = AxisScale::log10;
    for (const auto& series : panel.series) {
      PlotSeries line;
      line.name = series.name;
      for (const auto& p : series.points) {
        line.x.push_back(p.x);
        line.y.push_back(p.y.upper);
      }
      drawn.series.push_back(std::move(line));
    }
    plot.panels.push_back(std::move(drawn));
  }
  return plot;
}

}  // namespace tsdp::figures
