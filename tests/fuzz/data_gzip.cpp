// Compressed files: what is packed reads as what is plain, in one member or several; and damaged ones are refused.
#include <zlib.h>

#include <array>
#include <vector>

#include "fuzz.h"

namespace {

using namespace tsdp;

/// gzip's form of `text`, one member.
std::string packed(std::string_view text) {
  z_stream stream{};
  fuzz::expect(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "memory to pack with");
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string copy(text);
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  fuzz::expect(deflate(&stream, Z_FINISH) == Z_STREAM_END, "packing");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

bool is_packed(std::string_view text) { return text.starts_with("\x1f\x8b"); }

}  // namespace

// A packed input is read as it stands. A plain one is packed in two members, which meet where its size says.
TSDP_FUZZ(input) {
  const data::ReadOptions options{data::Format::lstnet, {}, data::Moment{0}};
  data::Dataset plain;
  data::Dataset unpacked;
  const auto file = fuzz::put("input", input);
  const bool reads = fuzz::accepted([&] { plain = data::read_dataset(file, options); }, {file.string() + ":"});
  if (is_packed(input)) return;
  const auto half = input.substr(0, input.size() / 3);
  const auto again = fuzz::put("input.gz", packed(half) + packed(input.substr(half.size())));
  const bool also = fuzz::accepted([&] { unpacked = data::read_dataset(again, options); }, {again.string() + ":"});
  fuzz::expect(reads == also, "packed and plain are read alike");
  if (reads) fuzz::expect_equal(unpacked, plain, true);
}
