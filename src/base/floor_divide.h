// Division of whole numbers, rounded down.
#pragma once

#include <cstdint>

namespace tsdp {

/// ⌊a/b⌋ for b > 0, also for negative numbers, where C++ rounds towards 0.
constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// The largest multiple of `group` > 0 up to `most`, and `group` where that is more.
constexpr std::int64_t whole_groups(std::int64_t most, std::int64_t group) {
  return most < group ? group : most / group * group;
}

}  // namespace tsdp
