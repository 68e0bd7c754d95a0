#include "plot/xml.h"

namespace tsdp {

std::string xml_escaped(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      ++i;
      if (c == '&') {
        out += "&amp;";
      } else if (c == '<') {
        out += "&lt;";
      } else if (c == '>') {
        out += "&gt;";
      } else if (c == '"') {
        out += "&quot;";
      } else if (c == '\'') {
        out += "&#39;";
      } else if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
        out += replacement;
      } else {
        out += static_cast<char>(c);
      }
      continue;
    }
    const std::size_t length = c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 1;
    bool good = length > 1 && i + length <= text.size();
    unsigned value = c & (0xFFU >> (length + 1));
    for (std::size_t k = 1; good && k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      good = (next & 0xC0U) == 0x80U;
      value = value << 6U | (next & 0x3FU);
    }
    // Overlong forms, surrogates, and the two code points that XML leaves out.
    good = good &&
           value >= (length == 2   ? 0x80U
                     : length == 3 ? 0x800U
                                   : 0x10000U) &&
           value < 0x110000U && !(value >= 0xD800U && value < 0xE000U) && value != 0xFFFEU && value != 0xFFFFU;
    out += good ? text.substr(i, length) : replacement;
    i += good ? length : 1;
  }
  return out;
}

}  // namespace tsdp
