// A folder for files that nobody keeps.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp {

/// A temporary folder that only its owner may enter, removed at the end.
class ScratchFolder {
 public:
  /// `purpose` is part of its name. Throws Error if it cannot be made.
  explicit ScratchFolder(const std::string& purpose) {
    std::string name = (std::filesystem::temp_directory_path() / cat("tsdp-", purpose, "-XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr)
      throw Error(ExitCode::failure, cat(name, ": cannot be made: ", std::generic_category().message(errno)));
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tsdp
