// plan → step → ledger → checkpoint.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tsdp/config/config.h"
#include "tsdp/data/configured.h"
#include "tsdp/mechanism/ledger.h"
#include "tsdp/mechanism/setup.h"
#include "tsdp/sampling/batch_sampler.h"
#include "tsdp/training/metrics_log.h"
#include "tsdp/training/model_setup.h"
#include "tsdp/training/plan.h"
#include "tsdp/training/run_store.h"
#include "tsdp/training/start_weights.h"
#include "tsdp/training/step_engine.h"
#include "tsdp/training/window_source.h"

namespace tsdp::training {

/// What a run reports while it goes on.
struct Progress {
  std::uint64_t step;
  std::uint64_t steps;
  double epoch;
  double loss;                  ///< mean of the last logged batch
  double steps_per_second;
  double seconds_left;
  double epsilon;               ///< not below that of the steps taken so far; 0 if not private
};

struct TrainOptions {
  std::function<void(const Progress&)> progress = {};  ///< called a few times a second at most; may be empty
  const std::atomic<bool>* stop = nullptr;             ///< set by a signal: the run ends after the present step
  std::uint64_t most_steps = std::numeric_limits<std::uint64_t>::max();  ///< steps after which the run pauses
  /// Called after every step with their number so far; the step's release stands in model().parameters().gradients(). May
  /// be empty.
  std::function<void(std::uint64_t steps)> after_step = {};
};

/// One training run in one folder.
class Trainer {
 public:
  /// `data` must outlive the trainer; no value of `config` is `auto` but the noise (mechanism/auto_settings.h). `forecaster`, if given, is trained
  /// in place of the one that `config` names: one of the caller's own, in single precision on `device`. `start` holds the weights that model.start
  /// names; none: fresh ones.
  Trainer(Config config, const data::PreparedData& data, at::Device device, RunFolder folder,
          std::unique_ptr<models::Forecaster> forecaster = nullptr, std::optional<mechanism::StartWeights> start = std::nullopt);

  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
  /// As the run keeps it, from `begin` on with the number that a noise multiplier `auto` became.
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  /// What the run does with its data.
  [[nodiscard]] const mechanism::TrainingMethod& method() const noexcept { return method_; }
  [[nodiscard]] models::Forecaster& model() noexcept { return *model_; }
  /// The private choice that a run may end with (mechanism/private_choice.h). `sum`, of all series' scores, is private.
  struct PrivateChoice {
    std::int64_t sum = 0;
    bool keeps_trained = true;
  };
  /// None before it is made, and where none is.
  [[nodiscard]] const std::optional<PrivateChoice>& choice() const noexcept { return choice_; }
  /// Memory of a step in bytes, about: parameters with gradients and optimizer, and the records of a batch.
  [[nodiscard]] std::int64_t memory() const;

  /// Begins a new run: key, initial weights, first checkpoint. The folder must hold no run. A crash in between leaves
  /// either no run or all of one. The whole plan is charged to `budget` (mechanism/budget.h) before, if there is one. Throws
  /// PrivacyError where it does not pay for that.
  void begin(const std::optional<std::filesystem::path>& budget = std::nullopt);
  /// Takes up the run in the folder. Steps since the last checkpoint are replayed bit for bit if the environment is
  /// the same; otherwise what was charged stays charged and training goes on after it, with a new key. Without a
  /// checkpoint it starts over from the weights it began with, with what is left of the budget. Steps that privacy.json says are charged
  /// stay charged, whatever the other files say. Throws PrivacyError if no budget is left or what keeps the count of it is
  /// gone, DataError if files of different runs are mixed.
  void resume();

  /// Trains until the plan is done (true), or a stop is asked for or `most_steps` are taken (false). Leaves checkpoint and ledger.
  bool run(const TrainOptions& options);

  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  /// The ledger as of now.
  [[nodiscard]] mechanism::Ledger current_ledger(mechanism::RunState state) const;

 private:
  void start_fresh();
  void restore(const Checkpoint& checkpoint);
  /// Goes on behind the last charged step. Throws PrivacyError if nothing would be trained then; `why` begins what is said.
  void give_up_charged_steps(const std::string& why);
  enum class WithKey {
    yes,
    no
  };
  [[nodiscard]] Checkpoint checkpoint(WithKey with_key) const;
  void write_ledger(mechanism::RunState state);
  /// Raises the count of charged steps, and what the ledger says of it.
  void charge_to(std::uint64_t steps);
  /// Of these windows; not a number of none.
  double mean_loss(std::span<const data::WindowIndex> windows);
  double validation_loss();
  /// Mean loss of each series' validation windows, in nats a value.
  std::vector<double> validation_losses_by_series();
  /// Puts the start's weights in the place of the trained ones, or does not: docs/proofs/private-choice.md. Nothing without a choice.
  void choose_privately();
  /// Whether the exported weights are those of least mean training loss.
  [[nodiscard]] bool best_by_training_loss() const;
  /// Whether anything hangs on the mean training loss between two looks; never in a private run.
  [[nodiscard]] bool watches_training_loss() const;
  /// With step and epoch of now.
  [[nodiscard]] Metrics metrics_at_step() const;
  /// Looks at the mean loss since the last look, or at the loss of the validation part.
  void look(MetricsLog& metrics);

  Config config_;
  std::optional<mechanism::StartWeights> start_;
  const data::PreparedData& data_;
  at::Device device_;
  std::string environment_;  // read once: it stays what it was when the run began or was taken up here
  RunStore store_;
  std::unique_ptr<models::Forecaster> model_;
  data::WindowStore windows_;
  WindowSource source_;
  mechanism::TrainingMethod method_;
  std::unique_ptr<sampling::BatchSampler> sampler_;
  Plan plan_;
  StepEngine engine_;
  SecretKey key_;
  std::string key_print_;  // of key_; of the last one where the key is gone
  bool key_is_gone_ = false;  // with the end of the run
  std::uint64_t step_ = 0;
  std::uint64_t given_up_ = 0;  // of those: charged, and not taken or lost
  double best_loss_;       // of the validation part, or of training
  PlateauSchedule schedule_;
  std::optional<PrivateChoice> choice_;
  at::Tensor loss_sum_;    // of all windows since the last look at it, and their number; double precision
};

}  // namespace tsdp::training
