#include "tsdp/core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw Error(ExitCode::failure, cat(path.string(), ": ", what, ": ", std::strerror(errno)));
}

void sync_path(const std::filesystem::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot open to make durable");
  const bool ok = ::fsync(fd) == 0;
  ::close(fd);
  if (!ok) fail(path, "cannot make durable");
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view content, FileAccess access) {
  auto beside = path;
  beside += ".part";
  const mode_t mode = access == FileAccess::owner ? 0600 : 0644;
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) fail(beside, "cannot write");
  // A left-over file of an earlier crash keeps its mode, and the umask may have taken bits away.
  bool ok = ::fchmod(fd, mode) == 0;
  for (std::size_t done = 0; ok && done < content.size();) {
    const auto wrote = ::write(fd, content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    ok = wrote > 0;
    if (ok) done += static_cast<std::size_t>(wrote);
  }
  ok = ok && ::fsync(fd) == 0;
  const int reason = errno;
  ::close(fd);
  errno = reason;
  if (!ok) fail(beside, "cannot write");
  if (::rename(beside.c_str(), path.c_str()) != 0) {
    const int why = errno;
    ::unlink(beside.c_str());
    errno = why;
    fail(path, "cannot replace");
  }
  sync_path(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."), O_RDONLY | O_DIRECTORY);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path))
    throw DataError(cat(path.string(), ": cannot be read; a readable file is expected"));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace tsdp
