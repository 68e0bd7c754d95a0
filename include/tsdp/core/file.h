// Files written beside and renamed, so that a reader sees the old or the new content and never a part.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tsdp {

/// Who may read a file that is written.
enum class FileAccess { everyone, owner };  // 0644, 0600

/// Replaces `path` by `content` atomically and durably: the bytes are on disk (fsync of file and folder) when this
/// returns. Throws Error (exit 1) naming the path and the system's reason.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           FileAccess access = FileAccess::everyone);

/// The whole content of `path`. Throws DataError naming the path.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace tsdp
