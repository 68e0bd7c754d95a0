// Lines of a text file, plain or gzip, as its content tells.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tsdp::data::detail {

/// Reads a file line by line. Throws only DataError, which names the file and, once there is one, the line.
class TextFile {
 public:
  explicit TextFile(const std::filesystem::path& path);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  /// The next line without its end (LF, CRLF, or CR if the first line ends in CR alone) and without a byte order mark;
  /// valid until the next call. False at the end of the file.
  bool next(std::string_view& line);
  /// Number of the line that `next` gave last, from 1.
  [[nodiscard]] std::int64_t line() const noexcept { return line_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// Throws DataError `file:line:column: what`.
  [[noreturn]] void fail(std::int64_t line, std::int64_t column, const std::string& what) const;
  [[noreturn]] void fail(std::int64_t column, const std::string& what) const { fail(line_, column, what); }
  /// Throws DataError `file:line: what`, if a column would tell nothing.
  [[noreturn]] void fail_line(std::int64_t line, const std::string& what) const;
  /// Throws DataError `file: what`, for what concerns the file as a whole.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  /// Refuses, by name, a common kind of file that is not text in UTF-8, if the content begins like one.
  void refuse_known_kinds(std::string_view begin) const;
  void load();
  std::size_t decode(char* out, std::size_t room);
  bool fill();

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<unsigned char> input_;
  z_stream stream_{};
  bool gzip_ = false;
  bool member_ended_ = false;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t line_ = 0;
  char line_end_ = '\n';
};

/// `text` in quotes for a message: shortened, with anything that is not UTF-8 or not visible written as \xNN. Not
/// called `quoted`, since for a std::string that name finds std::quoted.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// The letters A to Z as a to z.
[[nodiscard]] std::string lower_case(std::string_view text);

/// `text` if it is UTF-8, else `text` taken as Latin-1 and turned into UTF-8.
[[nodiscard]] std::string to_utf8(std::string_view text);

}  // namespace tsdp::data::detail
