// From a sweep file to the runs it asks for, each once, and the state of each on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/generate.h"
#include "sweep/sweep_file.h"
#include "tsdp/settings/config.h"

namespace tsdp::sweep {

/// One way of scoring a trained model.
struct ScoreRequest {
  std::string hash;                    ///< names the file of the score
  std::vector<std::string> arguments;  ///< of tsdp-evaluate; none: the scores given by tsdp-train itself
};

/// One training: a resolved configuration, seed included. Cells that ask for equal ones share a run.
struct Run {
  std::string name;              ///< of its folder: for people, plus the hash
  std::string hash;              ///< of what the resolved configuration changes from the defaults
  std::string plan;  ///< the same without the seed: runs that differ only in the seed have one plan and cost
  std::vector<std::string> set;  ///< `section.name=value` over the base configuration
  Config config;
  std::int64_t seed = 0;
  std::vector<ScoreRequest> scores;
};

/// A score of a run, by place in `SweepPlan::runs` and `Run::scores`.
struct Source {
  std::size_t run = 0;
  std::size_t score = 0;
};

/// A place of the grid.
struct Cell {
  std::size_t row = 0;
  std::size_t column = 0;
  std::vector<Source> sources;  ///< one per seed; empty if a smoke run leaves the cell out
};

/// What a smoke run trains on instead of the data.
struct LookAlike {
  std::filesystem::path file;
  data::GenerateOptions options;
};

struct SweepPlan {
  SweepFile file;
  std::filesystem::path output;
  bool smoke = false;
  std::string base;  ///< text of the base configuration, which starting runs read again
  std::vector<std::int64_t> seeds;
  std::vector<Run> runs;  ///< seed by seed, so that a first table is ready early
  std::vector<Cell> cells;  ///< row by row
  std::optional<LookAlike> look_alike;

  [[nodiscard]] std::filesystem::path runs_folder() const { return output / "runs"; }
  [[nodiscard]] std::filesystem::path private_folder() const { return output / "private"; }
  /// The run's folder: the one whose name ends in its hash, whatever comes before it.
  [[nodiscard]] std::filesystem::path folder_of(const Run& run) const;
  [[nodiscard]] std::filesystem::path score_file(const Run& run, const ScoreRequest& score) const;
};

/// The runs and cells of a sweep. With `smoke`: look-alike data, the first seed, two steps, large noise, and only as
/// many cells as it takes to use every row and every column once. Throws UsageError if a cell's configuration
/// contradicts itself or a row and a column set the same thing.
[[nodiscard]] SweepPlan make_plan(const SweepFile& file, const std::filesystem::path& output, bool smoke);

/// What a run needs next.
enum class Need {
  begin,  ///< tsdp-train --config …
  resume,  ///< tsdp-train --resume …
  score,  ///< tsdp-evaluate …
  nothing,
};

struct NextStep {
  Need need = Need::nothing;
  std::size_t score = 0;  ///< which score, if it needs one
};

/// Whether the folder of a run holds something that somebody may have seen: a ledger, a model, or charged steps.
[[nodiscard]] bool has_begun(const std::filesystem::path& folder);

/// Reads from the disk how far a run is. Throws DataError for a ledger that cannot be read.
[[nodiscard]] NextStep next_step(const SweepPlan& plan, const Run& run);

/// Whether the complete score is on disk: anything other than scores is made again. Throws DataError for a file that
/// cannot be read.
[[nodiscard]] bool is_scored(const SweepPlan& plan, const Run& run, std::size_t score);

/// Says in words why the JSON of tsdp-train or tsdp-evaluate is not scores; nullptr if it is: "metrics" (and each of
/// "baselines", if there are any) a map of numbers, null for a number that is not finite, and maps of such. `metric`
/// may be missing (the table says so then), but must not be a map.
[[nodiscard]] const char* why_no_score(const nlohmann::ordered_json& result, const std::string& metric);

/// The command line of a step, the program's name first.
[[nodiscard]] std::vector<std::string> command_of(const SweepPlan& plan, const Run& run, const NextStep& step,
                                                  int threads);

}  // namespace tsdp::sweep
