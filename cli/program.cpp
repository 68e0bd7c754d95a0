#include "program.h"

#include <exception>
#include <iostream>
#include <new>
#include <vector>

#include "tsdp/core/error.h"
#include "tsdp/core/log.h"
#include "tsdp/core/text.h"
#include "tsdp/core/version.h"

namespace tsdp::cli {
namespace {

constexpr const char* out_of_memory = "out of memory: a smaller model, batch or context is expected";

/// What to say where a program with commands was given none of them; empty otherwise.
std::string missing_command(const CLI::App& app, int argc, char** argv) {
  const auto commands = app.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
  if (commands.empty() || !app.get_subcommands().empty()) return {};
  std::vector<std::string> names;
  for (const auto* command : commands) names.push_back(command->get_name());
  const std::string first = argc > 1 ? argv[1] : "";
  const auto found = first.empty() || first.front() == '-' ? std::string("none") : cat("'", first, "'");
  return cat("command: found ", found, "; expected one of ", join(names, ", "));
}

}  // namespace

void add_common_options(CLI::App& app, CommonOptions& options, bool with_json) {
  app.set_version_flag("--version", version());
  auto* quiet = app.add_flag("--quiet", options.quiet, "Only warnings and errors on stderr");
  app.add_flag("--verbose", options.verbose, "Details on stderr")->excludes(quiet);
  if (with_json) app.add_flag("--json", options.json, "The result as one JSON object on stdout");
}

std::string whole_number(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::string() : cat("found '", text, "'; expected a whole number from 0");
}

int run(CLI::App& app, int argc, char** argv, CommonOptions& options, const std::function<int()>& body) {
  const auto fail = [&](ExitCode code, std::string line) {
    for (auto& c : line)
      if (c == '\n') c = ' ';
    std::cerr << app.get_name() << ": " << line << "\n";
    return static_cast<int>(code);
  };
  try {
    app.parse(argc, argv);
    log::set_level(options.quiet ? log::Level::quiet : options.verbose ? log::Level::verbose : log::Level::normal);
    const int code = body();
    if (!std::cout.flush()) return fail(ExitCode::failure, "the result cannot be written to stdout: no space, or closed");
    return code;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --version, --help of a subcommand
  } catch (const CLI::ParseError& error) {
    const auto missing = missing_command(app, argc, argv);
    return fail(ExitCode::usage, cat(missing.empty() ? error.what() : missing, " (see ", app.get_name(), " --help)"));
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::failure, out_of_memory);
  } catch (const std::exception& error) {
    // Not the user's mistake: the first line says what broke; details only when asked for.
    const std::string all = error.what();
    // LibTorch's way of saying bad_alloc, on the CPU and on a GPU.
    if (all.find("DefaultCPUAllocator") != std::string::npos || all.find("CUDA out of memory") != std::string::npos)
      return fail(ExitCode::failure, out_of_memory);
    return fail(ExitCode::failure, "internal error: " + (options.verbose ? all : all.substr(0, all.find('\n'))));
  }
}

}  // namespace tsdp::cli
