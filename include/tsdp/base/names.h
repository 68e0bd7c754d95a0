// One table of names for every enumeration that users and files refer to.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp {

/// The names of an enumeration's values. Next to the enumeration stands
///   constexpr Names<Colour, 2> names_of(Colour) { return {{{Colour::red, "red"}, {Colour::blue, "blue"}}}; }
/// and everything else (names, options' choices, reading files) follows from it.
template <class Enum, std::size_t n>
using Names = std::array<std::pair<Enum, const char*>, n>;

/// Throws Error for a value that the table does not have: nothing falls through to another one.
template <class Enum>
  requires std::is_enum_v<Enum>
[[nodiscard]] const char* name(Enum value) {
  for (const auto& [known, text] : names_of(Enum{}))
    if (known == value) return text;
  throw Error(ExitCode::failure, cat("a value without a name: ", static_cast<long long>(value)));
}

template <class Enum>
[[nodiscard]] std::vector<std::string> all_names() {
  std::vector<std::string> out;
  for (const auto& [unused, text] : names_of(Enum{})) out.emplace_back(text);
  return out;
}

/// Whether `text` names a value, which is then stored.
template <class Enum>
[[nodiscard]] bool parse_name(std::string_view text, Enum& out) {
  for (const auto& [value, known] : names_of(Enum{}))
    if (text == known) {
      out = value;
      return true;
    }
  return false;
}

/// The value that `text` names. Throws UsageError that begins with `where` and lists the known names.
template <class Enum>
[[nodiscard]] Enum named(std::string_view text, const std::string& where) {
  Enum out{};
  if (!parse_name(text, out))
    throw UsageError(cat(where, ": found '", text, "'; expected one of ", join(all_names<Enum>(), ", ")));
  return out;
}

}  // namespace tsdp
