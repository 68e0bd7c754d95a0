// What a device that is not the CPU is asked for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <ATen/ATen.h>

namespace tsdp::dp {

/// Work that a device records once and repeats with one launch. Addresses and numbers of the host stay as they were
/// recorded; what tensors hold may change.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  /// Records `work` without doing it. It has been done before, so that nothing in it is prepared for the first time. It
  /// neither waits for the device nor copies from memory that is not pinned.
  virtual void record(const std::function<void()>& work) = 0;
  virtual void replay() = 0;
};

/// The recurrence of one LSTM layer: lstm_device.h. All tensors are contiguous and in single precision; launched on
/// the thread's stream.
struct LstmKernels {
  /// Whether the device holds the weights of so many hidden units.
  std::function<bool(const at::Device& device, std::int64_t units)> serves;
  std::function<void(const at::Tensor& from_input, const at::Tensor& weight, const at::Tensor& gates,
                     const at::Tensor& cells, const at::Tensor& states)>
      forward;
  std::function<void(const at::Tensor& by_states, const at::Tensor& weight, const at::Tensor& gates,
                     const at::Tensor& cells, const at::Tensor& gate_gradients)>
      backward;
};

/// What is known of a kind of device.
struct DeviceKind {
  std::function<std::unique_ptr<DeviceGraph>()> graph = {};
  /// Everything that decides how results are rounded: chip, driver, libraries.
  std::function<std::string(const at::Device&)> description = {};
  std::optional<LstmKernels> lstm = {};
};
/// Makes a kind of device known; CUDA is, where LibTorch has it. Tests make the CPU one that records, too.
void register_device_kind(at::DeviceType type, DeviceKind kind);

/// Memory of the host that `device` copies from without making the host wait.
[[nodiscard]] at::TensorOptions host_memory_for(const at::Device& device);

[[nodiscard]] bool can_record(const at::Device& device);
/// A record of `work` on a device that can: DeviceGraph::record.
[[nodiscard]] std::unique_ptr<DeviceGraph> recorded(const at::Device& device, const std::function<void()>& work);
/// Null where there are none.
[[nodiscard]] const LstmKernels* lstm_kernels_of(const at::Device& device);
/// Empty where nothing is known.
[[nodiscard]] std::string description_of(const at::Device& device);

/// Prepares the process for work on `device`, if it is not the CPU: operators whose results vary from run to run throw
/// from now on, matrix products keep all digits, and the calling thread gets a stream on which work can be recorded,
/// after what it has begun so far.
void settle_device(const at::Device& device);

}  // namespace tsdp::dp
