// The LSTM's GPU kernels as functions of the host, and a launch of them in threads that are fibres.
#pragma once

#include <cstdint>
#include <functional>

#include "thread_block.h"

#define TSDP_DEVICE_CODE
#define TSDP_DEVICE inline
#define TSDP_KERNEL inline void
#define TSDP_SHARED(name) float* const name = tsdp::test::ThreadBlock::shared()
#define TSDP_THREAD tsdp::test::ThreadBlock::thread()
#define TSDP_BLOCK tsdp::test::ThreadBlock::block()
#define TSDP_WAIT() tsdp::test::ThreadBlock::wait()
#include "dp/lstm_device.h"

namespace tsdp::test {

/// Runs one of the kernels over `windows` windows of a layer of `units` units, in blocks as a GPU would.
inline void launch_lstm(std::int64_t windows, int units, ThreadOrder order, const std::function<void()>& kernel) {
  const auto blocks = static_cast<unsigned>((windows + dp::lstm_windows - 1) / dp::lstm_windows);
  ThreadBlock::launch(blocks, static_cast<unsigned>(4 * units), static_cast<std::size_t>(dp::lstm_shared_bytes(units)),
                      order, kernel);
}

}  // namespace tsdp::test
