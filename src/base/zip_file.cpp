#include "base/zip_file.h"

#include <zip.h>

#include <array>
#include <cctype>
#include <cstdint>
#include <memory>
#include <set>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp {

std::map<std::string, std::string> read_zip(const std::filesystem::path& archive) {
  const auto damaged = [&](const auto&... what) {
    return DataError(
        cat(archive.string(), ": damaged (", what..., "); expected a model that tsdp-export or tsdp-train wrote"));
  };
  if (const auto why = why_no_file(archive); !why.empty())
    throw DataError(cat(archive.string(), ": ", why, "; expected a model that tsdp-export or tsdp-train wrote"));
  std::error_code ignored;
  const auto most =
      (std::uint64_t{16} << 20) + 8 * static_cast<std::uint64_t>(std::filesystem::file_size(archive, ignored));
  int reason = 0;
  const std::unique_ptr<zip_t, void (*)(zip_t*)> zip(::zip_open(archive.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &reason),
                                                     [](zip_t* open) { ::zip_discard(open); });
  if (!zip)
    throw DataError(cat(archive.string(),
                        ": not a zip archive; expected a model.pt (TorchScript) that tsdp-export or tsdp-train wrote",
                        archive.extension() == ".onnx" ? "; programs of ONNX read this one" : ""));
  std::map<std::string, std::string> out;
  std::set<std::string> lower_names;
  std::uint64_t read = 0;
  const auto count = ::zip_get_num_entries(zip.get(), 0);
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(count); ++i) {
    const char* raw = ::zip_get_name(zip.get(), i, ZIP_FL_ENC_RAW);
    const std::string whole = raw == nullptr ? "" : raw;
    const auto name = whole.substr(whole.find('/') + 1);  // npos + 1 is 0
    auto lower = name;
    for (auto& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!lower_names.insert(lower).second) throw damaged("it has two members '", name, "'");
    const std::unique_ptr<zip_file_t, void (*)(zip_file_t*)> file(
        ::zip_fopen_index(zip.get(), i, 0), [](zip_file_t* open) { static_cast<void>(::zip_fclose(open)); });
    if (!file) throw damaged("member '", name, "' cannot be read");
    auto& content = out[name];
    // Read to its end, where the library compares the CRC.
    std::array<char, 65536> buffer;
    for (;;) {
      const auto bytes = ::zip_fread(file.get(), buffer.data(), buffer.size());
      if (bytes < 0) throw damaged("member '", name, "' is not what its CRC says");
      if (bytes == 0) break;
      read += static_cast<std::uint64_t>(bytes);
      if (read > most) throw damaged("it unpacks to more than ", most, " bytes");
      content.append(buffer.data(), static_cast<std::size_t>(bytes));
    }
  }
  return out;
}

}  // namespace tsdp
