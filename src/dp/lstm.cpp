#include "dp/lstm.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "base/log.h"
#include "dp/device_kind.h"
#include "lstm_cpu.h"
#include "tsdp/base/text.h"

namespace tsdp::dp {

/// The stack computed by the CPU's kernel: groups of windows over threads.
class Lstm::Kernel {
 public:
  Kernel(const at::Tensor& values, const at::Tensor& gradients, std::int64_t inputs, std::int64_t hidden,
         std::int64_t layers)
      : values_(values), gradients_(gradients) {
    plan_.inputs = inputs;
    plan_.hidden = hidden;
    plan_.layers = layers;
  }

  const at::Tensor& forward(const at::Tensor& input) {
    input_ = input.contiguous();
    records_of_windows_.reset();
    const auto windows = input.size(0);
    plan_.steps = input.size(1);
    // Half as many lanes if they suffice, or if there would otherwise be fewer groups than threads.
    const auto threads = at::in_parallel_region() ? 1 : at::get_num_threads();
    plan_.lanes = windows > 16 && windows >= 32 * threads ? 32 : 16;
    records_.resize(static_cast<std::size_t>(groups()));
    fitted(output_, {windows, plan_.steps, plan_.hidden}, input.options());
    lstm_cpu::prepare(plan_, values_.const_data_ptr<float>(), weights_);
    for_groups([&](std::int64_t group, std::int64_t first, std::int64_t count) {
      lstm_cpu::forward(plan_, weights_, record(group), count, x(first), h(first));
    });
    return output_;
  }

  void backward(const at::Tensor& output_gradient) {
    const auto gradient = output_gradient.contiguous();
    fitted(input_sums_, {input_.size(0), plan_.inputs}, input_.options());
    const auto window = plan_.steps * plan_.hidden;
    for_groups([&](std::int64_t group, std::int64_t first, std::int64_t count) {
      lstm_cpu::backward(plan_, weights_, record(group), count, gradient.const_data_ptr<float>() + first * window,
                         input_sums_.data_ptr<float>() + first * plan_.inputs);
    });
  }

  [[nodiscard]] const at::Tensor& input_sums() const { return input_sums_; }

  void join(const Records& records) { records_of_windows_ = records; }

  void add_squared_norms(at::Tensor& norms) {
    const auto windows = input_.size(0);
    fitted(rows_, {windows, plan_.parameters()}, input_.options());
    fitted(squared_, {windows}, norms.options());
    for_groups([&](std::int64_t group, std::int64_t first, std::int64_t count) {
      lstm_cpu::window_gradients(plan_, record(group), count, x(first), h(first),
                                 rows_.data_ptr<float>() + first * plan_.parameters(), plan_.parameters(),
                                 squared_.data_ptr<double>() + first);
    });
    if (records_of_windows_) {
      rows_ = records_of_windows_->sums(rows_);
      norms.add_(squared_norms(rows_));
      return;
    }
    norms.add_(squared_);
  }

  void discard(const at::Tensor& windows) { rows_.masked_fill_(windows.unsqueeze(1), 0.0); }

  void add_gradient(const at::Tensor& factors) {
    auto* sum = gradients_.data_ptr<float>();
    if (factors.defined()) {
      at::parallel_for(0, plan_.parameters(), 2048, [&](std::int64_t begin, std::int64_t end) {
        lstm_cpu::weighted_sum(plan_.isa, rows_.size(0), factors.const_data_ptr<float>(), rows_.const_data_ptr<float>(),
                               plan_.parameters(), begin, end, sum);
      });
      return;
    }
    // One window after the other: a step engine has already given every thread its own.
    for (std::int64_t group = 0; group < groups(); ++group) {
      const auto first = group * plan_.lanes;
      lstm_cpu::add_gradients(plan_, record(group), std::min(plan_.lanes, input_.size(0) - first), x(first), h(first),
                              sum);
    }
  }

 private:
  [[nodiscard]] std::int64_t groups() const { return (input_.size(0) + plan_.lanes - 1) / plan_.lanes; }
  [[nodiscard]] lstm_cpu::Record& record(std::int64_t group) { return records_[static_cast<std::size_t>(group)]; }
  [[nodiscard]] const float* x(std::int64_t window) const {
    return input_.const_data_ptr<float>() + window * plan_.steps * plan_.inputs;
  }
  [[nodiscard]] float* h(std::int64_t window) {
    return output_.data_ptr<float>() + window * plan_.steps * plan_.hidden;
  }

  template <class Work>
  void for_groups(const Work& work) {
    const auto windows = input_.size(0);
    at::parallel_for(0, groups(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto group = begin; group < end; ++group) {
        const auto first = group * plan_.lanes;
        work(group, first, std::min(plan_.lanes, windows - first));
      }
    });
  }

  at::Tensor values_, gradients_;  // of all layers, flat
  lstm_cpu::Plan plan_;
  lstm_cpu::Weights weights_;
  std::vector<lstm_cpu::Record> records_;
  std::optional<Records> records_of_windows_;
  at::Tensor input_, output_, input_sums_, rows_, squared_;
};

Lstm::~Lstm() = default;

std::size_t Lstm::declare(ParameterBuffer& parameters, const std::string& prefix, std::int64_t inputs,
                          std::int64_t hidden, std::int64_t layers, bool trained) {
  std::size_t first = 0;
  for (std::int64_t l = 0; l < layers; ++l) {
    const auto suffix = "_l" + std::to_string(l);
    const auto place =
        parameters.declare(prefix + ".weight_ih" + suffix, {4 * hidden, l == 0 ? inputs : hidden}, trained);
    parameters.declare(prefix + ".weight_hh" + suffix, {4 * hidden, hidden}, trained);
    parameters.declare(prefix + ".bias_ih" + suffix, {4 * hidden}, trained);
    parameters.declare(prefix + ".bias_hh" + suffix, {4 * hidden}, trained);
    if (l == 0) first = place;
  }
  return first;
}

Lstm::Lstm(const ParameterBuffer& parameters, std::size_t first, std::int64_t layers, bool input_is_constant)
    : input_is_constant_(input_is_constant) {
  for (std::int64_t l = 0; l < layers; ++l) {
    const auto at = first + static_cast<std::size_t>(4 * l);
    levels_.push_back({parameters.value(at),
                       parameters.value(at + 1),
                       parameters.value(at + 2),
                       parameters.value(at + 3),
                       LinearRecord(parameters.gradient(at), parameters.gradient(at + 2)),
                       LinearRecord(parameters.gradient(at + 1), parameters.gradient(at + 3)),
                       {},
                       {},
                       {},
                       {},
                       {}});
  }
  const auto offset = parameters.entries().at(first).offset;
  const auto& last = parameters.entries().at(first + static_cast<std::size_t>(4 * layers) - 1);
  const auto flat = [&](const at::Tensor& all) { return all.narrow(0, offset, last.offset + last.count - offset); };
  const bool trained = parameters.entries().at(first).trained;
  kernel_ = std::make_unique<Kernel>(flat(parameters.values()), trained ? flat(parameters.gradients()) : at::Tensor(),
                                     levels_.front().weight_ih.size(1), levels_.front().weight_hh.size(1), layers);
}

const at::Tensor& Lstm::forward(const at::Tensor& input) {
  by_kernel_ = input_is_constant_ && kernels_serve(input);
  if (by_kernel_) return kernel_->forward(input);
  const auto* below = &input;
  for (auto& level : levels_) below = &forward(level, *below);
  return *below;
}

namespace {

/// The kernels of `device` for layers of `units`; null if it has none, or if they disagree with LibTorch's cells. They
/// are tried once on each device and width, before anything is recorded.
const LstmKernels* kernels_for(const at::TensorOptions& options, std::int64_t units) {
  if (options.dtype() != at::kFloat) return nullptr;
  static std::mutex lock;
  static std::map<std::pair<std::string, std::int64_t>, const LstmKernels*> tried;
  const std::lock_guard<std::mutex> guard(lock);
  const auto [place, is_new] = tried.try_emplace({options.device().str(), units}, nullptr);
  if (!is_new) return place->second;
  const auto* kernels = lstm_kernels_of(options.device());
  if (kernels == nullptr || !kernels->serves(options.device(), units)) return nullptr;
  constexpr std::int64_t windows = 3, steps = 4;
  const auto some = [&](at::IntArrayRef shape) {
    const auto count = c10::multiply_integers(shape);
    return at::arange(count, options).mul_(0.7).sin_().mul_(0.5).view(shape);
  };
  const auto from_input = some({windows, steps, 4 * units});
  const auto weight = some({4 * units, units});
  const auto by_states = some({windows, steps, units});
  const auto gates = at::empty_like(from_input);
  const auto by_gates = at::empty_like(from_input);
  const auto cells = at::empty_like(by_states);
  const auto states = at::empty_like(by_states);
  kernels->forward(from_input, weight, gates, cells, states);
  kernels->backward(by_states, weight, gates, cells, by_gates);
  auto state = at::zeros({windows, units}, options);
  auto cell = at::zeros_like(state);
  std::vector<at::Tensor> expected_states, gates_of_step, before{cell}, expected(steps);
  for (std::int64_t t = 0; t < steps; ++t) {
    auto [next, next_cell, all] = at::_thnn_fused_lstm_cell(from_input.select(1, t), at::mm(state, weight.t()), cell);
    state = next;
    cell = next_cell;
    expected_states.push_back(state);
    gates_of_step.push_back(all);
    before.push_back(cell);
  }
  at::Tensor by_cell = at::zeros_like(cell);
  for (auto t = static_cast<std::size_t>(steps); t-- > 0;) {
    auto by_state = by_states.select(1, static_cast<std::int64_t>(t)).clone();
    if (t + 1 < expected.size()) by_state.add_(at::mm(expected[t + 1], weight));
    std::tie(expected[t], by_cell, std::ignore) = at::_thnn_fused_lstm_cell_backward_impl(
        by_state, by_cell, before[t], before[t + 1], gates_of_step[t], /*has_bias=*/false);
  }
  before.erase(before.begin());
  const auto close = [](const at::Tensor& found, const std::vector<at::Tensor>& by_step) {
    return at::allclose(found, at::stack(by_step, 1), 1e-4, 1e-5);
  };
  const bool agree = close(states, expected_states) && close(cells, before) && close(gates, gates_of_step) &&
                     close(by_gates, expected);
  if (agree) place->second = kernels;
  else
    log::warning(
        cat("the LSTM kernels of ", options.device().str(), " disagree with LibTorch's cells and stay unused"));
  return place->second;
}

}  // namespace

const at::Tensor& Lstm::forward_at_once(Level& level, const at::Tensor& input, const LstmKernels& kernels) {
  const auto batch = input.size(0);
  const auto steps = input.size(1);
  const auto hidden = level.weight_hh.size(1);
  level.input = input;
  const auto from_input =
      at::addmm(level.bias_ih + level.bias_hh, input.reshape({-1, input.size(2)}), level.weight_ih.t());
  fitted(level.gates, {batch, steps, 4 * hidden}, input.options());
  fitted(level.cells, {batch, steps, hidden}, input.options());
  fitted(level.output, {batch, steps, hidden}, input.options());
  kernels.forward(from_input, level.weight_hh, level.gates, level.cells, level.output);
  return level.output;
}

const at::Tensor& Lstm::forward_fused(Level& level, const at::Tensor& input) {
  const auto batch = input.size(0);
  const auto steps = input.size(1);
  const auto hidden = level.weight_hh.size(1);
  level.input = input;
  // Steps first, so that what a step reads lies side by side.
  const auto from_input =
      at::addmm(level.bias_ih + level.bias_hh, input.transpose(0, 1).reshape({-1, input.size(2)}), level.weight_ih.t())
          .view({steps, batch, 4 * hidden});
  // cuBLAS splits the product with the transposed view into two launches.
  const auto weight = level.weight_hh.t().contiguous();
  level.fused_gates.clear();
  level.fused_cells.clear();
  std::vector<at::Tensor> states;
  auto from_state = at::zeros({batch, 4 * hidden}, input.options());
  auto cell = at::zeros({batch, hidden}, input.options());
  for (std::int64_t t = 0; t < steps; ++t) {
    if (t > 0) from_state = at::mm(states.back(), weight);
    auto [state, next, gates] = at::_thnn_fused_lstm_cell(from_input[t], from_state, cell);
    states.push_back(std::move(state));
    level.fused_gates.push_back(std::move(gates));
    level.fused_cells.push_back(next);
    cell = std::move(next);
  }
  level.output = at::stack(states, 1);
  return level.output;
}

void Lstm::backward_fused(Level& level, const at::Tensor& output_gradient) {
  const auto steps = output_gradient.size(1);
  std::vector<at::Tensor> gates(static_cast<std::size_t>(steps));
  const auto first_cell = at::zeros_like(level.fused_cells.front());
  at::Tensor by_cell;  // the gradient that comes back from step t + 1
  const auto arrived = output_gradient.transpose(0, 1).clone(at::MemoryFormat::Contiguous);
  for (auto t = static_cast<std::size_t>(steps); t-- > 0;) {
    auto by_state = arrived[static_cast<std::int64_t>(t)];
    if (t + 1 < gates.size()) by_state.addmm_(gates[t + 1], level.weight_hh);
    std::optional<at::Tensor> later;
    if (by_cell.defined()) later = by_cell;
    std::tie(gates[t], by_cell, std::ignore) = at::_thnn_fused_lstm_cell_backward_impl(
        by_state, later, t > 0 ? level.fused_cells[t - 1] : first_cell, level.fused_cells[t], level.fused_gates[t],
        /*has_bias=*/false);
  }
  level.gate_gradients = at::stack(gates, 1);
}

const at::Tensor& Lstm::forward(Level& level, const at::Tensor& input) {
  if (!input.device().is_cpu()) {
    level.kernels = kernels_for(input.options(), level.weight_hh.size(1));
    return level.kernels ? forward_at_once(level, input, *level.kernels) : forward_fused(level, input);
  }
  const auto batch = input.size(0);
  const auto steps = input.size(1);
  const auto hidden = level.weight_hh.size(1);
  level.input = input;
  fitted(level.gates, {steps, batch, 4 * hidden}, input.options());
  fitted(level.cells, {steps, batch, hidden}, input.options());
  fitted(level.output, {batch, steps, hidden}, input.options());
  // The input's contributions to all steps in one product.
  const auto from_input =
      at::addmm(level.bias_ih + level.bias_hh, input.reshape({-1, input.size(2)}), level.weight_ih.t())
          .view({batch, steps, 4 * hidden});
  at::Tensor state;
  at::Tensor cell;
  for (std::int64_t t = 0; t < steps; ++t) {
    auto gates = level.gates[t];
    if (t == 0) {
      gates.copy_(from_input.select(1, t));
    } else {
      at::addmm_out(gates, from_input.select(1, t), state, level.weight_hh.t());
    }
    gates.narrow(1, 0, 2 * hidden).sigmoid_();
    gates.narrow(1, 2 * hidden, hidden).tanh_();
    gates.narrow(1, 3 * hidden, hidden).sigmoid_();
    const auto part = gates.chunk(4, 1);
    auto next = level.cells[t];
    at::mul_out(next, part[0], part[2]);
    if (t > 0) next.addcmul_(part[1], cell);
    cell = next;
    state = part[3] * cell.tanh();
    level.output.select(1, t).copy_(state);
  }
  return level.output;
}

at::Tensor Lstm::backward(const Gradient& arrived, bool want_input_gradient) {
  const auto& output_gradient = arrived.value;
  TORCH_CHECK(!(input_is_constant_ && want_input_gradient), "the input was said to be constant");
  if (by_kernel_) {
    kernel_->backward(output_gradient);
    return {};
  }
  at::Tensor gradient = output_gradient;
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    backward(*level, gradient);
    const bool last = level + 1 == levels_.rend();
    if (last && !want_input_gradient) return {};
    const auto& gates = level->gate_gradients;
    gradient = at::mm(gates.view({-1, gates.size(2)}), level->weight_ih).view(level->input.sizes());
  }
  return gradient;
}

void Lstm::backward(Level& level, const at::Tensor& output_gradient) {
  const auto batch = output_gradient.size(0);
  const auto hidden = output_gradient.size(2);
  const auto steps = output_gradient.size(1);
  if (level.kernels != nullptr) {
    fitted(level.gate_gradients, {batch, steps, 4 * hidden}, output_gradient.options());
    level.kernels->backward(output_gradient.contiguous(), level.weight_hh, level.gates, level.cells,
                            level.gate_gradients);
  } else if (output_gradient.device().is_cpu()) {
    backward_plain(level, output_gradient);
  } else {
    backward_fused(level, output_gradient);
  }
  level.by_input.set(level.input, {level.gate_gradients});
  level.by_state.set(
      at::cat({at::zeros({batch, 1, hidden}, output_gradient.options()), level.output.narrow(1, 0, steps - 1)}, 1),
      {level.gate_gradients});
}

void Lstm::backward_plain(Level& level, const at::Tensor& output_gradient) {
  const auto batch = output_gradient.size(0);
  const auto steps = output_gradient.size(1);
  const auto hidden = output_gradient.size(2);
  fitted(level.gate_gradients, {batch, steps, 4 * hidden}, output_gradient.options());
  at::Tensor by_state;  // gradients that come back from step t + 1
  at::Tensor by_cell;
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    const auto part = level.gates[t].chunk(4, 1);
    const auto& i = part[0];
    const auto& f = part[1];
    const auto& g = part[2];
    const auto& o = part[3];
    const auto tanh_cell = level.cells[t].tanh();
    const auto dh = by_state.defined() ? output_gradient.select(1, t) + by_state : output_gradient.select(1, t);
    auto dc = dh * o * (1.0 - tanh_cell.square());
    if (by_cell.defined()) dc.add_(by_cell);
    auto gates = level.gate_gradients.select(1, t).chunk(4, 1);
    gates[0].copy_(dc * g * i * (1.0 - i));
    if (t > 0) {
      gates[1].copy_(dc * level.cells[t - 1] * f * (1.0 - f));
    } else {
      gates[1].zero_();
    }
    gates[2].copy_(dc * i * (1.0 - g.square()));
    gates[3].copy_(dh * tanh_cell * o * (1.0 - o));
    by_cell = dc * f;
    by_state = at::mm(level.gate_gradients.select(1, t), level.weight_hh);
  }
}

at::Tensor Lstm::summed_input_gradient() const {
  if (by_kernel_) return kernel_->input_sums();
  return at::mm(levels_.front().gate_gradients.sum(1), levels_.front().weight_ih);
}

void Lstm::join(const Records& records) {
  if (by_kernel_) return kernel_->join(records);
  for (auto& level : levels_) {
    level.by_input.join(records);
    level.by_state.join(records);
  }
}

void Lstm::add_squared_norms(at::Tensor& norms) {
  if (by_kernel_) return kernel_->add_squared_norms(norms);
  for (auto& level : levels_) {
    level.by_input.add_squared_norms(norms);
    level.by_state.add_squared_norms(norms);
  }
}

void Lstm::discard(const at::Tensor& windows) {
  if (by_kernel_) return kernel_->discard(windows);
  for (auto& level : levels_) {
    level.by_input.discard(windows);
    level.by_state.discard(windows);
  }
}

void Lstm::add_gradient(const at::Tensor& factors) {
  if (by_kernel_) return kernel_->add_gradient(factors);
  for (auto& level : levels_) {
    level.by_input.add_gradient(factors);
    level.by_state.add_gradient(factors);
  }
}

}  // namespace tsdp::dp
