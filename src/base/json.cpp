#include "tsdp/base/json.h"

#include <set>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

constexpr int deepest = 64;

}  // namespace

nlohmann::ordered_json parse_json(std::string_view text, const std::string& where, std::string_view expected) {
  using Json = nlohmann::ordered_json;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= deepest)
      throw DataError(cat(where, ": nested deeper than ", deepest, " levels; expected ", expected));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw DataError(cat(where, ": has the key '", parsed.get<std::string>(), "' twice; expected each once"));
    return true;
  };
  auto json = Json::parse(text, look, false);
  if (json.is_discarded()) throw DataError(cat(where, ": not JSON; expected ", expected));
  return json;
}

}  // namespace tsdp
