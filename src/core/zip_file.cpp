#include "tsdp/core/zip_file.h"

#include <zip.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "tsdp/core/error.h"
#include "tsdp/core/text.h"

namespace tsdp {

std::string read_zip_member(const std::filesystem::path& archive, const std::string& member, std::size_t most) {
  const auto damaged = [&](const auto&... what) {
    return DataError(cat(archive.string(), ": damaged (", what..., "); expected a model that tsdp-export or tsdp-train wrote"));
  };
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(archive, ignored))
    throw DataError(cat(archive.string(), ": no such file; expected a model that tsdp-export or tsdp-train wrote"));
  int reason = 0;
  const std::unique_ptr<zip_t, void (*)(zip_t*)> zip(::zip_open(archive.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &reason),
                                                     [](zip_t* open) { ::zip_discard(open); });
  if (!zip)
    throw DataError(cat(archive.string(), ": not a zip archive; expected a model that tsdp-export or tsdp-train wrote"));
  std::optional<std::string> found;
  const auto count = ::zip_get_num_entries(zip.get(), 0);
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(count); ++i) {
    const char* raw = ::zip_get_name(zip.get(), i, ZIP_FL_ENC_RAW);
    const std::string name = raw == nullptr ? "" : raw;
    const std::unique_ptr<zip_file_t, void (*)(zip_file_t*)> file(
        ::zip_fopen_index(zip.get(), i, 0), [](zip_file_t* open) { static_cast<void>(::zip_fclose(open)); });
    if (!file) throw damaged("member '", name, "' cannot be read");
    const bool wanted = name.find('/') != std::string::npos && name.substr(name.find('/') + 1) == member;
    if (wanted && found) throw damaged("it has two members '", member, "'");
    if (wanted) found.emplace();
    // Read to its end, where the library compares the CRC.
    std::array<char, 65536> buffer;
    for (;;) {
      const auto bytes = ::zip_fread(file.get(), buffer.data(), buffer.size());
      if (bytes < 0) throw damaged("member '", name, "' is not what its CRC says");
      if (bytes == 0) break;
      if (!wanted) continue;
      if (found->size() + static_cast<std::size_t>(bytes) > most) throw damaged("member '", member, "' is too large");
      found->append(buffer.data(), static_cast<std::size_t>(bytes));
    }
  }
  if (!found)
    throw DataError(cat(archive.string(), ": has no ", member, "; expected a model that tsdp-export or tsdp-train of this version "
                        "wrote (export an older run's model again)"));
  return *std::move(found);
}

}  // namespace tsdp
