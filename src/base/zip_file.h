// Reads members of zip archives, such as TorchScript's, as bytes. Nothing is unpacked or run.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace tsdp {

/// Content of every member of `archive`, by its path without the archive's first folder (TorchScript puts all under
/// one). The CRC-32 of each is checked. Throws DataError if the archive cannot be read or is damaged, if two members
/// have one name except for upper and lower case (readers differ in which of them they take), or if together they are
/// larger than eight times the archive plus 16 MiB.
[[nodiscard]] std::map<std::string, std::string> read_zip(const std::filesystem::path& archive);

}  // namespace tsdp
