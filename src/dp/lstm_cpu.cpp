// Compiled with contraction into fused operations, unlike the rest: speed depends on them, and nothing here needs the
// same bits on every machine.
#include "lstm_cpu.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TSDP_X86 1
#include <immintrin.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tsdp::dp::lstm_cpu {
namespace {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Gates of four units at one step: sixteen rows of lanes, and a cache line apart so that one window's lines do not all
/// fall into the same few sets of a cache.
constexpr std::int64_t block_size(std::int64_t lanes) { return 16 * lanes + 16; }

/// Units that are activated together: enough that what the processor computes side by side does not run out too often.
constexpr std::int64_t strip_units = 12;

/// Units in the forward block that begins at `unit`. Three units' gates by two vectors fill 24 of 32 registers; not one
/// unit by itself at the end, which would be bound by latency.
int forward_units(const Plan& plan, std::int64_t unit) {
  const std::int64_t left = std::min(plan.hidden - unit, strip_units - unit % strip_units);
  return static_cast<int>(left == 4 ? 2 : std::min<std::int64_t>(left, 3));
}

/// Rows in the block of a product that begins at `row`; the last one is padded to a multiple of four.
int product_rows(std::int64_t rows, std::int64_t row) {
  const std::int64_t left = round_up(rows, 4) - row;
  return static_cast<int>(left == 16 ? 8 : std::min<std::int64_t>(left, 12));
}

/// With m = 2^(tanh_scale · x) − 1, tanh x = m / (m + 2); and sigmoid x = 1 / (1 + 2^(sigmoid_scale · x)). The forward
/// panels are scaled by these.
constexpr float tanh_scale = 2.88539008F;
constexpr float sigmoid_scale = -1.44269504F;

/// Offsets into the buffers of a record.
class Layout {
 public:
  explicit Layout(const Plan& plan) : plan_(plan) {}

  std::int64_t gate_rows() const { return 4 * round_up(plan_.hidden, 4); }
  /// Size of one layer's gates and cells at one step, which lie in this order.
  std::int64_t step_size() const { return step_gates() + 2 * plan_.hidden * plan_.lanes; }
  std::int64_t gates(std::int64_t layer, std::int64_t t) const { return (layer * plan_.steps + t) * step_size(); }
  std::int64_t cells(std::int64_t layer, std::int64_t t) const { return gates(layer, t) + step_gates(); }
  std::int64_t hidden(std::int64_t layer) const { return layer * plan_.lanes * plan_.steps * plan_.hidden; }
  std::int64_t sums(std::int64_t layer) const { return layer * gate_rows() * plan_.lanes; }
  /// An odd number of cache lines, so that the rows spread over the sets of the first cache.
  std::int64_t in_stride(std::int64_t inputs) const { return 16 * ((round_up(inputs + plan_.hidden, 16) / 16) | 1); }
  std::int64_t scratch() const {
    const std::int64_t units = round_up(plan_.hidden, 16);
    const std::int64_t inputs = round_up(plan_.inputs, 16);
    const std::int64_t passes = (inputs + (2 * plan_.layers + 10) * units) * plan_.lanes;
    const std::int64_t gradients =
        plan_.steps * (gate_rows() + std::max(in_stride(plan_.inputs), in_stride(plan_.hidden))) + 16;
    return std::max(passes, gradients);
  }

 private:
  std::int64_t step_gates() const { return gate_rows() / 16 * block_size(plan_.lanes); }

  const Plan& plan_;
};

/// Memory to fetch into the second cache while something else is computed: one line in each turn of the inner loop, at
/// distances of `step` bytes. The record of a group is larger than that cache.
struct Ahead {
  const char* at = nullptr;
  std::int64_t step = 0;
};

/// `count` floats in about `turns` turns.
Ahead ahead_of(const float* from, std::int64_t count, std::int64_t turns) {
  const std::int64_t lines = (count + 15) / 16;
  return {reinterpret_cast<const char*>(from), (lines + turns - 1) / std::max<std::int64_t>(turns, 1) * 64};
}

/// Fetches what the next window's gradient needs, some lines in each of `turns` turns.
class WindowAhead {
 public:
  WindowAhead() = default;
  WindowAhead(const float* gates, std::int64_t blocks, std::int64_t block, std::int64_t steps, std::int64_t step_size,
              const float* x, std::int64_t x_size, const float* h, std::int64_t h_size, std::int64_t turns)
      : at_(gates),
        stride_(step_size),
        left_(steps),
        first_(gates),
        blocks_(blocks - 1),
        block_(block),
        steps_(steps),
        x_(x),
        x_lines_(x_size / 16 + 1),
        h_(h),
        h_lines_(h_size / 16 + 1),
        quota_((blocks * steps + x_lines_ + h_lines_ + turns - 1) / turns) {}

  [[gnu::always_inline]] void fetch() {
    for (std::int64_t i = 0; i < quota_; ++i) {
      if (left_ == 0) next();
      __builtin_prefetch(at_, 0, 2);
      at_ += stride_;
      --left_;
    }
  }

 private:
  void next() {
    if (blocks_ > 0) {
      --blocks_;
      first_ += block_;
      at_ = first_;
      left_ = steps_;
      return;
    }
    // x, then h, then nothing: the same line over and over.
    at_ = x_;
    left_ = x_lines_;
    stride_ = x_lines_ > 0 ? 16 : 0;
    if (left_ == 0) left_ = quota_;
    x_ = h_;
    x_lines_ = h_lines_;
    h_lines_ = 0;
  }

  const float* at_ = nullptr;
  std::int64_t stride_ = 0;
  std::int64_t left_ = 0;
  const float* first_ = nullptr;
  std::int64_t blocks_ = 0;
  std::int64_t block_ = 0;
  std::int64_t steps_ = 0;
  const float* x_ = nullptr;
  std::int64_t x_lines_ = 0;
  const float* h_ = nullptr;
  std::int64_t h_lines_ = 0;
  std::int64_t quota_ = 0;
};

struct Kernels {
  // For 16 and 32 lanes.
  void (*forward[2])(const Plan&, const Weights&, Record&, std::int64_t, const float*, float*);
  void (*backward[2])(const Plan&, const Weights&, Record&, std::int64_t, const float*, float*);
  void (*window_gradients[2])(const Plan&, Record&, std::int64_t, const float*, const float*, float*, std::int64_t,
                              double*);
  void (*add_gradients[2])(const Plan&, Record&, std::int64_t, const float*, const float*, float*, std::int64_t,
                           double*);
  void (*weighted_sum)(std::int64_t, const float* const*, const float*, std::int64_t, std::int64_t, float*);
};

#define TSDP_ISA portable
#define TSDP_WIDTH 4
#include "lstm_cpu_kernel.inc"
#undef TSDP_ISA
#undef TSDP_WIDTH

#ifdef TSDP_X86
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2")
#define TSDP_ISA avx2
#define TSDP_WIDTH 8
#include "lstm_cpu_kernel.inc"
#undef TSDP_ISA
#undef TSDP_WIDTH
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi,bmi2,prefer-vector-width=512")
#define TSDP_ISA avx512
#define TSDP_WIDTH 16
#include "lstm_cpu_kernel.inc"
#undef TSDP_ISA
#undef TSDP_WIDTH
#pragma GCC pop_options
#endif

const Kernels& kernels_of(Isa isa) {
#ifdef TSDP_X86
  if (isa == Isa::avx512) return avx512::kernels;
  if (isa == Isa::avx2) return avx2::kernels;
#else
  static_cast<void>(isa);
#endif
  return portable::kernels;
}

void check(const Plan& plan, std::int64_t count) {
  if (plan.inputs < 1 || plan.hidden < 1 || plan.layers < 1 || plan.steps < 1 ||
      (plan.lanes != 16 && plan.lanes != 32) || count < 0 || count > plan.lanes)
    throw std::invalid_argument("an LSTM needs inputs, units, layers, steps, and groups of at most 16 or 32 windows");
}

std::size_t width_index(const Plan& plan) { return plan.lanes == 32 ? 1 : 0; }

}  // namespace

Isa best_isa() {
#ifdef TSDP_X86
  __builtin_cpu_init();  // may run before static objects are made
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::portable;
}

void Buffer::Free::operator()(float* values) const { std::free(values); }

float* Buffer::reserve(std::int64_t count) {
  if (count <= count_) return values_.get();
  constexpr std::size_t huge = std::size_t{1} << 21;
  auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  const std::size_t alignment = bytes >= huge ? huge : 64;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  values_.reset();
  count_ = 0;
  void* const raw = std::aligned_alloc(alignment, bytes);
  if (raw == nullptr) throw std::bad_alloc();
#ifdef __linux__
  if (alignment == huge) static_cast<void>(madvise(raw, bytes, MADV_HUGEPAGE));  // only speed depends on it
#endif
  std::memset(raw, 0, bytes);
  values_.reset(static_cast<float*>(raw));
  count_ = count;
  return values_.get();
}

void prepare(const Plan& plan, const float* parameters, Weights& weights) {
  check(plan, 0);
  const std::int64_t U = plan.hidden;
  weights.layers.resize(static_cast<std::size_t>(plan.layers));
  std::int64_t total = 0;
  for (std::int64_t layer = 0; layer < plan.layers; ++layer) {
    const std::int64_t F = plan.layer_inputs(layer);
    auto& at = weights.layers[static_cast<std::size_t>(layer)];
    at.forward = total;
    at.to_hidden = at.forward + 4 * U * (1 + F + U);
    at.to_inputs = at.to_hidden + 4 * U * round_up(U, 4);
    total = at.to_inputs + 4 * U * round_up(F, 4);
  }
  float* const values = weights.values.reserve(total);
  for (std::int64_t layer = 0; layer < plan.layers; ++layer) {
    const std::int64_t F = plan.layer_inputs(layer);
    const auto& at = weights.layers[static_cast<std::size_t>(layer)];
    const float* const ih = parameters;
    const float* const hh = ih + 4 * U * F;
    const float* const bias = hh + 4 * U * U;
    float* to = values + at.forward;
    for (std::int64_t unit = 0; unit < U;) {
      const int units = forward_units(plan, unit);
      const std::int64_t height = 4 * units;
      for (std::int64_t r = 0; r < height; ++r) {
        const std::int64_t row = r % 4 * U + unit + r / 4;
        const float scale = r % 4 == 2 ? tanh_scale : sigmoid_scale;
        to[r] = scale * (bias[row] + bias[4 * U + row]);
        for (std::int64_t k = 0; k < F; ++k) to[(1 + k) * height + r] = scale * ih[row * F + k];
        for (std::int64_t k = 0; k < U; ++k) to[(1 + F + k) * height + r] = scale * hh[row * U + k];
      }
      to += height * (1 + F + U);
      unit += units;
    }
    const auto pack_transposed = [U](const float* matrix, std::int64_t columns, float* panel) {
      for (std::int64_t column = 0; column < columns;) {
        const int height = product_rows(columns, column);
        for (std::int64_t k = 0; k < 4 * U; ++k) {
          const float* const row = matrix + (k % 4 * U + k / 4) * columns;
          for (std::int64_t r = 0; r < height; ++r)
            panel[k * height + r] = column + r < columns ? row[column + r] : 0.0F;
        }
        panel += 4 * U * height;
        column += height;
      }
    };
    pack_transposed(hh, U, values + at.to_hidden);
    pack_transposed(ih, F, values + at.to_inputs);
    parameters += plan.layer_parameters(layer);
  }
}

void forward(const Plan& plan, const Weights& weights, Record& record, std::int64_t count, const float* x, float* h) {
  check(plan, count);
  const Layout at(plan);
  record.passes.reserve(at.gates(plan.layers, 0));
  record.hidden.reserve(at.hidden(plan.layers - 1));
  record.sums.reserve(at.sums(plan.layers));
  record.scratch.reserve(at.scratch());
  kernels_of(plan.isa).forward[width_index(plan)](plan, weights, record, count, x, h);
}

void backward(const Plan& plan, const Weights& weights, Record& record, std::int64_t count, const float* dh,
              float* dx_sum) {
  check(plan, count);
  kernels_of(plan.isa).backward[width_index(plan)](plan, weights, record, count, dh, dx_sum);
}

void window_gradients(const Plan& plan, Record& record, std::int64_t count, const float* x, const float* h, float* rows,
                      std::int64_t stride, double* squared) {
  check(plan, count);
  kernels_of(plan.isa).window_gradients[width_index(plan)](plan, record, count, x, h, rows, stride, squared);
}

void add_gradients(const Plan& plan, Record& record, std::int64_t count, const float* x, const float* h, float* sum) {
  check(plan, count);
  kernels_of(plan.isa).add_gradients[width_index(plan)](plan, record, count, x, h, sum, 0, nullptr);
}

void weighted_sum(Isa isa, std::int64_t windows, const float* factors, const float* rows, std::int64_t stride,
                  std::int64_t begin, std::int64_t end, float* sum) {
  constexpr std::int64_t most = 256;
  const float* used[most];
  float used_factors[most];
  for (std::int64_t w = 0; w < windows;) {
    std::int64_t n = 0;
    for (; w < windows && n < most; ++w) {
      if (factors[w] == 0.0F) continue;
      used[n] = rows + w * stride;
      used_factors[n++] = factors[w];
    }
    kernels_of(isa).weighted_sum(n, used, used_factors, begin, end, sum);
  }
}

}  // namespace tsdp::dp::lstm_cpu
