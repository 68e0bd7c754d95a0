#include "base/terminal_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace tsdp {
namespace {

constexpr const char* clear_line = "\r\x1b[2K";

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (width_of(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end)
    if (begins_character(text[end]) && ++seen == columns) break;
  return std::string(text.substr(0, end)) + "…";
}

TerminalLine::TerminalLine() {
  const char* kind = std::getenv("TERM");
  usable_ = ::isatty(STDERR_FILENO) != 0 && (kind == nullptr || std::string_view(kind) != "dumb");
}

std::size_t TerminalLine::columns() {
  winsize size{};
  // A line that fills the last column would make some terminals begin another.
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ? 79 : size.ws_col - std::size_t{1};
}

void TerminalLine::show(std::string_view text) {
  std::cerr << clear_line << text << std::flush;
  shown_ = true;
}

void TerminalLine::clear() {
  if (shown_) std::cerr << clear_line << std::flush;
  shown_ = false;
}

}  // namespace tsdp
