#include "dp/device_kind.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdlib>
#include <fstream>
#include <map>

#ifdef TSDP_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>

#include "dp/lstm_cuda.h"
#endif

#include "tsdp/base/text.h"

namespace tsdp::dp {
namespace {

#ifdef TSDP_CUDA
class CudaGraph final : public DeviceGraph {
 public:
  void record(const std::function<void()>& work) override {
    graph_.capture_begin();
    try {
      work();
    } catch (...) {
      try {
        graph_.capture_end();
      } catch (const std::exception&) {  // the first error tells more
      }
      throw;
    }
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

std::string describe_cuda(const at::Device& device) {
  const auto* chip = at::cuda::getDeviceProperties(device.index());
  std::string driver = "unknown";
  if (std::ifstream file("/proc/driver/nvidia/version"); file) std::getline(file, driver);
  int of_driver = 0;
  static_cast<void>(cudaDriverGetVersion(&of_driver));
  return cat(chip->name, ", compute capability ", chip->major, ".", chip->minor, ", ", chip->multiProcessorCount,
             " multiprocessors, driver for CUDA ", of_driver, " (", driver, "), CUDA ", CUDART_VERSION, ", ",
             at::detail::getCUDAHooks().versionRuntimeCuDNN());
}

LstmKernels cuda_lstm() {
  const auto stream = [] { return static_cast<void*>(at::cuda::getCurrentCUDAStream().stream()); };
  return {[](const at::Device& device, std::int64_t units) { return lstm_cuda_serves(device.index(), units); },
          [stream](const at::Tensor& from_input, const at::Tensor& weight, const at::Tensor& gates,
                   const at::Tensor& cells, const at::Tensor& states) {
            lstm_cuda_forward(from_input.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                              gates.data_ptr<float>(), cells.data_ptr<float>(), states.data_ptr<float>(),
                              states.size(0), states.size(1), static_cast<int>(states.size(2)), stream());
          },
          [stream](const at::Tensor& by_states, const at::Tensor& weight, const at::Tensor& gates,
                   const at::Tensor& cells, const at::Tensor& gate_gradients) {
            lstm_cuda_backward(by_states.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                               gates.const_data_ptr<float>(), cells.const_data_ptr<float>(),
                               gate_gradients.data_ptr<float>(), cells.size(0), cells.size(1),
                               static_cast<int>(cells.size(2)), stream());
          }};
}
#endif

std::map<at::DeviceType, DeviceKind>& kinds() {
  static std::map<at::DeviceType, DeviceKind> known = {
#ifdef TSDP_CUDA
      {at::kCUDA, {[] { return std::make_unique<CudaGraph>(); }, describe_cuda, cuda_lstm()}},
#endif
  };
  return known;
}

/// A kind without anything where nothing is known.
const DeviceKind& kind_of(const at::Device& device) {
  static const DeviceKind unknown;
  const auto found = kinds().find(device.type());
  return found == kinds().end() ? unknown : found->second;
}

}  // namespace

void register_device_kind(at::DeviceType type, DeviceKind kind) { kinds()[type] = std::move(kind); }

bool can_record(const at::Device& device) { return static_cast<bool>(kind_of(device).graph); }

std::unique_ptr<DeviceGraph> recorded(const at::Device& device, const std::function<void()>& work) {
  auto graph = kind_of(device).graph();
  graph->record(work);
  return graph;
}

at::TensorOptions host_memory_for(const at::Device& device) {
  return at::TensorOptions(at::kCPU).pinned_memory(!device.is_cpu());
}

const LstmKernels* lstm_kernels_of(const at::Device& device) {
  const auto& lstm = kind_of(device).lstm;
  return lstm ? &*lstm : nullptr;
}

std::string description_of(const at::Device& device) {
  const auto& description = kind_of(device).description;
  return description ? description(device) : std::string();
}

void settle_device(const at::Device& device) {
  if (device.is_cpu()) return;
  // cuBLAS promises equal bits only with workspaces of a fixed size; it reads this when it begins.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  // Filling new memory would take longer than many a step; nothing here reads what it has not written.
  context.setDeterministicFillUninitializedMemory(false);
  context.setAllowTF32CuDNN(false);
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.setDevice(device);
  const auto common = guard.getDefaultStream(device);
  if (guard.getStream(device) != common) return;
  guard.synchronizeStream(common);
  guard.exchangeStream(guard.getStreamFromGlobalPool(device));
}

}  // namespace tsdp::dp
