#include "sweep/joint.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ledger/total.h"
#include "run/charged_for.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/run/run_folder.h"

namespace tsdp::sweep {
namespace {

struct Model {
  std::string data;           ///< dataset.path
  bool has_ranks = false;      ///< it stands for several files, whose digests are no single file's
  std::optional<mechanism::Ledger> ledger;
  std::string why;             ///< why there is none
  std::string file, series;  ///< identify its data: models that share either may rest on the same series; `series` is
                             ///< empty if it is not known
  [[nodiscard]] bool shares_data_with(const Model& other) const { return file == other.file || series == other.series; }
  [[nodiscard]] bool is_of_unknown_data() const {
    return !ledger || series.empty() || mechanism::rests_on_data(ledger->start.origin);
  }
};

/// The models that have begun, except models of nobody's data.
std::vector<Model> models_of(const SweepPlan& plan) {
  // Files are one data set if their bytes are the same, whatever they are called (the sweep noted their digests before
  // the first run), or if what was trained on is the same.
  const auto noted = plan.private_folder() / "data.json";
  const auto digests =
      is_there(noted) ? parse_json(read_file(noted), noted.string()) : nlohmann::ordered_json::object();
  std::vector<Model> out;
  for (const auto& run : plan.runs) {
    const training::RunFolder folder{plan.folder_of(run)};
    const auto where = folder.ledger().string();
    if (!has_begun(folder.root)) continue;
    const auto& data = run.config.dataset.path;
    Model model{data, run.config.dataset.has_ranks(), {}, {}, digests.value(data, data), {}};
    if (is_there(folder.charged_config()))
      for (const auto& line : split(read_file(folder.charged_config()), '\n'))
        if (line.starts_with(training::training_series_line)) model.series = line;
    try {
      const auto document = parse_json(read_file(folder.ledger()), where);
      auto found = mechanism::verify(document, where);
      if (found.agrees()) model.ledger = std::move(found.terms);
      else model.why = cat(where, ": ", found.differences.front());
    } catch (const Error& error) { model.why = error.what(); }
    const bool is_nobodys = model.ledger && model.ledger->synthetic && !model.ledger->is_private() &&
                            !mechanism::rests_on_data(model.ledger->start.origin);
    if (!is_nobodys) out.push_back(std::move(model));
  }
  return out;
}

/// Groups of models that share data, also by way of others.
std::vector<std::vector<Model>> by_data(std::vector<Model> models) {
  std::vector<std::vector<Model>> out;
  for (auto& model : models) {
    const auto is_apart = [&](const std::vector<Model>& group) {
      return std::none_of(group.begin(), group.end(), [&](const Model& one) { return one.shares_data_with(model); });
    };
    const auto of_its_data = std::stable_partition(out.begin(), out.end(), is_apart);
    std::vector<Model> joined;
    for (auto group = of_its_data; group != out.end(); ++group)
      std::move(group->begin(), group->end(), std::back_inserter(joined));
    joined.push_back(std::move(model));
    out.erase(of_its_data, out.end());
    out.push_back(std::move(joined));
  }
  return out;
}

/// Folders of runs that the sweep file no longer has.
std::size_t runs_beside(const SweepPlan& plan) {
  std::set<std::filesystem::path> ours;
  for (const auto& run : plan.runs) ours.insert(plan.folder_of(run).lexically_normal());
  std::size_t out = 0;
  std::error_code none;
  for (const auto& folder : std::filesystem::directory_iterator(plan.runs_folder(), none))
    out += has_begun(folder.path()) && !ours.contains(folder.path().lexically_normal()) ? 1 : 0;
  return out;
}

}  // namespace

std::vector<JointStatement> joint_statements(const SweepPlan& plan) {
  auto models = models_of(plan);
  // A ledger does not say which data its start was trained on, an unread one says nothing, and one of files by {rank}
  // not which of them others read: then all models together bound what any series pays.
  const auto any = [&](const auto& is) { return std::any_of(models.begin(), models.end(), is); };
  const bool all_together = any([](const Model& model) { return model.is_of_unknown_data(); }) ||
                            (any([](const Model& model) { return model.has_ranks; }) &&
                             any([&](const Model& model) { return model.data != models.front().data; }));
  const auto groups = all_together ? std::vector<std::vector<Model>>{std::move(models)} : by_data(std::move(models));
  const auto beside = runs_beside(plan);
  std::vector<JointStatement> out;
  for (const auto& group : groups) {
    JointStatement statement;
    std::vector<std::string> files;
    for (const auto& model : group)
      if (std::find(files.begin(), files.end(), model.data) == files.end()) files.push_back(model.data);
    statement.data = join(files, ", ");
    const bool of_same_series = std::all_of(group.begin(), group.end(),
                                            [&](const Model& model) { return model.series == group.front().series; });
    std::vector<mechanism::Ledger> ledgers;
    for (const auto& model : group) {
      const auto& ledger = model.ledger;
      if (!ledger) {
        statement.why = model.why;
      } else if (!ledger->is_private() && !ledger->synthetic) {
        ++statement.without_privacy;
      } else {
        ++statement.models;
        statement.reproducible |= ledger->is_private() && ledger->reproducible;
        // A run on synthetic series costs what its start cost.
        for (const auto& paid : ledger->cost ? std::vector<mechanism::Ledger>{*ledger}
                                             : mechanism::earlier_runs(ledger->start, model.data))
          if (paid.cost) statement.delta = std::max(statement.delta, paid.cost->delta);
        ledgers.push_back(*ledger);
      }
    }
    if (ledgers.empty() && statement.why.empty()) continue;
    if (statement.models < 2 && statement.why.empty() && !all_together && !statement.reproducible && beside == 0)
      continue;
    if (beside > 0 && statement.why.empty())
      statement.why =
          cat("runs/ holds ", beside, beside == 1 ? " run" : " runs",
              " that the sweep file no longer has, and whoever saw their models knows more: delete them if nobody has");
    try {
      if (statement.why.empty()) {
        const auto total = mechanism::total_of(ledgers);
        statement.epsilon = total.epsilon(statement.delta, 1e-2);
        statement.relation = mechanism::unit_text(total.unit);
        statement.covariates =
            mechanism::covariates_text(total.covariates, total.protects_covariates, total.unit.relation);
        // From below, nothing is known about steps that were not taken, or about a series that is not in all of them.
        const bool finished = std::all_of(ledgers.begin(), ledgers.end(), [](const auto& ledger) {
          return ledger.state == mechanism::RunState::finished;
        });
        if (all_together || !of_same_series || !finished) statement.epsilon.lower = 0.0;
      }
    } catch (const Error& error) { statement.why = error.what(); }
    out.push_back(std::move(statement));
  }
  return out;
}

}  // namespace tsdp::sweep
