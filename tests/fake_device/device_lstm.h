// The recurrence of an LSTM on the fake device: LibTorch's fused cells, which it has for GPUs alone, and our kernels.
#pragma once

#include <optional>
#include <tuple>

#include <ATen/ATen.h>

#include "dp/device_kind.h"

namespace tsdp::test::fake {

/// A view of the same bytes as a tensor of the CPU's. It holds no memory of the device.
[[nodiscard]] at::Tensor bytes_of(const at::Tensor& t);

/// at::_thnn_fused_lstm_cell without biases.
std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                          const at::Tensor& cell,
                                                          const std::optional<at::Tensor>& input_bias,
                                                          const std::optional<at::Tensor>& hidden_bias);
/// at::_thnn_fused_lstm_cell_backward_impl without biases.
std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_cell_backward(const std::optional<at::Tensor>& by_state,
                                                                   const std::optional<at::Tensor>& by_cell,
                                                                   const at::Tensor& cell, const at::Tensor& next,
                                                                   const at::Tensor& gates, bool has_bias);

/// The kernels of dp/lstm_device.h, thread by thread, for layers whose weights fit into 48 KiB.
[[nodiscard]] dp::LstmKernels lstm_kernels();

}  // namespace tsdp::test::fake
