// What all programs share: common options, exit codes, one line an error.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tsdp/privacy/terms/interval.h"

namespace tsdp::cli {

/// Options that every program takes.
struct CommonOptions {
  bool quiet = false;
  bool verbose = false;
  bool json = false;
};

/// Adds --version, --quiet, --verbose and, where `with_json`, --json to `app`.
void add_common_options(CLI::App& app, CommonOptions& options, bool with_json = true);

/// Check of an option without a sign: CLI11 would read -1 as the greatest number.
[[nodiscard]] std::string whole_number(const std::string& text);

/// Says that what people take for the numbers of shuffled batches are those of another sampler: `what` lies in `bracket`.
void warn_of_shuffling(const std::string& what, const privacy::Interval& bracket);

/// Writes text for people to stdout, as `visible` (base/text.h) shows it: names may hold anything.
void print(const std::string& text);

/// Writes the one object of --json to stdout.
void print_json(const nlohmann::ordered_json& json);

/// Makes sure that stdin, stdout and stderr are open, parses the command line and runs `body`, turning every failure into
/// one line on stderr and its exit code. What could not be written to stdout is such a failure, help and version among it.
int run(CLI::App& app, int argc, char** argv, CommonOptions& options, const std::function<int()>& body);

}  // namespace tsdp::cli
