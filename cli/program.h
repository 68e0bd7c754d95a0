// What all programs share: common options, exit codes, one line per error.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tsdp/privacy/terms/curve.h"

namespace tsdp::cli {

/// Options that every program takes.
struct CommonOptions {
  bool quiet = false;
  bool verbose = false;
  bool json = false;
};

/// Adds --version, --quiet, --verbose and, if `with_json`, --json to `app`.
void add_common_options(CLI::App& app, CommonOptions& options, bool with_json = true);

/// Check of an unsigned option: CLI11 would read -1 as the greatest number.
[[nodiscard]] std::string whole_number(const std::string& text);

/// Warns that the usual numbers for shuffled batches are those of another sampler: `what` lies in `bracket`.
void warn_of_shuffling(const std::string& what, const privacy::Interval& bracket);

/// Throws UsageError, naming `option`, if `output` is one of the files `kept`, which something still needs, is a
/// folder, or lies in none.
void require_other_file(const std::string& option, const std::filesystem::path& output,
                        const std::vector<std::filesystem::path>& kept);

/// Lines of cells as text, each after two spaces and its columns in line. A line may end before the longest one.
[[nodiscard]] std::string in_columns(std::vector<std::vector<std::string>> lines);

/// Writes text for people to stdout, as `visible` (base/text.h) shows it: names may hold anything.
void print(const std::string& text);

/// Writes the single object of --json to stdout.
void print_json(const nlohmann::ordered_json& json);

/// From now on SIGINT and SIGTERM set what is returned; a second signal ends the program at once.
[[nodiscard]] const std::atomic<bool>& stop_on_signals();

/// From now on the first of them ends the program, with `last_words` on stderr.
void end_on_signals(const std::string& last_words);

/// Makes sure that stdin, stdout and stderr are open, parses the command line and runs `body`. Turns every failure into
/// one line on stderr and its exit code. Output that could not be written to stdout, including help and version, is
/// such a failure.
int run(CLI::App& app, int argc, char** argv, CommonOptions& options, const std::function<int()>& body);

}  // namespace tsdp::cli
