// A lock that processes take on a file or a folder.
#pragma once

#include <filesystem>
#include <string>

namespace tsdp {

/// Holds an exclusive lock for as long as it lives; the system lets go when a process ends, however it ends. Errors
/// (exit 1) name the path and the reason.
class FileLock {
 public:
  /// Locks the file `path`, creating it if needed; the file stays. Blocks until the lock is free.
  explicit FileLock(const std::filesystem::path& path);
  /// Locks an existing folder. Throws Error at once if another process holds it; `who` says who that is.
  FileLock(const std::filesystem::path& folder, const std::string& who);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace tsdp
