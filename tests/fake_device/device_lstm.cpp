#include "device_lstm.h"

#include "device_memory.h"
#include "support/lstm_on_host.h"

namespace tsdp::test::fake {
namespace {

constexpr std::int64_t shared_bytes = 48 << 10;  // of a block

void expect_here(const std::initializer_list<at::Tensor>& tensors) {
  for (const auto& t : tensors)
    TORCH_CHECK(t.device().type() == device_type && t.is_contiguous() && t.scalar_type() == at::kFloat,
                "fake device: a kernel takes contiguous tensors of the device in single precision");
}

/// The address that a kernel is given, for the host to read there.
float* at_of(const at::Tensor& t) {
  return t.numel() == 0 ? nullptr : reinterpret_cast<float*>(memory().bytes(t.const_data_ptr()));
}

template <class Kernel>
void launch_blocks(std::int64_t windows, int units, const Kernel& kernel) {
  launch([=] { launch_lstm(windows, units, ThreadOrder::up, kernel); });
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                          const at::Tensor& cell,
                                                          const std::optional<at::Tensor>& input_bias,
                                                          const std::optional<at::Tensor>& hidden_bias) {
  TORCH_CHECK(!input_bias && !hidden_bias, "fake device: fused cells with biases are not there");
  const auto state = at::empty(cell.sizes(), cell.options());
  const auto next = at::empty(cell.sizes(), cell.options());
  const auto gates = at::empty(input_gates.sizes(), input_gates.options());
  launch([from_input = bytes_of(input_gates), from_state = bytes_of(hidden_gates), before = bytes_of(cell),
          state = bytes_of(state), next = bytes_of(next), gates = bytes_of(gates)] {
    const auto part = (from_input + from_state).chunk(4, 1);
    const auto in = part[0].sigmoid();
    const auto keep = part[1].sigmoid();
    const auto add = part[2].tanh();
    const auto out = part[3].sigmoid();
    next.copy_(keep * before + in * add);
    state.copy_(out * next.tanh());
    gates.copy_(at::cat({in, keep, add, out}, 1));
  });
  return {state, next, gates};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> fused_cell_backward(const std::optional<at::Tensor>& by_state,
                                                                   const std::optional<at::Tensor>& by_cell,
                                                                   const at::Tensor& cell, const at::Tensor& next,
                                                                   const at::Tensor& gates, bool has_bias) {
  TORCH_CHECK(!has_bias, "fake device: fused cells with biases are not there");
  const auto by_gates = at::empty(gates.sizes(), gates.options());
  const auto by_before = at::empty(cell.sizes(), cell.options());
  const auto given = [](const std::optional<at::Tensor>& t) { return t && t->defined() ? bytes_of(*t) : at::Tensor(); };
  launch([by_state = given(by_state), by_cell = given(by_cell), before = bytes_of(cell), next = bytes_of(next),
          gates = bytes_of(gates), by_gates = bytes_of(by_gates), by_before = bytes_of(by_before)] {
    const auto part = gates.chunk(4, 1);
    const auto squashed = next.tanh();
    const auto dh = by_state.defined() ? by_state : at::zeros_like(next);
    auto dc = dh * part[3] * (1.0 - squashed.square());
    if (by_cell.defined()) dc += by_cell;
    by_gates.copy_(at::cat({dc * part[2] * part[0] * (1.0 - part[0]), dc * before * part[1] * (1.0 - part[1]),
                            dc * part[0] * (1.0 - part[2].square()), dh * squashed * part[3] * (1.0 - part[3])},
                           1));
    by_before.copy_(dc * part[1]);
  });
  return {by_gates, by_before, at::Tensor()};
}

dp::LstmKernels lstm_kernels() {
  return {
      [](const at::Device&, std::int64_t units) {
        return 4 * units <= 1024 && dp::lstm_shared_bytes(units) <= shared_bytes;
      },
      [](const at::Tensor& from_input, const at::Tensor& weight, const at::Tensor& gates, const at::Tensor& cells,
         const at::Tensor& states) {
        expect_here({weight, gates, cells, states});
        const auto windows = states.size(0);
        const auto steps = states.size(1);
        const auto units = static_cast<int>(states.size(2));
        launch_blocks(windows, units,
                      [x = at_of(from_input), w = at_of(weight), g = at_of(gates), c = at_of(cells), h = at_of(states),
                       windows, steps, units] { dp::lstm_forward(x, w, g, c, h, windows, steps, units); });
      },
      [](const at::Tensor& by_states, const at::Tensor& weight, const at::Tensor& gates, const at::Tensor& cells,
         const at::Tensor& gate_gradients) {
        expect_here({by_states, weight, gates, cells, gate_gradients});
        const auto windows = cells.size(0);
        const auto steps = cells.size(1);
        const auto units = static_cast<int>(cells.size(2));
        launch_blocks(
            windows, units,
            [dh = at_of(by_states), w = at_of(weight), g = at_of(gates), c = at_of(cells), dg = at_of(gate_gradients),
             windows, steps, units] { dp::lstm_backward(dh, w, g, c, dg, windows, steps, units); });
      }};
}

}  // namespace tsdp::test::fake
