// From recorded layers to one update of the parameters (paper, Algorithm 2).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ATen/ATen.h>

#include "tsdp/dp/layer.h"
#include "tsdp/dp/parameters.h"
#include "tsdp/random/random.h"

namespace tsdp::dp {

/// How a window's factor follows from its gradient norm n and the clip norm C. All keep factor · n ≤ C, by a few units
/// of rounding of n.
enum class ClipFactor {
  exact,      ///< min(1, C/n)
  opacus,     ///< min(1, C/(n + 1e-6)), as Opacus has it: never above `exact`
  automatic,  ///< C/(n + 0.01): every window is normalised, none is left as it is (Bu et al. 2023, AUTO-S)
};

/// What a record's gradient is scaled by before it is added. A record is a window, or several whose gradients are
/// summed.
struct Clipping {
  double norm = 1e-4;  ///< C: what a record adds to the sum has at most this norm
  ClipFactor factor = ClipFactor::exact;
  /// Every one of M layers on its own, to C/√M: the whole again has norm at most C.
  bool per_layer = false;
  /// m: most windows that are summed in the gradients' own precision; more are summed in double precision. A public
  /// constant: every window is scaled by a guard that follows from it, and the realised number is private.
  std::int64_t summed = 128;
  /// Whether records may have several windows. Such a record's gradient is `scale` times the sum of its windows'.
  bool joined = false;
  double scale = 1.0;
};

/// What C is multiplied by so that the sum, as it is rounded, moves by no more than C for every window that is inserted
/// or removed, and by no more than 2 C for every one that is replaced.
///
/// A batch is summed in blocks, whose members are determined by public places (sampling::Draw), block by block in
/// double precision. Windows that two neighbours have in common lie in the same blocks; the i windows that only one of
/// them has lie in b ≤ i blocks. A block of at most m windows is summed in the gradients' precision by m − 1 additions:
/// off by at most (m − 1) u Σ |f g| in every coordinate, in whatever order (u the unit roundoff; Higham's book, §4.2,
/// to first order; the products' own rounding is counted below), so by a vector of norm at most (m − 1) u · m C =: e
/// C/2. All blocks but those b are summed from the same bits to the same bits. So the rounded sum moves, from that of
/// the windows in common, by at most i C + b e C ≤ i C (1 + e). With i windows of one neighbour and j of the other: by
/// at most (i + j) C (1 + e) between the two. If every place has the same number of windows in every batch, windows are
/// replaced, never inserted: a block may then be several such pieces, of which only those with replaced windows change.
/// A block of more than m windows that coins have drawn is summed one window at a time, in double precision, like the
/// blocks themselves: of B windows in p pieces that is off by at most p B 2⁻⁵³ C, for p B ≤ 2³³
/// (most_pieces_times_windows) by at most 16 u C. That, and what norm, factor and product are off by (73 units of
/// single precision, see `clip_factors`), is taken off C as 96 u.
///
/// **Records of several windows.** Read "record" for "window" above, and let a block have at most m windows, or one
/// record. A record's gradient G = Σ_t g_t is either formed and then measured as it is, or measured from products and
/// added in double precision, or added in single precision window by window, if S = Σ_t ‖g_t‖ ≤ K ‖G‖ for its K ≤ m
/// windows (LinearRecord). Which of these it is follows from its own windows and from public numbers, never from other
/// records: the presence of a record must not change how others are rounded. With f ‖G‖ ≤ C the windows of a block then
/// have Σ f ‖g_t‖ ≤ m C, as above, so their additions are off by at most (m − 1) u m C. A block that an inserted record
/// of K_s windows makes larger than m is summed record by record: off by at most Σ_r K_r (K_r − 1) u C + K_s (K_s − 1)
/// u C against n (n − 1) u C without it, n = Σ K_r ≤ m, in all 3 m (m − 1) u C, which takes the place of 2 m (m − 1) u
/// C. The two roundings of every f g_t xₜᵀ, which were one window's before, are off by 2 u f S ≤ 2 m u C for an
/// inserted record: `joined` takes that off C as well.
///
/// Not covered, and said so in every ledger: the rounding of a window's own gradient may depend on how many windows it
/// is computed together with (libraries choose their code by the shape of a product).
inline constexpr double most_pieces_times_windows = 0x1p33;
[[nodiscard]] double rounding_guard(at::ScalarType type, std::int64_t summed, bool joined = false);

/// Factors (B), of type `type`, for the sums of the records' windows from their squared norms (B): `clipping.scale`
/// times what clips `clipping.scale` times the sum to `norm`. A record whose norm is not finite gets 0. `per_layer` has
/// no effect here.
[[nodiscard]] at::Tensor clip_factors(const at::Tensor& squared_norms, const Clipping& clipping, at::ScalarType type);

/// Throws PrivacyError unless products of matrices on `device` keep every digit of single precision, as rounding_guard
/// assumes: LibTorch, cuBLAS and oneDNN round factors to fewer if told to, by the environment as well. Multiplies small
/// matrices whose exact products are known.
void require_full_precision(const at::Device& device);

/// Adds the clipped sum Σ_r f_r G_r of everything the layers recorded of a batch of `records` to the gradient buffer
/// they write to, which holds zeros. Requires at most clipping.summed windows, or one record. Sensitivity: see
/// rounding_guard. Returns the records' norms (double precision) before clipping, for the private metrics. Nothing here
/// makes the host wait for another device.
///
/// `kept`, if given, holds 1 for the records that are added and 0 for those that only fill the batch up to a public
/// size.
at::Tensor add_clipped_sum(const std::vector<Layer*>& layers, const Records& records, const Clipping& clipping,
                           const at::TensorOptions& options, const at::Tensor& kept = {});

/// gradient_j ← (Σ parts_j + deviation · z_j) · scale for every coordinate j (flat, contiguous): what threads gathered
/// (each part like `gradient`, which may be one of them, or in double precision), with N(0, deviation²) noise from
/// normal j of `stream` (not read if the deviation is 0). Parts are summed and noise is drawn and added in double
/// precision; that is rounded to the grid of the noise (noise_grid_offset) and to the gradient's type, before the
/// scaling. Same noise on every device and thread count.
///
/// `correlate(place, noise)`, if given, turns deviation · z of the coordinates from `place` on into the noise that is
/// added; it is called by several threads, for parts that do not overlap.
using Correlate = std::function<void(std::int64_t place, std::span<double> noise)>;
void finish_sum(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, double deviation,
                const RandomStream& stream, double scale, const Correlate& correlate = {});

/// noise ← deviation · z, correlated as above: what finish_sum adds, before anything is rounded. `noise`: double
/// precision, on the CPU, contiguous.
void draw_noise(const at::Tensor& noise, double deviation, const RandomStream& stream, const Correlate& correlate = {});
/// The end of finish_sum: `sum` (double precision, on the gradient's device) holds the parts and the noise. Rounds it
/// to the grid of the noise, in place, and to the gradient's type, and scales. Nothing here makes the host wait.
void finish_noised(const at::Tensor& gradient, at::Tensor sum, double deviation, double scale);

/// gradient ← (Σ parts) · scale, in the same way without noise.
void add_up(const at::Tensor& gradient, const std::vector<at::Tensor>& parts, double scale);

/// `finish_sum` of `gradient` as it is, with noise alone.
inline void add_noise(const at::Tensor& gradient, double deviation, const RandomStream& stream) {
  finish_sum(gradient, {gradient}, deviation, stream, 1.0);
}

/// Adam with coupled weight decay (L2) on a flat buffer, in one fused pass.
class Adam {
 public:
  struct Options {
    double learning_rate = 1e-3;
    double weight_decay = 1e-8;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
  };
  Adam(Options options, const at::Tensor& values);

  void step(const at::Tensor& values, const at::Tensor& gradient);

  void set_learning_rate(double learning_rate) noexcept { options_.learning_rate = learning_rate; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }

  /// State for checkpoints: first moment, second moment (like the values), number of steps taken (1 element).
  [[nodiscard]] std::vector<at::Tensor> state() const { return {first_, second_, steps_}; }

 private:
  Options options_;
  at::Tensor first_, second_, steps_;
};

}  // namespace tsdp::dp
