// The result of a sweep: mean and standard deviation over seeds of every cell, next to the paper's numbers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweep/joint.h"
#include "sweep/plan.h"
#include "sweep/scheduler.h"

namespace tsdp::sweep {

/// The score of one seed, and what its training spent.
struct SeedScore {
  std::int64_t seed = 0;
  double score = 0.0;
};

/// A cell, as far as its runs have got.
struct TableCell {
  std::vector<SeedScore> scores;
  std::optional<PaperNumber> paper;
  bool is_private = false;     ///< trained privately; if so, the following hold
  double epsilon_lower = 0.0;  ///< least over seeds
  double epsilon_upper = 0.0;  ///< most over seeds
  double target_epsilon = 0.0;
  double delta = 0.0;
  bool by_max_epochs = false;        ///< training ended by max_epochs, before the target
  std::vector<std::string> missing;  ///< why scores are missing, one line per reason

  [[nodiscard]] double mean() const;
  /// With n − 1; none for fewer than two scores.
  [[nodiscard]] std::optional<double> std() const;
};

/// Why a cell that a smoke run does not fill has no scores.
inline constexpr const char* left_out = "left out of a smoke run";

struct TableRow {
  std::string label;
  bool is_baseline = false;
  std::vector<TableCell> cells;  ///< one per column
};

struct Table {
  std::string title;
  std::string metric;
  bool smoke = false;
  std::size_t private_models = 0;  ///< runs with privacy, whose costs compose
  bool private_forecasts = false;     ///< some scores are of forecasts that are themselves private
  std::vector<std::int64_t> seeds;
  std::vector<std::string> columns;
  std::vector<TableRow> rows;
  std::vector<JointStatement> joint;  ///< once all runs have ended
};

/// Reads all scores on disk. `failures`: why runs have none.
[[nodiscard]] Table read_table(const SweepPlan& plan, const Failures& failures);

}  // namespace tsdp::sweep
