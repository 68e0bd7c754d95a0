// The layer interface of the private step: explicit forward and backward passes, no autograd.
//
// For every parametric layer the gradient of one window is a contraction of its input (activation) and what came back
// (output gradient). So a layer records both during one forward and one backward pass, and derives from them per-window
// squared norms and the sum of clipped per-window gradients, without a second backward pass and, where that is cheaper,
// without ever forming a window's gradient.
//
// Each operation exists once in plain LibTorch operations, which run on any device and in single and double precision,
// and, where it pays, once as a CPU kernel in single precision; `PlainOperations` switches the kernels off.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

namespace tsdp::dp {

/// While one exists, every layer uses its plain LibTorch operations, on every thread. For tests and comparisons.
class PlainOperations {
 public:
  PlainOperations();
  ~PlainOperations();
  PlainOperations(const PlainOperations&) = delete;
  PlainOperations& operator=(const PlainOperations&) = delete;
};

/// Whether the CPU kernel handles this tensor: it is on the CPU, in single precision, and kernels are not switched off.
[[nodiscard]] bool kernels_serve(const at::Tensor& tensor);

/// Which windows of a batch make up a record, whose gradient is clipped as one: windows begin(r) … end(r) − 1 of record
/// r, in order.
class Records {
 public:
  /// Every window is a record.
  [[nodiscard]] static Records each_window(std::int64_t windows);
  /// Record r ends where r + 1 begins; `starts` has one entry more than there are records, from 0 to the number of
  /// windows, and no record is empty. `expected`: λ, a public number of windows per record, by which layers choose how
  /// they compute. Throws Error otherwise.
  explicit Records(std::vector<std::int64_t> starts, std::int64_t expected = 1);

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t windows() const noexcept { return windows_; }
  /// λ. How a record is computed must not depend on the realised numbers of windows, except its own: otherwise the
  /// presence of another record would show in how this one is rounded.
  [[nodiscard]] std::int64_t expected() const noexcept { return expected_; }
  /// Records `first` … `last − 1` by themselves.
  [[nodiscard]] Records range(std::int64_t first, std::int64_t last) const;
  [[nodiscard]] std::int64_t begin(std::int64_t record) const {
    return starts_.empty() ? record : starts_[static_cast<std::size_t>(record)];
  }
  [[nodiscard]] std::int64_t end(std::int64_t record) const { return begin(record + 1); }

  /// The windows' `rows` (W, T, …) as (R, largest · T, …), and (W, d) as (R, largest, d), with zeros where a record has
  /// fewer windows. A view if all have the same number.
  [[nodiscard]] at::Tensor side_by_side(const at::Tensor& rows) const;
  /// Sums of the windows' rows (W, …): (R, …).
  [[nodiscard]] at::Tensor sums(const at::Tensor& rows) const;
  /// Values of the records (R), repeated for each of their windows (W).
  [[nodiscard]] at::Tensor for_windows(const at::Tensor& of_records) const;

 private:
  Records() = default;
  [[nodiscard]] bool all_as_large() const noexcept { return count_ * largest_ == windows_; }
  /// For each window (W): its record times `stride`, plus (if `within`) its place among the record's windows.
  [[nodiscard]] at::Tensor places(std::int64_t stride, bool within, const at::Device& device) const;

  std::vector<std::int64_t> starts_;  // empty: every window is a record
  std::int64_t count_ = 0, windows_ = 0, largest_ = 1, expected_ = 1;
};

/// What the private step requires of everything that has parameters. B is the number of windows of a batch; it may
/// change from call to call and be 0.
class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  /// After a backward pass: merges the windows of every record into one, so that B is the number of records from then
  /// on and a record's gradient is the sum of those of its windows. Not for use where every window is a record.
  virtual void join(const Records& records) = 0;
  /// Adds every window's squared gradient norm over this layer's parameters to `norms` (B, double precision): never
  /// less than the squared norm of what `add_gradient` adds for the window, up to 70 rounding units of the type.
  virtual void add_squared_norms(at::Tensor& norms) = 0;
  /// Discards what was recorded for the windows marked in `windows` (B, bool): their gradients become 0, even where
  /// they were not finite (a factor of 0 alone would leave 0 · NaN).
  virtual void discard(const at::Tensor& windows) = 0;
  /// Adds Σ_i factors_i g_i to the gradient buffer; factors (B), or undefined for all 1.
  virtual void add_gradient(const at::Tensor& factors) = 0;
};

/// The gradient of the summed loss with respect to a value, on its way back.
struct Gradient {
  at::Tensor value;
  /// Squared norms over all of a window's entries (B, double precision), if the code that made `value` had them at
  /// hand; else undefined. As accurate as `squared_norms`.
  at::Tensor window_norms = {};
};

/// A layer from one tensor to one tensor: what a Tape strings together.
class Map : public Layer {
 public:
  /// Output for `input` (B, …); keeps what the other operations need. The result is valid until the next call.
  virtual const at::Tensor& forward(const at::Tensor& input) = 0;
  /// Turns the gradient of the summed loss with respect to the output into that with respect to the input. Returns an
  /// undefined tensor if the input's gradient is not wanted.
  virtual at::Tensor backward(const Gradient& output_gradient, bool want_input_gradient) = 0;
};

/// Reuses `buffer` if shape, type and device fit; a batch of usual size then allocates nothing.
at::Tensor& fitted(at::Tensor& buffer, at::IntArrayRef shape, const at::TensorOptions& options);

/// `rows`, or a copy of it, whose last axis has no gaps, so that a kernel can walk along it.
[[nodiscard]] inline at::Tensor with_dense_rows(const at::Tensor& rows) {
  return rows.stride(-1) == 1 ? rows : rows.contiguous();
}

/// Squared Euclidean norms along the last axis, in double precision; relative error at most 70 units of the rows' type.
[[nodiscard]] at::Tensor squared_norms(const at::Tensor& rows);

}  // namespace tsdp::dp
