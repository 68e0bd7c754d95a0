#include "fourier.h"

#include <fftw3.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "tsdp/base/error.h"

namespace tsdp::privacy::fourier {
namespace {

/// Up to this size, transforms go through a second buffer: FFTW finds plans for two buffers in a third of the time,
/// which is more than such a transform takes. Beyond it memory counts.
constexpr std::int64_t largest_copied = std::int64_t{1} << 18;

/// FFTW's plans, made once and kept: the planner takes longer than a transform, and is not thread-safe.
class Plans {
 public:
  enum class Direction {
    forward,
    backward
  };
  static void run_in_place(double* buffer, std::int64_t size, Direction direction) {
    static Plans plans;
    const bool copied = size <= largest_copied;
    thread_local std::unique_ptr<double, Free> scratch;
    thread_local std::int64_t room = 0;
    if (copied && room < size + 2) {
      scratch.reset(fftw_alloc_real(static_cast<std::size_t>(size) + 2));
      room = scratch ? size + 2 : 0;
      if (!scratch) throw Error(ExitCode::failure, "out of memory in a Fourier transform");
    }
    auto* to = copied ? scratch.get() : buffer;
    auto* plan = plans.find(buffer, to, size, direction);
    if (direction == Direction::forward) {
      fftw_execute_dft_r2c(plan, buffer, reinterpret_cast<fftw_complex*>(to));
    } else {
      fftw_execute_dft_c2r(plan, reinterpret_cast<fftw_complex*>(buffer), to);
    }
    if (copied) std::copy_n(to, direction == Direction::forward ? size + 2 : size, buffer);
  }

 private:
  struct Free {
    void operator()(double* p) const { fftw_free(p); }
  };
  struct Destroy {
    void operator()(fftw_plan_s* p) const { fftw_destroy_plan(p); }
  };
  using Key = std::tuple<std::int64_t, Direction, int, bool>;

  /// A plan serves buffers that are aligned alike.
  fftw_plan_s* find(double* from, double* to, std::int64_t size, Direction direction) {
    const std::scoped_lock lock(mutex_);
    auto& slot = plans_[Key{size, direction, fftw_alignment_of(from), from == to}];
    if (!slot) {
      const auto n = static_cast<int>(size);
      // Plans are estimated: no buffer is written to.
      slot.reset(direction == Direction::forward
                     ? fftw_plan_dft_r2c_1d(n, from, reinterpret_cast<fftw_complex*>(to), FFTW_ESTIMATE)
                     : fftw_plan_dft_c2r_1d(n, reinterpret_cast<fftw_complex*>(from), to, FFTW_ESTIMATE));
      if (!slot) throw Error(ExitCode::failure, "out of memory in a Fourier transform");
    }
    return slot.get();
  }

  std::mutex mutex_;
  std::map<Key, std::unique_ptr<fftw_plan_s, Destroy>> plans_;
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
