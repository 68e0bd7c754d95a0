#include "text_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#ifdef TSDP_PARQUET
#include "parquet.h"
#endif
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp::data::detail {
namespace {

constexpr std::size_t input_bytes = std::size_t{1} << 16;
constexpr std::size_t buffer_bytes = std::size_t{1} << 18;
// Longer lines are not time series but, say, a compressed disk image; without a bound they would eat all memory.
constexpr std::size_t longest_line = std::size_t{1} << 30;
constexpr const char* what_is_read = "a text file, plain or gzip";
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

}  // namespace

TextFile::TextFile(const std::filesystem::path& path)
    : name_(path.string()),
      file_(::fdopen(open_to_read(path, what_is_read), "rb")),
      input_(input_bytes),
      buffer_(buffer_bytes) {
  if (!file_) fail(cat("cannot be read (", std::generic_category().message(errno), "); expected ", what_is_read));
  load();
#ifdef TSDP_PARQUET
  if (std::string_view(reinterpret_cast<const char*>(input_.data()), stream_.avail_in).starts_with("PAR1")) {
    const auto text = parquet_as_csv(path);
    buffer_.assign(text.begin(), text.end());
    end_ = buffer_.size();
    stream_.avail_in = 0;
    std::fseek(file_.get(), 0, SEEK_END);
    return;
  }
#endif
  refuse_known_kinds({reinterpret_cast<const char*>(input_.data()), stream_.avail_in});
  gzip_ = stream_.avail_in >= 2 && input_[0] == 0x1f && input_[1] == 0x8b;
  constexpr int gzip_only = 15 + 16;
  if (gzip_ && ::inflateInit2(&stream_, gzip_only) != Z_OK) fail("cannot be decompressed: no memory for it");
}

TextFile::~TextFile() {
  if (gzip_) ::inflateEnd(&stream_);
}

void TextFile::fail(std::int64_t line, std::int64_t column, const std::string& what) const {
  throw DataError(cat(name_, ":", line, ":", column, ": ", what));
}

void TextFile::fail_line(std::int64_t line, const std::string& what) const {
  throw DataError(cat(name_, ":", line, ": ", what));
}

void TextFile::fail(const std::string& what) const { throw DataError(cat(name_, ": ", what)); }

void TextFile::refuse_known_kinds(std::string_view begin) const {
  if (gzip_ && begin.starts_with("PAR1"))
    fail(
        "found a Parquet file inside a gzip file; expected it unpacked (gunzip), since Parquet compresses its own "
        "columns");
  if (begin.starts_with("PAR1") || begin.starts_with("ARROW1"))
    fail(cat("found a ", begin.front() == 'P' ? "Parquet" : "Feather", " file; expected ", what_is_read,
             ": convert it, such as with pandas: pandas.read_", begin.front() == 'P' ? "parquet" : "feather", "(\"",
             name_, "\").to_csv(\"series.csv\", index=False)"));
  if (begin.starts_with("PK\x03\x04"))
    fail(cat("found a zip archive, as workbooks of Excel are; expected ", what_is_read,
             ": unpack it, or save the sheet as CSV (UTF-8)"));
  if (begin.starts_with("\xD0\xCF\x11\xE0"))
    fail(cat("found an old workbook of Excel; expected ", what_is_read, ": save the sheet as CSV (UTF-8)"));
  if (begin.starts_with("\xFF\xFE") || begin.starts_with("\xFE\xFF"))
    fail(cat("found text in UTF-16; expected ", what_is_read, " in UTF-8: save it as CSV (UTF-8)"));
}

void TextFile::load() {
  errno = 0;
  const std::size_t count = std::fread(input_.data(), 1, input_.size(), file_.get());
  if (std::ferror(file_.get()) != 0)
    fail(cat("cannot be read (", std::generic_category().message(errno), "); expected ", what_is_read));
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<uInt>(count);
}

std::size_t TextFile::decode(char* out, std::size_t room) {
  if (stream_.avail_in == 0) load();
  if (!gzip_) {
    const std::size_t count = std::min<std::size_t>(room, stream_.avail_in);
    std::memcpy(out, stream_.next_in, count);
    stream_.next_in += count;
    stream_.avail_in -= static_cast<uInt>(count);
    return count;
  }
  const auto wanted = static_cast<uInt>(std::min(room, longest_line));
  stream_.next_out = reinterpret_cast<Bytef*>(out);
  stream_.avail_out = wanted;
  while (stream_.avail_out == wanted) {
    if (stream_.avail_in == 0) load();
    if (member_ended_) {
      if (stream_.avail_in == 0) return 0;
      ::inflateReset(&stream_);  // gzip files may be joined end to end
      member_ended_ = false;
    }
    if (stream_.avail_in == 0)
      fail(cat("found gzip data that break off after line ", line_, "; expected a complete gzip file"));
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      member_ended_ = true;
    } else if (status != Z_OK) {
      fail(cat("found damaged gzip data after line ", line_, " (",
               stream_.msg != nullptr ? stream_.msg : "no reason given", "); expected a complete gzip file"));
    }
  }
  return wanted - stream_.avail_out;
}

bool TextFile::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) {
    if (end_ >= longest_line)
      fail(line_ + 1, 1, cat("found a line of more than ", longest_line, " bytes; expected a text file"));
    buffer_.resize(2 * buffer_.size());
  }
  const std::size_t count = decode(buffer_.data() + end_, buffer_.size() - end_);
  end_ += count;
  return count > 0;
}

bool TextFile::next(std::string_view& line) {
  std::size_t searched = 0;
  if (line_ == 0) {
    // Old Macs end lines in CR alone: the end of the first line and what follows it show that.
    std::size_t end = begin_;
    const auto at_end = [&] { return buffer_[end] == '\r' || buffer_[end] == '\n'; };
    do {
      while (end < end_ && !at_end()) ++end;
    } while (end + 1 >= end_ && fill());  // nothing was returned yet, so places stay
    line_end_ =
        end + 1 < end_ && buffer_[end] == '\r' && buffer_[end + 1] != '\r' && buffer_[end + 1] != '\n' ? '\r' : '\n';
  }
  while (true) {
    const char* const begin = buffer_.data() + begin_;
    const auto* const stop =
        static_cast<const char*>(std::memchr(begin + searched, line_end_, end_ - begin_ - searched));
    if (stop != nullptr) {
      line = {begin, stop};
      begin_ += line.size() + 1;
      break;
    }
    searched = end_ - begin_;
    if (!fill()) {
      if (begin_ == end_) return false;
      line = {buffer_.data() + begin_, end_ - begin_};
      begin_ = end_;
      break;
    }
  }
  ++line_;
  if (line_ == 1 && gzip_) refuse_known_kinds(line);
  if (line_ == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.ends_with('\n')) line.remove_suffix(1);  // of the last line, after lines that end in CR
  return true;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 40;  // characters
  std::size_t shown = 0;
  for (std::size_t count = 0; count < most && shown < text.size(); ++count)
    shown += std::max<std::size_t>(1, utf8_length(text.substr(shown)));
  return cat("'", visible(text.substr(0, shown)), shown < text.size() ? "...'" : "'");
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

std::string to_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out += c;
    } else {
      out += static_cast<char>(0xC0 | (byte >> 6));
      out += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return out;
}

}  // namespace tsdp::data::detail
