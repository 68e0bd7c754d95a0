#include "base/digest.h"

#include <gtest/gtest.h>

#include <string_view>

namespace tsdp {
namespace {

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(Digest, IsSha256) {  // FIPS 180-2, appendix B.1
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, OfAKeyIsHmac) {  // RFC 4231, cases 2 and 6
  EXPECT_EQ(hex_text(bytes_of(hmac_sha256(bytes_of("Jefe"), "what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const std::string long_key(131, '\xaa');
  EXPECT_EQ(
      hex_text(bytes_of(hmac_sha256(bytes_of(long_key), "Test Using Larger Than Block-Size Key - Hash Key First"))),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace tsdp
