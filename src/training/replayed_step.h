// Steps that a device records once and replays.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "dp/device_kind.h"
#include "sampling/structured_sampler.h"
#include "training/step_engine.h"
#include "training/window_source.h"

namespace tsdp::training {

/// The steps of a StepEngine, as two records on a device. *Add* gathers a piece of a batch and adds the clipped sum of
/// its gradients to a sum in double precision. *Finish* adds the noise, rounds to its grid, scales, and takes Adam's
/// step. A step replays *add* for every piece of its batch, none for an empty one, and then *finish*: a few launches in
/// all.
///
/// Shapes follow from public numbers alone: a piece is filled up to the largest that pieces may be, and what fills it
/// up is left out of the sum. So how a window's gradient is rounded does not depend on how many windows are drawn.
///
/// The noise of a step is drawn on the host, from the step's number and the key, and travels before *finish* is
/// launched. *Finish* overwrites it with values that are not numbers: launched twice, or without noise of its own, it
/// ruins the weights and releases nothing.
class ReplayedStep {
 public:
  /// Null where the device cannot record, or steps are of another kind (records of several windows). `engine`, `model`
  /// and `source` must outlive it; `model` is the engine's. Adds a batch twice and replays it, to see whether the sums
  /// are equal (`repeats`); no weight is changed by that.
  static std::unique_ptr<ReplayedStep> of(StepEngine& engine, models::Forecaster& model, WindowSource& source);

  /// StepEngine::step with the windows of `drawn`. The result is valid until the next step. Once a step has thrown, all
  /// further ones do: it may have been taken in part.
  StepEngine::Result step(const sampling::Draw& drawn, const SecretKey& key, std::uint64_t step);
  /// Whether the same batch gave the same bits four times: twice as it is, twice as a replay.
  [[nodiscard]] bool repeats() const noexcept { return repeats_; }

 private:
  ReplayedStep(StepEngine& engine, models::Forecaster& model, WindowSource& source);
  void prepare();
  void add();
  void finish(const at::Tensor& values, dp::Adam& adam);
  /// Sends the windows `first` … `first + count − 1` of a batch to the device, and adds them.
  void add_piece(std::span<const data::WindowIndex> windows);

  StepEngine& engine_;
  models::Forecaster& original_;
  WindowSource& source_;
  std::unique_ptr<models::Forecaster> model_;  // over the same parameters; nobody else writes to its records
  std::int64_t most_;  // windows of a piece
  at::Tensor places_, kept_;  // of a piece: (2, most), (most)
  at::Tensor losses_, norms_;  // of a piece: (most)
  at::Tensor sum_, noise_;  // (parameters), double precision
  std::unique_ptr<dp::DeviceGraph> add_, finish_;
  double recorded_rate_ = 0.0;  // the learning rate in `finish_`
  bool repeats_ = false;
  bool in_a_step_ = false;
};

/// Whether all of `sums` give the same bits, with weights of `model` at which gradients are not 0. Keeps the weights. A
/// sum that is 0 at most coordinates shows nothing, so the answer is then no.
[[nodiscard]] bool give_the_same(models::Forecaster& model, const std::vector<std::function<at::Tensor()>>& sums);

}  // namespace tsdp::training
