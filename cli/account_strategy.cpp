#include "account_strategy.h"

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
  std::shared_ptr<const privacy::Strategy> strategy;
  double mean_error, max_error, sensitivity;
  std::optional<double> noise_multiplier;

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

/// --steps in --epochs, and how their batches are made.
struct PlannedSteps {
  std::int64_t steps, epochs;
  privacy::SeriesLaw law;

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
  privacy::SeriesLaw law{privacy::TopLevel::balls_in_bins, steps / epochs};
  if (o.top_level) law.sampler = tsdp::named<privacy::TopLevel>(*o.top_level, "--top-level");
  if (o.reshuffle) law.reshuffle = tsdp::named<privacy::Reshuffle>(*o.reshuffle, "--reshuffle");
  return {steps, epochs, law};
}

Row row_of(privacy::StrategyKind kind, const MechanismOptions& o, const QueryOptions& query,
           const PlannedSteps& planned) {
  const auto bins = planned.law.batches;
  const auto epochs = planned.epochs;
  auto strategy = std::make_shared<const privacy::Strategy>(
      privacy::planned_strategy({kind, o.bands.value_or(4), o.buffers.value_or(2), {}}, bins, epochs));
  Row row{strategy,
          strategy->mean_error(),
          strategy->max_error(),
          std::sqrt(privacy::squared_sensitivity(*strategy, bins, epochs)),
          {}};
  if (query.epsilon)
    row.noise_multiplier =
        privacy::least_noise({planned.law, epochs, needed_epsilon(query, {}), needed_delta(query, {})}, strategy, 1e-3);
  return row;
}

/// Squared error of the t-th prefix sum at equal sensitivity, for about 400 of all t.
PlotSeries curve_of(const Row& row) {
  PlotSeries line;
  line.name = name(row.strategy->kind());
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
  out["top_level"] = name(planned.law.sampler);
  print_json(out);
}

void print_as_table(const std::vector<Row>& rows, const PlannedSteps& planned, bool with_noise) {
  std::string text = cat(planned.text(), "; errors are squares, for sigma 1; nothing is normalised\n");
  const auto line = [](const std::vector<std::string>& cells) {
    std::string out;
    for (auto cell : cells) {
      cell.resize(std::max<std::size_t>(cell.size() + 1, 15), ' ');
      out += cell;
    }
    return cat("  ", out, "\n");
  };
  text += line({"mechanism", "mean error", "largest", "sensitivity", "mean x sens^2", with_noise ? "sigma" : "",
                with_noise ? "total error" : ""});
  for (const auto& row : rows)
    text += line({name(row.strategy->kind()), cat(row.mean_error), cat(row.max_error), cat(row.sensitivity),
                  cat(row.mean_error * row.sensitivity * row.sensitivity),
                  row.noise_multiplier ? rounded_up(*row.noise_multiplier, 5) : "",
                  row.total_error() ? cat(*row.total_error()) : ""});
  print(text);
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
  if (query.plot) check_plot_name(*query.plot);
  std::vector<Row> rows;
  for (const auto kind : privacy::searched_kinds()) rows.push_back(row_of(kind, o, query, planned));
  if (query.plot) write_file_atomically(*query.plot, plot_of(rows, planned));
  if (json) print_as_json(rows, planned);
  else print_as_table(rows, planned, query.epsilon.has_value());
}

}  // namespace tsdp::cli
