// A sweep's file: a grid of configurations and what a paper reports for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tsdp::sweep {

/// One option of the configuration and its value as YAML text, for `--set key=value`.
struct Setting {
  std::string key;
  std::string value;
  bool operator==(const Setting&) const = default;
};

/// Options of tsdp-evaluate for private inference; if none are given: the ordinary scores.
struct EvaluateOptions {
  std::optional<bool> is_private;
  std::optional<double> epsilon;           ///< > 0
  std::optional<double> delta;             ///< in (0, 1)
  std::optional<double> v;                 ///< > 0
  std::optional<double> keep_probability;  ///< in (0, 1]
};

/// A row or a column: what it changes in the base configuration and in how a model is scored.
struct Axis {
  std::string label;
  std::vector<Setting> set;
  EvaluateOptions evaluate;
  std::string baseline;  ///< rows only: the row shows this baseline's scores of its runs instead of the model's
  int line = 0;          ///< in the file, from 1
};

/// A baseline next to which all runs of a column are scored, shown as one more row.
struct Baseline {
  std::string name;  ///< as tsdp-evaluate calls it: seasonal_naive, or a key of baseline_forecasts
  std::string label;
};

/// A number of the paper, as printed there.
struct PaperNumber {
  std::string mean;
  std::string std;  ///< empty: none is printed
};

struct SweepFile {
  std::filesystem::path path;
  std::string title;
  std::filesystem::path config;  ///< the base configuration, as found
  std::vector<Setting> set;
  EvaluateOptions evaluate;
  std::vector<std::int64_t> seeds;
  std::vector<Axis> rows;
  std::vector<Axis> columns;
  std::vector<Baseline> baselines;
  std::map<std::string, std::filesystem::path> baseline_forecasts;
  std::string metric = "mean_weighted_quantile_loss";
  std::map<std::string, std::vector<std::optional<PaperNumber>>> paper;  ///< by row label, one entry per column
  std::vector<Setting> smoke;
};

/// Reads and checks a sweep file, key by key. Throws UsageError with `FILE:LINE: key: found …; expected …` (for unknown
/// keys with the nearest known one). The options named by `set` are only checked singly, not yet together.
[[nodiscard]] SweepFile read_sweep_file(const std::filesystem::path& file);

/// Finds a sweep file by name: as given, or in the project's configs/sweeps, configs/paper or configs. Throws
/// UsageError.
[[nodiscard]] std::filesystem::path find_sweep_file(const std::filesystem::path& name);

}  // namespace tsdp::sweep
