// Files written beside and renamed, so that a reader sees the old or the new content and never a part.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tsdp {

/// Who may read a file that is written.
enum class FileAccess { everyone, owner };  // 0644, 0600

/// A file that is written piece by piece and put in its place at once: until `commit`, and for ever if that is never
/// reached, readers find what was there before. All members throw Error (exit 1) naming the path and the system's
/// reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path, FileAccess access = FileAccess::everyone);
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

  std::filesystem::path path_;
  std::filesystem::path beside_;
  int fd_ = -1;
};

/// Replaces `path` by `content` atomically and durably: the bytes are on disk (fsync of file and folder) when this
/// returns. Throws Error (exit 1) naming the path and the system's reason.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           FileAccess access = FileAccess::everyone);

/// Makes durable what was created, renamed or removed in `folder`. Throws Error (exit 1).
void sync_folder(const std::filesystem::path& folder);

/// The whole content of `path`. Throws DataError naming the path.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace tsdp
