// JSON as text, whatever bytes names are made of.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace tsdp {

/// The text of `json`, on one line or with `indent` spaces a level. Bytes in texts that are not UTF-8 (names of files
/// and series may contain any) become U+FFFD; unlike nlohmann's own dump, this throws nothing for them.
template <class Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Reads JSON from elsewhere as an object in which every text has one meaning. Throws DataError, beginning with
/// `where`, if it is not JSON, has a key twice in one object (readers differ in which of them they take) or is nested
/// deeper than 16 levels (which would exhaust the stack when it is copied). `expected`: what the file should have been.
[[nodiscard]] nlohmann::ordered_json parse_json(std::string_view text, const std::string& where,
                                                std::string_view expected = "what tsdp wrote");

}  // namespace tsdp
