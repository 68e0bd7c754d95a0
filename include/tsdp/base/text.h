// Small text helpers: concatenation, numbers that read back exactly, nearest known name.
#pragma once

#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tsdp {

/// Shortest decimal text that reads back as exactly `value`; "nan", "inf", "-inf" otherwise.
[[nodiscard]] std::string exact(double value);

/// `value` with `digits` significant digits, for people.
[[nodiscard]] std::string rounded(double value, int digits = 4);

/// The same rounded so that the number shown is never below (above) `value`: for the ends of privacy brackets.
[[nodiscard]] std::string rounded_up(double value, int digits = 4);
[[nodiscard]] std::string rounded_down(double value, int digits = 4);

namespace detail {
inline void put(std::ostringstream& out, double value) { out << exact(value); }
inline void put(std::ostringstream& out, float value) { out << exact(static_cast<double>(value)); }
inline void put(std::ostringstream& out, bool value) { out << (value ? "true" : "false"); }
template <class T>
void put(std::ostringstream& out, const T& value) {
  out << value;
}
}  // namespace detail

/// Joins the texts of all arguments; doubles are written as by `exact`.
template <class... Parts>
[[nodiscard]] std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (detail::put(out, parts), ...);
  return out.str();
}

/// Parts joined with a separator.
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);

/// `text` split at every `separator`; always at least one part.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

/// `text` without white space at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// `text` as a CSV field that reads back unchanged: in quotes, with its own quotes doubled, if commas, quotes, line
/// breaks or white space at its ends would otherwise be read as something else.
[[nodiscard]] std::string csv_field(std::string_view text);

/// Bytes of the well-formed UTF-8 character that `text` begins with, 1 to 4; 0 if it begins with none.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

/// Whether all of `text` is well-formed UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text);

/// `text` as it may be shown on a terminal: control characters (of both blocks, so that no escape sequence begins),
/// characters that change the direction of writing or break lines, and bytes that are not UTF-8 are written as `\xNN`.
/// With `keep_lines`, line feeds and tabs stay.
[[nodiscard]] std::string visible(std::string_view text, bool keep_lines = false);

/// A span of time for people: "0:03:07", or "3 d 04 h" from two days on; rounded up. "?" if negative, not a number or
/// above a thousand million seconds.
[[nodiscard]] std::string clock_text(double seconds);

/// The known name with the least edit distance to `name`; empty when `known` is empty.
[[nodiscard]] std::string nearest_name(std::string_view name, std::span<const std::string> known);

/// The whole of `text` as a double; false if anything else is in it or it is out of range.
[[nodiscard]] bool parse_double(std::string_view text, double& value);

/// The whole of `text` as a decimal integer; false if anything else is in it or it is out of range.
[[nodiscard]] bool parse_int(std::string_view text, long long& value);

}  // namespace tsdp
