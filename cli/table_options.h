// The options that say how a CSV table is read, which several programs share.
#pragma once

#include <CLI/CLI.hpp>

#include "tsdp/data/input_form.h"

namespace tsdp::cli {

/// Adds --columns, --duplicates and --gaps, which write into `form`, and returns them.
std::vector<CLI::Option*> add_table_options(CLI::App& app, data::StatedForm& form);

}  // namespace tsdp::cli
