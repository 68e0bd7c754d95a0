// Reads members of zip archives, such as TorchScript's, as bytes. Nothing is unpacked or run.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace tsdp {

/// Content of the member of `archive` whose path, without the archive's first folder, is `member` (TorchScript puts all under
/// one folder). The CRC-32 of every member is checked. Throws DataError if the archive cannot be read or is damaged, if there
/// is no or more than one such member, or if it is larger than `most` bytes.
[[nodiscard]] std::string read_zip_member(const std::filesystem::path& archive, const std::string& member, std::size_t most);

}  // namespace tsdp
