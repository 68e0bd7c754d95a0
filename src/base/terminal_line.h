// One line on stderr that rewrites itself to show how far a program is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tsdp {

/// Columns that a UTF-8 text takes, provided that every character of it is one column wide.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// At most `columns` columns of a text: longer ones end with "…".
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);

class TerminalLine {
 public:
  TerminalLine();
  /// Whether stderr is a terminal that can clear a line; if not, nothing may be shown.
  [[nodiscard]] bool is_usable() const noexcept { return usable_; }
  /// How many columns a line may take now without wrapping: one less than the terminal has; 79 if it does not say.
  [[nodiscard]] static std::size_t columns();
  /// Overwrites the line with a text of at most columns().
  void show(std::string_view text);
  /// Clears it, so that what is printed next begins where it stood.
  void clear();

 private:
  bool usable_;
  bool shown_ = false;
};

}  // namespace tsdp
