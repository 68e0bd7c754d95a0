// One update of a model from one batch of windows.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dp/noise_mechanism.h"
#include "dp/private_step.h"
#include "models/forecaster.h"
#include "tsdp/mechanism/training_method.h"

namespace tsdp::training {

/// Calls the functions of single numbers (logarithms, roots, …) once, before threads do. On the CPU, LibTorch takes
/// them from MKL, which chooses its code at the first call. If two threads make that call at once, one of them may get
/// other code, which differs in the last place (one of 750 processes, seen with at::log). A resumed run would then end
/// with other weights than one that was never interrupted.
void settle_vector_functions();

/// One update of a model from one batch. The private and the ordinary step share one program; the ordinary one leaves
/// out norms, clipping and noise.
///
/// On the CPU every thread takes its share of the windows through the whole model, over parameters shared by all: what
/// a window needs stays in one core's cache, and threads meet once a step. The number of threads affects sums only by
/// rounding.
class StepEngine {
 public:
  struct Options {
    dp::Adam::Options adam;
    /// Not private: bound on the norm of the whole gradient (of the batch's mean loss); 0 for none.
    double gradient_norm_bound = 0.0;
    /// Memory in bytes that a batch's records may take; larger batches are worked on in chunks. 0 for no bound.
    std::int64_t memory_budget = 0;
    /// Whether steps are taken by `exact_sum` and `finish_exact`, whose sums depend on no number of threads.
    bool exact = false;
  };
  /// Series whose windows are summed on their own: public.
  struct Shard {
    std::int64_t first_place, last_place;  ///< where its windows may be: from the first to before the last
    std::int64_t expected_windows;         ///< there
  };
  /// Throws PrivacyError if the method is private and matrix products would round to fewer digits than single precision
  /// has.
  StepEngine(models::Forecaster& model, const mechanism::TrainingMethod& method, Options options);

  struct Result {
    at::Tensor losses;  ///< (B)
    at::Tensor norms;  ///< of the records' gradients before clipping; undefined if not private
  };
  /// Takes step `step` with the windows that the method's sampler drew for it. `places` has one entry per window, as in
  /// sampling::Draw: they identify the records. A record's windows are worked on at once, whatever memory they take.
  /// The noise of a private step is that of `key`. An empty batch is a step of noise alone (private) or of weight decay
  /// alone.
  Result step(const models::WindowBatch& batch, std::span<const std::int64_t> places, const SecretKey& key,
              std::uint64_t step);

  /// The first half of a private step whose batch is summed by several ranks, each of which has some of its series.
  /// Not a release: a sum without noise. `batch` has the windows of some shards, one shard after the other, as many of
  /// each as `windows` says. The sum is in whole numbers of 64 bits, of `exact_unit()`, one for each trained parameter:
  /// the same bits however the shards are shared out, whoever adds them up. `result` is of these windows alone.
  at::Tensor exact_sum(const models::WindowBatch& batch, std::span<const std::int64_t> places,
                       std::span<const Shard> shards, std::span<const std::int64_t> windows, Result& result);
  /// The second half: takes step `step` with the sum of all shards.
  void finish_exact(const at::Tensor& sum, const SecretKey& key, std::uint64_t step);
  /// Most windows of a batch that is summed so.
  static constexpr std::int64_t most_exact_windows = 1 << 20;
  /// 2^(⌊log₂ C⌋ − 40); why that is fine enough stands with `whole_numbers`.
  [[nodiscard]] double exact_unit() const;

  /// The sum of a batch's gradients to which noise is added, each clipped if private; double precision. Not a release:
  /// for tests and audits.
  at::Tensor sum(const models::WindowBatch& batch, std::span<const std::int64_t> places);

  /// Windows worked on at a time, by all threads together. Norms and clip factors are the windows' own and do not
  /// depend on it; sums over windows are taken in another order, so they differ by rounding.
  [[nodiscard]] std::int64_t chunk() const;
  /// What gradients are clipped to, with the most windows summed in single precision.
  [[nodiscard]] const dp::Clipping& clipping() const noexcept { return clipping_; }

  [[nodiscard]] dp::Adam& optimizer() noexcept { return adam_; }
  [[nodiscard]] const dp::Adam& optimizer() const noexcept { return adam_; }
  /// What the noise keeps between steps, for checkpoints.
  [[nodiscard]] std::vector<at::Tensor> noise_state() const;

 private:
  friend class ReplayedStep;  // takes the same steps in another way

  /// Records `first` … `last − 1` of a batch, worked on at a time.
  struct Piece {
    std::int64_t first, last;
  };
  /// The parts of a batch that are clipped as one. Without privacy none is: every window, or a series' variables, are
  /// on their own.
  [[nodiscard]] dp::Records records_of(std::span<const std::int64_t> places) const;
  /// How many blocks a batch has, a multiple of the number of threads. A block's windows are summed together.
  [[nodiscard]] std::int64_t block_count() const;
  /// How many blocks `expected` windows need.
  [[nodiscard]] std::int64_t blocks_of(std::int64_t expected) const;
  /// Adds the pieces of one block to `pieces`: the records from `record` on that begin before window `end`.
  void add_block(std::vector<Piece>& pieces, const dp::Records& records, std::int64_t& record, std::int64_t begin,
                 std::int64_t end) const;
  /// How many windows of a block of `windows` are worked on at a time, if no record has more.
  [[nodiscard]] std::int64_t piece_size(std::int64_t windows) const;
  /// The pieces of the blocks of a batch, one list per thread. A window's place alone decides which block it is in.
  [[nodiscard]] std::vector<std::vector<Piece>> pieces_of(const dp::Records& records,
                                                          std::span<const std::int64_t> places) const;
  /// Makes room in `result` for a batch.
  void make_room(Result& result, const dp::Records& records) const;
  /// Calls work(thread) for every thread.
  void on_all_threads(const std::function<void(std::int64_t)>& work) const;
  [[nodiscard]] models::Forecaster& model_of(std::int64_t thread) const {
    return thread == 0 ? model_ : *replicas_[static_cast<std::size_t>(thread) - 1];
  }
  /// The parts of that sum, one per thread; fills `result`.
  std::vector<at::Tensor> parts_of(const models::WindowBatch& batch, std::span<const std::int64_t> places,
                                   Result& result);
  /// Takes the windows of `pieces` through `model` and returns the sum of their gradients: the model's gradient buffer
  /// or, if there are several pieces, `sum` (double precision).
  at::Tensor work(models::Forecaster& model, at::Tensor& sum, const models::WindowBatch& batch,
                  const dp::Records& records, std::span<const Piece> pieces, const Result& result) const;
  /// Writes the losses of `batch` and, if private, the norms of its records' gradients; adds the sum of the gradients,
  /// clipped if private, to the model's gradient buffer, which holds zeros. `kept`: dp::add_clipped_sum.
  void add_gradients(models::Forecaster& model, const models::WindowBatch& batch, const dp::Records& records,
                     at::Tensor losses, at::Tensor norms, const at::Tensor& kept = {}) const;
  /// Throws Error unless a batch of `windows` comes with their places.
  void check(std::span<const std::int64_t> places, std::int64_t windows) const;
  /// Throws Error if a private batch is summed in more pieces than rounding_guard allows for.
  void check_pieces(std::int64_t windows, std::size_t pieces) const;
  /// values ← values after the step with `gradients`, the sum of a batch divided by the divisor.
  void update(const at::Tensor& values, const at::Tensor& gradients, dp::Adam& adam) const;
  [[nodiscard]] bool is_private() const { return noise_ != nullptr; }
  [[nodiscard]] std::int64_t threads() const { return static_cast<std::int64_t>(replicas_.size()) + 1; }
  /// Most windows whose gradients are summed in their own precision.
  [[nodiscard]] std::int64_t most_summed() const;
  /// Windows that one thread works on at a time.
  [[nodiscard]] std::int64_t chunk_of_a_thread() const;

  models::Forecaster& model_;
  std::vector<std::unique_ptr<models::Forecaster>> replicas_;  // of all threads but the first
  std::vector<at::Tensor> sums_;  // one per thread, kept for their memory
  Options options_;
  // The parts of the scheme that decide how sums are taken; public.
  std::int64_t places_, expected_windows_;
  bool fixed_windows_, bounded_windows_, joins_, of_series_;
  std::int64_t variables_;  // V: their windows are never parted
  std::int64_t record_windows_;  // λ V of a series, V of a window
  double divisor_;
  dp::Clipping clipping_;  // private only
  std::unique_ptr<dp::NoiseMechanism> noise_;  // none: not private
  dp::Adam adam_;
};

}  // namespace tsdp::training
