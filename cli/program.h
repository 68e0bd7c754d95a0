// What all programs share: common options, exit codes, one line an error.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

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

/// Parses the command line and runs `body`, turning every failure into one line on stderr and its exit code.
int run(CLI::App& app, int argc, char** argv, CommonOptions& options, const std::function<int()>& body);

}  // namespace tsdp::cli
