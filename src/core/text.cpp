#include "tsdp/core/text.h"

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

std::string rounded(double value, int digits) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*g", digits, value);
  return buffer.data();
}

namespace {
/// Rounds in decimal: nearest first, then one unit of the last digit further if that fell on the wrong side.
std::string rounded_towards(double value, int digits, bool up) {
  auto text = rounded(value, digits);
  const auto wrong = [&](double shown) { return up ? shown < value : shown > value; };
  double shown = 0.0;
  if (!parse_double(text, shown) || !wrong(shown)) return text;
  const double last = std::pow(10.0, std::floor(std::log10(std::abs(value))) - digits + 1);
  text = rounded(shown + (up ? last : -last), digits);
  return text;
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
  if (text == trimmed(text) && text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out(1, '"');
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  out.push_back('"');
  return out;
}

std::string clock_text(double seconds) {
  if (!(seconds >= 0.0) || seconds > 1e9) return "?";
  const auto s = static_cast<long long>(std::ceil(seconds));
  std::array<char, 32> text{};
  if (s >= 2 * 86400) {
    std::snprintf(text.data(), text.size(), "%lld d %02lld h", s / 86400, s / 3600 % 24);
  } else {
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  }
  return text.data();
}

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
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
/// Without one leading '+' (std::from_chars knows none); a second sign is not a number.
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
