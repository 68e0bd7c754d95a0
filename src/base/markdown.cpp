#include "markdown.h"

namespace tsdp {

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const auto c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace tsdp
