#include "tsdp/random/random.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "base/digest.h"
#include "box_muller.h"
#include "tsdp/base/error.h"

namespace tsdp {
namespace {

void put_little_endian(std::uint64_t value, std::uint8_t* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

[[noreturn]] void broken(const char* what) {
  throw Error(ExitCode::failure, std::string("the cryptographic library failed: ") + what);
}

/// ChaCha20's key stream from one block on.
class KeyStream {
 public:
  KeyStream(const std::array<std::uint8_t, 32>& key, std::uint64_t step, std::uint64_t block)
      : context_(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free) {
    std::array<std::uint8_t, 16> start{};  // the library's initialisation vector: counter, then nonce
    put_little_endian(block, start.data());
    put_little_endian(step, start.data() + 8);
    if (!context_ || EVP_EncryptInit_ex(context_.get(), EVP_chacha20(), nullptr, key.data(), start.data()) != 1)
      broken("ChaCha20");
  }

  /// The next bytes of the stream. The cipher adds it to its input: from zeros comes the stream itself.
  void fill(std::span<std::byte> out) {
    static constexpr std::array<unsigned char, 6144> zeros{};
    while (!out.empty()) {
      const auto piece = std::min(out.size(), zeros.size());
      int wrote = 0;
      if (EVP_EncryptUpdate(context_.get(), reinterpret_cast<unsigned char*>(out.data()), &wrote, zeros.data(),
                            static_cast<int>(piece)) != 1 ||
          wrote != static_cast<int>(piece))
        broken("ChaCha20");
      out = out.subspan(piece);
    }
  }

 private:
  std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context_;
};

constexpr std::size_t words_a_block = 8;

}  // namespace

SecretKey SecretKey::from_system() {
  SecretKey key;
  // Requests of up to 256 bytes are never cut short once the system's pool is ready, and the call waits for that.
  if (::getrandom(key.bytes_.data(), key.bytes_.size(), 0) != static_cast<ssize_t>(key.bytes_.size()))
    throw Error(ExitCode::failure, "the operating system gave no random bytes (getrandom failed)");
  return key;
}

SecretKey SecretKey::from_seed(std::uint64_t seed) {
  const std::string text = "tsdp reproducible run, seed " + std::to_string(seed);
  SecretKey key;
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), key.bytes_.data());
  return key;
}

SecretKey SecretKey::from_stream(const SecretKey& key, std::string_view purpose, std::uint64_t step) {
  RandomStream stream(key, purpose, step);
  SecretKey out;
  for (std::size_t i = 0; i < out.bytes_.size(); i += 8) {
    const auto word = stream.next();
    for (std::size_t k = 0; k < 8; ++k) out.bytes_[i + k] = static_cast<std::uint8_t>(word >> (8 * k));
  }
  return out;
}

SecretKey SecretKey::from_hex(std::string_view hex) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw DataError("the key of the randomness is damaged; expected 64 hexadecimal digits");
  };
  if (hex.size() != 64) throw DataError("the key of the randomness is damaged; expected 64 hexadecimal digits");
  SecretKey key;
  for (std::size_t i = 0; i < 32; ++i)
    key.bytes_[i] = static_cast<std::uint8_t>(16 * digit(hex[2 * i]) + digit(hex[2 * i + 1]));
  return key;
}

std::string SecretKey::hex() const { return hex_text(bytes_); }

RandomStream::RandomStream(const SecretKey& key, std::string_view purpose, std::uint64_t step) : step_(step) {
  unsigned int length = 0;
  if (::HMAC(EVP_sha256(), key.bytes().data(), static_cast<int>(key.bytes().size()),
             reinterpret_cast<const unsigned char*>(purpose.data()), purpose.size(), purpose_key_.data(),
             &length) == nullptr ||
      length != purpose_key_.size())
    broken("HMAC-SHA256");
}

void RandomStream::blocks(std::uint64_t first_block, std::span<std::uint64_t> out) const {
  if (!out.empty()) KeyStream(purpose_key_, step_, first_block).fill(std::as_writable_bytes(out));
}

std::uint64_t RandomStream::next() {
  if (used_ == filled_) {
    // Many streams give only a few words. For those that give more, setting up the cipher costs as much as the whole
    // buffer.
    constexpr std::size_t first = 64;
    filled_ = next_block_ == 0 ? first : buffer_.size();
    blocks(next_block_, std::span(buffer_).first(filled_));
    next_block_ += filled_ / words_a_block;
    used_ = 0;
  }
  return buffer_[used_++];
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  // Lemire's method: the high word of a 128-bit product, rejecting the low words that would be counted once too often.
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>(next()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double noise_grid_offset(double deviation) {
  return deviation > 0.0 && std::isfinite(deviation) ? std::ldexp(1.5, std::ilogb(deviation) + 52 - 24) : 0.0;
}

double RandomStream::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

void RandomStream::normals(std::uint64_t first, std::span<double> out) const {
  normals(first, out.size(), [&](std::uint64_t place, std::span<double> piece) {
    std::copy(piece.begin(), piece.end(), out.begin() + static_cast<std::ptrdiff_t>(place - first));
  });
}

void RandomStream::normals(std::uint64_t first, std::uint64_t count,
                           const std::function<void(std::uint64_t place, std::span<double> piece)>& take) const {
  constexpr std::uint64_t normals_a_block = 2 * detail::pairs_a_block;
  constexpr std::uint64_t most_normals = std::uint64_t{1} << 63;
  // Beyond the blocks of all normals: a word for each pair.
  const auto further_bits = [this](std::uint64_t of_unit, std::size_t pair) {
    constexpr std::size_t blocks_a_unit = detail::pairs_a_block / words_a_block;
    std::array<std::uint64_t, words_a_block> words;
    blocks(most_normals + blocks_a_unit * of_unit + pair / words_a_block, words);
    return words[pair % words_a_block];
  };
  static_assert(sizeof(detail::UniformBlock) == 3 * words_a_block * sizeof(std::uint64_t));
  std::array<detail::UniformBlock, 32> uniforms;
  std::array<double, uniforms.size() * normals_a_block> piece;
  if (count == 0) return;
  if (first > most_normals || count > most_normals - first) throw Error(ExitCode::failure, "a stream has 2^63 normals");
  auto unit = first / normals_a_block;
  KeyStream stream(purpose_key_, step_, 3 * unit);
  auto skipped = first % normals_a_block;  // of the first block
  for (const auto end = first + count; first < end;) {
    const auto taken = std::min(piece.size() - skipped, end - first);
    const auto units = (skipped + taken + normals_a_block - 1) / normals_a_block;
    const auto drawn = std::span(uniforms).first(units);
    stream.fill(std::as_writable_bytes(drawn));
    const bool any_in_tail = detail::box_muller(drawn, piece.data());
    for (std::size_t b = 0; any_in_tail && b < units; ++b)
      for (std::size_t j = 0; j < detail::pairs_a_block; ++j)
        if (detail::is_in_tail(drawn[b].words[j]))
          detail::refine(drawn[b], j, further_bits(unit + b, j), piece.data() + b * normals_a_block);
    unit += units;
    take(first, std::span(piece).subspan(skipped, taken));
    first += taken;
    skipped = 0;
  }
}

}  // namespace tsdp
