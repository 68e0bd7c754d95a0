#include "program.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <regex>
#include <vector>

#include "base/log.h"
#include "base/version.h"
#include "tsdp/base/error.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {
namespace {

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "the signal handler needs it");

extern "C" void ask_to_stop(int) { stop_asked = true; }

/// If one of these is closed, the next file opened takes its number and receives all that is printed. Nothing can be
/// read from the stand-ins, nor results written to them; what is said on stderr goes nowhere.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0)
      static_cast<void>(::open("/dev/null", stream == STDOUT_FILENO ? O_RDONLY : O_RDWR));  // the least free number
}

/// Keeps freed memory for the next use. With the defaults, every transform of an accountant's answer would give the
/// heap's end back and fault it in again for the next one, which costs a tenth of the answer's time.
void keep_freed_memory() {
  static_cast<void>(::mallopt(M_MMAP_THRESHOLD, 64 << 20));
  static_cast<void>(::mallopt(M_TRIM_THRESHOLD, 256 << 20));
}

/// A line that quotes megabytes says no more than its beginning and its end do.
std::string shortened(const std::string& line) {
  constexpr std::size_t most = 4000;
  constexpr std::size_t end = 1000;
  if (line.size() <= most) return line;
  return cat(line.substr(0, most - end), " [", line.size() - most, " bytes left out] ", line.substr(line.size() - end));
}

constexpr const char* out_of_memory = "out of memory; expected a smaller model, batch or context";

/// The message if a program with commands was given none of them; otherwise empty.
std::string missing_command(const CLI::App& app, int argc, char** argv) {
  const auto commands = app.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
  if (commands.empty() || !app.get_subcommands().empty()) return {};
  std::vector<std::string> names;
  for (const auto* command : commands) names.push_back(command->get_name());
  const std::string first = argc > 1 ? argv[1] : "";
  const auto found = first.empty() || first.front() == '-' ? std::string("none") : cat("'", first, "'");
  return cat("command: found ", found, "; expected one of ", join(names, ", "));
}

/// The message about an option that the command, or the program, does not have; empty if there is none.
std::string unknown_option(const CLI::App& app) {
  const auto left = app.remaining(true);
  const auto option =
      std::find_if(left.begin(), left.end(), [](const std::string& text) { return text.starts_with("-"); });
  if (option == left.end()) return {};
  const auto name = option->substr(0, option->find('='));
  const auto chosen = app.get_subcommands();
  const auto* command = chosen.empty() ? &app : chosen.front();
  std::vector<std::string> known, others;
  for (const auto* one : command->get_options()) known.push_back(one->get_name());
  for (const auto* one : app.get_subcommands([](const CLI::App*) { return true; }))
    if (one != command && one->get_option_no_throw(name) != nullptr) others.push_back(one->get_name());
  if (command->get_option_no_throw("--set") != nullptr && name.find('.') != std::string::npos)
    return cat(name, ": found a setting; expected it as --set ", name.substr(name.find_first_not_of('-')), "=VALUE");
  return cat(name, ": not used by ", command->get_name(),
             others.empty() ? std::string() : cat(", but by ", join(others, ", ")), "; the nearest option is ",
             nearest_name(name, known));
}

/// What CLI11 says of an option's value, as this project says it; `text` itself where it is of another kind.
std::string in_own_words(const std::string& text) {
  constexpr std::size_t longest = 1000;  // matching takes as much of the stack as the text is long
  if (text.size() > longest) return text;
  std::smatch found;
  const auto is = [&](const char* pattern) { return std::regex_match(text, found, std::regex(pattern)); };
  const auto number = [](const std::string& shown) {
    double value = 0.0;
    return parse_double(shown, value) ? rounded(value, 17) : shown;
  };
  if (is(R"((.*): Value (.*) not in range \[?(.*?)(?: to | - )(.*?)\]?)")) {  // in older and newer versions
    const auto least = number(found[3]), most = number(found[4]);
    return cat(found[1].str(), ": found ", found[2].str(), "; expected a number ",
               most.find("e+") != std::string::npos ? cat("above ", least)  // CLI::PositiveNumber
                                                    : cat("from ", least, " to ", most));
  }
  if (is("(.*): (.*) not in [{](.*)[}]"))
    return cat(found[1].str(), ": found ", found[2].str(), "; expected one of ",
               join(split(found[3].str(), ','), ", "));
  if (is("Could not convert: (.*?) = (.*)"))
    return cat(found[1].str(), ": found ", found[2].str(), "; expected a number");
  if (is("(.*): At Most 1 required but received (.*)"))
    return cat(found[1].str(), ": given ", found[2].str(), " times; expected once");
  if (is("(.*): 1 required (.*) missing")) return cat(found[1].str(), ": given without a value; expected one");
  if (is("(.*) is required")) return cat(found[1].str(), ": not given; expected it");
  if (is("The following arguments? (?:was|were) not expected: (.*)"))
    return cat("found '", found[1].str(), "', which belongs to no option; expected options alone");
  return text;
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

void require_other_file(const std::string& option, const std::filesystem::path& output,
                        const std::vector<std::filesystem::path>& kept) {
  std::error_code ignored;
  if (std::filesystem::is_directory(output, ignored))
    throw UsageError(cat(option, ": found '", output.string(), "', a folder; expected a file to write"));
  if (const auto folder = output.parent_path(); !folder.empty() && !std::filesystem::is_directory(folder, ignored))
    throw UsageError(cat(option, ": found '", output.string(), "', but there is no folder ", folder.string(),
                         "; expected a file in a folder that exists"));
  for (const auto& file : kept)
    if (std::filesystem::equivalent(output, file, ignored))
      throw UsageError(cat(option, ": found '", output.string(), "', a file that the run needs; expected another one"));
}

void warn_of_shuffling(const std::string& what, const privacy::Interval& bracket) {
  log::warning(cat("shuffled batches: Poisson numbers do not apply: ", what, " is between ",
                   rounded_down(bracket.lower, 5), " and ", rounded_up(bracket.upper, 5)));
}

std::string in_columns(std::vector<std::vector<std::string>> lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (auto& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i) line[i].resize(widths[i] + 2, ' ');
    text += cat("  ", join(line, ""), "\n");
  }
  return text;
}

void print(const std::string& text) { std::cout << visible(text, true); }
void print_json(const nlohmann::ordered_json& json) { std::cout << json_text(json, 2) << "\n"; }

const std::atomic<bool>& stop_on_signals() {
  struct sigaction action{};
  action.sa_handler = ask_to_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second signal ends the program at once
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return stop_asked;
}

void end_on_signals(const std::string& last_words) {
  static std::string words;  // which a handler must not make
  words = cat("\n", last_words, "\n");
  const auto say_and_end = [](int) {
    static_cast<void>(!::write(STDERR_FILENO, words.data(), words.size()));
    std::_Exit(static_cast<int>(ExitCode::interrupted));
  };
  std::signal(SIGINT, say_and_end);
  std::signal(SIGTERM, say_and_end);
}

int run(CLI::App& app, int argc, char** argv, CommonOptions& options, const std::function<int()>& body) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error line, not a death
  const auto fail = [&](ExitCode code, std::string line) {
    for (auto& c : line)
      if (c == '\n') c = ' ';
    std::cerr << app.get_name() << ": " << visible(shortened(line)) << "\n";
    return static_cast<int>(code);
  };
  const auto written = [&](int code) {
    if (!std::cout.flush())
      return fail(ExitCode::failure, "the result cannot be written to stdout: no space, or closed");
    return code;
  };
  open_standard_streams();
  keep_freed_memory();
  try {
    // An empty value, as of a variable of the shell that is not set, would count as none.
    for (int i = 1; i < argc; ++i) {
      const std::string given = argv[i];
      const bool is_option = given.starts_with("--");
      if (given.empty() || (is_option && given.find('=') == given.size() - 1))
        throw UsageError(
            cat(is_option ? given.substr(0, given.size() - 1) : std::string(i > 1 ? argv[i - 1] : "argument"),
                ": given without a value; expected one"));
    }
    app.parse(argc, argv);
    log::set_level(options.quiet ? log::Level::quiet : options.verbose ? log::Level::verbose : log::Level::normal);
    return written(body());
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return written(0);
  } catch (const CLI::Success& success) {
    return written(app.exit(success));  // --version, --help of a subcommand
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const auto unknown = unknown_option(app);
    const auto missing = missing_command(app, argc, argv);
    const auto what = !missing.empty() ? missing : !unknown.empty() ? unknown : in_own_words(error.what());
    return fail(ExitCode::usage, cat(what, " (see ", app.get_name(),
                                     chosen.empty() ? std::string() : " " + chosen.front()->get_name(), " --help)"));
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(ExitCode::data,
                cat(error.path1().string(), ": ", error.code().message(), "; expected a path that can be used"));
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::failure, out_of_memory);
  } catch (const std::exception& error) {
    // Not the user's mistake: the first line says what broke; details only when asked for.
    const std::string all = error.what();
    // LibTorch's form of bad_alloc, on the CPU and on a GPU.
    if (all.find("DefaultCPUAllocator") != std::string::npos || all.find("CUDA out of memory") != std::string::npos)
      return fail(ExitCode::failure, out_of_memory);
    return fail(ExitCode::failure, "internal error: " + (options.verbose ? all : all.substr(0, all.find('\n'))));
  }
}

}  // namespace tsdp::cli
