// Files written next to their place and renamed, so that a reader sees the old or the new content and never a part.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tsdp {

/// Who may read a written file: everyone whom the umask allows (0666 without its bits), or only its owner (0600).
enum class FileAccess {
  everyone,
  owner
};

/// A file that is written piece by piece and put in place at once: until `commit`, and forever if that is never
/// reached, readers find what was there before. All members throw Error (exit 1) naming the path and the system's
/// reason.
///
/// A symbolic link is kept; the file that it points to is replaced or created. Anything that can be written to but is
/// not a file (a device, a FIFO, what is open as stdout or stderr) is not replaced: it takes the bytes as they come.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path, FileAccess access = FileAccess::everyone);
  /// Removes what was not committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view content);
  /// The bytes are on disk (fsync of file and folder) when this returns. Nothing may be written after it.
  void commit();

 private:
  [[noreturn]] void fail(const std::filesystem::path& path, const char* what);
  void discard() noexcept;

  std::filesystem::path path_;    // as given, links followed
  std::filesystem::path beside_;  // empty where `path_` itself is written to
  int fd_ = -1;
};

/// Replaces `path` by `content` atomically and durably: the bytes are on disk (fsync of file and folder) when this
/// returns. Throws Error (exit 1) naming the path and the system's reason.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           FileAccess access = FileAccess::everyone);

/// Makes durable what was created, renamed or removed in `folder`. Throws Error (exit 1).
void sync_folder(const std::filesystem::path& folder);

/// Opens a regular file for reading, links followed, and returns its descriptor (O_CLOEXEC). Throws DataError
/// `path: cannot be read (reason); expected …`, also for a folder, FIFO, device or socket, which could block forever;
/// these are not opened.
[[nodiscard]] int open_to_read(const std::filesystem::path& path, const char* expected = "a readable file");

/// Why `path`, links followed, is not a regular file: "Is a FIFO", "Permission denied", "No such file or directory";
/// empty if it is one.
[[nodiscard]] std::string why_no_file(const std::filesystem::path& path);

/// The whole content of a regular file. Throws DataError as open_to_read does.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Whether `path` exists, links followed. Throws DataError if that cannot be determined (no permission to look,
/// circular links): what cannot be seen is not absent.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

}  // namespace tsdp
