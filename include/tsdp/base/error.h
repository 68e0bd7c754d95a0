// Errors that a user can cause or fix, each with the exit code of the program that meets it.
#pragma once

#include <stdexcept>
#include <string>

namespace tsdp {

/// Exit codes shared by all programs.
enum class ExitCode : int {
  ok = 0,
  failure = 1,        ///< anything not listed below
  usage = 2,          ///< wrong usage or configuration
  data = 3,           ///< unreadable or unfit data
  privacy = 4,        ///< no theorem covers the request, or the budget is spent
  interrupted = 130,  ///< ended by Ctrl-C or SIGTERM, ready to continue (128 + SIGINT, as in shells)
};

/// An error with one line for the user: what is at fault, what was found, what would be accepted.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& line) : std::runtime_error(line), code_(code) {}
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Wrong usage or configuration (exit 2).
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& line) : Error(ExitCode::usage, line) {}
};

/// Unreadable or unfit data (exit 3).
class DataError : public Error {
 public:
  explicit DataError(const std::string& line) : Error(ExitCode::data, line) {}
};

/// No theorem covers the request, or the budget is spent (exit 4).
class PrivacyError : public Error {
 public:
  explicit PrivacyError(const std::string& line) : Error(ExitCode::privacy, line) {}
};

}  // namespace tsdp
