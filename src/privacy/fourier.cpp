#include "fourier.h"

#include <fftw3.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "tsdp/base/error.h"

namespace tsdp::privacy::fourier {
namespace {

/// FFTW's plans by size, made once and kept: planning costs as much as a transform, and the planner is not thread-safe.
class Plans {
 public:
  enum class Direction { forward, backward };
  static void run_in_place(double* buffer, std::int64_t size, Direction direction) {
    auto* complex = reinterpret_cast<fftw_complex*>(buffer);
    static Plans plans;
    auto* plan = plans.find(buffer, size, direction);
    if (direction == Direction::forward) {
      fftw_execute_dft_r2c(plan, buffer, complex);
    } else {
      fftw_execute_dft_c2r(plan, complex, buffer);
    }
  }

 private:
  fftw_plan_s* find(double* buffer, std::int64_t size, Direction direction) {
    const std::scoped_lock lock(mutex_);
    auto& slot = plans_[{size, direction}];
    if (!slot) {
      auto* complex = reinterpret_cast<fftw_complex*>(buffer);
      const auto n = static_cast<int>(size);
      // Unaligned plans serve every buffer.
      slot.reset(direction == Direction::forward
                     ? fftw_plan_dft_r2c_1d(n, buffer, complex, FFTW_ESTIMATE | FFTW_UNALIGNED)
                     : fftw_plan_dft_c2r_1d(n, complex, buffer, FFTW_ESTIMATE | FFTW_UNALIGNED));
      if (!slot) throw Error(ExitCode::failure, "out of memory in a Fourier transform");
    }
    return slot.get();
  }
  struct Destroy {
    void operator()(fftw_plan_s* p) const { fftw_destroy_plan(p); }
  };
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, Direction>, std::unique_ptr<fftw_plan_s, Destroy>> plans_;
};

}  // namespace

std::int64_t good_size(std::int64_t n) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t odd : {1, 3, 5}) {
    std::int64_t size = 2 * odd;
    while (size < n) size *= 2;
    best = std::min(best, size);
  }
  return best;
}

void forward(double* buffer, std::int64_t size) { Plans::run_in_place(buffer, size, Plans::Direction::forward); }
void backward(double* buffer, std::int64_t size) { Plans::run_in_place(buffer, size, Plans::Direction::backward); }

}  // namespace tsdp::privacy::fourier
