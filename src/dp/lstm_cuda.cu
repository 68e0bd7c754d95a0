// The kernels of lstm_device.h on a GPU.
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#define TSDP_DEVICE_CODE
#define TSDP_DEVICE __device__ __forceinline__
#define TSDP_KERNEL __global__ void
#define TSDP_SHARED(name) extern __shared__ float name[]
#define TSDP_THREAD threadIdx.x
#define TSDP_BLOCK blockIdx.x
#define TSDP_WAIT() __syncthreads()

#include "dp/lstm_cuda.h"
#include "dp/lstm_device.h"

namespace tsdp::dp {
namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("LSTM kernel: ") + cudaGetErrorString(error));
}

template <class Kernel>
unsigned blocks_of(Kernel* kernel, std::int64_t windows, int units) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(lstm_shared_bytes(units))));
  return static_cast<unsigned>((windows + lstm_windows - 1) / lstm_windows);
}

}  // namespace

bool lstm_cuda_serves(int device, std::int64_t units) {
  int most = 0;
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return units >= 1 && 4 * units <= 1024 && lstm_shared_bytes(units) <= most;
}

void lstm_cuda_forward(const float* from_input, const float* weight, float* gates, float* cells, float* states,
                       std::int64_t windows, std::int64_t steps, int units, void* stream) {
  if (windows == 0) return;
  const auto blocks = blocks_of(lstm_forward, windows, units);
  lstm_forward<<<blocks, 4 * units, lstm_shared_bytes(units), static_cast<cudaStream_t>(stream)>>>(
      from_input, weight, gates, cells, states, windows, steps, units);
  check(cudaGetLastError());
}

void lstm_cuda_backward(const float* by_states, const float* weight, const float* gates, const float* cells,
                        float* gate_gradients, std::int64_t windows, std::int64_t steps, int units, void* stream) {
  if (windows == 0) return;
  const auto blocks = blocks_of(lstm_backward, windows, units);
  lstm_backward<<<blocks, 4 * units, lstm_shared_bytes(units), static_cast<cudaStream_t>(stream)>>>(
      by_states, weight, gates, cells, gate_gradients, windows, steps, units);
  check(cudaGetLastError());
}

}  // namespace tsdp::dp
