#include "sweep/table_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/markdown.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int digits_of_mean = 4;
constexpr int least_decimals = 3;  // as the paper prints
constexpr int most_decimals = 8;

/// Noise calibrated to max_epochs spends the whole target, up to rounding.
bool ended_early(const TableCell& cell) {
  return cell.by_max_epochs && cell.epsilon_upper < 0.99 * cell.target_epsilon;
}

int decimals_of(double mean) {
  if (!std::isfinite(mean) || mean == 0.0) return least_decimals;
  const int before = static_cast<int>(std::floor(std::log10(std::abs(mean)))) + 1;
  return std::clamp(digits_of_mean - before, least_decimals, most_decimals);
}

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string shown(const TableRow& row, const TableCell& cell, std::size_t seeds) {
  if (cell.scores.empty()) return "–";
  const double mean = cell.mean();
  const auto decimals = decimals_of(mean);
  std::string out = fixed(mean, decimals);
  const auto std = cell.std();
  // A baseline that does not depend on the seed has no spread to show.
  if (std && !(row.is_baseline && *std <= 1e-12 * std::abs(mean))) out += " ± " + fixed(*std, decimals);
  if (cell.scores.size() < seeds) out += cat(" (", cell.scores.size(), " of ", seeds, ")");
  return out;
}

std::string shown(const PaperNumber& paper) {
  return paper.std.empty() ? paper.mean : cat(paper.mean, " ± ", paper.std);
}

std::string line_of(const std::vector<std::string>& parts) { return cat("| ", join(parts, " | "), " |\n"); }

std::string head_of(const Table& table) {
  std::vector<std::string> names = {""};
  std::vector<std::string> rules = {"---"};
  for (const auto& column : table.columns) {
    names.push_back(markdown_cell(column));
    rules.emplace_back("---");
  }
  return line_of(names) + line_of(rules);
}

std::string bracket(const TableCell& cell) {
  return cat("[", rounded_down(cell.epsilon_lower, 4), ", ", rounded_up(cell.epsilon_upper, 4), "]");
}

bool any(const Table& table, bool (*fits)(const TableCell&)) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [&](const TableRow& row) { return std::any_of(row.cells.begin(), row.cells.end(), fits); });
}

/// Title, and what the numbers of the first table are.
std::string heading_text(const Table& table) {
  std::vector<std::string> seeds;
  for (const auto seed : table.seeds) seeds.push_back(cat(seed));
  std::string out = cat("# ", table.title, "\n\n");
  if (table.smoke)
    out += cat("**smoke: look-alike data, a few steps; no claim about forecasts**\n\nCells with – are ", left_out,
               ": every row and every column runs once.\n\n");
  out += cat(table.metric, ", lower is better; mean ± standard deviation (n − 1) over ",
             table.seeds.size() == 1 ? "the seed " : "the seeds ", join(seeds, ", "), ".");
  if (any(table, [](const TableCell& cell) { return cell.paper.has_value(); }))
    out += " Lines marked *paper* are what the paper prints.";
  return out + "\n\n";
}

std::string scores_text(const Table& table) {
  std::string out = head_of(table);
  for (const auto& row : table.rows) {
    std::vector<std::string> ours = {markdown_cell(row.label)};
    std::vector<std::string> theirs = {cat(markdown_cell(row.label), ", *paper*")};
    bool printed = false;
    for (const auto& cell : row.cells) {
      ours.push_back(shown(row, cell, table.seeds.size()));
      theirs.push_back(cell.paper ? shown(*cell.paper) : "–");
      printed |= cell.paper.has_value();
    }
    out += line_of(ours);
    if (printed) out += line_of(theirs);
  }
  return out;
}

std::string epsilon_text(const Table& table) {
  std::string out =
      "\n## Epsilon that training spent\n\nBrackets hold the epsilons of the runs behind a cell, each by itself; "
      "where max_epochs ended training with more than 1 % of the target left, a star stands behind them.\n\n" +
      head_of(table);
  for (const auto& row : table.rows) {
    if (row.is_baseline) continue;
    std::vector<std::string> parts = {markdown_cell(row.label)};
    for (const auto& cell : row.cells)
      parts.push_back(cell.is_private       ? bracket(cell) + (ended_early(cell) ? " *" : "")
                      : cell.scores.empty() ? "–"
                                            : "not private");
    out += line_of(parts);
  }
  return out;
}

/// A line for every row and reason.
std::string missing_text(const Table& table) {
  std::string out;
  for (const auto& row : table.rows) {
    std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // each with the columns it applies to
    for (std::size_t c = 0; c < row.cells.size(); ++c)
      for (const auto& reason : row.cells[c].missing) {
        if (reason == left_out) continue;  // said once, above
        auto there = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == reason; });
        if (there == reasons.end()) there = reasons.insert(reasons.end(), {reason, {}});
        there->second.push_back(table.columns[c]);
      }
    for (const auto& [reason, columns] : reasons)
      out += cat("- ", row.label, columns.size() == table.columns.size() ? "" : cat(" (", join(columns, ", "), ")"),
                 ": ", reason, "\n");
  }
  return out;
}

std::string not_covered_text(const Table& table) {
  std::string out =
      "\n## What epsilon does not cover\n\nThe scores are computed from test data, which no epsilon above covers";
  if (table.private_models > 1)
    out +=
        ". Each model's epsilon is its own: whoever releases several of them, or chooses one by its scores, releases "
        "more than its epsilon says";
  if (table.private_forecasts)
    out +=
        ". Epsilon in labels of private forecasts is that of one forecast, and covers the series that the model was "
        "applied to, not how well it did";
  return out + ". So this page lies under private/.\n";
}

std::string joint_text(const Table& table) {
  std::string out =
      "\n## All private models together\n\nWhoever sees every private model of this sweep on a data set, and chooses "
      "among them by anything but scores of these data, learns no more than this (their mechanisms and those of the "
      "runs that they started from composed; "
      "files of the same bytes, or with the same training values, are one data set, and all are where a path "
      "with {rank} is among several; others that share series are not known to). It holds if the sweep file has not "
      "changed since the first of them, or of the runs that they "
      "started from, was seen:\n\n";
  for (const auto& joint : table.joint) {
    out += cat("- ", joint.data, ", ", joint.models, joint.models == 1 ? " model: " : " models: ");
    if (joint.why.empty()) {
      const auto upper = rounded_up(joint.epsilon.upper, 4);
      out += cat(joint.epsilon.lower > 0.0 ? cat("epsilon in [", rounded_down(joint.epsilon.lower, 4), ", ", upper, "]")
                                           : cat("epsilon at most ", upper),
                 " at delta ", joint.delta, ", for relation ", joint.relation);
    } else {
      out += cat("nothing is stated; ", joint.why);
    }
    out += joint.without_privacy > 0 ? cat("; not counted: ", joint.without_privacy,
                                           joint.without_privacy == 1 ? " model" : " models", " without privacy")
                                     : std::string();
    out += joint.covariates.empty() ? std::string("\n") : cat(".", joint.covariates, "\n");
  }
  return out;
}

}  // namespace

std::string markdown(const Table& table) {
  std::string out = heading_text(table);
  out += scores_text(table);
  if (any(table, [](const TableCell& cell) { return cell.is_private; })) out += epsilon_text(table);
  if (const auto missing = missing_text(table); !missing.empty()) out += "\n## What is missing\n\n" + missing;
  out += not_covered_text(table);
  if (!table.joint.empty()) {
    out += joint_text(table);
  } else if (table.private_models > 1) {
    out +=
        "\nFor private models together nothing is stated here: some runs have not ended, or no two of them share a "
        "file or training values.\n";
  }
  return out;
}

std::string csv(const Table& table) {
  std::string out =
      "row,column,mean,std,n,scores,paper_mean,paper_std,epsilon_lower,epsilon_upper,delta,target_epsilon,ended_by,"
      "missing\n";
  for (const auto& row : table.rows)
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      const auto& cell = row.cells[c];
      std::vector<std::string> scores;
      for (const auto& s : cell.scores) scores.push_back(exact(s.score));
      const auto std = cell.std();
      const auto if_private = [&](double value) { return cell.is_private ? exact(value) : std::string(); };
      const std::vector<std::string> parts = {csv_field(row.label),
                                              csv_field(table.columns[c]),
                                              cell.scores.empty() ? "" : exact(cell.mean()),
                                              std ? exact(*std) : "",
                                              cat(cell.scores.size()),
                                              join(scores, " "),
                                              cell.paper ? cell.paper->mean : "",
                                              cell.paper ? cell.paper->std : "",
                                              if_private(cell.epsilon_lower),
                                              if_private(cell.epsilon_upper),
                                              if_private(cell.delta),
                                              if_private(cell.target_epsilon),
                                              !cell.is_private     ? ""
                                              : cell.by_max_epochs ? "max_epochs"
                                                                   : "target_epsilon",
                                              csv_field(join(cell.missing, "; "))};
      out += join(parts, ",") + "\n";
    }
  return out;
}

std::string json(const Table& table) {
  Json out;
  out["format"] = "tsdp-sweep-table-1";
  out["title"] = table.title;
  out["metric"] = table.metric;
  out["smoke"] = table.smoke;
  out["seeds"] = table.seeds;
  out["columns"] = table.columns;
  out["rows"] = Json::array();
  for (const auto& row : table.rows) {
    Json line = {{"label", row.label}, {"baseline", row.is_baseline}, {"cells", Json::array()}};
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      const auto& cell = row.cells[c];
      Json about;
      about["column"] = table.columns[c];
      about["mean"] = cell.scores.empty() ? Json(nullptr) : Json(cell.mean());
      const auto std = cell.std();
      about["std"] = std ? Json(*std) : Json(nullptr);
      about["n"] = cell.scores.size();
      about["scores"] = Json::array();
      for (const auto& s : cell.scores) about["scores"].push_back({{"seed", s.seed}, {"score", s.score}});
      about["paper"] = nullptr;
      if (cell.paper) {
        const auto number = [](const std::string& text) {
          double value = 0.0;
          return parse_double(text, value) ? Json(value) : Json(nullptr);
        };
        about["paper"] = {{"mean", number(cell.paper->mean)}, {"std", number(cell.paper->std)}};
      }
      about["epsilon"] = nullptr;
      if (cell.is_private) {
        about["epsilon"] = {{"lower", cell.epsilon_lower}, {"upper", cell.epsilon_upper}};
        about["delta"] = cell.delta;
        about["target_epsilon"] = cell.target_epsilon;
        about["ended_by"] = cell.by_max_epochs ? "max_epochs" : "target_epsilon";
      }
      about["missing"] = cell.missing;
      line["cells"].push_back(std::move(about));
    }
    out["rows"].push_back(std::move(line));
  }
  out["joint"] = Json::array();
  for (const auto& joint : table.joint) {
    Json about = {{"data", joint.data},
                  {"models", joint.models},
                  {"delta", joint.delta},
                  {"assumption", "settings fixed beforehand"}};
    about["epsilon"] = joint.why.empty()
                           ? Json{{"lower", joint.epsilon.lower > 0.0 ? Json(joint.epsilon.lower) : Json(nullptr)},
                                  {"upper", joint.epsilon.upper}}
                           : Json(nullptr);
    if (!joint.relation.empty()) about["relation"] = joint.relation;
    if (!joint.covariates.empty()) about["covariates"] = joint.covariates.substr(1);
    about["reproducible"] = joint.reproducible;
    about["models_without_privacy"] = joint.without_privacy;
    if (!joint.why.empty()) about["why"] = joint.why;
    out["joint"].push_back(std::move(about));
  }
  return json_text(out, 2) + "\n";
}

void write_table(const SweepPlan& plan, const Table& table) {
  const auto folder = plan.private_folder();
  write_file_atomically(folder / "table.md", markdown(table), FileAccess::owner);
  write_file_atomically(folder / "table.csv", csv(table), FileAccess::owner);
  write_file_atomically(folder / "table.json", json(table), FileAccess::owner);
}

}  // namespace tsdp::sweep
