// The table of a sweep as text: for people, as CSV and as JSON.
#pragma once

#include <string>

#include "sweep/plan.h"
#include "sweep/table.h"

namespace tsdp::sweep {

/// The table for people, with what it does not say by itself: what epsilon was spent, what is missing and why, what
/// epsilon does not cover.
[[nodiscard]] std::string markdown(const Table& table);
/// One line per cell, with a header.
[[nodiscard]] std::string csv(const Table& table);
[[nodiscard]] std::string json(const Table& table);

/// Writes table.md, table.csv and table.json into the private folder of the sweep, each atomically.
void write_table(const SweepPlan& plan, const Table& table);

}  // namespace tsdp::sweep
