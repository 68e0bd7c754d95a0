// Fields of a file that a person may have edited.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/base/error.h"
#include "tsdp/base/json.h"
#include "tsdp/base/names.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/terms/terms.h"

namespace tsdp::mechanism {

/// Fields of a JSON object, read with their types and ranges. `expected` says what file the user should have given.
class Fields {
 public:
  Fields(const nlohmann::ordered_json& object, std::string where, std::string expected)
      : object_(object), where_(std::move(where)), expected_(std::move(expected)) {
    if (!object_.is_object()) throw DataError(cat(where_, ": found no fields; expected ", expected_));
  }

  [[nodiscard]] Fields section(const char* key) const { return {at(key), cat(where_, ": ", key), expected_}; }
  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }
  [[nodiscard]] const nlohmann::ordered_json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw DataError(cat(where_, ": no field '", key, "'; expected ", expected_));
    return *found;
  }
  [[nodiscard]] bool flag(const char* key) const {
    if (!at(key).is_boolean()) refuse(key, "true or false");
    return at(key).get<bool>();
  }
  [[nodiscard]] std::string text(const char* key) const {
    if (!at(key).is_string()) refuse(key, "a text");
    return at(key).get<std::string>();
  }
  [[nodiscard]] std::vector<std::string> texts(const char* key) const {
    const auto& list = at(key);
    std::vector<std::string> out;
    for (const auto& item : list) {
      if (!list.is_array() || !item.is_string()) refuse(key, "a list of texts");
      out.push_back(item.get<std::string>());
    }
    return out;
  }
  [[nodiscard]] std::uint64_t count(const char* key, std::uint64_t least, std::uint64_t most) const {
    const auto& value = at(key);
    const bool is_count = value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
    if (!is_count || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > most)
      refuse(key, cat("an integer from ", least, " to ", most));
    return value.get<std::uint64_t>();
  }
  [[nodiscard]] std::int64_t length(const char* key) const {
    return static_cast<std::int64_t>(count(key, 1, static_cast<std::uint64_t>(privacy::largest_count)));
  }
  [[nodiscard]] double number(const char* key, double least, double most) const {
    const auto& value = at(key);
    const double found = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (!(found >= least) || !(found <= most)) refuse(key, cat("a number from ", least, " to ", most));
    return found;
  }
  [[nodiscard]] std::string sha256(const char* key) const {
    auto out = text(key);
    if (out.size() != 64 || out.find_first_not_of("0123456789abcdef") != std::string::npos)
      refuse(key, "64 hexadecimal digits");
    return out;
  }
  template <class Enum>
  [[nodiscard]] Enum one_of(const char* key) const {
    Enum out{};
    if (!parse_name(text(key), out)) refuse(key, cat("one of ", join(all_names<Enum>(), ", ")));
    return out;
  }

 private:
  [[noreturn]] void refuse(const char* key, const std::string& expected) const {
    auto found = json_text(at(key));
    if (found.size() > 60) found = cat(found.substr(0, 60), "…");
    throw DataError(cat(where_, ": ", key, ": found ", found, "; expected ", expected));
  }

  const nlohmann::ordered_json& object_;
  std::string where_, expected_;
};

}  // namespace tsdp::mechanism
