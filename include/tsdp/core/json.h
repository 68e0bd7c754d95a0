// JSON as text, whatever bytes names are made of.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace tsdp {

/// The text of `json`, on one line or with `indent` spaces a level. Bytes in texts that are not UTF-8 (names of files and
/// series may be any) become U+FFFD; nothing is thrown for them, as nlohmann's own dump would.
template <class Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tsdp
