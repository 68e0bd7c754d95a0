#include "tsdp/core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw Error(ExitCode::failure, cat(path.string(), ": ", what, ": ", std::strerror(errno)));
}

}  // namespace

void sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(folder, "cannot open to make durable");
  const bool ok = ::fsync(fd) == 0;
  ::close(fd);
  if (!ok) fail(folder, "cannot make durable");
}

AtomicFile::AtomicFile(std::filesystem::path path, FileAccess access) : path_(std::move(path)), beside_(path_) {
  beside_ += ".part";
  const mode_t mode = access == FileAccess::owner ? 0600 : 0644;
  fd_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd_ < 0) tsdp::fail(beside_, "cannot write");
  // A left-over file of an earlier crash keeps its mode, and the umask may have taken bits away.
  if (::fchmod(fd_, mode) != 0) fail(beside_, "cannot write");
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(beside_.c_str());
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
    if (wrote <= 0) fail(beside_, "cannot write");
    done += static_cast<std::size_t>(wrote);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail(beside_, "cannot write");
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

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path))
    throw DataError(cat(path.string(), ": cannot be read; a readable file is expected"));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace tsdp
