// Random streams: a function of (secret key, purpose, step) and nothing else.
//
// A stream is the key stream of ChaCha20 (Bernstein 2008: 64-byte blocks, a 64-bit counter of blocks and a 64-bit
// nonce, both little-endian). The key of a purpose is HMAC-SHA256(secret key, purpose), the nonce is the step. So any
// step can be drawn again identically, in any order, from the key alone, and streams of different purposes or steps
// never overlap. Nobody without the key can tell the output from uniform bits; the amplification theorems need the
// sample to stay secret.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tsdp {

/// 256 secret bits on which all randomness of a run depends.
class SecretKey {
 public:
  /// A key from the operating system's generator. Throws Error if it gives none.
  [[nodiscard]] static SecretKey from_system();
  /// A key that anyone who knows `seed` can compute: for reproducible runs that are not for release.
  [[nodiscard]] static SecretKey from_seed(std::uint64_t seed);
  /// Reads what `hex` wrote: 64 hexadecimal digits. Throws DataError otherwise.
  [[nodiscard]] static SecretKey from_hex(std::string_view hex);
  /// The first 256 bits of a stream: a key that tells nothing of `key`, nor of streams with another purpose or step.
  [[nodiscard]] static SecretKey from_stream(const SecretKey& key, std::string_view purpose, std::uint64_t step);

  [[nodiscard]] std::string hex() const;
  [[nodiscard]] const std::array<std::uint8_t, 32>& bytes() const noexcept { return bytes_; }
  bool operator==(const SecretKey&) const = default;

 private:
  std::array<std::uint8_t, 32> bytes_{};
};

/// The random bits of one (key, purpose, step).
class RandomStream {
 public:
  RandomStream(const SecretKey& key, std::string_view purpose, std::uint64_t step);

  /// The next 64 uniform bits.
  std::uint64_t next();
  /// Uniform on {0, …, bound − 1}, exactly (by rejection). Requires bound ≥ 1.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform on the multiples of 2⁻⁵³ in [0, 1).
  double uniform();

  /// Random access: the 64-byte blocks `first_block`, `first_block + 1`, … as eight 64-bit words each.
  /// `out.size()` must be a multiple of eight. Independent of what `next` has consumed.
  void blocks(std::uint64_t first_block, std::span<std::uint64_t> out) const;

  /// Random access to a sequence of independent standard normals z_0, z_1, …: out[i] = z_{first + i}.
  /// Box–Muller in double precision: the 32 normals from z_{32 q} on come from the blocks 3 q, 3 q + 1, 3 q + 2. A pair
  /// lies on one of 2⁵² circles, at one of 2⁴⁴ angles; the 2³² outer circles (radius above 5.26), some of which would
  /// lie further apart than single precision rounds, become 2⁸⁴ by further bits from blocks beyond 2⁶³. Between radius
  /// 2⁻²⁴ and 10 (ideal mass elsewhere: below 2⁻⁴⁸) circles lie within 2⁻²⁷ of each other; all lie within
  /// √(2 · 105 log 2) = 12.07 (ideal mass beyond: 2⁻¹⁰⁵). The results are the same on every processor (no contraction,
  /// no reordering). Throws Error if first + count is above 2⁶³.
  void normals(std::uint64_t first, std::span<double> out) const;

  /// Passes z_first, …, z_{first + count − 1} on in pieces that stay in the first-level cache: calls take(place, piece)
  /// for each in turn, with piece[i] = z_{place + i}. `take` may overwrite the piece.
  void normals(std::uint64_t first, std::uint64_t count,
               const std::function<void(std::uint64_t place, std::span<double> piece)>& take) const;

 private:
  std::array<std::uint8_t, 32> purpose_key_{};
  std::uint64_t step_;
  std::uint64_t next_block_ = 0;
  std::array<std::uint64_t, 512> buffer_{};
  std::size_t filled_ = 0;
  std::size_t used_ = 0;
};

/// Noise of deviation s on a value x is released on a grid of 2⁻²⁴ times the power of two at or below s, whatever its
/// size: finer digits of x + s z near 0 would reveal how x was rounded (Mironov 2012). This is the M for which
/// (y + M) − M is y on that grid, for |y| < 2²⁷ s; beyond that, where doubles become sparse, y on a grid never finer
/// than half of it. 0 without noise.
[[nodiscard]] double noise_grid_offset(double deviation);

}  // namespace tsdp
