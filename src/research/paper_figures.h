// The numerical figures of Schuchardt et al., "Privacy Amplification by Structured Subsampling for Deep Differentially
// Private Time Series Forecasting" (ICML 2025), as data: Figures 2–10 and 13; and those of Chua et al., "How Private
// are DP-SGD Implementations?" (ICML 2024): B1–B7; and those of Schuchardt and Kalinin, "Sampling-Free Privacy
// Accounting for Matrix Mechanisms under Random Allocation" (2026): C1–C6.
//
// Units: clipping norm C = 1, σ = 1 (noise of the sum of clipped gradients). N series, Λ windows a step, λ windows a
// drawn series, r the share of a series' windows that the change touches, ρ = ⌊Λ/λ⌋/N.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plot/line_plot.h"
#include "tsdp/privacy/terms/curve.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::figures {

struct FigurePoint {
  double x = 0.0;          ///< what Figure::x_name says
  std::uint64_t uses = 1;  ///< of the theorem's profile, composed
  privacy::Interval y;     ///< bracket of δ, {0, negligible_delta} where δ is below that; or of ε
};

struct FigureSeries {
  std::string name;
  std::string theorem;  ///< number in the paper
  std::optional<privacy::Bound> bound = privacy::Bound::tight;  ///< none: an estimate or an illustration
  std::vector<FigurePoint> points;

  /// What a reader sees of `bound`; "estimate" for none.
  [[nodiscard]] std::string bound_name() const;
  /// Whether every number is proven to be what `bound` says. A composed optimistic bound is not: the printed profile
  /// takes the worse of two directions at each ε, which no single mechanism attains.
  [[nodiscard]] bool rigorous() const;
};

struct FigurePanel {
  std::string title;
  std::vector<FigureSeries> series;
};

struct Figure {
  std::string
      name;  ///< its number in the paper, B before those of Chua et al., C before those of Schuchardt and Kalinin
  std::string title;
  std::string x_name;  ///< "epsilon", "steps", "noise_multiplier", "bin" or "log_ratio"
  std::vector<FigurePanel> panels;
  int columns = 1;                 ///< of the grid in which the panels stand
  std::vector<std::string> notes;  ///< what the numbers rest on where the paper leaves it open
  /// "delta" or "epsilon"; for C1 to C6 "share_of_diagonal", "noise_multiplier", "hazard" or "share"
  std::string y_name = "delta";
};

/// Curves end where δ falls below this: the tail mass that the paper's own accounting leaves out.
inline constexpr double negligible_delta = 1e-15;

/// Relative width of brackets that figures aim at unless told otherwise: less than the width of a line.
inline constexpr double figure_precision = 1e-2;

/// The curves of Figure `number`: δ at `points` values of ε evenly spaced in log ε over [1e-3, 1e3] (Figure 10: at the
/// steps 1 … 16). Brackets of one use are the closed form with its rounding; of more, the accountant's, of relative
/// width `precision`. Both ends of a curve fall in ε and rise in steps, as δ itself does.
/// Throws UsageError, saying which there are, for another number, and for points < 2.
[[nodiscard]] Figure paper_figure(int number, int points = 61, double precision = figure_precision);

/// The names B1 … B7, in order.
[[nodiscard]] const std::vector<std::string>& batch_sampler_figure_names();

/// The curves of Figure `name` of Chua et al. (2024), one epoch of T batches at rate 1/T: B1, B4, B5 ε over 21 noise
/// multipliers from 0.4 to 1.4, the others δ at `points` values of ε, evenly spaced. The paper's misprints are in the
/// notes. Throws UsageError, saying which there are, for another name, and for points < 2.
[[nodiscard]] Figure batch_sampler_figure(const std::string& name, int points = 61,
                                          double precision = figure_precision);

/// The names C1 … C6, in order.
[[nodiscard]] const std::vector<std::string>& correlated_noise_figure_names();

/// The curves of Figure `name` of Schuchardt and Kalinin (2026). C1: first rows of Gram matrices; C2, C3: noise that
/// targets ε need, at most five of `points` values of ε and some minutes; C4, C6: hazards of every step; C5: shares of
/// draws. Throws UsageError, saying which there are, for another name, and for points < 2.
[[nodiscard]] Figure correlated_noise_figure(const std::string& name, int points = 61);

/// The curves as CSV (RFC 4180): figure,panel,series,theorem,bound,X,Y_lower,Y_upper, X and Y what the figure's axes
/// are. Numbers read back exactly.
[[nodiscard]] std::string figure_csv(const Figure& figure);

/// The curves as a plot: upper ends as lines, and bands where the bracket is wide enough to be seen.
[[nodiscard]] LinePlot figure_plot(const Figure& figure);

}  // namespace tsdp::figures
