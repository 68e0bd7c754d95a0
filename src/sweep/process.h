// Child processes and locks of a sweep.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tsdp::sweep {

/// A running program, with nothing on stdin, stdout in a file of its own and stderr at the end of a log.
///
/// It is in a process group of its own, so that a terminal's Ctrl-C reaches only the sweep, and gets SIGTERM when the
/// sweep itself is killed.
struct Process {
  pid_t id = -1;

  /// `command` is the path of the program and its arguments, which no shell interprets. Throws Error.
  static Process start(const std::vector<std::string>& command, const std::filesystem::path& out,
                       const std::filesystem::path& log);
  void terminate() const;
};

/// How a process ended.
struct Ended {
  pid_t id = -1;
  int exit_code = 0;  ///< -1 if a signal ended it
  int signal = 0;
  std::int64_t memory = 0;  ///< most resident memory, bytes
};
/// A child that has ended since; none if all are still running.
[[nodiscard]] std::optional<Ended> next_ended();

/// Reserves a folder for as long as the lock lives. If `inherited`, it is shared with children, so that those of a
/// killed sweep also hold it until they end.
class Lock {
 public:
  /// Throws Error if the folder cannot be opened.
  Lock(const std::filesystem::path& folder, bool inherited);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  /// False if another process holds it.
  [[nodiscard]] bool take() const;

 private:
  int descriptor_;
};

/// Memory that new processes may take: what the system and this control group have left, in bytes.
[[nodiscard]] std::int64_t free_memory();

}  // namespace tsdp::sweep
