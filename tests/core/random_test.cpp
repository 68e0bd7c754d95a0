// Random streams: what they are made of, that any part of them can be drawn again, and that they are distributed as
// they say. Keys are fixed, so the statistical tests always give the same answer; a right implementation would fail
// each of them for fewer than one key in a million.
#include "tsdp/core/random.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "tsdp/core/error.h"

namespace tsdp {
namespace {

std::vector<std::uint64_t> words_of(const RandomStream& stream, std::uint64_t first_block, std::size_t blocks) {
  std::vector<std::uint64_t> out(2 * blocks);
  stream.blocks(first_block, out);
  return out;
}

/// Upper quantile of the chi-square distribution: by Wilson and Hilferty's cube root, at the normal deviate 5.2 (1e-7),
/// which leaves room for the approximation.
double chi_square_limit(double degrees) {
  const double c = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1.0 - c + 5.2 * std::sqrt(c), 3.0);
}

double chi_square(const std::vector<std::uint64_t>& counts) {
  double total = 0.0;
  for (const auto count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0.0;
  for (const auto count : counts) sum += std::pow(static_cast<double>(count) - expected, 2.0) / expected;
  return sum;
}

/// √n times the largest distance between the empirical distribution and `distribution`. Above 2.7 with probability
/// below 2 exp(−2 · 2.7²) = 9.3e-7.
constexpr double kolmogorov_limit = 2.7;
double kolmogorov(std::vector<double> values, const std::function<double(double)>& distribution) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double at = distribution(values[i]);
    largest = std::max({largest, at - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - at});
  }
  return largest * std::sqrt(n);
}

double normal_distribution(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

std::vector<double> normals_of(const RandomStream& stream, std::uint64_t first, std::size_t count) {
  std::vector<double> out(count);
  stream.normals(first, out);
  return out;
}

TEST(SecretKey, HexRoundTrip) {
  const auto key = SecretKey::from_seed(7);
  const auto hex = key.hex();
  EXPECT_EQ(hex.size(), 64U);
  EXPECT_EQ(hex.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(SecretKey::from_hex(hex), key);
  const std::string pattern = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff";
  const auto read = SecretKey::from_hex(pattern);
  EXPECT_EQ(read.hex(), pattern);
  EXPECT_EQ(read.bytes()[1], 1);
  EXPECT_EQ(read.bytes()[31], 255);
}

TEST(SecretKey, RefusesDamagedHexWithoutShowingIt) {
  const auto hex = SecretKey::from_seed(7).hex();
  for (const auto& bad : {std::string(), hex.substr(1), hex + "0", "g" + hex.substr(1), " " + hex.substr(1),
                          std::string(63, '0') + '\0'}) {
    try {
      static_cast<void>(SecretKey::from_hex(bad));
      ADD_FAILURE() << bad << " was accepted";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("64 hexadecimal digits"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find(hex.substr(1, 20)), std::string::npos) << error.what();
    }
  }
}

TEST(SecretKey, OfASeedIsFixedAndOfTheSystemIsNot) {
  EXPECT_EQ(SecretKey::from_seed(1), SecretKey::from_seed(1));
  EXPECT_NE(SecretKey::from_seed(1), SecretKey::from_seed(2));
  std::set<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.insert(SecretKey::from_system().hex());
  EXPECT_EQ(keys.size(), 20U);
}

TEST(RandomStream, SameKeyPurposeAndStepGiveTheSameBits) {
  const auto key = SecretKey::from_seed(1);
  EXPECT_EQ(words_of(RandomStream(key, "noise", 5), 0, 100), words_of(RandomStream(key, "noise", 5), 0, 100));
}

TEST(RandomStream, AnotherKeyPurposeOrStepGivesOtherBits) {
  const auto key = SecretKey::from_seed(1);
  std::set<std::uint64_t> seen;
  std::size_t drawn = 0;
  const auto add = [&](const RandomStream& stream) {
    for (const auto word : words_of(stream, 0, 50)) seen.insert(word);
    drawn += 100;
  };
  add({key, "noise", 5});
  add({key, "noise", 6});
  add({key, "noise", 5ULL << 32});
  add({key, "noise", ~0ULL});
  add({key, "sample", 5});
  add({key, "", 5});
  add({key, std::string_view("noise\0", 6), 5});
  add({SecretKey::from_seed(2), "noise", 5});
  EXPECT_EQ(seen.size(), drawn);  // 64-bit words meet by chance with probability 2e-14
}

// The construction, made a second time from its parts: the counter blocks are encrypted one by one.
TEST(RandomStream, IsAes256OfStepAndBlockUnderTheKeyOfThePurpose) {
  const auto key = SecretKey::from_seed(123);
  const std::string purpose = "noise";
  std::array<unsigned char, 32> purpose_key{};
  unsigned int length = 0;
  ASSERT_NE(HMAC(EVP_sha256(), key.bytes().data(), 32, reinterpret_cast<const unsigned char*>(purpose.data()),
                 purpose.size(), purpose_key.data(), &length),
            nullptr);
  ASSERT_EQ(length, 32U);
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> cipher(EVP_CIPHER_CTX_new(),
                                                                               &EVP_CIPHER_CTX_free);
  ASSERT_EQ(EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_ecb(), nullptr, purpose_key.data(), nullptr), 1);
  EVP_CIPHER_CTX_set_padding(cipher.get(), 0);
  for (const std::uint64_t step : {0ULL, 3ULL, 0x0123456789abcdefULL})
    for (const std::uint64_t first : {0ULL, 254ULL, 0xfffffffeULL, 0x00ffffffffffffffULL}) {
      const auto found = words_of(RandomStream(key, purpose, step), first, 4);
      for (std::uint64_t block = 0; block < 4; ++block) {
        std::array<unsigned char, 16> counter{};
        for (std::size_t i = 0; i < 8; ++i) {
          counter[i] = static_cast<unsigned char>(step >> (56 - 8 * i));
          counter[8 + i] = static_cast<unsigned char>((first + block) >> (56 - 8 * i));
        }
        std::array<unsigned char, 32> out{};
        int wrote = 0;
        ASSERT_EQ(EVP_EncryptUpdate(cipher.get(), out.data(), &wrote, counter.data(), 16), 1);
        ASSERT_EQ(wrote, 16);
        EXPECT_EQ(std::memcmp(out.data(), found.data() + 2 * block, 16), 0)
            << "step " << step << ", block " << first + block;
      }
    }
}

// Computed with Python's hmac and `openssl enc -aes-256-ctr`. Checkpoints of earlier versions rely on these bits.
TEST(RandomStream, KnownAnswer) {
  const std::vector<std::uint64_t> expected = {0x0df39210c8fbe443, 0x0aa4077c15fd561d, 0xfc9b0524d8b9f48a,
                                               0x620765cfdb7b12c0};
  EXPECT_EQ(words_of(RandomStream(SecretKey::from_seed(1), "sample", 3), 5, 2), expected);
}

TEST(RandomStream, BlocksAnywhereEqualTheSequence) {
  RandomStream stream(SecretKey::from_seed(1), "sample", 9);
  std::vector<std::uint64_t> sequence(3000);  // over several refills of the buffer behind next()
  for (auto& word : sequence) word = stream.next();
  for (const std::size_t first : {0U, 1U, 31U, 32U, 33U, 250U, 500U, 1000U})
    for (const std::size_t blocks : {0U, 1U, 2U, 32U, 500U}) {
      const auto found = words_of(stream, first, blocks);
      EXPECT_TRUE(std::equal(found.begin(), found.end(), sequence.begin() + static_cast<std::ptrdiff_t>(2 * first)))
          << blocks << " blocks from " << first;
    }
  // Random access has not moved the sequence.
  EXPECT_EQ(stream.next(), words_of(stream, 1500, 1)[0]);
}

TEST(RandomStream, BitsAreFair) {
  const auto words = words_of(RandomStream(SecretKey::from_seed(11), "sample", 0), 0, 20000);
  for (int bit = 0; bit < 64; ++bit) {
    double ones = 0.0;
    for (const auto word : words) ones += static_cast<double>(word >> bit & 1U);
    // 64 looks at a normal deviate: 64 · 2 · Φ(−5.8) = 4e-7.
    EXPECT_LT(std::abs(ones - 20000.0), 5.8 * std::sqrt(40000.0 / 4.0)) << "bit " << bit;
  }
}

TEST(RandomStream, BelowIsUniformOnSmallBounds) {
  for (const std::uint64_t bound : {2ULL, 3ULL, 5ULL, 6ULL, 7ULL, 10ULL, 16ULL, 100ULL}) {
    RandomStream stream(SecretKey::from_seed(2), "sample", bound);
    std::vector<std::uint64_t> counts(bound);
    for (int i = 0; i < 50000; ++i) {
      const auto value = stream.below(bound);
      ASSERT_LT(value, bound);
      ++counts[value];
    }
    EXPECT_LT(chi_square(counts), chi_square_limit(static_cast<double>(bound - 1))) << "bound " << bound;
  }
}

// At 3 · 2^62 the remainder is one third of the range: without rejection, or by a remainder, some values would come
// twice as often as others.
TEST(RandomStream, BelowIsUniformOnLargeBounds) {
  constexpr std::uint64_t bound = 3ULL << 62;
  RandomStream stream(SecretKey::from_seed(3), "sample", 0);
  std::vector<std::uint64_t> thirds(3);
  std::vector<std::uint64_t> residues(3);
  for (int i = 0; i < 30000; ++i) {
    const auto value = stream.below(bound);
    ASSERT_LT(value, bound);
    ++thirds[value >> 62];
    ++residues[value % 3];
  }
  EXPECT_LT(chi_square(thirds), chi_square_limit(2));
  EXPECT_LT(chi_square(residues), chi_square_limit(2));
}

TEST(RandomStream, BelowStaysWithinExtremeBounds) {
  RandomStream stream(SecretKey::from_seed(4), "sample", 0);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(stream.below(1), 0U);
    for (const std::uint64_t bound : {(1ULL << 63) + 1, ~0ULL, 1ULL << 63}) EXPECT_LT(stream.below(bound), bound);
  }
}

TEST(RandomStream, UniformIsUniformOnItsGrid) {
  RandomStream stream(SecretKey::from_seed(5), "sample", 0);
  std::vector<double> values(100000);
  for (auto& value : values) {
    value = stream.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ASSERT_EQ(value * 0x1p53, std::floor(value * 0x1p53));
  }
  EXPECT_LT(kolmogorov(values, [](double x) { return x; }), kolmogorov_limit);
}

TEST(Normals, FromAnyEvenStartEqualTheWholeSequence) {
  const RandomStream stream(SecretKey::from_seed(6), "noise", 4);
  const auto whole = normals_of(stream, 0, 5000);
  for (const std::size_t first : {0U, 2U, 1022U, 1024U, 1026U, 3000U})
    for (const std::size_t count : {0U, 1U, 2U, 3U, 7U, 8U, 1023U, 1024U, 1025U, 2000U}) {
      const auto part = normals_of(stream, first, count);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)))
          << count << " from " << first;
    }
}

TEST(Normals, StartAtAnEvenPlaceOnly) {
  const RandomStream stream(SecretKey::from_seed(6), "noise", 4);
  std::array<double, 2> out{};
  EXPECT_THROW(stream.normals(1, out), Error);
}

TEST(Normals, AreBoxMullerOfTheirBlock) {
  const RandomStream stream(SecretKey::from_seed(8), "noise", 2);
  constexpr std::size_t pairs = 5000;
  const auto words = words_of(stream, 0, pairs);
  const auto values = normals_of(stream, 0, 2 * pairs);
  for (std::size_t j = 0; j < pairs; ++j) {
    const long double u = 1.0L - (static_cast<long double>(words[2 * j] >> 12) + 0.5L) * 0x1p-52L;
    // An angle in [−π/4, π/4) from the first 52 bits, one of four quarters of the circle from the last two.
    const long double quarter_pi = std::numbers::pi_v<long double> / 4.0L;
    const long double x = quarter_pi * (static_cast<long double>(words[2 * j + 1] >> 12) * 0x1p-51L - 1.0L);
    const auto last = words[2 * j + 1] & 3;
    const long double angle = last == 0   ? x
                              : last == 1 ? 4.0L * quarter_pi - x
                              : last == 2 ? 2.0L * quarter_pi - x
                                          : 2.0L * quarter_pi + x;
    const long double radius = std::sqrt(-2.0L * std::log(u));
    // Near the axes one of the two is small by cancellation; what counts is its error beside the radius.
    const double turned = last == 3 ? -1.0 : 1.0;  // (s, −c) is the angle x − π/2, that of (−s, c) turned by π
    EXPECT_NEAR(values[2 * j], turned * static_cast<double>(radius * std::cos(angle)), 1e-15 * static_cast<double>(radius)) << j;
    EXPECT_NEAR(values[2 * j + 1], turned * static_cast<double>(radius * std::sin(angle)), 1e-15 * static_cast<double>(radius))
        << j;
  }
}

// Every processor and every build must agree, or replayed steps would be new releases.
TEST(Normals, HaveTheSameBitsEverywhere) {
  const auto values = normals_of(RandomStream(SecretKey::from_seed(9), "noise", 0), 0, 100000);
  std::array<unsigned char, 32> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(values.data()), values.size() * sizeof(double), digest.data());
  std::string hex;
  for (const auto byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  EXPECT_EQ(hex, "0581614bf649e6f66766e0361a6551dbba8ddb30d214832f501cb1dd7e19b9ca");
}

TEST(Normals, AreStandardNormal) {
  constexpr std::size_t count = 200000;
  const auto values = normals_of(RandomStream(SecretKey::from_seed(10), "noise", 0), 0, count);
  EXPECT_LT(kolmogorov(values, normal_distribution), kolmogorov_limit);
  const double n = count;
  std::array<double, 4> moments{};
  double largest = 0.0;
  for (const double z : values) {
    double power = 1.0;
    for (auto& moment : moments) moment += (power *= z) / n;
    largest = std::max(largest, std::abs(z));
  }
  // Standard deviations of the means of z, z², z³, z⁴: 1, √2, √15, √96 by √n. Each limit is at 5.2 of them (2e-7).
  EXPECT_LT(std::abs(moments[0]), 5.2 / std::sqrt(n));
  EXPECT_LT(std::abs(moments[1] - 1.0), 5.2 * std::sqrt(2.0 / n));
  EXPECT_LT(std::abs(moments[2]), 5.2 * std::sqrt(15.0 / n));
  EXPECT_LT(std::abs(moments[3] - 3.0), 5.2 * std::sqrt(96.0 / n));
  EXPECT_LE(largest, 8.5);
}

TEST(Normals, AreIndependentOfTheirNeighbours) {
  constexpr std::size_t count = 200000;
  const auto values = normals_of(RandomStream(SecretKey::from_seed(12), "noise", 0), 0, count);
  for (const std::size_t lag : {1U, 2U, 3U, 4U, 8U, 1024U}) {
    double sum = 0.0;
    for (std::size_t i = lag; i < count; ++i) sum += values[i] * values[i - lag];
    EXPECT_LT(std::abs(sum), 5.4 * std::sqrt(static_cast<double>(count - lag))) << "lag " << lag;  // 6 · 7e-8
  }
  // The two of one block: their squared radius is exponential, their angle uniform.
  std::vector<double> radii;
  std::vector<double> angles;
  for (std::size_t i = 0; i < count; i += 2) {
    radii.push_back(values[i] * values[i] + values[i + 1] * values[i + 1]);
    angles.push_back(std::atan2(values[i + 1], values[i]));
  }
  EXPECT_LT(kolmogorov(radii, [](double x) { return -std::expm1(-0.5 * x); }), kolmogorov_limit);
  EXPECT_LT(kolmogorov(angles, [](double x) { return 0.5 + 0.5 * x / std::numbers::pi; }), kolmogorov_limit);
}

}  // namespace
}  // namespace tsdp
