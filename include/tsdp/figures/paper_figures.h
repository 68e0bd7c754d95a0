// The numerical figures of Schuchardt et al., "Privacy Amplification by Structured Subsampling for Deep Differentially
// Private Time Series Forecasting" (ICML 2025), as data: Figures 2–10 and 13.
//
// Units: clipping norm C = 1, σ = 1 (noise of the sum of clipped gradients). N series, Λ windows a step, λ windows a
// drawn series, r the share of a series' windows that the change touches, ρ = ⌊Λ/λ⌋/N.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tsdp/plot/line_plot.h"
#include "tsdp/privacy/interval.h"
#include "tsdp/privacy/theorems.h"

namespace tsdp::figures {

struct FigurePoint {
  double x = 0.0;           ///< ε, or training steps (Figure 10)
  std::uint64_t uses = 1;   ///< of the theorem's profile, composed
  privacy::Interval delta;  ///< bracket of δ; {0, negligible_delta} where δ is below that
};

struct FigureSeries {
  std::string name;
  std::string theorem;  ///< number in the paper
  privacy::Bound bound = privacy::Bound::tight;
  std::vector<FigurePoint> points;

  /// Whether every number is proven to be what `bound` says. A composed optimistic bound is not: the printed profile
  /// takes the worse of two directions at each ε, which no one mechanism attains.
  [[nodiscard]] bool rigorous() const;
};

struct FigurePanel {
  std::string title;
  std::vector<FigureSeries> series;
};

struct Figure {
  int number = 0;
  std::string title;
  std::string x_name;  ///< "epsilon" or "steps"
  std::vector<FigurePanel> panels;
  int columns = 1;                 ///< of the grid in which the panels stand
  std::vector<std::string> notes;  ///< what the numbers rest on where the paper leaves it open
};

/// Curves end where δ falls below this: the tail mass that the paper's own accounting leaves out.
inline constexpr double negligible_delta = 1e-15;

/// Relative width of brackets that figures aim at unless told otherwise: less than the width of a line.
inline constexpr double figure_precision = 1e-2;

/// The numbers of the figures there are, in order.
[[nodiscard]] const std::vector<int>& paper_figure_numbers();

/// The curves of Figure `number`: δ at `points` values of ε evenly spaced in log ε over [1e-3, 1e3] (Figure 10: at the
/// steps 1 … 16). Brackets of one use are the closed form with its rounding; of more, the accountant's, of relative
/// width `precision`. Both ends of a curve fall in ε and rise in steps, as δ itself does.
/// Throws UsageError, saying which there are, for another number, and for points < 2.
[[nodiscard]] Figure paper_figure(int number, int points = 61, double precision = figure_precision);

/// The curves as CSV (RFC 4180): figure,panel,series,theorem,bound,epsilon|steps,delta_lower,delta_upper. Numbers read
/// back exactly.
[[nodiscard]] std::string figure_csv(const Figure& figure);

/// The curves as a plot: upper ends as lines, and bands where the bracket is wide enough to be seen.
[[nodiscard]] LinePlot figure_plot(const Figure& figure);

}  // namespace tsdp::figures
