// The recurrence of one LSTM layer on a GPU: shapes as in lstm_device.h, contiguous, single precision.
#pragma once

#include <cstdint>

namespace tsdp::dp {

/// Whether a block of GPU `device` holds the weights of so many hidden units.
bool lstm_cuda_serves(int device, std::int64_t units);
/// On `stream`, a cudaStream_t. The host does not wait.
void lstm_cuda_forward(const float* from_input, const float* weight, float* gates, float* cells, float* states,
                       std::int64_t windows, std::int64_t steps, int units, void* stream);
void lstm_cuda_backward(const float* by_states, const float* weight, const float* gates, const float* cells,
                        float* gate_gradients, std::int64_t windows, std::int64_t steps, int units, void* stream);

}  // namespace tsdp::dp
