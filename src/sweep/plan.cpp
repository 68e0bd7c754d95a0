#include "sweep/plan.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/digest.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::sweep {
namespace {

constexpr std::size_t hash_digits = 12;
constexpr std::size_t longest_name = 120;
constexpr std::int64_t smoke_series = 8;
constexpr int smoke_noise = 50;  // two steps on so few series stay within an epsilon of 0.25

std::string hash_of(const std::string& text) { return sha256(text).substr(0, hash_digits); }

/// The lines of a configuration that differ from the defaults, so that an option added one day changes no hash.
std::string beside_defaults(const Config& config) {
  const auto lines = split(config_text(config), '\n');
  const auto defaults = split(config_text(Config{}), '\n');
  std::string out;
  std::string section;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].empty() && lines[i].front() != ' ') section = lines[i];
    if (lines[i] != defaults[i]) out += section + lines[i] + "\n";
  }
  return out;
}

std::string place_of(const SweepFile& file, const Axis& axis) { return cat(file.path.string(), ":", axis.line, ": "); }

/// Base, row and column together; a row and a column may not set the same option.
std::vector<Setting> merged(const SweepFile& file, const Axis& row, const Axis& column) {
  auto out = file.set;
  const auto put = [&](const Setting& setting) {
    const auto there = std::find_if(out.begin(), out.end(), [&](const Setting& s) { return s.key == setting.key; });
    if (there == out.end()) {
      out.push_back(setting);
    } else {
      there->value = setting.value;
    }
  };
  for (const auto& setting : row.set) put(setting);
  for (const auto& setting : column.set) {
    if (std::any_of(row.set.begin(), row.set.end(), [&](const Setting& s) { return s.key == setting.key; }))
      throw UsageError(cat(place_of(file, column), setting.key, ": set by the column '", column.label,
                           "' and by the row '", row.label, "' (line ", row.line, "); expected in one of them"));
    put(setting);
  }
  return out;
}

EvaluateOptions merged_evaluate(const SweepFile& file, const Axis& row, const Axis& column) {
  auto out = file.evaluate;
  const auto put = [&](const char* name, auto member) {
    if (row.evaluate.*member && column.evaluate.*member)
      throw UsageError(cat(place_of(file, column), "evaluate.", name, ": set by the column '", column.label,
                           "' and by the row '", row.label, "' (line ", row.line, "); expected in one of them"));
    if (row.evaluate.*member) out.*member = row.evaluate.*member;
    if (column.evaluate.*member) out.*member = column.evaluate.*member;
  };
  put("private", &EvaluateOptions::is_private);
  put("epsilon", &EvaluateOptions::epsilon);
  put("delta", &EvaluateOptions::delta);
  put("v", &EvaluateOptions::v);
  put("keep_probability", &EvaluateOptions::keep_probability);
  const auto cell = cat(place_of(file, row), "row '", row.label, "', column '", column.label, "': ");
  if (!out.is_private.value_or(false)) {
    if (out.epsilon || out.delta || out.v || out.keep_probability)
      throw UsageError(
          cat(cell, "evaluate: found options of private inference without 'private: true'; expected both or neither"));
    return out;
  }
  for (const auto& [name, given] : {std::pair{"epsilon", out.epsilon.has_value()},
                                    std::pair{"delta", out.delta.has_value()}, std::pair{"v", out.v.has_value()}})
    if (!given)
      throw UsageError(cat(cell, "evaluate.", name, ": not given; private inference needs epsilon, delta and v"));
  return out;
}

std::vector<std::string> evaluate_arguments(const SweepFile& file, const EvaluateOptions& options, std::int64_t seed) {
  std::vector<std::string> out;
  const auto put = [&](const char* name, const std::optional<double>& value) {
    if (value) out.insert(out.end(), {name, exact(*value)});
  };
  if (options.is_private.value_or(false)) {
    out.emplace_back("--private");
    put("--epsilon", options.epsilon);
    put("--delta", options.delta);
    put("--v", options.v);
    put("--keep-probability", options.keep_probability);
    out.insert(out.end(), {"--seed", cat(seed)});
  }
  for (const auto& [name, forecasts] : file.baseline_forecasts)
    out.insert(out.end(), {"--baseline", cat(name, "=", forecasts.string())});
  return out;
}

/// Tells score files apart: by the options and, for forecasts in files, by their contents.
std::string score_hash(const SweepFile& file, const std::vector<std::string>& arguments) {
  std::string text = join(arguments, "\n");
  for (const auto& [name, forecasts] : file.baseline_forecasts)
    text += cat("\n", name, " ", hash_of(read_file(forecasts)));
  return hash_of(text);
}

std::string file_name_of(std::string text) {
  for (auto& c : text) {
    const bool kept =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    if (!kept) c = '_';
  }
  return text.substr(0, longest_name);
}

/// Model, what row and column set, and the seed, for people.
std::string readable_name(const Config& config, const Axis& row, const Axis& column, std::int64_t seed) {
  std::string out = config.model.name;
  for (const auto* axis : {&row, &column})
    for (const auto& [key, value] : axis->set)
      if (key.rfind("model.", 0) != 0) out += cat("-", key.substr(key.find('.') + 1), "_", value);
  return file_name_of(cat(out, "-seed_", seed));
}

/// Number of values in a series that leaves at least twice the accounted window to train on, after validation and test
/// parts are taken away.
std::int64_t length_for(const Config& c) {
  const auto& lags = c.model.lags;
  const auto past = c.model.context_length.value_or(std::max(c.dataset.season_length, c.dataset.prediction_length)) +
                    (lags.empty() ? 0 : *std::max_element(lags.begin(), lags.end()));
  const auto horizon = c.dataset.prediction_length;
  const auto tests = c.dataset.test_windows * horizon;
  const auto training = 2 * (past + horizon) + horizon + c.dataset.validation_length.value_or(5 * horizon);
  if (c.dataset.split == "last") return training + tests;
  return std::max((training * 5 + 3) / 4, 5 * (tests + 1));
}

std::vector<std::string> assignments_of(const std::vector<Setting>& settings) {
  std::vector<std::string> out;
  for (const auto& [key, value] : settings) out.push_back(cat(key, "=", value));
  return out;
}

std::string quoted(const std::string& text) { return json_text(nlohmann::json(text)); }  // YAML reads JSON's strings

/// The cell's configuration.
Config resolved(const SweepFile& file, const std::vector<Setting>& set, const Axis& row, const Axis& column) {
  try {
    return read_config(file.config, assignments_of(set));
  } catch (const UsageError& error) {
    throw UsageError(cat(place_of(file, row), "row '", row.label, "', column '", column.label, "': ", error.what()));
  }
}

/// What a cell asks for, for any seed.
struct WantedCell {
  std::vector<Setting> set;
  EvaluateOptions evaluate;
  bool tells_frequency = true;
  std::int64_t length = 1;  ///< length_for its configuration
  bool left_out = false;    ///< of a smoke run
};

WantedCell wanted_cell(const SweepFile& file, const Axis& row, const Axis& column) {
  WantedCell out{merged(file, row, column), merged_evaluate(file, row, column)};
  const auto config = resolved(file, out.set, row, column);
  out.tells_frequency = !config.dataset.frequency.empty() && config.dataset.frequency != "auto";
  out.length = length_for(config);
  return out;
}

/// A row of baselines stands for all rows above it: they must have the same data, and be scored as the first.
void check_shared_baselines(const SweepFile& file, const Axis& row, const EvaluateOptions& evaluate,
                            const EvaluateOptions& of_first_row) {
  if (std::any_of(row.set.begin(), row.set.end(), [](const Setting& s) { return s.key.rfind("dataset.", 0) == 0; }))
    throw UsageError(cat(place_of(file, row), "baselines: the row '", row.label,
                         "' has data of its own; expected rows with 'baseline' in place of 'baselines'"));
  if (evaluate_arguments(file, evaluate, 0) != evaluate_arguments(file, of_first_row, 0))
    throw UsageError(
        cat(place_of(file, row), "baselines: the row '", row.label,
            "' is scored otherwise than the first; expected rows with 'baseline' in place of 'baselines'"));
}

/// What the cells ask for, row by row.
std::vector<WantedCell> wanted_cells(const SweepFile& file, bool smoke) {
  const auto rows = file.rows.size();
  const auto columns = file.columns.size();
  std::set<std::pair<std::size_t, std::size_t>> chosen;  // of a smoke run: every row and every column once
  for (std::size_t i = 0; i < std::max(rows, columns); ++i) chosen.emplace(i % rows, i % columns);
  std::vector<WantedCell> out;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      auto cell = wanted_cell(file, file.rows[r], file.columns[c]);
      cell.left_out = smoke && !chosen.contains({r, c});
      if (!file.baselines.empty())
        check_shared_baselines(file, file.rows[r], cell.evaluate, r > 0 ? out[c].evaluate : cell.evaluate);
      out.push_back(std::move(cell));
    }
  return out;
}

/// Series that every cell can be trained on.
LookAlike look_alike_for(const std::vector<WantedCell>& wanted, const std::filesystem::path& output) {
  std::int64_t length = 1;
  for (const auto& cell : wanted) length = std::max(length, cell.length);
  if (std::error_code reason; !is_utf8(std::filesystem::absolute(output, reason).string()) || reason)
    throw UsageError(cat("--output: found '", output.string(), "'",
                         reason ? cat(": ", reason.message()) : ", whose path is not UTF-8, as YAML needs it",
                         "; expected another folder for a smoke run"));
  return {std::filesystem::absolute(output).lexically_normal() / "data" /
              cat("look-alike-", smoke_series, "x", length, ".txt"),
          {smoke_series, length, 1}};
}

/// Look-alike data, two steps and large noise in place of what the cell asks for.
void put_smoke_settings(const SweepFile& file, const LookAlike& look_alike, WantedCell& cell) {
  const auto put = [&](const std::string& key, const std::string& value) {
    std::erase_if(cell.set, [&](const Setting& s) { return s.key == key; });
    cell.set.push_back({key, value});
  };
  put("dataset.path", quoted(look_alike.file.string()));
  put("dataset.format", "lstnet");
  put("dataset.start", quoted("2015-01-01 00:00"));
  if (!cell.tells_frequency) put("dataset.frequency", "1h");  // as the look-alike does not
  for (const auto* column : {"item", "time", "value"}) put(cat("dataset.columns.", column), "null");
  put("dataset.covariates.file", "null");  // which are not known for these steps
  put("dataset.covariates.columns", "[]");
  put("dataset.covariates.private", "false");
  put("dataset.owner.file", "null");
  put("dataset.owner.column", "null");
  put("privacy.noise.sampled", "null");
  put("training.max_epochs", "2");
  // Batches left to `auto` are chosen with their noise.
  const auto chosen = std::any_of(cell.set.begin(), cell.set.end(),
                                  [](const Setting& s) { return s.key == "sampling.top_level" && s.value == "auto"; });
  put("privacy.noise_multiplier", chosen ? "auto" : cat(smoke_noise));
  for (const auto& [key, value] : file.smoke) put(key, value);
}

/// The training of a cell, without its scores.
Run run_of(const SweepFile& file, std::vector<Setting> set, const Axis& row, const Axis& column, std::int64_t seed) {
  Run run;
  set.push_back({"training.seed", cat(seed)});
  run.set = assignments_of(set);
  run.seed = seed;
  run.config = resolved(file, set, row, column);
  run.hash = hash_of(beside_defaults(run.config));
  auto seedless = run.config;
  seedless.training.seed = Config{}.training.seed;
  run.plan = hash_of(beside_defaults(seedless));
  run.name = cat(readable_name(run.config, row, column, seed), "-", run.hash);
  return run;
}

/// The place among `scores` of a score with these options, which is put there if it is new.
std::size_t place_among(std::vector<ScoreRequest>& scores, const SweepFile& file, const EvaluateOptions& evaluate,
                        std::int64_t seed) {
  ScoreRequest score{{}, evaluate_arguments(file, evaluate, seed)};
  score.hash = score_hash(file, score.arguments);
  const auto same =
      std::find_if(scores.begin(), scores.end(), [&](const ScoreRequest& s) { return s.hash == score.hash; });
  const auto place = static_cast<std::size_t>(same - scores.begin());
  if (same == scores.end()) scores.push_back(std::move(score));
  return place;
}

/// The cells' runs, each once, and the cells with what they show of them.
void put_runs(SweepPlan& plan, const std::vector<WantedCell>& wanted) {
  const auto& file = plan.file;
  const auto rows = file.rows.size();
  const auto columns = file.columns.size();
  plan.cells.reserve(rows * columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) plan.cells.push_back({r, c, {}});
  std::map<std::string, std::size_t> known;
  for (const auto seed : plan.seeds)
    for (auto& cell : plan.cells) {
      const auto& w = wanted[cell.row * columns + cell.column];
      if (w.left_out) continue;
      auto run = run_of(file, w.set, file.rows[cell.row], file.columns[cell.column], seed);
      const auto [there, is_new] = known.emplace(run.hash, plan.runs.size());
      if (is_new) plan.runs.push_back(std::move(run));
      cell.sources.push_back({there->second, place_among(plan.runs[there->second].scores, file, w.evaluate, seed)});
    }
}

}  // namespace

std::filesystem::path SweepPlan::folder_of(const Run& run) const {
  std::error_code ignored;
  if (std::filesystem::is_directory(runs_folder() / run.name, ignored)) return runs_folder() / run.name;
  for (const auto& entry : std::filesystem::directory_iterator(runs_folder(), ignored))
    if (entry.path().filename().string().ends_with("-" + run.hash)) return entry.path();
  return runs_folder() / run.name;
}

std::filesystem::path SweepPlan::score_file(const Run& run, const ScoreRequest& score) const {
  return folder_of(run) / "private" / "scores" / (score.hash + ".json");
}

SweepPlan make_plan(const SweepFile& file, const std::filesystem::path& output, bool smoke) {
  SweepPlan plan;
  plan.file = file;
  plan.output = output;
  plan.smoke = smoke;
  plan.seeds = file.seeds;
  if (smoke) plan.seeds.resize(1);
  plan.base = read_file(file.config);
  auto wanted = wanted_cells(file, smoke);
  if (smoke) {
    plan.look_alike = look_alike_for(wanted, output);
    for (auto& cell : wanted) put_smoke_settings(file, *plan.look_alike, cell);
  }
  put_runs(plan, wanted);
  return plan;
}

bool has_begun(const std::filesystem::path& folder) {
  const auto charged = folder / "private" / "checkpoints" / "charged";
  return is_there(folder / "privacy.json") || is_there(folder / "model.pt") ||
         (is_there(charged) && split(read_file(charged), '\n').front() != "0");
}

NextStep next_step(const SweepPlan& plan, const Run& run) {
  const auto folder = plan.folder_of(run);
  const auto ledger = folder / "privacy.json";
  if (!is_there(ledger)) {
    // If steps were charged, --resume says that the ledger is lost. If none was charged, none was taken, and what a
    // crash left is worth nothing.
    return {has_begun(folder) ? Need::resume : Need::begin, 0};
  }
  const auto about = nlohmann::json::parse(read_file(ledger), nullptr, false);
  const auto state = about.is_object() ? about.find("state") : about.end();
  if (state == about.end() || !state->is_string())
    throw DataError(cat(ledger.string(), ": not a ledger; expected the one that tsdp-train wrote"));
  if (*state != "finished" || !is_there(folder / "model.pt")) return {Need::resume, 0};
  for (std::size_t i = 0; i < run.scores.size(); ++i)
    if (!is_scored(plan, run, i)) return {Need::score, i};
  return {};
}

bool is_scored(const SweepPlan& plan, const Run& run, std::size_t score) {
  const auto file = plan.score_file(run, run.scores[score]);
  return is_there(file) &&
         !why_no_score(nlohmann::ordered_json::parse(read_file(file), nullptr, false), plan.file.metric);
}

const char* why_no_score(const nlohmann::ordered_json& result, const std::string& metric) {
  // null stands for numbers that are not finite; coverage is a map.
  const auto scores = [](const nlohmann::ordered_json& about) {
    return about.is_object() && !about.empty() && std::all_of(about.begin(), about.end(), [](const auto& value) {
             return value.is_number() || value.is_null() || value.is_object();
           });
  };
  if (!result.is_object()) return "no JSON object";
  const auto metrics = result.find("metrics");
  if (metrics == result.end() || !scores(*metrics)) return "no metrics that are numbers";
  if (metrics->contains(metric) && metrics->at(metric).is_object()) return "a map for the metric that the table shows";
  const auto baselines = result.find("baselines");
  if (baselines != result.end() &&
      (!baselines->is_object() || !std::all_of(baselines->begin(), baselines->end(), scores)))
    return "baselines that are no metrics";
  return nullptr;
}

std::vector<std::string> command_of(const SweepPlan& plan, const Run& run, const NextStep& step, int threads) {
  const auto folder = plan.folder_of(run).string();
  std::vector<std::string> out;
  switch (step.need) {
    case Need::nothing: return out;
    case Need::begin:
      out = {"tsdp-train", "--config", plan.file.config.string()};
      for (const auto& assignment : run.set) out.insert(out.end(), {"--set", assignment});
      out.insert(out.end(), {"--output", folder});
      break;
    case Need::resume: return {"tsdp-train", "--resume", folder, "--json"};  // with the threads it began with
    case Need::score:
      // Where tsdp-train also scores: a score does not depend on which of the two gave it.
      out = {"tsdp-evaluate", "--run", folder, "--device", "cpu"};
      out.insert(out.end(), run.scores[step.score].arguments.begin(), run.scores[step.score].arguments.end());
      break;
  }
  out.insert(out.end(), {"--threads", cat(threads), "--json"});
  return out;
}

}  // namespace tsdp::sweep
