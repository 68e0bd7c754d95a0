#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tsdp::detail {

constexpr std::size_t pairs_a_block = 16;

/// The 96 random bits of each of 16 pairs, in two rows, so that no lane of a vector has to be moved.
struct UniformBlock {
  std::array<std::uint64_t, pairs_a_block> words;
  std::array<std::uint32_t, pairs_a_block> more;
};

/// Whether a pair's radius is in the tail (above 5.26; one pair in 2^20), where the 52 bits that it is made from are
/// coarse.
constexpr bool is_in_tail(std::uint64_t word) { return word >> 44 == 0xFFFFF; }

/// Makes pair `pair` of a block, which is in the tail, anew: 52 of 64 further bits cut its cell of the radius into
/// 2^52. `normals`: those of the block.
void refine(const UniformBlock& block, std::size_t pair, std::uint64_t further, double* normals);

/// 32 normals a block: those of pair j are its normals j and 16 + j. Says whether any pair is in the tail.
bool box_muller(std::span<const UniformBlock> blocks, double* normals);

}  // namespace tsdp::detail
