// One update of a model from one batch of windows.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/forecaster.h"
#include "tsdp/dp/private_step.h"

namespace tsdp::training {

/// One update of a model from one batch. The private and the ordinary step are one program; the ordinary one leaves
/// out norms, clipping and noise.
///
/// On the CPU every thread takes its share of the windows through the whole model, over parameters that all share: what
/// a window needs stays in one core's cache, and threads meet once a step. Sums hang on the number of threads by
/// rounding, and on nothing else.
class StepEngine {
 public:
  struct Options {
    bool is_private = true;
    /// Places of a batch (sampling::Draw), and windows that are expected in all of them together; public. 0 places: batches of
    /// one size, of which every window has a place of its own.
    std::int64_t places = 0;
    std::int64_t expected_windows = 0;
    bool fixed_windows = true;  ///< whether every place holds the same windows' number in every batch, or what coins say
    dp::Clipping clipping;
    double noise_multiplier = 1.0;
    double batch_size = 1.0;  ///< Λ: divisor of the noisy sum; not the realised size
    dp::Adam::Options adam;
    /// Not private: bound on the norm of the whole gradient (of the batch's mean loss); 0 for none.
    double gradient_norm_bound = 0.0;
    /// Memory that a batch's records may take, bytes; larger batches are worked on in chunks. 0 for no bound.
    std::int64_t memory_budget = 0;
  };
  /// Throws PrivacyError if the step is private and matrix products would round to fewer digits than single precision has.
  StepEngine(models::Forecaster& model, Options options);

  struct Result {
    at::Tensor losses;  ///< (B)
    at::Tensor norms;   ///< (B) before clipping; undefined if not private
  };
  /// Takes one step; `noise` = (key, dp::noise_purpose, step), not read if not private. `places`, one a window, as
  /// sampling::Draw has them, unless Options::places is 0. An empty batch is a step of noise alone (private) or
  /// of weight decay alone.
  Result step(const models::WindowBatch& batch, const RandomStream& noise, std::span<const std::int64_t> places = {});

  /// Windows that are worked on at a time, by all threads together. Norms and clip factors are the windows' own and do not
  /// hang on it; sums over windows are taken in another order, so they differ by rounding.
  [[nodiscard]] std::int64_t chunk() const;
  /// What gradients are clipped to, with the most windows that are summed in single precision in a batch of `windows` (of
  /// which it hangs only without Options::places, where all batches have one size).
  [[nodiscard]] dp::Clipping clipping(std::int64_t windows) const;

  [[nodiscard]] dp::Adam& optimizer() noexcept { return adam_; }

 private:
  /// Windows `begin` … `end − 1` of a batch, which are summed together.
  struct Block {
    std::int64_t begin, end;
  };
  /// How many there are, a multiple of the threads', for batches of `windows` windows where Options::places is 0.
  [[nodiscard]] std::int64_t block_count(std::int64_t windows) const;
  /// The blocks of a batch, told by places alone.
  [[nodiscard]] std::vector<Block> blocks_of(std::int64_t windows, std::span<const std::int64_t> places) const;
  /// Windows of a block that are worked on at a time, and how many such pieces the blocks of a batch are.
  [[nodiscard]] std::int64_t piece_of(const Block& block, const dp::Clipping& clip) const;
  [[nodiscard]] std::int64_t pieces_of(std::span<const Block> blocks, const dp::Clipping& clip) const;
  /// Takes the windows of `blocks` through `model` and returns the sum of their gradients: the model's gradient buffer, or,
  /// of several pieces, `sum` (double precision).
  at::Tensor work(models::Forecaster& model, at::Tensor& sum, const models::WindowBatch& batch, std::span<const Block> blocks,
                  const dp::Clipping& clip, const Result& result) const;
  [[nodiscard]] bool has_fixed_windows() const { return options_.places == 0 || options_.fixed_windows; }
  [[nodiscard]] std::int64_t threads() const { return static_cast<std::int64_t>(replicas_.size()) + 1; }
  /// Most windows whose gradients are summed in their own precision.
  [[nodiscard]] std::int64_t most_summed() const;
  /// Windows that one thread works on at a time.
  [[nodiscard]] std::int64_t chunk_of_a_thread() const;

  models::Forecaster& model_;
  std::vector<std::unique_ptr<models::Forecaster>> replicas_;  // of the threads but the first
  std::vector<at::Tensor> sums_;                               // a thread: kept for their memory
  Options options_;
  dp::Adam adam_;
};

}  // namespace tsdp::training
