// SHA-256, to tell whether something is the same as before, and whether it is by somebody who knows a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tsdp {

/// Two lower-case hexadecimal digits per byte.
[[nodiscard]] std::string hex_text(std::span<const std::uint8_t> bytes);

/// SHA-256 of everything that was added, in order.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  void add(std::span<const std::byte> bytes);
  /// 64 hexadecimal digits; ends the digest.
  [[nodiscard]] std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// SHA-256 of one text, 64 hexadecimal digits.
[[nodiscard]] std::string sha256(std::string_view text);

/// HMAC-SHA-256 (RFC 2104) of one text: 32 bytes that only those can make who know the key.
[[nodiscard]] std::string hmac_sha256(std::span<const std::uint8_t> key, std::string_view text);

}  // namespace tsdp
