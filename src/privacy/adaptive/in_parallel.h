// Work on all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace tsdp::privacy {

/// Calls f(i) once for every i < count, on all cores. Rethrows what a call threw.
template <typename Function>
void in_parallel(std::size_t count, const Function& f) {
  const auto threads = std::min<std::size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  if (threads <= 1) {
    for (std::size_t i = 0; i < count; ++i) f(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(threads);
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        try {
          for (auto i = next++; i < count; i = next++) f(i);
        } catch (...) { failures[t] = std::current_exception(); }
      });
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace tsdp::privacy
