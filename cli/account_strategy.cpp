#include "account_strategy.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "account_figure.h"
#include "plot/line_plot.h"
#include "privacy/theorems/noise_choice.h"
#include "program.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  privacy::SeriesLaw law;
  std::shared_ptr<const privacy::Strategy> strategy;
  double mean_error, max_error, sensitivity;
  std::optional<double> noise_multiplier;

  [[nodiscard]] std::string shown_name() const { return cat(name(strategy->kind()), ", ", shown_law(law)); }
  [[nodiscard]] std::optional<double> total_error() const {
    if (!noise_multiplier) return std::nullopt;
    return *noise_multiplier * *noise_multiplier * mean_error;
  }
};

std::int64_t whole(const char* option, const std::optional<std::string>& text) {
  long long value = 0;
  if (!text || !parse_int(*text, value) || value < 1 || value > privacy::Strategy::most_steps)
    throw UsageError(cat(option, ": ", text ? cat("found '", *text, "'") : std::string("not given"),
                         "; expected an integer from 1 to ", privacy::Strategy::most_steps));
  return value;
}

/// --steps in --epochs, and how their batches may be made.
struct PlannedSteps {
  std::int64_t steps, epochs;
  std::vector<privacy::SeriesLaw> laws;

  [[nodiscard]] std::string text() const {
    return cat(steps, " steps in ", epochs, epochs == 1 ? " epoch" : " epochs");
  }
};

PlannedSteps planned_steps_of(const MechanismOptions& o, const QueryOptions& query) {
  const auto steps = whole("--steps", query.steps);
  const auto epochs = query.epochs ? whole("--epochs", query.epochs) : 1;
  if (steps % epochs != 0)
    throw UsageError(cat("--epochs: found ", epochs, " for ", steps, " steps; expected a number that divides them"));
  if (query.epsilon.has_value() != query.delta.has_value())
    throw UsageError(cat(query.epsilon ? "--delta" : "--epsilon", ": not given; a target is both, epsilon and delta"));
  PlannedSteps out{steps, epochs, {}};
  if (o.top_level || o.reshuffle || o.redraw || !query.epsilon) {
    privacy::SeriesLaw law{privacy::TopLevel::balls_in_bins, steps / epochs};
    put_names(o, law);
    if (law.sampler == privacy::TopLevel::cyclic_poisson) law.groups = std::min(o.bands.value_or(4), law.batches);
    out.laws = {law};
  } else {
    out.laws = privacy::all_series_laws(steps / epochs);
    for (const auto& law : privacy::cyclic_laws({privacy::TopLevel::cyclic_poisson, steps / epochs}))
      if (law.groups > 1) out.laws.push_back(law);
  }
  return out;
}

Row row_of(const privacy::SeriesLaw& law, privacy::StrategyKind kind, const MechanismOptions& o,
           const QueryOptions& query, const PlannedSteps& planned) {
  const auto bins = law.batches;
  const auto epochs = planned.epochs;
  auto strategy = std::make_shared<const privacy::Strategy>(
      privacy::planned_strategy({kind,
                                 law.sampler == privacy::TopLevel::cyclic_poisson ? law.groups : o.bands.value_or(4),
                                 o.buffers.value_or(2),
                                 {}},
                                bins, epochs));
  Row row{law,
          strategy,
          strategy->mean_error(),
          strategy->max_error(),
          // Of cyclic coins all parts that a series may have: they are p steps apart.
          std::sqrt(privacy::has_own_orders(law.sampler, law.reshuffle, law.redraw) && !strategy->is_identity()
                        ? privacy::squared_sensitivity_of_own_orders(*strategy, bins, epochs)
                        : privacy::squared_sensitivity(*strategy, law.groups > 1 ? law.groups : bins,
                                                       law.groups > 1 ? strategy->steps() / law.groups : epochs)),
          {}};
  if (query.epsilon)
    row.noise_multiplier =
        privacy::least_noise({law, epochs, needed_epsilon(query, {}), needed_delta(query, {})}, strategy, 1e-3);
  return row;
}

/// Squared error of the t-th prefix sum at equal sensitivity, for about 400 of all t.
PlotSeries curve_of(const Row& row) {
  PlotSeries line;
  line.name = row.shown_name();
  double prefix = 0.0, sum = 0.0;
  const auto q = row.strategy->inverse();
  const auto each = std::max<std::size_t>(1, q.size() / 400);
  for (std::size_t t = 0; t < q.size(); ++t) {
    prefix += q[t];
    sum += prefix * prefix;
    if (t % each == 0 || t + 1 == q.size()) {
      line.x.push_back(static_cast<double>(t + 1));
      line.y.push_back(sum * row.sensitivity * row.sensitivity);
    }
  }
  return line;
}

std::string plot_of(const std::vector<Row>& rows, const PlannedSteps& planned) {
  LinePlot plot;
  plot.title = cat("Squared error of prefix sums, ", planned.text());
  plot.description =
      "Squared error of the t-th prefix sum of noise, at equal sensitivity, for every mechanism: lower is better.";
  PlotPanel panel;
  panel.x.label = "step";
  panel.y.label = "squared error × squared sensitivity";
  for (const auto& row : rows) panel.series.push_back(curve_of(row));
  plot.panels.push_back(std::move(panel));
  return plot.svg();
}

Json json_of(const Row& row) {
  auto one = strategy_json(*row.strategy);
  put_law(one, row.law);
  if (!one.contains("coefficients")) {
    auto column = row.strategy->column();
    column.resize(std::min<std::size_t>(column.size(), 1000));
    one["coefficients"] = column;
  }
  one["mean_error"] = row.mean_error;
  one["max_error"] = row.max_error;
  one["sensitivity"] = row.sensitivity;
  one["objective"] = row.mean_error * row.sensitivity * row.sensitivity;
  one["noise_multiplier"] = row.noise_multiplier ? Json(*row.noise_multiplier) : Json(nullptr);
  one["total_error"] = row.total_error() ? Json(*row.total_error()) : Json(nullptr);
  return one;
}

void print_as_json(const std::vector<Row>& rows, const PlannedSteps& planned) {
  Json out;
  out["strategy"] = Json::array();
  for (const auto& row : rows) out["strategy"].push_back(json_of(row));
  out["steps"] = planned.steps;
  out["epochs"] = planned.epochs;
  if (planned.laws.size() == 1) out["top_level"] = name(planned.laws.front().sampler);
  print_json(out);
}

void print_as_table(const std::vector<Row>& rows, const PlannedSteps& planned, bool with_noise) {
  const std::string text = cat(planned.text(), "; errors are squares, for sigma 1; nothing is normalised\n");
  constexpr int digits = 6;
  std::vector<std::vector<std::string>> lines = {
      {"mechanism", "batches", "mean error", "largest", "sensitivity", "mean x sens^2"}};
  if (with_noise) lines.front().insert(lines.front().end(), {"sigma", "total error"});
  for (const auto& row : rows) {
    lines.push_back({name(row.strategy->kind()), shown_law(row.law), rounded(row.mean_error, digits),
                     rounded(row.max_error, digits), rounded(row.sensitivity, digits),
                     rounded(row.mean_error * row.sensitivity * row.sensitivity, digits)});
    if (row.noise_multiplier)
      lines.back().insert(lines.back().end(),
                          {rounded_up(*row.noise_multiplier, 5), rounded(*row.total_error(), digits)});
  }
  print(text + in_columns(std::move(lines)));
}

}  // namespace

Json strategy_json(const privacy::Strategy& strategy) {
  const auto& r = strategy.recursion();
  Json out = {{"mechanism", name(strategy.kind())}, {"planned_steps", strategy.steps()}};
  switch (r.form) {
    case privacy::NoiseRecursion::Form::banded: out["coefficients"] = r.coefficients; break;
    case privacy::NoiseRecursion::Form::banded_inverse: out["inverse"] = r.coefficients; break;
    case privacy::NoiseRecursion::Form::buffered:
      out["decays"] = r.decays;
      out["weights"] = r.weights;
      break;
  }
  return out;
}

void run_strategy(const MechanismOptions& o, const QueryOptions& query, bool json) {
  const auto planned = planned_steps_of(o, query);
  check_plot_name(query.plot);
  std::vector<Row> rows;
  for (const auto& law : planned.laws)
    for (const auto kind : privacy::searched_kinds())
      if (law.sampler == privacy::TopLevel::cyclic_poisson
              ? kind == privacy::StrategyKind::bsr || kind == privacy::StrategyKind::band_mf
              : kind == privacy::StrategyKind::identity || privacy::searches_correlated_noise(law))
        rows.push_back(row_of(law, kind, o, query, planned));
  // The least first; without a target in the order in which they are searched.
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.total_error().value_or(0.0) < b.total_error().value_or(0.0);
  });
  if (query.plot) write_file_atomically(*query.plot, plot_of(rows, planned));
  if (json) print_as_json(rows, planned);
  else print_as_table(rows, planned, query.epsilon.has_value());
}

}  // namespace tsdp::cli
