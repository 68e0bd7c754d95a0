#include "base/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "tsdp/base/error.h"

namespace tsdp {

std::string hex_text(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const auto byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

struct Digest::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Digest::Digest() : state_(std::make_unique<State>()) {
  if (!state_->context || EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) != 1)
    throw Error(ExitCode::failure, "the cryptographic library failed: SHA-256");
}
Digest::~Digest() = default;

void Digest::add(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) != 1)
    throw Error(ExitCode::failure, "the cryptographic library failed: SHA-256");
}

std::string Digest::hex() {
  std::array<unsigned char, 32> out{};
  if (EVP_DigestFinal_ex(state_->context.get(), out.data(), nullptr) != 1)
    throw Error(ExitCode::failure, "the cryptographic library failed: SHA-256");
  return hex_text(out);
}

std::string sha256(std::string_view text) {
  Digest digest;
  digest.add(std::as_bytes(std::span(text)));
  return digest.hex();
}

std::string hmac_sha256(std::span<const std::uint8_t> key, std::string_view text) {
  std::array<unsigned char, 32> out{};
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), out.data(), nullptr) == nullptr)
    throw Error(ExitCode::failure, "the cryptographic library failed: HMAC");
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

}  // namespace tsdp
