// A device for machines without one: LibTorch's PrivateUse1, whose addresses no host code may touch.
//
// Tensors on it have addresses without access rights: a host that reads or writes there dies at once (SIGSEGV). An
// operator runs the CPU's kernel on the bytes behind these addresses. What it is given must lie on the device, or be a
// number. README.md says what else is watched, and what cannot be seen this way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "dp/device_kind.h"

namespace tsdp::test::fake {

/// The device; the first call makes it known to LibTorch and to dp::register_device_kind.
[[nodiscard]] at::Device device();

/// What the host has asked of the device since `reset`.
struct Counts {
  std::int64_t launches = 0;  ///< operators, copies and fills; a replay is one
  std::int64_t kernels = 0;  ///< the same, those within replays counted each
  std::int64_t to_device = 0;  ///< copies
  std::int64_t to_host = 0;  ///< copies and numbers
  std::int64_t pageable = 0;  ///< of both, those from or to memory that is not pinned
  std::int64_t waits = 0;  ///< of the host for the device
  std::int64_t allocations = 0;  ///< of the device's memory
};
[[nodiscard]] Counts counts();
/// What each wait and each copy was, in order.
[[nodiscard]] std::vector<std::string> events();
void reset();

/// While it lives, what it forbids throws.
class Forbidden {
 public:
  struct Rules {
    bool waits = true;  ///< also copies that make the host wait
    bool allocations = false;
  };
  explicit Forbidden(Rules rules);
  ~Forbidden();
  Forbidden(const Forbidden&) = delete;
  Forbidden& operator=(const Forbidden&) = delete;

 private:
  Rules before_;
};

/// Throws if the host has written to memory that a copy may still have been reading.
void expect_copies_undisturbed();

/// As dp::recorded gives it.
[[nodiscard]] std::unique_ptr<dp::DeviceGraph> graph();

}  // namespace tsdp::test::fake
