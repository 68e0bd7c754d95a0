// A rank's part of every private step.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sampling/structured_sampler.h"
#include "training/ranks.h"
#include "training/step_engine.h"
#include "training/window_source.h"
#include "tsdp/settings/auto_settings.h"

namespace tsdp::training {

/// Adds to `sum`, modulo 2^64, what hides it from rank 0: for each other rank but 0 a stream of `key`, which these
/// share, of this pair and this step. One of the two adds it and the other takes it off, so the masks of all ranks add
/// up to 0. `run`: of the run and of the key of its noise, so that no run has another's masks.
///
/// Whoever does not know `key` sees W − 2 uniform sums, and the sum of all: that of one rank where the others have no
/// window in the step. It holds as long as no step is summed twice with other weights: rank 0 is trusted to follow the
/// protocol.
void add_masks(const at::Tensor& sum, const SecretKey& key, const data::Rank& rank, const std::string& run,
               std::uint64_t step);

/// A rank's part of every private step of a data set that lies in several files. Every rank draws the whole batch from
/// the key of sampling, which all share, and sums the clipped gradients of the windows of its own series. Rank 0 adds
/// up these sums, adds the noise, and takes the optimizer's step; before each step all others get its weights. So the
/// windows of a step are exactly those that one process would draw, and the noise is added once: what is accounted does
/// not depend on the number of ranks. Nor does any bit of the result (StepEngine::exact_sum).
class StepShare {
 public:
  /// All must outlive it. The engine is one for exact sums. `validation`: this rank's windows of the validation part.
  /// `masks`: other ranks hide their sums (add_masks), and keep the losses of such windows to themselves.
  StepShare(models::Forecaster& model, StepEngine& engine, WindowSource& source, sampling::StructuredSampler& sampler,
            const data::Shards& shards, Ranks& ranks, std::span<const data::WindowIndex> validation,
            bool masks = false);

  /// On rank 0: tells the others which windows are drawn from now on, by the print of the key of the noise; and the
  /// run, which no other has masks of.
  void begin(const std::string& key_print, const std::string& run);
  /// On rank 0: takes step `step`. The result is of its own windows.
  StepEngine::Result step(const SecretKey& sampling, const SecretKey& noise, std::uint64_t step);
  /// On rank 0: what the model loses, after `step` steps, on the validation windows of all ranks that tell.
  WindowSource::LossSum validation_loss(std::uint64_t step);
  /// On rank 0, in place of `begin`: lets the others know that there is no run.
  static void give_up(Ranks& ranks) { static_cast<void>(ranks.from_first("")); }
  /// On rank 0: lets the others go after `steps` steps. `done`: the plan is.
  void end(bool done, std::uint64_t steps);
  /// On any other rank: takes part in all steps until rank 0 ends. `shared` is what the ranks share. Returns the number
  /// of steps after which the run was interrupted; none if its plan is done.
  std::optional<std::uint64_t> follow(const SecretKey& shared);

 private:
  /// This rank's sum of step `step`, as it is.
  at::Tensor own_sum(const SecretKey& sampling, std::uint64_t step, StepEngine::Result& result);

  models::Forecaster& model_;
  StepEngine& engine_;
  WindowSource& source_;
  sampling::StructuredSampler& sampler_;
  Ranks& ranks_;
  std::span<const data::WindowIndex> validation_;
  bool masks_;
  std::vector<std::int64_t> begins_;  // the first series of every own file; and the end of the last
  std::vector<StepEngine::Shard> shards_;  // the own ones
};

/// Takes part in the run of rank 0 until it ends: all that the other ranks do. `run` must be settled as rank 0's is.
/// Throws Error if rank 0 is interrupted or ends.
void take_part(const mechanism::Settled& run, const data::PreparedData& data, Ranks& ranks);

}  // namespace tsdp::training
