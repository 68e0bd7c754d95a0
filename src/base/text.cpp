#include "tsdp/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

namespace tsdp {

std::string exact(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

namespace {

std::string formatted(const char* format, int digits, double value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, digits, value);
  return buffer.data();
}

}  // namespace

std::string rounded(double value, int digits) {
  auto text = formatted("%.*g", digits, value);
  double shown = 0.0;
  if (text.find("e+") == std::string::npos || !parse_double(text, shown) || std::abs(shown) >= 1e6) return text;
  return formatted("%.*f", 0, shown);
}

namespace {
/// Rounds in decimal: nearest first, then one unit of the last digit further if that fell on the wrong side.
std::string rounded_towards(double value, int digits, bool up) {
  auto text = formatted("%.*g", digits, value);
  const auto wrong = [&](double shown) { return up ? shown < value : shown > value; };
  double shown = 0.0;
  if (!parse_double(text, shown) || !wrong(shown)) return text;
  const double last = std::pow(10.0, std::floor(std::log10(std::abs(value))) - digits + 1);
  return formatted("%.*g", digits, shown + (up ? last : -last));
}
}  // namespace

std::string rounded_up(double value, int digits) { return rounded_towards(value, digits, true); }
std::string rounded_down(double value, int digits) { return rounded_towards(value, digits, false); }

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const auto end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\r\n\f\v";
  const auto begin = text.find_first_not_of(white);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(white) - begin + 1);
}

std::string csv_field(std::string_view text) {
  if (text == trimmed(text) && text.find_first_of(",;\t\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out(1, '"');
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  out.push_back('"');
  return out;
}

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length > text.size()) return 0;
  for (std::size_t j = 1; j < length; ++j) {
    const auto byte = static_cast<unsigned char>(text[j]);
    // The second byte also rules out overlong forms, surrogates and what lies beyond U+10FFFF.
    const unsigned least = j > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned most = j > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte < least || byte > most) return 0;
  }
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string visible(std::string_view text, bool keep_lines) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto shown = [&](std::string_view character) {
    if (character.size() == 1) {
      const char c = character[0];
      return (c >= ' ' && c <= '~') || (keep_lines && (c == '\n' || c == '\t'));
    }
    // U+0080 to U+009F; U+200E and U+200F, U+2028 to U+202E, U+2066 to U+2069.
    if (character.size() == 2) return character[0] != '\xC2' || static_cast<unsigned char>(character[1]) >= 0xA0;
    const auto last = static_cast<unsigned char>(character[2]);
    if (character.starts_with("\xE2\x80")) return last != 0x8E && last != 0x8F && (last < 0xA8 || last > 0xAE);
    if (character.starts_with("\xE2\x81")) return last < 0xA6 || last > 0xA9;
    return true;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto length = utf8_length(text.substr(i));
    const auto character = text.substr(i, std::max<std::size_t>(length, 1));
    i += character.size();
    if (length > 0 && shown(character)) {
      out += character;
      continue;
    }
    for (const char c : character) {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return out;
}

std::string clock_text(double seconds) {
  if (!(seconds >= 0.0) || seconds > 1e9) return "?";
  const auto s = static_cast<long long>(std::ceil(seconds));
  std::array<char, 32> text{};
  if (s / 86400 >= 2) {
    std::snprintf(text.data(), text.size(), "%lld d %02lld h", s / 86400, s / 3600 % 24);
  } else {
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  }
  return text.data();
}

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  name = name.substr(0, 200);  // no known name is half as long, and the time grows with the length
  std::string best;
  auto least = std::numeric_limits<std::size_t>::max();
  for (const auto& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t changed = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = candidate;
    }
  }
  return best;
}

namespace {
/// Without one leading '+', which std::from_chars does not accept; a second sign is not a number.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+') text.remove_prefix(1);
  return text;
}
}  // namespace

bool parse_double(std::string_view text, double& value) {
  text = without_plus(text);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} && result.ptr == text.data() + text.size() && !text.empty();
}

bool parse_int(std::string_view text, long long& value) {
  text = without_plus(text);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} && result.ptr == text.data() + text.size() && !text.empty();
}

}  // namespace tsdp
