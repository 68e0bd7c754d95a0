// Random parameters for tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace tsdp::test {

/// Reproducible draws: bits of the engine only, no distribution of the library.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  double between(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  double log_between(double low, double high) { return std::exp(between(std::log(low), std::log(high))); }
  int one_of(int count) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(count)); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tsdp::test
