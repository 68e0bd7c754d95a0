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

/// 32 normals a block: those of pair j are its normals j and 16 + j.
void box_muller(std::span<const UniformBlock> blocks, double* normals);

}  // namespace tsdp::detail
