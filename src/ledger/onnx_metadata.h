// A text that an ONNX model carries, read as data: nothing of its graph is.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tsdp::mechanism {

/// The values of `key` among the metadata_props of a ModelProto (field 14 of onnx.proto), views of `bytes`. None if
/// `bytes` are no message of protocol buffers, or if readers may differ in what an entry says: one of another wire type
/// or with a key or value twice.
[[nodiscard]] std::optional<std::vector<std::string_view>> onnx_texts(std::string_view bytes, std::string_view key);

}  // namespace tsdp::mechanism
