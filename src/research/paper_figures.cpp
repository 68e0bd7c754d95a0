#include "research/paper_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

#include "batch_sampler_figures.h"
#include "correlated_noise_figures.h"
#include "privacy/theorems/structured_pairs.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace tsdp::figures {
namespace {

using privacy::DominatingPair;
using privacy::Interval;

constexpr double sigma = 1.0;
constexpr std::int64_t series_count = 320;  // N
constexpr double infinite_noise = std::numeric_limits<double>::infinity();

/// (r, Λ) of Figures 8 and 9, a to d.
struct Setting {
  double touched_share;
  std::int64_t batch_size;
};
constexpr Setting settings[] = {{0.5, 160}, {0.5, 32}, {0.1, 160}, {0.1, 32}};

std::string shown(const Setting& s) {
  return cat("r = ", s.touched_share,
             ", Λ/N = ", static_cast<double>(s.batch_size) / static_cast<double>(series_count));
}

/// ρ = ⌊Λ/λ⌋/N.
double drawn_share(std::int64_t batch_size, std::int64_t lambda = 1) {
  return static_cast<double>(batch_size / lambda) / static_cast<double>(series_count);
}

constexpr double end_precision = 0.05;  // of the ε at which a curve ends

/// One pair and what composing it gives; curves of several lengths share its grids.
class Curve {
 public:
  Curve(DominatingPair pair, double precision) : pair_(std::move(pair)), precision_(precision) {}

  /// Bracket of δ(ε) of the `uses`-fold product of the symmetrised profile, ε ≥ 0; {0, negligible_delta} below that.
  Interval delta(double epsilon, std::uint64_t uses) {
    Interval answer;
    if (uses == 1) {
      answer = pair_.profile_bracket(epsilon);
    } else {
      if (!accountant_) accountant_.emplace(pair_);
      // Far in the tail a bracket of δ is costly; where the curve ends is found once.
      const auto [end, added] = ends_.try_emplace(uses, 0.0);
      if (added) end->second = accountant_->epsilon(negligible_delta, uses, end_precision).upper;
      if (epsilon >= end->second) return {0.0, negligible_delta};
      answer = accountant_->delta(epsilon, uses, precision_);
    }
    return answer.upper < negligible_delta ? Interval{0.0, negligible_delta} : answer;
  }

 private:
  DominatingPair pair_;
  double precision_;
  std::optional<privacy::Accountant> accountant_;
  std::map<std::uint64_t, double> ends_;  // by uses: δ(ε) is certified to be negligible from this ε on
};

/// Makes both ends monotone along points at which δ itself is known to fall: each end may use its neighbour's.
template <class First, class Last>
void make_falling(First first, Last last) {
  for (auto it = first; it != last && std::next(it) != last; ++it)
    std::next(it)->y.upper = std::min(std::next(it)->y.upper, it->y.upper);
  for (auto it = std::make_reverse_iterator(last); std::next(it) != std::make_reverse_iterator(first); ++it)
    std::next(it)->y.lower = std::max(std::next(it)->y.lower, it->y.lower);
}

/// δ(ε) over `epsilons`, after `uses` uses.
FigureSeries over_epsilon(std::string name, std::string theorem, privacy::Bound bound, Curve& curve, std::uint64_t uses,
                          const std::vector<double>& epsilons) {
  FigureSeries out{std::move(name), std::move(theorem), bound, {}};
  bool negligible = false;  // then it stays so: δ falls in ε
  for (const double epsilon : epsilons) {
    const auto delta = negligible ? Interval{0.0, negligible_delta} : curve.delta(epsilon, uses);
    negligible = delta.upper <= negligible_delta;
    out.points.push_back({epsilon, uses, delta});
  }
  make_falling(out.points.begin(), out.points.end());
  return out;
}

std::string after(std::uint64_t count, const char* unit) {
  return cat("after ", count, " ", unit, count == 1 ? "" : "s");
}

constexpr const char* setting_note = "N = 320 sequences, noise multiplier σ = 1.";
constexpr const char* optimistic_name = "optimistic lower bound, composed as printed";
constexpr const char* optimistic_note =
    "Optimistic lower bounds are composed from the profile as printed, as the paper's figures do; for more than one "
    "use the result is neither a proven upper nor a proven lower bound.";

/// Figures 2, 5, 6, 7: numbers of windows per series, λ, after some steps. Theorem 4.4 for λ = 1, F.7 for λ > 1.
Figure by_lambda(int number, const Setting& setting, const std::vector<std::uint64_t>& steps,
                 const std::vector<double>& epsilons, double precision) {
  Figure figure{cat(number),
                cat("Figure ", number, ": λ subsequences per sequence (", shown(setting), ")"),
                "epsilon",
                {},
                static_cast<int>(steps.size()),
                {setting_note, optimistic_note}};
  for (const auto count : steps) figure.panels.push_back({after(count, "step"), {}});
  for (const std::int64_t lambda : {1, 2, 4, 8, 16}) {
    const double rho = drawn_share(setting.batch_size, lambda);
    Curve curve(lambda == 1 ? privacy::one_window_pair(rho * setting.touched_share, sigma)
                            : privacy::with_replacement_optimistic(lambda, setting.touched_share, rho, sigma),
                precision);
    for (std::size_t i = 0; i < steps.size(); ++i)
      figure.panels[i].series.push_back(
          lambda == 1 ? over_epsilon("λ = 1: Theorem 4.4", "4.4", privacy::Bound::tight, curve, steps[i], epsilons)
                      : over_epsilon(cat("λ = ", lambda, ": F.7, ", optimistic_name), "F.7",
                                     privacy::Bound::optimistic_lower, curve, steps[i], epsilons));
  }
  return figure;
}

/// Where the paper's text about a figure contradicts its curves: tests check each against the numbers.
constexpr const char* top_level_note =
    "Deterministic iteration uses a sequence once an epoch; sampling without replacement may draw it again, which "
    "shows in the far tail (large ε) of one epoch: there it is not stronger, though the paper says so of all cases.";
constexpr const char* many_windows_note =
    "The paper says that after 1000 steps λ = 1 is best for all ε. It is not up to ε = 4, where λ = 16 is: two of 320 "
    "sequences are drawn a step, so one is never drawn with probability (1 − 2/320)^1000, and δ is at most 0.99811; λ "
    "= 1 has up to 0.99978.";

/// A row of panels of Figures 3 and 8: deterministic top-level iteration (4.2, one use an epoch) and sampling without
/// replacement (4.4, one use a step) after 1 step, 1 epoch, 10 epochs.
void add_top_levels(Figure& figure, const Setting& setting, const std::string& prefix,
                    const std::vector<double>& epsilons, double precision) {
  const auto steps_per_epoch = static_cast<std::uint64_t>(series_count / setting.batch_size);
  Curve deterministic(privacy::one_window_pair(setting.touched_share, sigma), precision);
  Curve fresh(privacy::one_window_pair(drawn_share(setting.batch_size) * setting.touched_share, sigma), precision);
  struct Length {
    std::string name;
    std::uint64_t epochs;
    std::uint64_t steps;
  };
  // An epoch that has begun counts whole: the changed series may be in its first batch.
  for (const auto& length : {Length{after(1, "step"), 1, 1}, Length{after(1, "epoch"), 1, steps_per_epoch},
                             Length{after(10, "epoch"), 10, 10 * steps_per_epoch}})
    figure.panels.push_back({prefix + length.name,
                             {over_epsilon("deterministic: Theorem 4.2", "4.2", privacy::Bound::tight, deterministic,
                                           length.epochs, epsilons),
                              over_epsilon("without replacement: Theorem 4.4", "4.4", privacy::Bound::tight, fresh,
                                           length.steps, epsilons)}});
}

/// Total variation of N(0, s²) and N(1, s²): 2 Φ(1/(2 s)) − 1, with its limits.
double total_variation(double s) { return s == 0.0 ? 1.0 : std::erf(1.0 / (2.0 * std::numbers::sqrt2 * s)); }

/// A row of panels of Figures 4 and 9: noise σ_F on forecasts, none on contexts, after 1 and 100 steps. Theorem G.1:
/// the pair of 4.4 at p₂ = ρ r (φ τ(σ_F) + 1 − φ), φ = L_F/(L_C + L_F).
constexpr double forecast_share = 0.2;
constexpr const char* forecast_share_note =
    "The paper does not state L_C : L_F for this figure; φ = L_F/(L_C + L_F) = 0.2 here, as in its traffic experiment "
    "(L_C = 4 L_F). σ_F is in multiples of v, the most by which a value changes; σ_C = 0.";

void add_forecast_noises(Figure& figure, const Setting& setting, const std::string& prefix,
                         const std::vector<double>& epsilons, double precision) {
  constexpr std::uint64_t steps[] = {1, 100};
  const auto first = figure.panels.size();
  for (const auto count : steps) figure.panels.push_back({prefix + after(count, "step"), {}});
  for (const double noise : {0.0, 1.0, 2.0, 5.0, infinite_noise}) {
    const double share = forecast_share * total_variation(noise) + (1.0 - forecast_share);
    Curve curve(privacy::one_window_pair(drawn_share(setting.batch_size) * setting.touched_share * share, sigma),
                precision);
    for (std::size_t i = 0; i < std::size(steps); ++i)
      figure.panels[first + i].series.push_back(
          noise == 0.0 ? over_epsilon("σ_F = 0: Theorem 4.4", "4.4", privacy::Bound::tight, curve, steps[i], epsilons)
                       : over_epsilon(std::isinf(noise) ? std::string("σ_F → ∞: Theorem G.1")
                                                        : cat("σ_F = ", noise, ": Theorem G.1"),
                                      "G.1", privacy::Bound::upper, curve, steps[i], epsilons));
  }
}

/// Figure 10: deterministic top level with Λ = N, so that an epoch has λ steps; δ over training steps, one use an
/// epoch.
Figure over_steps(double precision) {
  constexpr std::uint64_t most_steps = 16;
  Figure figure{"10",
                "Figure 10: deterministic top level with Λ = N, δ over training steps",
                "steps",
                {},
                2,
                {setting_note, "With Λ = N an epoch has λ steps; it is one use, and counts whole once it has begun.",
                 optimistic_note}};
  // The two panels of one r compose the same pairs.
  std::map<std::pair<double, std::int64_t>, std::unique_ptr<Curve>> curves;
  for (const double epsilon : {1.0, 4.0})
    for (const double r : {0.5, 0.1}) {
      FigurePanel panel{cat(static_cast<char>('a' + figure.panels.size()), ") ε = ", epsilon, ", r = ", r), {}};
      for (const std::int64_t lambda : {1, 2, 4, 8, 16}) {
        auto& curve = curves[{r, lambda}];
        if (!curve)
          curve = std::make_unique<Curve>(lambda == 1 ? privacy::one_window_pair(r, sigma)
                                                      : privacy::with_replacement_optimistic(lambda, r, 1.0, sigma),
                                          precision);
        FigureSeries series{
            lambda == 1 ? std::string("λ = 1: Theorem 4.2") : cat("λ = ", lambda, ": 4.3, ", optimistic_name),
            lambda == 1 ? "4.2" : "4.3",
            lambda == 1 ? privacy::Bound::tight : privacy::Bound::optimistic_lower,
            {}};
        const auto per_epoch = static_cast<std::uint64_t>(lambda);
        for (std::uint64_t step = 1; step <= most_steps; ++step) {
          const auto uses = (step + per_epoch - 1) / per_epoch;
          const auto delta = !series.points.empty() && series.points.back().uses == uses ? series.points.back().y
                                                                                         : curve->delta(epsilon, uses);
          series.points.push_back({static_cast<double>(step), uses, delta});
        }
        make_falling(series.points.rbegin(), series.points.rend());
        panel.series.push_back(std::move(series));
      }
      figure.panels.push_back(std::move(panel));
    }
  return figure;
}

/// Figure 13: one flat data set of all windows (C.2) beside structured sampling of the same windows (4.4), whose
/// p₂ = ρ r = Λ W / N_total; W windows hold a value.
Figure flat_and_structured(const std::vector<double>& epsilons, double precision) {
  Figure figure{
      "13",
      "Figure 13: batches of all windows (C.2) and structured sampling (4.4), one step",
      "epsilon",
      {},
      2,
      {"Structured sampling takes ρ r = Λ W/N_total, capped at 1: with Λ/N_total = 0.1 that concerns W = 16 and W = "
       "32, for which one window a series (λ = 1) cannot fill such a batch. W = 1: both curves coincide.",
       "Noise multiplier σ = 1. C.2 is an optimistic lower bound of what such batches leak."}};
  for (const std::int64_t records : {10'000, 1'000'000})
    for (const std::int64_t divisor : {10, 1000}) {
      const std::int64_t batch = records / divisor;
      FigurePanel panel{cat(static_cast<char>('a' + figure.panels.size()),
                            ") N_total = ", tick_label(static_cast<double>(records), AxisScale::log10),
                            ", Λ/N_total = ", 1.0 / static_cast<double>(divisor)),
                        {}};
      for (const std::int64_t reach : {1, 2, 4, 8, 16, 32}) {
        const double touched = std::min(1.0, static_cast<double>(batch * reach) / static_cast<double>(records));
        Curve structured(privacy::one_window_pair(touched, sigma), precision);
        Curve flat(privacy::flat_optimistic(records, reach, batch, sigma), precision);
        panel.series.push_back(
            over_epsilon(cat("W = ", reach, ": Theorem 4.4"), "4.4", privacy::Bound::tight, structured, 1, epsilons));
        panel.series.push_back(over_epsilon(cat("W = ", reach, ": C.2, optimistic lower bound"), "C.2",
                                            privacy::Bound::optimistic_lower, flat, 1, epsilons));
      }
      figure.panels.push_back(std::move(panel));
    }
  return figure;
}

/// A CSV cell (RFC 4180).
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string FigureSeries::bound_name() const { return bound ? std::string(tsdp::name(*bound)) : "estimate"; }

bool FigureSeries::rigorous() const {
  if (!bound) return false;
  return *bound != privacy::Bound::optimistic_lower ||
         std::all_of(points.begin(), points.end(), [](const FigurePoint& p) { return p.uses <= 1; });
}

Figure paper_figure(int number, int points, double precision) {
  if (points < 2) throw UsageError(cat("figure: found ", points, " values of epsilon; expected at least 2"));
  std::vector<double> epsilons;
  for (int i = 0; i < points; ++i) epsilons.push_back(std::pow(10.0, -3.0 + 6.0 * i / (points - 1)));

  switch (number) {
    case 2: return by_lambda(number, {0.1, 32}, {1, 100}, epsilons, precision);
    case 3: {
      const Setting setting{0.1, 32};
      Figure figure{cat(number), cat("Figure 3: top level deterministic or without replacement (", shown(setting), ")"),
                    "epsilon",   {},
                    3,           {setting_note, top_level_note}};
      add_top_levels(figure, setting, "", epsilons, precision);
      return figure;
    }
    case 4: {
      const Setting setting{0.1, 32};
      Figure figure{cat(number), cat("Figure 4: noise σ_F on forecasts (", shown(setting), ")"),
                    "epsilon",   {},
                    2,           {setting_note, forecast_share_note}};
      add_forecast_noises(figure, setting, "", epsilons, precision);
      return figure;
    }
    case 5: {
      auto figure = by_lambda(number, {0.5, 32}, {1, 100, 1000}, epsilons, precision);
      figure.notes.emplace_back(many_windows_note);
      return figure;
    }
    case 6: return by_lambda(number, {0.1, 160}, {1, 100, 1000}, epsilons, precision);
    case 7: return by_lambda(number, {0.1, 32}, {1, 100, 1000}, epsilons, precision);
    case 8:
    case 9: {
      Figure figure{
          cat(number),
          number == 8 ? "Figure 8: top level deterministic or without replacement" : "Figure 9: noise σ_F on forecasts",
          "epsilon",
          {},
          number == 8 ? 3 : 2,
          {setting_note, number == 8 ? top_level_note : forecast_share_note}};
      char letter = 'a';
      for (const auto& setting : settings) {
        const auto prefix = cat(letter++, ") ", shown(setting), ", ");
        if (number == 8) {
          add_top_levels(figure, setting, prefix, epsilons, precision);
        } else {
          add_forecast_noises(figure, setting, prefix, epsilons, precision);
        }
      }
      return figure;
    }
    case 10: return over_steps(precision);
    case 13: return flat_and_structured(epsilons, precision);
    default:
      throw UsageError(cat("figure: found ", number,
                           "; the numerical figures 2 to 10 and 13 of the paper are available (11 and 12 are results "
                           "of trainings, 1 is a drawing)"));
  }
}

std::string figure_csv(const Figure& figure) {
  std::string out = cat("figure,panel,series,theorem,bound,", figure.x_name, ",", figure.y_name, "_lower,",
                        figure.y_name, "_upper\n");
  for (const auto& panel : figure.panels)
    for (const auto& series : panel.series) {
      const auto head = cat(figure.name, ",", cell(panel.title), ",", cell(series.name), ",", cell(series.theorem), ",",
                            series.bound_name(), ",");
      for (const auto& p : series.points) out += cat(head, p.x, ",", p.y.lower, ",", p.y.upper, "\n");
    }
  return out;
}

LinePlot figure_plot(const Figure& figure) {
  if (figure.name.starts_with("B")) return batch_sampler_plot(figure);
  if (figure.name.starts_with("C")) return correlated_noise_plot(figure);
  const bool steps = figure.x_name == "steps";
  LinePlot plot;
  plot.title = figure.title;
  plot.description = "Privacy of structured subsampling at noise multiplier 1: delta that remains, lower is better.";
  plot.columns = static_cast<std::size_t>(figure.columns);
  plot.notes = figure.notes;
  // What lies further down is in the CSV; here it would squeeze what tells the curves apart.
  constexpr double least_shown = 1e-10;
  double last_epsilon = 1.0;
  for (const auto& panel : figure.panels)
    for (const auto& series : panel.series)
      for (const auto& p : series.points)
        if (!steps && p.y.upper >= least_shown) last_epsilon = std::max(last_epsilon, p.x);
  for (const auto& panel : figure.panels) {
    PlotPanel drawn;
    drawn.title = panel.title;
    drawn.x.label = steps ? "training steps" : "ε";
    drawn.x.scale = steps ? AxisScale::linear : AxisScale::log10;
    if (!steps) drawn.x.upper = std::pow(10.0, std::ceil(std::log10(last_epsilon)));
    if (steps) {
      drawn.x.lower = 0.0;
      for (const auto& series : panel.series) drawn.x.upper = series.points.back().x;
    }
    drawn.y.label = "δ";
    drawn.y.scale = AxisScale::log10;
    if (!steps) {
      drawn.y.lower = least_shown;
      drawn.y.upper = 1.0;
    }
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      const auto& series = panel.series[i];
      PlotSeries line;
      line.name = series.name;
      bool visible_bracket = false;
      for (const auto& p : series.points) {
        const bool ended = p.y.lower == 0.0 && p.y.upper <= negligible_delta;
        line.x.push_back(p.x);
        line.y.push_back(ended ? std::numeric_limits<double>::quiet_NaN() : p.y.upper);
        line.band_lower.push_back(p.y.lower);
        line.band_upper.push_back(line.y.back());
        visible_bracket = visible_bracket || (!ended && p.y.upper > 1.05 * p.y.lower);
      }
      if (!visible_bracket) {
        line.band_lower.clear();
        line.band_upper.clear();
      }
      if (figure.name == "13") {  // colour tells W, dash the scheme
        line.colour = i / 2;
        line.dash = i % 2;
      }
      drawn.series.push_back(std::move(line));
    }
    plot.panels.push_back(std::move(drawn));
  }
  return plot;
}

}  // namespace tsdp::figures
