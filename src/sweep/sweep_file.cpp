#include "sweep/sweep_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/settings/config.h"

namespace tsdp::sweep {
namespace {

const std::vector<std::string> file_keys = {"title", "config",  "set",       "evaluate",           "seeds",
                                            "rows",  "columns", "baselines", "baseline_forecasts", "metric",
                                            "paper", "smoke"};
const std::vector<std::string> evaluate_keys = {"private", "epsilon", "delta", "v", "keep_probability"};
const std::vector<std::string> metrics = {
    "mean_weighted_quantile_loss", "ND", "NRMSE", "MASE", "sMAPE", "MAPE", "MSE", "RMSE", "MAE_coverage"};

constexpr std::size_t most_runs = 10'000;  // each is a folder, and minutes of work

std::string shown(const YAML::Node& node) {
  if (node.IsNull()) return "null";
  if (node.IsScalar()) return cat("'", node.Scalar(), "'");
  return node.IsSequence() ? "a list" : "a map";
}

/// The value as one line of YAML; empty for values that no option takes (maps, lists of lists).
std::string yaml_text(const YAML::Node& node) {
  if (node.IsNull()) return "null";
  if (node.IsSequence()) {
    std::vector<std::string> parts;
    for (const auto& item : node) {
      if (!item.IsScalar()) return {};
      parts.push_back(yaml_text(item));
    }
    return cat("[", join(parts, ", "), "]");
  }
  if (!node.IsScalar()) return {};
  if (node.Tag() != "!") return node.Scalar();  // yaml-cpp's mark for quoted scalars
  YAML::Emitter out;
  out << YAML::DoubleQuoted << node.Scalar();
  return out.c_str();
}

class Reader {
 public:
  explicit Reader(std::filesystem::path file) : file_(std::move(file)) {}

  SweepFile read() {
    const auto text = read_yaml_text(file_);
    try {
      return read(YAML::Load(text));
    } catch (const YAML::Exception& error) {
      throw UsageError(
          cat(file_.string(), ":", error.mark.line + 1, ":", error.mark.column + 1, ": not YAML: ", error.msg));
    }
  }

 private:
  using Entry = std::function<void(const std::string& key, const YAML::Node& key_node, const YAML::Node& value)>;

  [[nodiscard]] std::string at(const YAML::Node& node) const {
    return cat(file_.string(), ":", node.Mark().line + 1, ": ");
  }

  [[noreturn]] void refuse(const YAML::Node& place, const std::string& key, const std::string& found,
                           const std::string& expected) const {
    throw UsageError(cat(at(place), key, ": found ", found, "; expected ", expected));
  }

  void check_length(const YAML::Node& place, const std::string& key, const YAML::Node& list) const {
    if (list.size() > most_runs) refuse(place, key, cat("a list of ", list.size()), cat("at most ", most_runs));
  }

  /// Calls `entry` for each key of a map; with `known`, any other key is refused.
  void each(const YAML::Node& map, const YAML::Node& place, const std::string& what, const std::string& expected,
            const std::vector<std::string>& known, const Entry& entry) const {
    if (!map.IsMap()) refuse(place, what, shown(map), expected);
    std::set<std::string> seen;
    for (const auto& item : map) {
      if (!item.first.IsScalar()) refuse(item.first, what, shown(item.first), "keys that are words");
      const auto key = item.first.Scalar();
      if (!known.empty() && std::find(known.begin(), known.end(), key) == known.end())
        throw UsageError(cat(at(item.first), what.empty() ? "" : cat(what, ": "), "unknown key '", key,
                             "'; the nearest known key is '", nearest_name(key, known), "'"));
      if (!seen.insert(key).second) throw UsageError(cat(at(item.first), "duplicate key '", key, "'"));
      entry(key, item.first, item.second);
    }
  }

  [[nodiscard]] std::string word(const std::string& key, const YAML::Node& place, const YAML::Node& value) const {
    if (!value.IsScalar() || trimmed(value.Scalar()).empty()) refuse(place, key, shown(value), "text");
    return value.Scalar();
  }

  [[nodiscard]] double real(const std::string& key, const YAML::Node& place, const YAML::Node& value,
                            const std::string& expected, const std::function<bool(double)>& fits) const {
    double number = 0.0;
    if (!value.IsScalar() || !parse_double(value.Scalar(), number) || !std::isfinite(number) || !fits(number))
      refuse(place, key, shown(value), expected);
    return number;
  }

  [[nodiscard]] std::vector<Setting> settings(const YAML::Node& place, const YAML::Node& value) const {
    std::vector<Setting> out;
    each(value, place, "set", "a map such as {privacy.w: 2}", {},
         [&](const std::string& key, const YAML::Node& key_node, const YAML::Node& node) {
           if (key == "training.seed") refuse(key_node, key, shown(node), "the seeds under 'seeds'");
           const auto text = yaml_text(node);
           // An unknown key is reported before a value that no option takes.
           check_setting(at(key_node), key, text.empty() ? "{}" : text);
           out.push_back({key, text});
         });
    return out;
  }

  [[nodiscard]] EvaluateOptions evaluate(const YAML::Node& place, const YAML::Node& value) const {
    EvaluateOptions out;
    const auto positive = [](double x) { return x > 0.0; };
    each(value, place, "evaluate", "a map of private, epsilon, delta, v, keep_probability", evaluate_keys,
         [&](const std::string& key, const YAML::Node& key_node, const YAML::Node& node) {
           if (key == "private") {
             if (!node.IsScalar() || (node.Scalar() != "true" && node.Scalar() != "false"))
               refuse(key_node, "evaluate.private", shown(node), "true or false");
             out.is_private = node.Scalar() == "true";
           } else if (key == "epsilon") {
             out.epsilon = real("evaluate.epsilon", key_node, node, "a number greater than 0", positive);
           } else if (key == "delta") {
             out.delta = real("evaluate.delta", key_node, node, "a number greater than 0 and below 1",
                              [](double x) { return x > 0.0 && x < 1.0; });
           } else if (key == "v") {
             out.v = real("evaluate.v", key_node, node, "a number greater than 0", positive);
           } else {
             out.keep_probability =
                 real("evaluate.keep_probability", key_node, node, "a number greater than 0 and at most 1",
                      [](double x) { return x > 0.0 && x <= 1.0; });
           }
         });
    return out;
  }

  [[nodiscard]] std::vector<Axis> axes(const std::string& what, const YAML::Node& place,
                                       const YAML::Node& value) const {
    const bool rows = what == "rows";
    const std::string expected = cat("a list of {label: …, set: {…}, evaluate: {…}", rows ? ", baseline: …}" : "}");
    if (!value.IsSequence() || value.size() == 0)
      refuse(place, what, value.IsSequence() ? "an empty list" : shown(value), expected);
    check_length(place, what, value);
    std::vector<std::string> known = {"label", "set", "evaluate"};
    if (rows) known.emplace_back("baseline");
    std::vector<Axis> out;
    for (const auto& item : value) {
      Axis axis;
      axis.line = item.Mark().line + 1;
      each(item, item, what, expected, known,
           [&](const std::string& key, const YAML::Node& key_node, const YAML::Node& node) {
             if (key == "label") axis.label = word(cat(what, ".label"), key_node, node);
             if (key == "set") axis.set = settings(key_node, node);
             if (key == "evaluate") axis.evaluate = evaluate(key_node, node);
             if (key == "baseline") axis.baseline = word(cat(what, ".baseline"), key_node, node);
           });
      if (axis.label.empty())
        throw UsageError(cat(at(item), what, ": found an entry without label; expected ", expected));
      if (std::any_of(out.begin(), out.end(), [&](const Axis& other) { return other.label == axis.label; }))
        refuse(item, cat(what, ".label"), cat("'", axis.label, "' again"), "another label for each");
      out.push_back(std::move(axis));
    }
    return out;
  }

  void baselines(SweepFile& out, const YAML::Node& place, const YAML::Node& value) const {
    const std::string expected = "a list of names such as [seasonal_naive], or a map of names to labels";
    if (value.IsMap()) {
      each(value, place, "baselines", expected, {},
           [&](const std::string& key, const YAML::Node& key_node, const YAML::Node& node) {
             out.baselines.push_back({key, word(cat("baselines.", key), key_node, node)});
           });
      return;
    }
    if (!value.IsSequence()) refuse(place, "baselines", shown(value), expected);
    check_length(place, "baselines", value);
    for (const auto& item : value) {
      const auto name = word("baselines", item, item);
      if (std::any_of(out.baselines.begin(), out.baselines.end(), [&](const Baseline& b) { return b.name == name; }))
        refuse(item, "baselines", cat("'", name, "' again"), "each name once");
      out.baselines.push_back({name, name});
    }
  }

  [[nodiscard]] PaperNumber number(const YAML::Node& place, const YAML::Node& value) const {
    const auto text = [&](const YAML::Node& node) {
      static_cast<void>(
          real("paper", place, node, "numbers, or [mean, std] pairs, or null", [](double) { return true; }));
      return node.Scalar();
    };
    if (!value.IsSequence()) return {text(value), {}};
    if (value.size() != 2) refuse(place, "paper", cat("a list of ", value.size()), "[mean, std]");
    return {text(value[0]), text(value[1])};
  }

  void paper(SweepFile& out, const YAML::Node& place, const YAML::Node& value) const {
    std::vector<std::string> labels;
    for (const auto& row : out.rows) labels.push_back(row.label);
    for (const auto& baseline : out.baselines) labels.push_back(baseline.label);
    each(value, place, "paper", "a map of row labels to lists of numbers", labels,
         [&](const std::string& label, const YAML::Node& key_node, const YAML::Node& node) {
           if (!node.IsSequence() || node.size() != out.columns.size())
             refuse(key_node, cat("paper.", label), node.IsSequence() ? cat(node.size(), " entries") : shown(node),
                    cat("a list with an entry for each of the ", out.columns.size(), " columns"));
           auto& row = out.paper[label];
           for (const auto& item : node) {
             if (item.IsNull()) {
               row.emplace_back();
             } else {
               row.emplace_back(number(key_node, item));
             }
           }
         });
  }

  [[nodiscard]] std::vector<std::int64_t> seeds(const YAML::Node& place, const YAML::Node& value) const {
    const std::string expected = "a list of different integers of at least 0";
    if (!value.IsSequence() || value.size() == 0)
      refuse(place, "seeds", value.IsSequence() ? "an empty list" : shown(value), expected);
    check_length(place, "seeds", value);
    std::vector<std::int64_t> out;
    for (const auto& item : value) {
      long long seed = 0;
      if (!item.IsScalar() || !parse_int(item.Scalar(), seed) || seed < 0) refuse(item, "seeds", shown(item), expected);
      if (std::find(out.begin(), out.end(), seed) != out.end()) refuse(item, "seeds", cat(seed, " again"), expected);
      out.push_back(seed);
    }
    return out;
  }

  /// The base configuration: next to this file, or where tsdp-train would find it. A sweep may have its base's name.
  [[nodiscard]] std::filesystem::path base(const YAML::Node& place, const std::string& name) const {
    std::error_code ignored;
    for (const auto& path :
         {file_.parent_path() / name, std::filesystem::path(name), project_root() / "configs" / name})
      if (std::filesystem::is_regular_file(path, ignored) && !std::filesystem::equivalent(path, file_, ignored))
        return path;
    refuse(place, "config", cat("'", name, "', which is neither beside this file, nor here, nor in configs/"),
           "the name of a training configuration");
  }

  [[nodiscard]] SweepFile read(const YAML::Node& root) const {
    SweepFile out;
    out.path = file_;
    if (!root.IsMap())
      throw UsageError(cat(file_.string(), ": found ", shown(root), "; expected the keys ", join(file_keys, ", ")));
    if (root["dataset"] || root["model"] || root["privacy"])
      throw UsageError(cat(file_.string(), ": found a training configuration; expected a sweep, with the keys ",
                           join(file_keys, ", ")));
    YAML::Node paper_node;
    YAML::Node paper_place;
    each(root, root, "", "keys", file_keys,
         [&](const std::string& key, const YAML::Node& place, const YAML::Node& value) {
           if (key == "title") out.title = word(key, place, value);
           if (key == "config") out.config = base(place, word(key, place, value));
           if (key == "set") out.set = settings(place, value);
           if (key == "evaluate") out.evaluate = evaluate(place, value);
           if (key == "seeds") out.seeds = seeds(place, value);
           if (key == "rows" || key == "columns") (key == "rows" ? out.rows : out.columns) = axes(key, place, value);
           if (key == "baselines") baselines(out, place, value);
           if (key == "baseline_forecasts")
             each(value, place, key, "a map of names to files", {},
                  [&](const std::string& name, const YAML::Node& name_node, const YAML::Node& node) {
                    out.baseline_forecasts[name] =
                        forecasts(name_node, name, word(cat(key, ".", name), name_node, node));
                  });
           if (key == "metric") {
             out.metric = word(key, place, value);
             if (std::find(metrics.begin(), metrics.end(), out.metric) == metrics.end())
               refuse(place, key, cat("'", out.metric, "'"), cat("one of ", join(metrics, ", ")));
           }
           if (key == "paper") {
             paper_node.reset(value);
             paper_place.reset(place);
           }
           if (key == "smoke")
             each(value, place, key, "a map with 'set'", {"set"},
                  [&](const std::string&, const YAML::Node& set_place, const YAML::Node& node) {
                    out.smoke = settings(set_place, node);
                  });
         });
    const auto require = [&](bool given, const std::string& key, const std::string& expected) {
      if (!given) throw UsageError(cat(file_.string(), ": ", key, ": not given; expected ", expected));
    };
    require(!out.config.empty(), "config", "the name of a training configuration");
    require(!out.seeds.empty(), "seeds", "a list such as [1, 2, 3, 4, 5]");
    require(!out.rows.empty(), "rows", "a list of {label: …, set: {…}}");
    require(!out.columns.empty(), "columns", "a list of {label: …, set: {…}}");
    if (out.rows.size() * out.columns.size() * out.seeds.size() > most_runs)
      throw UsageError(cat(file_.string(), ": found ", out.rows.size(), " rows, ", out.columns.size(), " columns and ",
                           out.seeds.size(), " seeds; expected at most ", most_runs, " runs of one sweep"));
    if (out.title.empty()) out.title = file_.stem().string();
    for (const auto& baseline : out.baselines)
      if (std::any_of(out.rows.begin(), out.rows.end(), [&](const Axis& row) { return row.label == baseline.label; }))
        throw UsageError(cat(file_.string(), ": baselines: found the label '", baseline.label,
                             "', which a row has; expected another"));
    if (paper_place.IsDefined() && !paper_place.IsNull()) paper(out, paper_place, paper_node);
    return out;
  }

  [[nodiscard]] std::filesystem::path forecasts(const YAML::Node& place, const std::string& name,
                                                const std::string& given) const {
    std::error_code ignored;
    for (const auto& path : {std::filesystem::path(given), file_.parent_path() / given})
      if (std::filesystem::is_regular_file(path, ignored)) return path;
    refuse(place, cat("baseline_forecasts.", name), cat("'", given, "', which is no file here nor beside this file"),
           "a file of forecasts");
  }

  std::filesystem::path file_;
};

}  // namespace

SweepFile read_sweep_file(const std::filesystem::path& file) { return Reader(file).read(); }

std::filesystem::path find_sweep_file(const std::filesystem::path& name) {
  // The data sets' sweeps have the names of their configurations, so configs/ itself comes last.
  return find_config_file(name, {"configs/sweeps", "configs/paper", "configs"});
}

}  // namespace tsdp::sweep
