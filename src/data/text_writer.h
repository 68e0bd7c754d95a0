// Text written piece by piece to a file that appears all at once, plain or gzip depending on its name.
#pragma once

#include <zlib.h>

#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tsdp/base/file.h"

namespace tsdp::data::detail {

/// Throws Error as AtomicFile does. Nothing appears under `path` until `commit` returns.
class TextWriter {
 public:
  explicit TextWriter(const std::filesystem::path& path);
  ~TextWriter();
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  TextWriter& operator<<(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= piece_bytes) flush(false);
    return *this;
  }
  TextWriter& operator<<(char c) { return *this << std::string_view(&c, 1); }
  /// The shortest text that reads back as `value`, whether it is read in single precision or, as most readers do, in
  /// double precision and then rounded; `missing` in place of NaN.
  void number(float value, std::string_view missing) {
    if (std::isnan(value)) {
      *this << missing;
      return;
    }
    // JSON readers take -0 for a whole number, and whole numbers have no such zero.
    if (value == 0 && std::signbit(value)) {
      *this << "-0.0";
      return;
    }
    // A search through all finite values found one whose shortest text lies on the other side of a double halfway
    // between two floats than the float itself.
    constexpr float halfway = 0x1.5c87fap-84F;
    std::array<char, 32> text;
    char* const end = text.data() + text.size();
    const auto result = std::abs(value) == halfway ? std::to_chars(text.data(), end, static_cast<double>(value))
                                                   : std::to_chars(text.data(), end, value);
    *this << std::string_view(text.data(), result.ptr);
  }
  void commit();

 private:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 18;
  void flush(bool last);

  AtomicFile file_;
  bool gzip_;
  z_stream stream_{};
  std::string buffer_;
  std::vector<char> packed_;
};

}  // namespace tsdp::data::detail
