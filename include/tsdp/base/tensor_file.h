// Tensors and texts in one file that only holds data: nothing in it is ever run.
//
// The format is safetensors' (8 bytes of header length, little-endian; a JSON header; raw little-endian values), so
// other programs can read it too. The last tensor, "sha256", is the SHA-256 of every byte before its own values: a
// changed bit anywhere is detected.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tsdp {

/// One tensor as stored in a file.
struct StoredTensor {
  std::string name;
  std::string type;                 ///< safetensors' name: F32, F64, I64 or U8
  std::vector<std::int64_t> shape;  ///< each ≥ 0; empty for a single value
  std::string bytes;                ///< row-major, little-endian
};

/// The content of such a file.
struct TensorFile {
  std::map<std::string, std::string> texts;  ///< UTF-8, under "__metadata__"
  std::vector<StoredTensor> tensors;

  [[nodiscard]] bool has(const std::string& name) const;
  /// The tensor of that name. Throws DataError with `where`, the file, if there is none.
  [[nodiscard]] const StoredTensor& tensor(const std::string& name, const std::string& where) const;
  /// The text of that name, likewise.
  [[nodiscard]] const std::string& text(const std::string& name, const std::string& where) const;
};

/// The bytes of the file. Throws Error if a tensor's bytes do not fit its type and shape, or a name occurs twice.
[[nodiscard]] std::string tensor_file_bytes(const TensorFile& content);

/// Reads what tensor_file_bytes wrote. Error messages begin with `where`. Throws DataError for anything else: every
/// length, type, shape, place and the checksum are checked before a tensor is made.
[[nodiscard]] TensorFile read_tensor_file(std::string_view bytes, const std::string& where);

}  // namespace tsdp
