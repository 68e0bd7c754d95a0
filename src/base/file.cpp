#include "tsdp/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw Error(ExitCode::failure, cat(path.string(), ": ", what, ": ", std::strerror(errno)));
}

/// Where the links of the last name lead: to what is there or could be created there. Links of folders are followed by
/// whoever opens the path.
std::filesystem::path without_links(std::filesystem::path path) {
  constexpr int most_links = 40;  // as the system has it
  for (int links = 0;; ++links) {
    std::error_code not_a_link;
    const auto next = std::filesystem::read_symlink(path, not_a_link);
    if (not_a_link) return path;
    if (links == most_links) {
      errno = ELOOP;
      fail(path, "cannot write");
    }
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
}

bool same(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// What stands there, in words.
const char* kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "Is a directory"
         : S_ISFIFO(mode) ? "Is a FIFO"
         : S_ISSOCK(mode) ? "Is a socket"
                          : "Is a device";
}

}  // namespace

void sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(folder, "cannot open to make durable");
  const bool ok = ::fsync(fd) == 0;
  ::close(fd);
  if (!ok) fail(folder, "cannot make durable");
}

AtomicFile::AtomicFile(const std::filesystem::path& path, FileAccess access) : path_(path) {
  struct stat about{};
  const bool there = ::stat(path.c_str(), &about) == 0;
  if (there) {
    // If what is open as stdout or stderr, which may be a file, were replaced, it would be lost for whoever reads it.
    for (const int open : {STDOUT_FILENO, STDERR_FILENO}) {
      struct stat about_open{};
      if (::fstat(open, &about_open) != 0 || !same(about, about_open)) continue;
      fd_ = ::fcntl(open, F_DUPFD_CLOEXEC, 3);
      if (fd_ < 0) tsdp::fail(path_, "cannot write");
      return;
    }
    if (S_ISDIR(about.st_mode)) {
      errno = EISDIR;
      tsdp::fail(path_, "cannot replace");
    }
    if (!S_ISREG(about.st_mode)) {
      fd_ = ::open(path_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
      if (fd_ < 0) tsdp::fail(path_, "cannot write");
      return;
    }
  }
  path_ = without_links(path);
  beside_ = path_;
  beside_ += ".part";
  // If it exists, it was left by a crash, or is a link laid by somebody else: it is neither written nor followed.
  if (::unlink(beside_.c_str()) != 0 && errno != ENOENT) tsdp::fail(beside_, "cannot write");
  const mode_t mode = access == FileAccess::owner ? 0600 : 0666;
  fd_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd_ < 0) tsdp::fail(beside_, "cannot write");
  // The umask may have removed bits of the owner, who must be able to read it again.
  if (access == FileAccess::owner && ::fchmod(fd_, mode) != 0) fail(beside_, "cannot write");
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!beside_.empty()) ::unlink(beside_.c_str());
  fd_ = -1;
}

void AtomicFile::fail(const std::filesystem::path& path, const char* what) {
  const int reason = errno;
  discard();
  errno = reason;
  tsdp::fail(path, what);
}

void AtomicFile::write(std::string_view content) {
  for (std::size_t done = 0; done < content.size();) {
    const auto wrote = ::write(fd_, content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) fail(beside_.empty() ? path_ : beside_, "cannot write");
    done += static_cast<std::size_t>(wrote);
  }
}

void AtomicFile::commit() {
  if (beside_.empty()) {
    // Pipes and most devices have nothing to make durable.
    if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) fail(path_, "cannot write");
    discard();
    return;
  }
  if (::fsync(fd_) != 0) fail(beside_, "cannot write");
  struct stat ours{};
  struct stat there{};
  if (::fstat(fd_, &ours) != 0 || ::lstat(beside_.c_str(), &there) != 0 || !same(ours, there)) {
    ::close(fd_);
    fd_ = -1;  // what stands there now belongs to another program
    throw Error(ExitCode::failure, cat(path_.string(), ": cannot replace: another program writes it at the same time"));
  }
  if (::rename(beside_.c_str(), path_.c_str()) != 0) fail(path_, "cannot replace");
  ::close(fd_);
  fd_ = -1;
  sync_folder(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content, FileAccess access) {
  AtomicFile file(path, access);
  file.write(content);
  file.commit();
}

int open_to_read(const std::filesystem::path& path, const char* expected) {
  const auto refuse = [&](const char* reason) {
    throw DataError(cat(path.string(), ": cannot be read (", reason, "); expected ", expected));
  };
  // Opening some devices already uses them, so what is not a file is not opened.
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse(kind_of(about.st_mode));
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) refuse(std::strerror(errno));
  // It may have changed in between.
  if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    ::close(fd);
    refuse(kind_of(about.st_mode));
  }
  return fd;
}

std::string why_no_file(const std::filesystem::path& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return std::strerror(errno);
  return S_ISREG(about.st_mode) ? std::string() : kind_of(about.st_mode);
}

std::string read_file(const std::filesystem::path& path) {
  const int fd = open_to_read(path);
  std::string content;
  std::array<char, 1 << 16> piece;  // NOLINT: filled by read
  while (true) {
    const auto count = ::read(fd, piece.data(), piece.size());
    if (count > 0) {
      content.append(piece.data(), static_cast<std::size_t>(count));
    } else if (count == 0) {
      ::close(fd);
      return content;
    } else if (errno != EINTR) {
      const std::string reason = std::strerror(errno);
      ::close(fd);
      throw DataError(cat(path.string(), ": cannot be read (", reason, "); expected a readable file"));
    }
  }
}

bool is_there(const std::filesystem::path& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw DataError(cat(path.string(), ": cannot be looked at: ", std::strerror(errno)));
}

}  // namespace tsdp
