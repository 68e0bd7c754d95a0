// tsdp-account's pictures: the paper's numerical figures, and one privacy profile.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tsdp::cli {

struct FigureOptions {
  std::optional<std::string> csv;   ///< file of the curves; without it they go to stdout
  std::optional<std::string> plot;  ///< file of the picture, NAME.svg
  bool json = false;                ///< the result as one JSON object on stdout instead of CSV
  int points = 61;                  ///< values of epsilon
  std::optional<double> precision;  ///< relative precision of brackets; none: that of the figures
};

/// `tsdp-account figure N`: writes the curves of the figure, 2 … 13 or B1 … B7, as asked. Returns the exit code.
int run_figure(const std::string& name, const FigureOptions& options);

/// Throws UsageError unless a file of --plot ends in .svg and is another than that of --csv.
void check_plot_name(const std::optional<std::string>& plot, const std::optional<std::string>& csv = std::nullopt);

/// One privacy profile as SVG: δ over ε, with the bracket as a band. ε may have either sign; the vectors have equal
/// length.
[[nodiscard]] std::string profile_plot(const std::vector<double>& epsilons, const std::vector<double>& lower,
                                       const std::vector<double>& upper, const std::string& title);

}  // namespace tsdp::cli
