// Draws of privacy losses from streams of a seed.
#pragma once

#include <cstdint>
#include <span>

#include "research/correlated_estimates.h"
#include "tsdp/random/random.h"

namespace tsdp::test {

class SeededDraws {
 public:
  explicit SeededDraws(std::uint64_t seed)
      : normals_(SecretKey::from_seed(seed), "losses", 0), bins_(SecretKey::from_seed(seed), "bins", 0) {}
  privacy::Draws draws() {
    return {[this](std::span<double> piece) {
              normals_.normals(used_, piece);
              used_ += piece.size();
            },
            [this](std::uint64_t n) { return bins_.below(n); }};
  }

 private:
  RandomStream normals_, bins_;
  std::uint64_t used_ = 0;
};

}  // namespace tsdp::test
