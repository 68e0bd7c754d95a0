#include "tsdp/core/random.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>
#include <memory>

#include "box_muller.h"
#include "tsdp/core/digest.h"
#include "tsdp/core/error.h"

namespace tsdp {
namespace {

void put_big_endian(std::uint64_t value, std::uint8_t* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(value >> (56 - 8 * i));
}

[[noreturn]] void broken(const char* what) {
  throw Error(ExitCode::failure, std::string("the cryptographic library failed: ") + what);
}

/// AES-256-CTR from one counter block on.
class KeyStream {
 public:
  KeyStream(const std::array<std::uint8_t, 32>& key, std::uint64_t step, std::uint64_t block)
      : context_(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free) {
    std::array<std::uint8_t, 16> counter{};
    put_big_endian(step, counter.data());
    put_big_endian(block, counter.data() + 8);
    if (!context_ || EVP_EncryptInit_ex(context_.get(), EVP_aes_256_ctr(), nullptr, key.data(), counter.data()) != 1)
      broken("AES-256-CTR");
  }

  /// The next out.size() · 8 bytes. Counter mode adds the key stream to its input: over zeros it is the key stream.
  void fill(std::span<std::uint64_t> out) {
    std::fill(out.begin(), out.end(), std::uint64_t{0});
    auto* bytes = reinterpret_cast<unsigned char*>(out.data());
    std::size_t left = out.size() * sizeof(std::uint64_t);
    while (left > 0) {  // piecewise, because the library counts in int
      const int piece = static_cast<int>(std::min<std::size_t>(left, std::size_t{1} << 30));
      int wrote = 0;
      if (EVP_EncryptUpdate(context_.get(), bytes, &wrote, bytes, piece) != 1 || wrote != piece) broken("AES-256-CTR");
      bytes += piece;
      left -= static_cast<std::size_t>(piece);
    }
  }

 private:
  std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context_;
};

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

SecretKey SecretKey::from_hex(std::string_view hex) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw DataError("the key of the randomness is damaged; 64 hexadecimal digits are expected");
  };
  if (hex.size() != 64) throw DataError("the key of the randomness is damaged; 64 hexadecimal digits are expected");
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
  if (!out.empty()) KeyStream(purpose_key_, step_, first_block).fill(out);
}

std::uint64_t RandomStream::next() {
  if (used_ == filled_) {
    // Many streams give a few words only. To whoever takes more, setting up the cipher costs as much as the whole
    // buffer.
    constexpr std::size_t first = 64;
    filled_ = next_block_ == 0 ? first : buffer_.size();
    blocks(next_block_, std::span(buffer_).first(filled_));
    next_block_ += filled_ / 2;
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

double RandomStream::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

void RandomStream::normals(std::uint64_t first, std::span<double> out) const {
  if (first % 2 != 0) throw Error(ExitCode::failure, "normals start at an even place of the stream");
  if (out.empty()) return;
  constexpr std::size_t piece = 1024;  // words and normals of a piece stay in the first-level cache
  std::array<std::uint64_t, piece> words;
  KeyStream stream(purpose_key_, step_, first / 2);
  for (std::size_t done = 0; done < out.size(); done += piece) {
    const std::size_t count = std::min(piece, out.size() - done);
    stream.fill(std::span(words).first(count + count % 2));
    detail::box_muller(words.data(), out.data() + done, count / 2);
    if (count % 2 != 0) {
      std::array<double, 2> last;
      detail::box_muller(words.data() + count - 1, last.data(), 1);
      out.back() = last[0];
    }
  }
}

}  // namespace tsdp
