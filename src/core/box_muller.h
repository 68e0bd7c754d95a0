#pragma once

#include <cstddef>
#include <cstdint>

namespace tsdp::detail {

/// Words 2j, 2j+1 give the normals 2j, 2j+1, for j < pairs.
void box_muller(const std::uint64_t* words, double* normals, std::size_t pairs);

}  // namespace tsdp::detail
