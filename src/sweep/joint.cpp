#include "tsdp/sweep/joint.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/mechanism/total.h"

namespace tsdp::sweep {
namespace {

/// Models that may rest on the same series.
struct Group {
  JointStatement statement;
  std::vector<mechanism::Ledger> ledgers;
  std::set<std::string> labels;  ///< what tells its data: models that share one are of one group
};

/// The line of a run's folder that tells its training values, whatever file they stood in; empty if there is none.
std::string training_values_of(const std::filesystem::path& run) {
  const auto file = run / "private" / "checkpoints" / "config.yaml";
  if (is_there(file))
    for (const auto& line : split(read_file(file), '\n'))
      if (line.starts_with("training values, SHA-256: ")) return line;
  return {};
}

/// The group of these labels: those that share one become one.
Group& group_of(std::vector<Group>& groups, const std::set<std::string>& labels) {
  Group joined;
  joined.labels = labels;
  std::vector<Group> others;
  for (auto& group : groups) {
    if (std::none_of(labels.begin(), labels.end(), [&](const auto& label) { return group.labels.contains(label); })) {
      others.push_back(std::move(group));
      continue;
    }
    if (joined.statement.data.empty()) {
      joined.statement = group.statement;
    } else {
      joined.statement.models += group.statement.models;
      joined.statement.without_privacy += group.statement.without_privacy;
      joined.statement.reproducible |= group.statement.reproducible;
      joined.statement.delta = std::max(joined.statement.delta, group.statement.delta);
      if (joined.statement.why.empty()) joined.statement.why = group.statement.why;
    }
    joined.labels.insert(group.labels.begin(), group.labels.end());
    std::move(group.ledgers.begin(), group.ledgers.end(), std::back_inserter(joined.ledgers));
  }
  groups = std::move(others);
  groups.push_back(std::move(joined));
  return groups.back();
}

/// Folders of runs that the sweep file no longer has.
std::size_t runs_beside(const SweepPlan& plan) {
  std::set<std::filesystem::path> ours;
  for (const auto& run : plan.runs) ours.insert(plan.folder_of(run).lexically_normal());
  std::size_t out = 0;
  std::error_code none;
  for (const auto& folder : std::filesystem::directory_iterator(plan.output / "runs", none))
    out += is_there(folder.path() / "privacy.json") && !ours.contains(folder.path().lexically_normal()) ? 1 : 0;
  return out;
}

}  // namespace

std::vector<JointStatement> joint_statements(const SweepPlan& plan) {
  // Files are one data set where their bytes are, whatever they are called (the sweep noted their digests before the first run), and where what was trained
  // on is.
  const auto noted = plan.private_folder() / "data.json";
  const auto digests = is_there(noted) ? parse_json(read_file(noted), noted.string()) : nlohmann::ordered_json::object();
  struct Model {
    std::string data;
    mechanism::Ledger ledger;
    std::set<std::string> labels;
  };
  std::vector<Model> models;
  std::vector<std::pair<std::string, std::string>> unread;  // data and what is wrong
  std::vector<Group> groups;
  for (const auto& run : plan.runs) {
    const auto folder = plan.folder_of(run);
    const auto file = folder / "privacy.json";
    if (!is_there(file)) continue;
    const auto& data = run.config.dataset.path;
    std::set<std::string> labels = {cat("file ", digests.value(data, data))};
    if (const auto values = training_values_of(folder); !values.empty()) labels.insert(values);
    try {
      auto ledger = mechanism::read_ledger(parse_json(read_file(file), file.string()), file.string());
      if (ledger.synthetic && !ledger.is_private() && !mechanism::rests_on_data(ledger.start.origin)) continue;  // nobody's data
      models.push_back({data, std::move(ledger), std::move(labels)});
    } catch (const Error& error) {
      unread.push_back({data, error.what()});
    }
  }
  // Which data a start was trained on, its ledger does not say, and an unread one says nothing: then all models together bound what any series pays.
  const bool all_together = !unread.empty() || std::any_of(models.begin(), models.end(), [](const auto& model) { return mechanism::rests_on_data(model.ledger.start.origin); });
  for (auto& model : models) {
    if (all_together) model.labels.insert("together");
    auto& group = group_of(groups, model.labels);
    auto& statement = group.statement;
    if (statement.data.empty()) statement.data = model.data;
    if (model.ledger.is_private()) {
      statement.reproducible |= model.ledger.reproducible;
      statement.delta = std::max(statement.delta, model.ledger.cost->delta);
      ++statement.models;
    } else if (model.ledger.synthetic) {
      // It costs what its start cost.
      ++statement.models;
      for (const auto& earlier : mechanism::earlier_runs(model.ledger.start, model.data))
        if (earlier.cost) statement.delta = std::max(statement.delta, earlier.cost->delta);
    } else {
      ++statement.without_privacy;
      continue;
    }
    group.ledgers.push_back(std::move(model.ledger));
  }
  for (const auto& [data, why] : unread) {
    auto& statement = group_of(groups, {"together"}).statement;
    if (statement.data.empty()) statement.data = data;
    statement.why = why;
  }
  const auto beside = runs_beside(plan);
  std::vector<JointStatement> out;
  for (auto& [statement, ledgers, labels] : groups) {
    if (ledgers.empty() && statement.why.empty()) continue;
    if (statement.models < 2 && statement.why.empty() && !all_together && !statement.reproducible && beside == 0) continue;
    if (beside > 0 && statement.why.empty())
      statement.why = cat("runs/ holds ", beside, beside == 1 ? " run" : " runs", " that the sweep file no longer has, and whoever saw their models knows more: delete them if nobody has seen their models, or give another --output");
    try {
      if (statement.why.empty()) {
        statement.epsilon = mechanism::total_of(ledgers).epsilon(statement.delta, 1e-2);
        // They need not all be of one data set, nor have taken all steps.
        const bool finished = std::all_of(ledgers.begin(), ledgers.end(), [](const auto& ledger) { return ledger.state == mechanism::RunState::finished; });
        if (all_together || !finished) statement.epsilon.lower = 0.0;
      }
    } catch (const Error& error) {
      statement.why = error.what();
    }
    out.push_back(std::move(statement));
  }
  return out;
}

}  // namespace tsdp::sweep
