#include "text_writer.h"

#include "text_file.h"
#include "tsdp/base/error.h"

namespace tsdp::data::detail {

TextWriter::TextWriter(const std::filesystem::path& path)
    : file_(path), gzip_(lower_case(path.extension().string()) == ".gz") {
  if (!gzip_) return;
  packed_.resize(piece_bytes);
  constexpr int gzip = 15 + 16;
  constexpr int level = 3;  // time matters more than the last tenth of size
  if (::deflateInit2(&stream_, level, Z_DEFLATED, gzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error(ExitCode::failure, "gzip compression failed: no memory for it");
}

TextWriter::~TextWriter() {
  if (gzip_) ::deflateEnd(&stream_);
}

void TextWriter::flush(bool last) {
  if (!gzip_) {
    file_.write(buffer_);
    buffer_.clear();
    return;
  }
  // zlib counts in 32 bits; the buffer never holds more than one piece and one text beyond it.
  for (std::size_t done = 0; done < buffer_.size() || last;) {
    const std::size_t count = std::min(std::size_t{1} << 30, buffer_.size() - done);
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data() + done);
    stream_.avail_in = static_cast<uInt>(count);
    done += count;
    const bool finish = last && done == buffer_.size();
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_out = static_cast<uInt>(packed_.size());
      static_cast<void>(::deflate(&stream_, finish ? Z_FINISH : Z_NO_FLUSH));
      file_.write({packed_.data(), packed_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
    if (finish) break;
  }
  buffer_.clear();
}

void TextWriter::commit() {
  flush(true);
  file_.commit();
}

}  // namespace tsdp::data::detail
