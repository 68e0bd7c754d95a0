// Random streams: what they are made of, that any part of them can be drawn again, and that they are distributed as
// they say. Keys are fixed, so the statistical tests always give the same answer; a right implementation would fail
// each check in them for fewer than one key in a million.
#include "tsdp/random/random.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

std::vector<std::uint64_t> words_of(const RandomStream& stream, std::uint64_t first_block, std::size_t blocks) {
  std::vector<std::uint64_t> out(8 * blocks);
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
  for (const auto& bad : {std::string(), hex.substr(1), cat(hex, "0"), cat("g", hex.substr(1)), cat(" ", hex.substr(1)),
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
    for (const auto word : words_of(stream, 0, 13)) seen.insert(word);
    drawn += 104;
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

/// The block function of RFC 8439 (section 2.3), with Bernstein's split of the last four words: a 64-bit counter and a
/// 64-bit nonce.
std::array<std::uint32_t, 16> chacha20_block(const std::array<unsigned char, 32>& key, std::uint64_t counter,
                                             std::uint64_t nonce) {
  std::array<std::uint32_t, 16> start = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t byte = 0; byte < 4; ++byte) start[4 + i] |= std::uint32_t{key[4 * i + byte]} << (8 * byte);
  start[12] = static_cast<std::uint32_t>(counter);
  start[13] = static_cast<std::uint32_t>(counter >> 32);
  start[14] = static_cast<std::uint32_t>(nonce);
  start[15] = static_cast<std::uint32_t>(nonce >> 32);
  auto x = start;
  const auto quarter = [&x](std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
    x[d] = std::rotl(x[d] ^ (x[a] += x[b]), 16);
    x[b] = std::rotl(x[b] ^ (x[c] += x[d]), 12);
    x[d] = std::rotl(x[d] ^ (x[a] += x[b]), 8);
    x[b] = std::rotl(x[b] ^ (x[c] += x[d]), 7);
  };
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < 4; ++i) quarter(i, 4 + i, 8 + i, 12 + i);
    for (std::size_t i = 0; i < 4; ++i) quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
  for (std::size_t i = 0; i < 16; ++i) x[i] += start[i];
  return x;
}

// The construction, made a second time from its parts. The counter passes 2^32.
TEST(RandomStream, IsChaCha20OfBlockAndStepUnderTheKeyOfThePurpose) {
  const auto key = SecretKey::from_seed(123);
  const std::string purpose = "noise";
  std::array<unsigned char, 32> purpose_key{};
  unsigned int length = 0;
  ASSERT_NE(HMAC(EVP_sha256(), key.bytes().data(), 32, reinterpret_cast<const unsigned char*>(purpose.data()),
                 purpose.size(), purpose_key.data(), &length),
            nullptr);
  ASSERT_EQ(length, 32U);
  for (const std::uint64_t step : {0ULL, 3ULL, 0x0123456789abcdefULL})
    for (const std::uint64_t first : {0ULL, 254ULL, 0xfffffffeULL, 0xffffff00ULL, 0x00ffffffffffffffULL}) {
      const std::uint64_t blocks = 300;
      const auto found = words_of(RandomStream(key, purpose, step), first, blocks);
      for (std::uint64_t block = 0; block < blocks; ++block) {
        const auto expected = chacha20_block(purpose_key, first + block, step);
        for (std::size_t i = 0; i < 8; ++i)
          ASSERT_EQ(found[8 * block + i], expected[2 * i] | std::uint64_t{expected[2 * i + 1]} << 32)
              << "step " << step << ", block " << first + block;
      }
    }
}

// Computed with Python's hmac and `openssl enc -chacha20`.
TEST(RandomStream, KnownAnswer) {
  const std::vector<std::uint64_t> expected = {0xfa9cb56103e1d99b, 0x882de61dfc84d53e, 0xefc680aa6a395574,
                                               0xd94686a62f84e1cb, 0x3ea340d018afb280, 0x922c03561f60d5ba,
                                               0x5fc446e8680312ef, 0x0406271a318cfdf3};
  EXPECT_EQ(words_of(RandomStream(SecretKey::from_seed(1), "sample", 3), 5, 1), expected);
}

TEST(RandomStream, BlocksAnywhereEqualTheSequence) {
  RandomStream stream(SecretKey::from_seed(1), "sample", 9);
  std::vector<std::uint64_t> sequence(3000);  // over several refills of the buffer behind next()
  for (auto& word : sequence) word = stream.next();
  for (const std::size_t first : {0U, 1U, 7U, 8U, 9U, 65U, 125U, 250U})
    for (const std::size_t blocks : {0U, 1U, 2U, 8U, 125U}) {
      const auto found = words_of(stream, first, blocks);
      EXPECT_TRUE(std::equal(found.begin(), found.end(), sequence.begin() + static_cast<std::ptrdiff_t>(8 * first)))
          << blocks << " blocks from " << first;
    }
  // Random access has not moved the sequence.
  EXPECT_EQ(stream.next(), words_of(stream, 375, 1)[0]);
}

TEST(RandomStream, BitsAreFair) {
  const auto words = words_of(RandomStream(SecretKey::from_seed(11), "sample", 0), 0, 5000);
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

TEST(Normals, FromAnyStartEqualTheWholeSequence) {
  const RandomStream stream(SecretKey::from_seed(6), "noise", 4);
  const auto whole = normals_of(stream, 0, 5000);
  for (const std::size_t first : {0U, 1U, 2U, 31U, 32U, 33U, 1022U, 1023U, 1024U, 1025U, 2999U})
    for (const std::size_t count : {0U, 1U, 2U, 3U, 7U, 32U, 1023U, 1024U, 1025U, 2000U}) {
      const auto part = normals_of(stream, first, count);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)))
          << count << " from " << first;
    }
}

TEST(Normals, InPiecesAreTheSequenceInOrder) {
  const RandomStream stream(SecretKey::from_seed(6), "noise", 4);
  const auto whole = normals_of(stream, 0, 5000);
  std::vector<double> found;
  stream.normals(77, 4000, [&](std::uint64_t place, std::span<double> piece) {
    EXPECT_EQ(place, 77 + found.size());
    EXPECT_FALSE(piece.empty());
    found.insert(found.end(), piece.begin(), piece.end());
    std::fill(piece.begin(), piece.end(), 0.0);  // theirs to overwrite
  });
  EXPECT_EQ(found, std::vector<double>(whole.begin() + 77, whole.begin() + 4077));
}

TEST(Normals, AreBoxMullerOfTheirBlocks) {
  const RandomStream stream(SecretKey::from_seed(8), "noise", 2);
  constexpr std::size_t units = 300;
  const auto words = words_of(stream, 0, 3 * units);
  const auto values = normals_of(stream, 0, 32 * units);
  for (std::size_t j = 0; j < 16 * units; ++j) {
    // 24 words a unit: 16 whole ones, then 16 halves, the lower first.
    const auto* unit = words.data() + 24 * (j / 16);
    const auto word = unit[j % 16];
    const auto more = unit[16 + j % 16 / 2] >> (j % 2 * 32) & 0xffffffffULL;
    const long double u = 1.0L - (static_cast<long double>(word >> 12) + 0.5L) * 0x1p-52L;
    // An angle in [−π/4, π/4) from the half and ten bits of the word, one of four quarters of the circle from its last
    // two.
    const long double quarter_pi = std::numbers::pi_v<long double> / 4.0L;
    const auto cell = more << 10 | (word >> 2 & 0x3ff);
    const long double x = quarter_pi * ((static_cast<long double>(cell) + 0.5L) * 0x1p-41L - 1.0L);
    const auto last = word & 3;
    const long double angle = last == 0   ? x
                              : last == 1 ? 4.0L * quarter_pi - x
                              : last == 2 ? 2.0L * quarter_pi - x
                                          : 2.0L * quarter_pi + x;
    const long double radius = std::sqrt(-2.0L * std::log(u));
    // Near the axes one of the two is small by cancellation; what counts is its error beside the radius.
    const double turned = last == 3 ? -1.0 : 1.0;  // (s, −c) is the angle x − π/2, that of (−s, c) turned by π
    const auto first = 32 * (j / 16) + j % 16;
    EXPECT_NEAR(values[first], turned * static_cast<double>(radius * std::cos(angle)),
                1e-15 * static_cast<double>(radius))
        << j;
    EXPECT_NEAR(values[first + 16], turned * static_cast<double>(radius * std::sin(angle)),
                1e-15 * static_cast<double>(radius))
        << j;
  }
}

// One pair in 2^20 has its cell of the radius cut further, by a word of its own from beyond 2^63.
TEST(Normals, InTheTailHaveFurtherBits) {
  const RandomStream stream(SecretKey::from_seed(13), "noise", 0);
  constexpr std::uint64_t first_unit = 1000;
  constexpr std::uint64_t pieces = 400;
  std::vector<std::uint64_t> words(24 * 1024);
  std::vector<double> values(32 * 1024);
  int found = 0;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    const auto unit = first_unit + 1024 * piece;
    stream.blocks(3 * unit, words);
    bool drawn = false;
    for (std::size_t i = 0; i < 1024; ++i)
      for (std::size_t j = 0; j < 16; ++j) {
        const auto word = words[24 * i + j];
        if (word >> 44 != 0xfffff) continue;
        if (!drawn) stream.normals(32 * unit, values);
        drawn = true;
        ++found;
        std::array<std::uint64_t, 8> further{};
        stream.blocks((std::uint64_t{1} << 63) + (16 * (unit + i) + j) / 8, further);
        const auto inside = static_cast<long double>(further[j % 8] >> 12) + 0.5L;
        const auto cells = static_cast<long double>((std::uint64_t{1} << 52) - 1 - (word >> 12));
        const auto radius = std::sqrt(-2.0L * std::log((cells + inside * 0x1p-52L) * 0x1p-52L));
        const double c = values[32 * i + j];
        const double s = values[32 * i + 16 + j];
        EXPECT_GT(radius, 5.26L);
        EXPECT_NEAR(std::hypot(c, s), static_cast<double>(radius), 4e-15);
        // The direction is that of the unrefined pair.
        const auto more = words[24 * i + 16 + j / 2] >> (j % 2 * 32) & 0xffffffffULL;
        const auto x =
            std::numbers::pi / 4.0 * ((static_cast<double>(more << 10 | (word >> 2 & 0x3ff)) + 0.5) * 0x1p-41 - 1.0);
        const double least = std::min(std::abs(c), std::abs(s));
        EXPECT_NEAR(std::atan2(least, std::max(std::abs(c), std::abs(s))), std::abs(x), 1e-14);
      }
  }
  // 6.25 are expected; none, or more than 30, with probability below 1e-2 and 1e-11: the key is fixed.
  EXPECT_GT(found, 0);
  EXPECT_LT(found, 30);
}

TEST(Normals, ReachToTheEndOfTheStreamAndNotBeyond) {
  const RandomStream stream(SecretKey::from_seed(6), "noise", 4);
  constexpr std::uint64_t end = std::uint64_t{1} << 63;
  const auto last = normals_of(stream, end - 64, 64);
  const auto words = words_of(stream, 3 * (end / 32 - 1), 3);
  const double u = 1.0 - (static_cast<double>(words[0] >> 12) + 0.5) * 0x1p-52;
  EXPECT_NEAR(std::hypot(last[32], last[48]), std::sqrt(-2.0 * std::log(u)), 1e-7);
  std::array<double, 2> out{};
  EXPECT_THROW(stream.normals(end - 1, out), Error);
  EXPECT_THROW(stream.normals(~std::uint64_t{0}, out), Error);
}

TEST(NoiseGrid, IsAFixedPartOfTheDeviation) {
  for (const double deviation : {4e-4, 1.0, 1.9999, 3.0, 1e30}) {
    const double offset = noise_grid_offset(deviation);
    const double unit = std::exp2(std::floor(std::log2(deviation)) - 24.0);
    for (const double y : {0.0, 0.49 * unit, 0.51 * unit, 0.3 * deviation, -7.77 * deviation, 1e6 * deviation})
      EXPECT_EQ((y + offset) - offset, std::nearbyint(y / unit) * unit) << y << ", " << deviation;
    // Values may be far larger than their noise: what is released has no finer digits for that.
    for (double y = 0x1p20 * deviation; y < 0x1p46 * deviation; y *= 1.0371)
      for (const double signed_y : {y, -y}) {
        const double units = ((signed_y + offset) - offset) / (0.5 * unit);
        EXPECT_EQ(units, std::nearbyint(units)) << signed_y << ", " << deviation;
        EXPECT_NEAR(units, signed_y / (0.5 * unit), 1.0 + y * 0x1p-51 / unit) << signed_y << ", " << deviation;
      }
  }
  EXPECT_EQ(noise_grid_offset(0.0), 0.0);
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
  EXPECT_EQ(hex, "6ae282332308659b663742f323816be7744dbd5ac125203817678205d081827c");
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
  EXPECT_LE(largest, 8.5);  // 2e-12
}

TEST(Normals, AreIndependentOfTheirNeighbours) {
  constexpr std::size_t count = 200000;
  const auto values = normals_of(RandomStream(SecretKey::from_seed(12), "noise", 0), 0, count);
  for (const std::size_t lag : {1U, 2U, 3U, 16U, 32U, 1024U}) {
    double sum = 0.0;
    for (std::size_t i = lag; i < count; ++i) sum += values[i] * values[i - lag];
    EXPECT_LT(std::abs(sum), 5.4 * std::sqrt(static_cast<double>(count - lag))) << "lag " << lag;  // 6 · 7e-8
  }
  // The two of one pair: their squared radius is exponential, their angle uniform.
  std::vector<double> radii;
  std::vector<double> angles;
  for (std::size_t i = 0; i < count; i += i % 16 == 15 ? 17 : 1) {
    radii.push_back(values[i] * values[i] + values[i + 16] * values[i + 16]);
    angles.push_back(std::atan2(values[i + 16], values[i]));
  }
  EXPECT_LT(kolmogorov(radii, [](double x) { return -std::expm1(-0.5 * x); }), kolmogorov_limit);
  EXPECT_LT(kolmogorov(angles, [](double x) { return 0.5 + 0.5 * x / std::numbers::pi; }), kolmogorov_limit);
}

}  // namespace
}  // namespace tsdp
