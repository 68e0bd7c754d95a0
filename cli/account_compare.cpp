#include "account_compare.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "account_figure.h"
#include "plot/line_plot.h"
#include "program.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::cli {
namespace {

using Json = nlohmann::ordered_json;
using privacy::Interval;
using privacy::SeriesLaw;

/// A sampler with its cost.
struct Row {
  SeriesLaw law;
  std::uint64_t uses = 0;
  std::unique_ptr<privacy::PrivacyCurve> curve;
  privacy::Certified epsilon;

  [[nodiscard]] std::string shown_name() const { return shown_law(law); }
};

/// Profiles from ε = 0 to a little beyond the largest epsilon of the table.
std::string plot_of(std::vector<Row>& rows, double precision, const std::string& title) {
  double most = 0.0;
  for (const auto& row : rows) most = std::max(most, row.epsilon.upper);
  PlotPanel panel;
  panel.x.label = "ε";
  panel.y.label = "δ";
  panel.y.scale = AxisScale::log10;
  constexpr int points = 40;
  constexpr double least = 1e-15;
  for (auto& row : rows) {
    PlotSeries series;
    series.name = row.shown_name();
    const bool has_lower = !row.epsilon.why.lower.empty();
    for (int i = 0; i <= points; ++i) {
      const double at = 1.1 * most * i / points;
      const auto delta = row.curve->delta(at, row.uses, precision);
      if (delta.upper < least) break;
      series.x.push_back(at);
      series.y.push_back(delta.upper);
      if (!has_lower) continue;
      series.band_lower.push_back(std::max(delta.lower, least));
      series.band_upper.push_back(delta.upper);
    }
    panel.series.push_back(std::move(series));
  }
  LinePlot plot;
  plot.title = title;
  plot.description =
      "Privacy profiles of ways of making batches of whole series: delta that remains at each epsilon, lower is "
      "better.";
  plot.panels.push_back(std::move(panel));
  plot.notes = {
      "Lines are upper ends, which are certified; a band reaches down to the certified lower end. Without replacement "
      "no lower end is known."};
  return plot.svg();
}

}  // namespace

Json bracket_json(const Interval& bracket, const privacy::Certificate& why) {
  return {{"lower", why.lower.empty() ? Json(nullptr) : Json(bracket.lower)}, {"upper", bracket.upper}};
}

void run_compare(const MechanismOptions& o, const QueryOptions& query, bool json) {
  const auto needed = [](const char* option, const auto& value, const char* what) {
    if (!value) throw UsageError(cat(option, ": not given; expected ", what));
    return *value;
  };
  check_plot_name(query.plot);
  const auto batches = needed("--batches", o.batches, "T, the number of batches of an epoch,");
  const auto sigma = needed("--noise-multiplier", o.noise_multiplier, "a positive number");
  const double delta = needed_delta(query, {});
  const auto precision = precision_of(query);
  std::vector<Row> rows;
  if (!query.epochs) throw UsageError("--epochs: not given; expected a number of epochs");
  for (const auto& law : privacy::all_series_laws(batches, o.sampling_rate)) {
    const auto theorem = privacy::series_theorem(law, sigma);
    const auto steps = needed_steps(query, theorem);
    Row row{law, theorem.uses_of_steps(steps), theorem.curve(), {}};
    row.epsilon = row.curve->epsilon(delta, row.uses, precision);
    rows.push_back(std::move(row));
  }

  const auto title = cat(batches, " batches an epoch, ", *query.epochs, *query.epochs == "1" ? " epoch" : " epochs",
                         ", noise multiplier ", sigma);
  if (query.plot) write_file_atomically(*query.plot, plot_of(rows, std::max(precision, 1e-2), title));
  if (json) {
    Json out;
    out["compare"] = Json::array();
    for (const auto& row : rows) {
      const auto& why = row.epsilon.why;
      Json one;
      put_law(one, row.law);
      one["epsilon"] = bracket_json(row.epsilon, why);
      one["certificate"] = mechanism::certificate_json(why);
      out["compare"].push_back(std::move(one));
    }
    out["delta"] = delta;
    out["relation"] = "series";
    print_json(out);
    return;
  }
  std::vector<std::vector<std::string>> lines = {{"batches", "epsilon from", "to"}};
  for (const auto& row : rows)
    lines.push_back({row.shown_name(), row.epsilon.why.lower.empty() ? "not known" : rounded_down(row.epsilon.lower, 5),
                     rounded_up(row.epsilon.upper, 5)});
  print(cat("One whole series, present or absent: ", title, ", delta ", delta, "\n", in_columns(std::move(lines))));
}

}  // namespace tsdp::cli
