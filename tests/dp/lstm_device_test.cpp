// The LSTM's kernels, thread by thread on the host, against the plain recurrence in double precision.
#include <cstring>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/lstm_on_host.h"

namespace tsdp::dp {
namespace {

using test::ThreadBlock;
using test::ThreadOrder;

struct Sizes {
  std::int64_t windows, steps;
  int units;
};

at::Tensor uniform(at::IntArrayRef shape) { return at::rand(shape).sub_(0.5); }

/// What both kernels write for the same random layer and gradients.
struct Written {
  at::Tensor gates, cells, states, by_gates;
};

struct Layer {
  explicit Layer(const Sizes& s) : sizes(s) {
    at::manual_seed(3);
    from_input = uniform({s.windows, s.steps, 4 * s.units});
    weight = uniform({4 * s.units, s.units});
    by_states = uniform({s.windows, s.steps, s.units});
  }

  [[nodiscard]] Written by_kernels(ThreadOrder order) const {
    const auto [windows, steps, units] = sizes;
    const auto never = [](const at::Tensor& like) { return at::full_like(like, std::nan("")); };
    Written out{never(from_input), never(by_states), never(by_states), never(from_input)};
    const auto* x = from_input.const_data_ptr<float>();
    const auto* w = weight.const_data_ptr<float>();
    const auto* dh = by_states.const_data_ptr<float>();
    auto* g = out.gates.data_ptr<float>();
    auto* c = out.cells.data_ptr<float>();
    auto* h = out.states.data_ptr<float>();
    auto* dg = out.by_gates.data_ptr<float>();
    test::launch_lstm(windows, units, order,
                      [&] { lstm_forward(x, w, g, c, h, sizes.windows, sizes.steps, sizes.units); });
    test::launch_lstm(windows, units, order,
                      [&] { lstm_backward(dh, w, g, c, dg, sizes.windows, sizes.steps, sizes.units); });
    return out;
  }

  /// The same in double precision, by the definition.
  [[nodiscard]] Written by_definition() const {
    const auto [windows, steps, units] = sizes;
    const auto w = weight.to(at::kDouble);
    std::vector<at::Tensor> gates, cells, states;
    auto h = at::zeros({windows, units}, at::kDouble);
    auto c = at::zeros_like(h);
    for (std::int64_t t = 0; t < steps; ++t) {
      const auto raw = (from_input.select(1, t).to(at::kDouble) + at::mm(h, w.t())).chunk(4, 1);
      const auto in = raw[0].sigmoid();
      const auto keep = raw[1].sigmoid();
      const auto add = raw[2].tanh();
      const auto out = raw[3].sigmoid();
      c = keep * c + in * add;
      h = out * c.tanh();
      gates.push_back(at::cat({in, keep, add, out}, 1));
      cells.push_back(c);
      states.push_back(h);
    }
    std::vector<at::Tensor> by_gates(static_cast<std::size_t>(steps));
    auto by_state = at::zeros_like(h);
    auto by_cell = at::zeros_like(h);
    for (auto t = static_cast<std::size_t>(steps); t-- > 0;) {
      const auto part = gates[t].chunk(4, 1);
      const auto squashed = cells[t].tanh();
      by_state = by_state + by_states.select(1, static_cast<std::int64_t>(t)).to(at::kDouble);
      by_cell = by_cell + by_state * part[3] * (1.0 - squashed.square());
      const auto before = t > 0 ? cells[t - 1] : at::zeros_like(h);
      by_gates[t] =
          at::cat({by_cell * part[2] * part[0] * (1.0 - part[0]), by_cell * before * part[1] * (1.0 - part[1]),
                   by_cell * part[0] * (1.0 - part[2].square()), by_state * squashed * part[3] * (1.0 - part[3])},
                  1);
      by_cell = by_cell * part[1];
      by_state = at::mm(by_gates[t], w);
    }
    return {at::stack(gates, 1), at::stack(cells, 1), at::stack(states, 1), at::stack(by_gates, 1)};
  }

  Sizes sizes;
  at::Tensor from_input, weight, by_states;
};

TEST(LstmDevice, IsTheRecurrenceInEveryOrderOfThreads) {
  for (const auto& sizes : {Sizes{1, 1, 1}, Sizes{2, 3, 2}, Sizes{3, 5, 4}, Sizes{5, 9, 10}, Sizes{4, 7, 40}}) {
    SCOPED_TRACE(testing::Message() << sizes.windows << " windows, " << sizes.steps << " steps, " << sizes.units);
    const Layer layer(sizes);
    const auto expected = layer.by_definition();
    const auto found = layer.by_kernels(ThreadOrder::up);
    for (auto part : {&Written::gates, &Written::cells, &Written::states, &Written::by_gates}) {
      EXPECT_LT(((found.*part).to(at::kDouble) - expected.*part).abs().max().item<double>(), 2e-6);
      for (const auto order : {ThreadOrder::down, ThreadOrder::mixed})
        EXPECT_TRUE(at::equal(layer.by_kernels(order).*part, found.*part));  // or threads race
    }
  }
}

}  // namespace
}  // namespace tsdp::dp
