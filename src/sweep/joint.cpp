#include "tsdp/sweep/joint.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/mechanism/total.h"

namespace tsdp::sweep {

std::vector<JointStatement> joint_statements(const SweepPlan& plan) {
  std::map<std::string, std::pair<JointStatement, std::vector<mechanism::Ledger>>> by_data;
  // Files are one data set where their bytes are, whatever they are called: the sweep noted their digests before the first run.
  const auto noted = plan.private_folder() / "data.json";
  const auto digests = is_there(noted) ? parse_json(read_file(noted), noted.string()) : nlohmann::ordered_json::object();
  for (const auto& run : plan.runs) {
    const auto file = plan.folder_of(run) / "privacy.json";
    if (!run.config.privacy.enabled || !is_there(file)) continue;
    auto& [statement, ledgers] = by_data[digests.value(run.config.dataset.path, run.config.dataset.path)];
    if (statement.data.empty()) statement.data = run.config.dataset.path;
    try {
      ledgers.push_back(mechanism::read_ledger(parse_json(read_file(file), file.string()), file.string()));
      statement.reproducible = statement.reproducible || ledgers.back().reproducible;
      statement.delta = std::max(statement.delta, ledgers.back().cost ? ledgers.back().cost->delta : 0.0);
    } catch (const Error& error) {
      statement.why = error.what();
    }
  }
  std::vector<JointStatement> out;
  for (auto& [unused, group] : by_data) {
    auto& [statement, ledgers] = group;
    statement.models = ledgers.size();
    const bool began_with_data = std::any_of(ledgers.begin(), ledgers.end(), [](const auto& ledger) { return mechanism::rests_on_data(ledger.start.origin); });
    if (statement.models < 2 && statement.why.empty() && !began_with_data) continue;
    try {
      if (statement.why.empty()) {
        const auto total = mechanism::total_of(ledgers);
        statement.epsilon = total.epsilon(statement.delta, 1e-2);
      }
    } catch (const Error& error) {
      statement.why = error.what();
    }
    out.push_back(std::move(statement));
  }
  return out;
}

}  // namespace tsdp::sweep
