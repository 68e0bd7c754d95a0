// The options that say how a table in CSV is read, which several programs have.
#pragma once

#include <CLI/CLI.hpp>

#include "tsdp/data/input_form.h"

namespace tsdp::cli {

/// Adds --columns, --duplicates and --gaps, which write into `form`; gives them.
std::vector<CLI::Option*> add_table_options(CLI::App& app, data::StatedForm& form);

}  // namespace tsdp::cli
