// Runs the project's programs as a user does, and looks at exit code, stdout and stderr.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace tsdp::cli_test {

inline std::filesystem::path source_folder() { return TSDP_SOURCE_DIR; }
inline std::filesystem::path program_path(const std::string& program) {
  return std::filesystem::path(TSDP_BIN_DIR) / program;
}

inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// What a program left when it ended.
struct Outcome {
  int exit_code = -1;  ///< 128 + signal if one ended it
  bool timed_out = false;
  std::string out;
  std::string err;
};

/// A test with a folder of its own, in which its programs run.
class CommandTest : public test::TemporaryFolder {
 protected:
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  /// Writes a file of the test's folder and gives its path.
  std::string write(const std::string& name, std::string_view content) const {
    const auto file = path(name);
    std::ofstream out(file, std::ios::binary);
    out << content;
    EXPECT_TRUE(out.flush().good()) << file;
    return file.string();
  }

  /// Runs `program` with `arguments`, by default in the test's folder.
  Outcome run(const std::string& program, const std::vector<std::string>& arguments,
              const std::filesystem::path& where = {}, std::chrono::seconds limit = std::chrono::seconds(50)) const {
    const auto file = program_path(program).string();
    const auto out = path(".stdout").string();
    const auto err = path(".stderr").string();
    const auto cwd = (where.empty() ? folder_ : where).string();
    std::vector<std::string> words = {file};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);

    Outcome outcome;
    const pid_t child = ::fork();
    if (child < 0) {
      ADD_FAILURE() << "fork failed";
      return outcome;
    }
    if (child == 0) {  // only calls that are safe between fork and exec
      constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
      const bool ready = ::dup2(::open("/dev/null", O_RDONLY), 0) == 0 &&
                         ::dup2(::open(out.c_str(), flags, 0600), 1) == 1 &&
                         ::dup2(::open(err.c_str(), flags, 0600), 2) == 2 && ::chdir(cwd.c_str()) == 0;
      if (ready) ::execv(file.c_str(), pointers.data());
      ::_exit(127);
    }
    const auto deadline = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (!outcome.timed_out && std::chrono::steady_clock::now() > deadline) {
        outcome.timed_out = true;
        ::kill(child, SIGKILL);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = content_of(out);
    outcome.err = content_of(err);
    EXPECT_FALSE(outcome.timed_out) << program << " was still running after " << limit.count() << " s";
    EXPECT_NE(outcome.exit_code, 127) << file << " could not be started";
    return outcome;
  }
};

/// A failure as the programs promise it: the exit code, nothing on stdout, and one line on stderr that starts with the
/// program's name and holds each of `parts`. With `logged`, lines of the log may stand before it.
inline void expect_failure(const Outcome& outcome, const std::string& program, int exit_code,
                           const std::vector<std::string>& parts, bool logged = false) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto lines = lines_of(outcome.err);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(outcome.err.back(), '\n');
  if (!logged) { EXPECT_EQ(lines.size(), 1U) << outcome.err; }
  int failures = 0;
  for (const auto& line : lines) failures += line.rfind(program + ": ", 0) == 0 ? 1 : 0;
  EXPECT_EQ(failures, 1) << outcome.err;
  EXPECT_EQ(lines.back().rfind(program + ": ", 0), 0U) << outcome.err;
  for (const auto& part : parts)
    EXPECT_NE(lines.back().find(part), std::string::npos) << "no '" << part << "' in: " << lines.back();
  for (const auto* trace :
       {"terminate", "what()", "internal error", "Exception raised from", "frame #", ".cpp:", "abort"})
    EXPECT_EQ(outcome.err.find(trace), std::string::npos) << outcome.err;
}

}  // namespace tsdp::cli_test
