// Division of whole numbers, rounded down.
#pragma once

#include <cstdint>

namespace tsdp {

/// ⌊a/b⌋ for b > 0, also for negative numbers, where C++ rounds towards 0.
constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace tsdp
