// plan → step → ledger → checkpoint.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "models/forecaster.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/mechanism/training_method.h"
#include "tsdp/run/run_folder.h"
#include "tsdp/settings/auto_settings.h"
#include "tsdp/settings/config.h"
#include "tsdp/settings/configured.h"
#include "tsdp/training/plan.h"

namespace tsdp::training {

class Ranks;

/// What a run reports on its progress.
struct Progress {
  std::uint64_t step;
  std::uint64_t steps;
  double epoch;
  double loss;                  ///< mean of the last logged batch
  double steps_per_second;
  double seconds_left;
  double epsilon;               ///< at least that of the steps taken so far; 0 if not private
};

struct TrainOptions {
  std::function<void(const Progress&)> progress = {};  ///< called a few times a second at most; may be empty
  const std::atomic<bool>* stop = nullptr;             ///< set by a signal: the run ends after the current step
  std::uint64_t most_steps = std::numeric_limits<std::uint64_t>::max();  ///< steps after which the run pauses
  /// Called after every step with the number of steps so far; the step's release is then in
  /// model().parameters().gradients(). May be empty.
  std::function<void(std::uint64_t steps)> after_step = {};
};

/// One training run in one folder.
class Trainer {
 public:
  /// `run` must be settled from the lengths of `data`, which must outlive the trainer. `forecaster`, if given, is
  /// trained instead of the one that the configuration names: a forecaster of the caller's own, in single precision on
  /// `device`. `ranks`, if given, of which this must be the first, take part in every step, and must outlive the
  /// trainer.
  Trainer(mechanism::Settled run, const data::PreparedData& data, at::Device device, RunFolder folder,
          std::unique_ptr<models::Forecaster> forecaster = nullptr, Ranks* ranks = nullptr);
  ~Trainer();

  [[nodiscard]] const Plan& plan() const noexcept;
  /// The configuration as the run keeps it.
  [[nodiscard]] const Config& config() const noexcept;
  /// What the run does with its data.
  [[nodiscard]] const mechanism::TrainingMethod& method() const noexcept;
  [[nodiscard]] models::Forecaster& model() noexcept;
  /// Approximate memory of a step in bytes: parameters with gradients and optimizer, and the records of a batch.
  [[nodiscard]] std::int64_t memory() const;

  /// Begins a new run: key, initial weights, first checkpoint. The folder must hold no run. A crash during this leaves
  /// either no run or a complete one. If `budget` (ledger/budget.h) is given, the whole plan is charged to it first;
  /// throws PrivacyError if it does not cover that.
  void begin(const std::optional<std::filesystem::path>& budget = std::nullopt);
  /// The share of that budget, in [0, 1], that would be spent after `begin`, which is not done: nothing is charged.
  /// Throws as `begin` does.
  [[nodiscard]] double spent_after(const std::filesystem::path& budget) const;
  /// Continues the run in the folder. Steps since the last checkpoint are replayed bit for bit if the environment is
  /// the same; otherwise what was charged stays charged and training continues after it, with a new key. Without a
  /// checkpoint, it starts over from its initial weights with what is left of the budget. Steps that privacy.json
  /// states as charged stay charged, whatever the other files say. Throws PrivacyError if no budget is left or the
  /// record that counts it is gone; DataError if files of different runs are mixed.
  void resume();

  /// Trains until the plan is done (true), or until a stop is requested or `most_steps` are taken (false). Leaves a
  /// checkpoint and a ledger.
  bool run(const TrainOptions& options);

  [[nodiscard]] std::uint64_t step() const noexcept;
  /// The ledger as of now.
  [[nodiscard]] mechanism::Ledger current_ledger(mechanism::RunState state) const;

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace tsdp::training
