#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

/// Why the lock cannot be had; empty if it was taken.
std::string lock(int descriptor, int how) {
  int result = descriptor < 0 ? -1 : ::flock(descriptor, how);
  while (result != 0 && descriptor >= 0 && errno == EINTR) result = ::flock(descriptor, how);
  if (result == 0) return {};
  std::string reason = std::strerror(errno);
  if (descriptor >= 0) ::close(descriptor);
  return reason;
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path) : descriptor_(-1) {
  while (true) {
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (const auto reason = lock(descriptor_, LOCK_EX); !reason.empty())
      throw Error(ExitCode::failure, cat(path.string(), ": cannot be locked: ", reason));
    // Somebody may have removed the file while we waited: then others lock another one.
    struct stat held{};
    struct stat named{};
    if (::fstat(descriptor_, &held) == 0 && ::lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
        held.st_ino == named.st_ino)
      return;
    ::close(descriptor_);
  }
}

FileLock::FileLock(const std::filesystem::path& folder, const std::string& who)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (const auto reason = lock(descriptor_, LOCK_EX | LOCK_NB); !reason.empty())
    throw Error(ExitCode::failure, cat(folder.string(), ": ", who, " (", reason, ")"));
}

FileLock::~FileLock() { ::close(descriptor_); }

}  // namespace tsdp
