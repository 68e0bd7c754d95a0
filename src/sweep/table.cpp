#include "sweep/table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::sweep {
namespace {

using Json = nlohmann::ordered_json;

Json read_json(const std::filesystem::path& file) {
  try {
    if (is_there(file)) return Json::parse(read_file(file), nullptr, false);
  } catch (const DataError&) {  // reported where the state of its run is read
  }
  return nullptr;
}

void add_missing(TableCell& cell, const std::string& reason) {
  if (std::find(cell.missing.begin(), cell.missing.end(), reason) == cell.missing.end()) cell.missing.push_back(reason);
}

/// Adds the score of one source, of the model or of a baseline; false (and no reason) if the run has not got that far.
bool add_score(const SweepPlan& plan, const Source& source, const std::string& baseline, TableCell& cell) {
  const auto& run = plan.runs[source.run];
  const auto file = plan.score_file(run, run.scores[source.score]);
  const auto kept = read_json(file);
  if (why_no_score(kept, plan.file.metric) != nullptr) return false;
  const auto* metrics = &kept["metrics"];
  if (!baseline.empty()) {
    const auto there = kept.contains("baselines") && kept["baselines"].contains(baseline);
    metrics = there ? &kept["baselines"][baseline] : nullptr;
    if (!there) {
      add_missing(cell, baseline == "start" ? "a start is scored neither on private pasts nor beside a candidate that "
                                              "was trained on data itself"
                                            : cat("no scores of a baseline '", baseline, "'; baseline_forecasts.",
                                                  baseline, " can name a file of its forecasts"));
      return true;
    }
  }
  if (!metrics->contains(plan.file.metric) || !(*metrics)[plan.file.metric].is_number()) {
    add_missing(cell, cat("the scores of ", run.name, " have no ", plan.file.metric));
    return true;
  }
  cell.scores.push_back({run.seed, (*metrics)[plan.file.metric].get<double>()});
  return true;
}

/// Origin of the weights that a source's run began with; none if its ledger is missing.
std::optional<mechanism::StartOrigin> start_origin(const SweepPlan& plan, const Source& source) {
  const auto file = plan.folder_of(plan.runs[source.run]) / "privacy.json";
  const auto ledger = read_json(file);
  if (!ledger.is_object()) return std::nullopt;
  return mechanism::start_origin_of(ledger, file.string());
}

/// Below row `r` of a model that starts from something: what it was before this run. Skipped if runs are not scored
/// this way.
void add_start_of(const SweepPlan& plan, std::size_t r, Table& table) {
  const auto columns = plan.file.columns.size();
  TableRow row{"", true, {}};
  bool any = false;
  std::optional<mechanism::StartOrigin> origin;  // the one, of all runs of the row, about which the most is to be said
  bool reads_files = false;
  for (std::size_t c = 0; c < columns; ++c) {
    TableCell cell;
    for (const auto& source : plan.cells[r * columns + c].sources) {
      const auto& model = plan.runs[source.run].config.model;
      if (model.prior == PriorKind::none && model.start == "fresh") return;
      reads_files = reads_files || std::any_of(model.candidates.begin(), model.candidates.end(),
                                               [](const auto& one) { return external_name(one).has_value(); });
      if (const auto found = start_origin(plan, source)) origin = std::max(*found, origin.value_or(*found));
      if (!add_score(plan, source, "start", cell)) add_missing(cell, "not finished");
    }
    any = any || !cell.scores.empty();
    row.cells.push_back(std::move(cell));
  }
  if (!any) return;
  row.label = cat(plan.file.rows[r].label, ", its start",
                  origin ? cat(" (", mechanism::rests_on_data(*origin) ? mechanism::start_cited(*origin) : "ε = 0",
                               reads_files ? " but for candidates in files" : "", ")")
                         : std::string());
  table.rows.push_back(std::move(row));
}

std::int64_t whole_number(double steps) { return static_cast<std::int64_t>(std::clamp(steps, 0.0, 1e18)); }

/// What the training behind a score spent.
void add_epsilon(const SweepPlan& plan, const Source& source, TableCell& cell) {
  const auto& run = plan.runs[source.run];
  const auto file = plan.folder_of(run) / "privacy.json";
  const auto ledger = read_json(file);
  bool whole = ledger.is_object();
  const auto at = [&](const char* pointer, bool needed) {
    const auto place = Json::json_pointer(pointer);
    const bool there = whole && ledger.contains(place) && ledger[place].is_number();
    whole = whole && (there || (!needed && !ledger.contains(place)));
    return there ? ledger[place].get<double>() : 0.0;
  };
  const auto is_private = whole ? ledger.find("private") : ledger.end();
  if (is_private != ledger.end() && *is_private == false) return;
  const double lower = at("/epsilon/lower", true);
  const double upper = at("/epsilon/upper", true);
  const double delta = at("/delta", false);
  const double target = at("/target_epsilon", false);
  const double planned = at("/steps_planned", false);
  const bool counted = whole && ledger.contains("steps_taken");
  const double taken = at("/steps_taken", false);
  const double per_epoch = at("/mechanism/steps_per_epoch", false);
  if (!whole || is_private == ledger.end() || *is_private != true) {
    add_missing(cell, cat(file.string(), ": not a ledger with an epsilon; expected the one that tsdp-train wrote"));
    return;
  }
  cell.epsilon_lower = cell.is_private ? std::min(cell.epsilon_lower, lower) : lower;
  cell.epsilon_upper = cell.is_private ? std::max(cell.epsilon_upper, upper) : upper;
  cell.is_private = true;
  cell.delta = delta;
  cell.target_epsilon = target;
  if (counted && taken < planned)
    add_missing(cell, cat("seed ", run.seed, ": ", whole_number(taken), " of ", whole_number(planned),
                          " steps taken; the others were charged and could not be taken again"));
  auto most = run.config.training.max_epochs;
  // Where it was auto, the run's own configuration says what it was.
  if (const auto own = plan.folder_of(run) / "config.yaml"; !most && is_there(own))
    most = read_config(own).training.max_epochs;
  cell.by_max_epochs = most && planned >= static_cast<double>(*most) * per_epoch;
}

std::optional<PaperNumber> paper_of(const SweepPlan& plan, const std::string& label, std::size_t column) {
  const auto there = plan.file.paper.find(label);
  return there == plan.file.paper.end() ? std::nullopt : there->second[column];
}

/// Of row `r` and column `c` of the grid.
TableCell cell_of(const SweepPlan& plan, const Failures& failures, std::size_t r, std::size_t c) {
  const auto& axis = plan.file.rows[r];
  TableCell cell;
  cell.paper = paper_of(plan, axis.label, c);
  const auto& sources = plan.cells[r * plan.file.columns.size() + c].sources;
  if (sources.empty()) add_missing(cell, left_out);
  for (const auto& source : sources) {
    const bool there = add_score(plan, source, axis.baseline, cell);
    if (there && axis.baseline.empty()) add_epsilon(plan, source, cell);
    if (there) continue;
    const auto failed = failures.find(source.run);
    if (failed == failures.end()) {
      add_missing(cell, "not finished");
    } else {
      add_missing(cell, failed->second);
    }
  }
  return cell;
}

/// Of a row that stands below all others.
TableCell cell_of_baseline(const SweepPlan& plan, const Baseline& baseline, std::size_t c) {
  TableCell cell;
  cell.paper = paper_of(plan, baseline.label, c);
  // All rows are scored on the same windows, so any that has got that far will do.
  for (std::size_t s = 0; s < plan.seeds.size(); ++s)
    for (std::size_t r = 0; r < plan.file.rows.size(); ++r) {
      const auto& sources = plan.cells[r * plan.file.columns.size() + c].sources;
      if (s < sources.size() && add_score(plan, sources[s], baseline.name, cell)) break;
    }
  if (cell.scores.empty()) add_missing(cell, "not finished");
  if (cell.missing.size() > 1) std::erase(cell.missing, "not finished");
  return cell;
}

}  // namespace

double TableCell::mean() const {
  double sum = 0.0;
  for (const auto& s : scores) sum += s.score;
  return sum / static_cast<double>(scores.size());
}

std::optional<double> TableCell::std() const {
  if (scores.size() < 2) return std::nullopt;
  const double centre = mean();
  double sum = 0.0;
  for (const auto& s : scores) sum += (s.score - centre) * (s.score - centre);
  return std::sqrt(sum / static_cast<double>(scores.size() - 1));
}

Table read_table(const SweepPlan& plan, const Failures& failures) {
  Table out;
  out.title = plan.file.title;
  out.metric = plan.file.metric;
  out.smoke = plan.smoke;
  out.seeds = plan.seeds;
  for (const auto& run : plan.runs) {
    for (const auto& score : run.scores)
      out.private_forecasts |=
          std::find(score.arguments.begin(), score.arguments.end(), "--private") != score.arguments.end();
    if (run.config.privacy.enabled) ++out.private_models;
  }
  for (const auto& column : plan.file.columns) out.columns.push_back(column.label);
  const auto columns = out.columns.size();
  for (std::size_t r = 0; r < plan.file.rows.size(); ++r) {
    const auto& axis = plan.file.rows[r];
    TableRow row{axis.label, !axis.baseline.empty(), {}};
    for (std::size_t c = 0; c < columns; ++c) row.cells.push_back(cell_of(plan, failures, r, c));
    out.rows.push_back(std::move(row));
    if (axis.baseline.empty()) add_start_of(plan, r, out);
  }
  for (const auto& baseline : plan.file.baselines) {
    TableRow row{baseline.label, true, {}};
    for (std::size_t c = 0; c < columns; ++c) row.cells.push_back(cell_of_baseline(plan, baseline, c));
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace tsdp::sweep
