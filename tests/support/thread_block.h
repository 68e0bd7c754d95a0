// Runs a GPU kernel's source on the host: every thread of a block is a fibre, a barrier lets the others reach it.
// Shared memory holds NaN before every block. Threads run in an order that the test chooses: a result that changes with
// it is a race.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

namespace tsdp::test {

enum class ThreadOrder {
  up,
  down,
  mixed
};

class ThreadBlock {
 public:
  /// Runs `kernel` in `threads` threads of `blocks` blocks, one block after the other. Throws std::runtime_error where
  /// the threads of a block do not all reach a barrier.
  static void launch(unsigned blocks, unsigned threads, std::size_t shared_bytes, ThreadOrder order,
                     const std::function<void()>& kernel) {
    for (unsigned b = 0; b < blocks; ++b) ThreadBlock(b, threads, shared_bytes, kernel).run(order);
  }
  static unsigned block() { return now()->block_; }
  static unsigned thread() { return now()->current_; }
  static float* shared() { return now()->shared_.data(); }
  static void wait() {
    auto* block = now();
    ::swapcontext(&block->fibres_[block->current_].context, &block->main_);
  }

 private:
  struct Fibre {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(64 * 1024);
    bool ended = false;
  };

  ThreadBlock(unsigned block, unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel)
      : kernel_(kernel),
        block_(block),
        shared_(shared_bytes / sizeof(float), std::numeric_limits<float>::quiet_NaN()),
        fibres_(threads) {
    for (auto& f : fibres_) prepare(f);
  }

  [[gnu::noinline]] void prepare(Fibre& f) {
    ::getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = &main_;
    ::makecontext(&f.context, &ThreadBlock::enter, 0);
  }

  static ThreadBlock*& now() {
    static ThreadBlock* block = nullptr;
    return block;
  }
  static void enter() {
    auto* block = now();
    block->kernel_();
    block->fibres_[block->current_].ended = true;
  }

  void run(ThreadOrder order) {
    now() = this;
    std::vector<unsigned> turn(fibres_.size());
    std::iota(turn.begin(), turn.end(), 0U);
    if (order == ThreadOrder::down) std::reverse(turn.begin(), turn.end());
    std::mt19937 random(1);
    for (std::size_t ended = 0; ended < fibres_.size();) {
      if (order == ThreadOrder::mixed) std::shuffle(turn.begin(), turn.end(), random);
      for (const auto t : turn) {
        current_ = t;
        ::swapcontext(&main_, &fibres_[t].context);
        if (fibres_[t].ended) ++ended;
      }
      if (ended != 0 && ended != fibres_.size()) throw std::runtime_error("threads part ways at a barrier");
    }
  }

  const std::function<void()>& kernel_;
  unsigned block_;
  unsigned current_ = 0;
  std::vector<float> shared_;
  std::vector<Fibre> fibres_;
  ucontext_t main_{};
};

}  // namespace tsdp::test
