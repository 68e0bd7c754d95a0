// The recurrence of one LSTM layer, as kernels: compiled by nvcc for the device, and by the tests for the host, where
// `tests/support/thread_block.h` runs a block's threads one after the other.
//
// A block takes `lstm_windows` windows through all steps, one thread for each row of the 4U gates (i, f, g, o). It
// keeps the recurrent weights in shared memory and waits for no other block. Nothing is added atomically, so the same
// windows give the same bits each time.
#pragma once

#include <cmath>
#include <cstdint>

namespace tsdp::dp {

inline constexpr int lstm_windows = 2;  ///< of a block

/// Bytes of shared memory that a block needs for U hidden units.
inline std::int64_t lstm_shared_bytes(std::int64_t units) {
  return static_cast<std::int64_t>(sizeof(float)) * (4 * units * units + lstm_windows * 9 * units);
}

#ifdef TSDP_DEVICE_CODE

TSDP_DEVICE float lstm_sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

/// h_t, c_t and the gates after their nonlinearities from `from_input` = W x_t + b, for T steps of B windows.
/// from_input, gates: (B, T, 4U); weight: (4U, U); cells, states: (B, T, U).
TSDP_KERNEL lstm_forward(const float* from_input, const float* weight, float* gates, float* cells, float* states,
                         std::int64_t windows, std::int64_t steps, int units) {
  TSDP_SHARED(shared);
  const int rows = 4 * units;
  float* const w = shared;                        // (U, 4U): transposed, so that neighbours read neighbours
  float* const h = w + rows * units;              // (windows, U)
  float* const sums = h + lstm_windows * units;   // (windows, 4U)
  float* const c = sums + lstm_windows * rows;    // (windows, U)
  const int row = static_cast<int>(TSDP_THREAD);
  const std::int64_t first = static_cast<std::int64_t>(TSDP_BLOCK) * lstm_windows;
  for (int k = 0; k < units; ++k) w[k * rows + row] = weight[row * units + k];
  for (int i = row; i < lstm_windows * units; i += rows) h[i] = c[i] = 0.0F;
  TSDP_WAIT();
  for (std::int64_t t = 0; t < steps; ++t) {
    float sum[lstm_windows];
    for (int v = 0; v < lstm_windows; ++v)
      sum[v] = first + v < windows ? from_input[((first + v) * steps + t) * rows + row] : 0.0F;
    for (int k = 0; k < units; ++k) {
      const float of_row = w[k * rows + row];
      for (int v = 0; v < lstm_windows; ++v) sum[v] = fmaf(of_row, h[v * units + k], sum[v]);
    }
    for (int v = 0; v < lstm_windows; ++v) sums[v * rows + row] = sum[v];
    TSDP_WAIT();
    for (int i = row; i < lstm_windows * units; i += rows) {
      const int v = i / units;
      const int unit = i % units;
      if (first + v >= windows) continue;
      const float* const raw = sums + v * rows + unit;
      const float in = lstm_sigmoid(raw[0]);
      const float keep = lstm_sigmoid(raw[units]);
      const float add = tanhf(raw[2 * units]);
      const float out = lstm_sigmoid(raw[3 * units]);
      c[i] = fmaf(keep, c[i], in * add);
      h[i] = out * tanhf(c[i]);
      const std::int64_t place = (first + v) * steps + t;
      float* const to = gates + place * rows + unit;
      to[0] = in;
      to[units] = keep;
      to[2 * units] = add;
      to[3 * units] = out;
      cells[place * units + unit] = c[i];
      states[place * units + unit] = h[i];
    }
    TSDP_WAIT();
  }
}

/// Gradients with respect to the gates before their nonlinearities, (B, T, 4U), from `by_states`, those with respect to
/// h_t, (B, T, U).
TSDP_KERNEL lstm_backward(const float* by_states, const float* weight, const float* gates, const float* cells,
                          float* gate_gradients, std::int64_t windows, std::int64_t steps, int units) {
  TSDP_SHARED(shared);
  const int rows = 4 * units;
  float* const w = shared;  // (4U, U)
  float* const by_gates = w + rows * units;  // (windows, 4U)
  float* const parts = by_gates + lstm_windows * rows;  // (windows, 4, U): what comes back from step t + 1, by gate
  float* const by_cell = parts + lstm_windows * rows;  // (windows, U)
  const int row = static_cast<int>(TSDP_THREAD);
  const int gate = row / units;
  const int of_gate = row % units;
  const std::int64_t first = static_cast<std::int64_t>(TSDP_BLOCK) * lstm_windows;
  for (int k = 0; k < units; ++k) w[row * units + k] = weight[row * units + k];
  for (int i = row; i < lstm_windows * units; i += rows) by_cell[i] = 0.0F;
  for (int v = 0; v < lstm_windows; ++v) parts[v * rows + row] = 0.0F;
  TSDP_WAIT();
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    for (int i = row; i < lstm_windows * units; i += rows) {
      const int v = i / units;
      const int unit = i % units;
      float* const to = by_gates + v * rows + unit;
      if (first + v >= windows) {
        to[0] = to[units] = to[2 * units] = to[3 * units] = 0.0F;
        continue;
      }
      const std::int64_t place = (first + v) * steps + t;
      const float* const back = parts + v * rows + unit;
      const float by_state =
          by_states[place * units + unit] + ((back[0] + back[units]) + (back[2 * units] + back[3 * units]));
      const float* const g = gates + place * rows + unit;
      const float in = g[0];
      const float keep = g[units];
      const float add = g[2 * units];
      const float out = g[3 * units];
      const float squashed = tanhf(cells[place * units + unit]);
      const float of_cell = fmaf(by_state * out, 1.0F - squashed * squashed, by_cell[i]);
      const float before = t > 0 ? cells[(place - 1) * units + unit] : 0.0F;
      to[0] = of_cell * add * in * (1.0F - in);
      to[units] = of_cell * before * keep * (1.0F - keep);
      to[2 * units] = of_cell * in * (1.0F - add * add);
      to[3 * units] = by_state * squashed * out * (1.0F - out);
      by_cell[i] = of_cell * keep;
      float* const kept = gate_gradients + place * rows + unit;
      kept[0] = to[0];
      kept[units] = to[units];
      kept[2 * units] = to[2 * units];
      kept[3 * units] = to[3 * units];
    }
    TSDP_WAIT();
    float sum[lstm_windows];
    for (int v = 0; v < lstm_windows; ++v) sum[v] = 0.0F;
    for (int k = 0; k < units; ++k) {
      const float of_unit = w[(gate * units + k) * units + of_gate];
      for (int v = 0; v < lstm_windows; ++v) sum[v] = fmaf(of_unit, by_gates[v * rows + gate * units + k], sum[v]);
    }
    for (int v = 0; v < lstm_windows; ++v) parts[v * rows + row] = sum[v];
    TSDP_WAIT();
  }
}

#endif

}  // namespace tsdp::dp
