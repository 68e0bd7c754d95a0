// One update of a model from one batch of windows.
#pragma once

#include <memory>
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
    dp::Clipping clipping;
    double noise_multiplier = 1.0;
    double batch_size = 1.0;  ///< Λ: divisor of the noisy sum; not the realised size
    dp::Adam::Options adam;
    /// Not private: bound on the norm of the whole gradient (of the batch's mean loss); 0 for none.
    double gradient_norm_bound = 0.0;
    /// Memory that a batch's records may take, bytes; larger batches are worked on in chunks. 0 for no bound.
    std::int64_t memory_budget = 0;
  };
  StepEngine(models::Forecaster& model, Options options);

  struct Result {
    at::Tensor losses;  ///< (B)
    at::Tensor norms;   ///< (B) before clipping; undefined if not private
  };
  /// Takes one step; `noise` = (key, dp::noise_purpose, step), not read if not private. An empty batch is a step of
  /// noise alone (private) or of weight decay alone.
  Result step(const models::WindowBatch& batch, const RandomStream& noise);

  /// Windows that are worked on at a time, by all threads together. Norms and clip factors are the windows' own and do not
  /// hang on it; sums over windows are taken in another order, so they differ by rounding.
  [[nodiscard]] std::int64_t chunk() const;

  [[nodiscard]] dp::Adam& optimizer() noexcept { return adam_; }

 private:
  /// Takes windows `begin` … `end − 1` of the batch through `model` and returns the sum of their gradients: the model's
  /// gradient buffer, or, of several chunks, `sum` (double precision).
  at::Tensor work(models::Forecaster& model, at::Tensor& sum, const models::WindowBatch& batch, std::int64_t begin,
                  std::int64_t end, const Result& result) const;
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
