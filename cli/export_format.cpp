#include "export_format.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {
namespace {

/// What a child process wrote to stderr, and how it ended.
struct Outcome {
  int exit_code = 0;
  std::string err;
};

Outcome run_child(std::vector<std::string> words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(ExitCode::failure, cat(words.front(), ": cannot be started: ", std::strerror(errno)));
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = -1;
  const int failed = ::posix_spawnp(&child, pointers.front(), &actions, nullptr, pointers.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Outcome out;
  if (failed != 0) {
    ::close(ends[0]);
    return {127, std::strerror(failed)};
  }
  std::array<char, 4096> buffer;
  for (;;) {
    const auto bytes = ::read(ends[0], buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    out.err.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (out.err.empty())
    out.err = WIFEXITED(status) ? cat("Python ended with exit code ", out.exit_code)
                                : cat("Python was ended by signal ", WTERMSIG(status));
  return out;
}

std::string last_line(const std::string& text) { return split(trimmed(text), '\n').back(); }

}  // namespace

ExportFormat format_of_ending(const std::filesystem::path& file) {
  if (file.extension() == ".onnx") return ExportFormat::onnx;
  if (file.extension() == ".pt2") return ExportFormat::torch_export;
  return ExportFormat::torchscript;
}

void write_by_python(const std::filesystem::path& model, const std::filesystem::path& output, ExportFormat format) {
  const auto* named = std::getenv("TSDP_PYTHON");
  const std::string python = named == nullptr ? "python3" : named;
  const auto outcome =
      run_child({python, "-m", "tsdp.formats", model.string(), output.string(), "--format", name(format)});
  if (outcome.exit_code == 0) return;
  if (outcome.exit_code == 127 || outcome.err.find("No module named") != std::string::npos)
    throw Error(ExitCode::failure, cat("--format ", name(format), ": found no Python with the package tsdp as ", python,
                                       " (", last_line(outcome.err),
                                       "); install it (pip install ./python), or let TSDP_PYTHON name the Python "
                                       "that has it"));
  if (outcome.exit_code == static_cast<int>(ExitCode::data)) throw DataError(last_line(outcome.err));
  throw Error(ExitCode::failure, cat("--format ", name(format), ": ", last_line(outcome.err)));
}

}  // namespace tsdp::cli
