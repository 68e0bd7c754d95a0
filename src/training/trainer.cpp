#include "tsdp/training/trainer.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>

#include "base/digest.h"
#include "base/log.h"
#include "base/version.h"
#include "dp/device_kind.h"
#include "ledger/budget.h"
#include "run/environment.h"
#include "run/metrics_log.h"
#include "run/run_store.h"
#include "sampling/augmentation.h"
#include "sampling/structured_sampler.h"
#include "settings/setup.h"
#include "training/model_setup.h"
#include "training/replayed_step.h"
#include "training/shared_facts.h"
#include "training/start_weights.h"
#include "training/step_engine.h"
#include "training/step_share.h"
#include "training/window_source.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr std::uint64_t logged_lines = 2000;       // metrics lines of a run, at most about this many
constexpr std::uint64_t logged_epsilons = 25;      // of them with epsilon, at most about this many
constexpr double epsilon_precision = 5e-3;         // of those epsilons
constexpr double epsilon_share = 0.01;             // of the time, at most, plus a second
constexpr double charge_seconds = 5.0;             // seconds of training covered by one block of charged steps
constexpr std::uint64_t first_block = 16;          // before the rate is known
constexpr std::uint64_t most_blocks = 100;         // of a plan: a killed run loses at most a hundredth of it
constexpr std::size_t most_lines_waiting = 256;    // of the log, for numbers that are still computed
constexpr double checkpoint_share = 0.005;         // of the time, at most

StepEngine::Options step_options(const Config& config, bool exact) {
  StepEngine::Options o;
  o.exact = exact;
  o.adam = {config.optimizer.learning_rate.value(), config.optimizer.weight_decay};
  o.gradient_norm_bound = config.optimizer.gradient_norm_bound.value_or(0.0);
  o.memory_budget = config.training.memory_mb.value_or(0) << 20;
  return o;
}

/// Upper epsilons of a run in progress, at multiples of `every` steps: always one step count ahead, which covers the
/// steps before it. If accounting takes long, the later ones are left out and the end of the plan covers them.
class EpsilonAhead {
 public:
  EpsilonAhead(const mechanism::TrainingMethod& method, const Plan& plan, double delta, std::uint64_t every)
      : method_(method), plan_(plan), delta_(delta), every_(every) {
    if (method_.privacy()) curve_ = method_.privacy()->curve();
  }

  /// Looks ahead to `step` or beyond.
  void cover(std::uint64_t step) {
    if (!curve_ || step <= step_) return;
    const auto start = Clock::now();
    const bool takes_long = spent_ > 1.0 + epsilon_share * seconds_since(begin_);
    step_ = takes_long ? plan_.steps : std::min(plan_.steps, (step + every_ - 1) / every_ * every_);
    value_ = plan_.epsilon.upper;
    if (step_ == plan_.steps) return;
    const auto uses = method_.privacy()->theorem().uses_of_steps(step_);
    value_ = std::min(value_, curve_->epsilon(delta_, uses, epsilon_precision).upper);
    spent_ += seconds_since(start);
  }
  [[nodiscard]] std::uint64_t step() const { return step_; }  ///< the step count for `value`
  [[nodiscard]] double value() const { return value_; }       ///< 0 if not private

 private:
  const mechanism::TrainingMethod& method_;
  const Plan& plan_;
  double delta_;
  std::uint64_t every_;
  std::unique_ptr<privacy::PrivacyCurve> curve_;
  std::uint64_t step_ = 0;
  double value_ = 0.0;
  double spent_ = 0.0;
  Clock::time_point begin_ = Clock::now();
};

/// The configuration of a run, if a trainer can begin with it and these data. Planning takes seconds, so this comes
/// first.
const Config& checked(const mechanism::Settled& run, const data::PreparedData& data) {
  const auto& config = run.config;
  const auto& start = run.start;
  mechanism::require_settled(run, data.training_lengths());
  if (run.method.privacy() && config.training.checkpoint == ExportedWeights::best)
    throw PrivacyError(
        "training.checkpoint: found best with privacy.enabled; weights chosen by losses without noise are covered by "
        "no theorem: set training.checkpoint to last");
  if (start.has_value() == (config.model.start == "fresh"))
    throw UsageError(cat("model.start: found ", config.model.start, start ? " with weights" : " without weights",
                         ": model.start needs a file of weights, or fresh"));
  if (run.begins_at_random() && !mechanism::takes_steps(config))
    throw UsageError(
        "privacy.target_epsilon: found 0 with random weights to start from, which are no model to release; expected "
        "another model.start or a model.prior, or a target above 0");
  return config;
}

}  // namespace

/// What a trainer consists of.
class Trainer::Run {
 public:
  Run(mechanism::Settled run, const data::PreparedData& data, at::Device device, RunFolder folder,
      std::unique_ptr<models::Forecaster> forecaster, Ranks* ranks);

  void begin(const std::optional<std::filesystem::path>& budget);
  void resume();
  bool train(const TrainOptions& options);
  [[nodiscard]] std::int64_t memory() const;
  [[nodiscard]] mechanism::Ledger current_ledger(mechanism::RunState state) const;

 private:
  friend class Trainer;

  /// Throws PrivacyError for a run that no budget covers.
  void require_what_budgets_cover() const;
  /// Calls `charge` (ledger/budget.h) for the whole plan.
  template <class Charge>
  auto charged_to(const Charge& charge, const std::filesystem::path& budget, const std::string& run) const;
  [[nodiscard]] double spent_after(const std::filesystem::path& budget) const;
  void start_fresh();
  void restore(const Checkpoint& checkpoint);
  /// Goes on after the last charged step. Throws PrivacyError if nothing would be trained then; the message begins with
  /// `why`.
  void give_up_charged_steps(const std::string& why);
  enum class WithKey {
    yes,
    no
  };
  [[nodiscard]] Checkpoint checkpoint(WithKey with_key) const;
  void write_ledger(mechanism::RunState state);
  /// Raises the count of charged steps, also in the ledger.
  void charge_to(std::uint64_t steps);
  /// What one call of `train` remembers.
  struct Session;
  /// Charges as many steps ahead as fit in a few seconds, never past the plan.
  void charge_ahead(const Session& session);
  /// Of the next step. What trains a mixture goes to 0 over the second half of the plan: less of the last steps' noise
  /// stays, so that the rate can be higher.
  [[nodiscard]] double learning_rate() const;
  /// Draws and gathers the windows, adds noise to them if the scheme says so, and takes the step.
  StepEngine::Result take();
  /// Whether the device gives the same sum of the same batch, bit by bit, each time: seen by trying; always on the CPU.
  bool repeats();
  /// Logs the step just taken, and looks at losses if due.
  void observe(const StepEngine::Result& result, Session& session);
  /// Logs the lines that wait for their numbers.
  void settle_lines(Session& session);
  /// Writes a checkpoint if one is due.
  void save(Session& session);
  void report(const TrainOptions& options, Session& session) const;
  /// Leaves checkpoint and ledger, without the key if the plan is done. Returns whether it is.
  bool close();
  /// Mean loss of the windows of the validation part; NaN if there are none.
  double validation_loss();
  /// Whether the exported weights are those with the least mean training loss.
  [[nodiscard]] bool best_by_training_loss() const;
  /// Whether anything depends on the mean training loss between two looks; never in a private run.
  [[nodiscard]] bool watches_training_loss() const;
  /// With the current step and epoch.
  [[nodiscard]] Metrics metrics_at_step() const;
  /// Looks at the mean loss since the last look, or at the loss of the validation part.
  void look(MetricsLog& metrics);

  Config config_;
  std::optional<mechanism::StartWeights> start_;
  std::vector<mechanism::StartWeights> networks_;
  const data::PreparedData& data_;
  at::Device device_;
  std::string environment_;  // read once: it stays what it was when the run began or was resumed here
  RunStore store_;
  std::unique_ptr<models::Forecaster> model_;
  data::WindowStore windows_;
  std::vector<data::WindowIndex> validation_;
  WindowSource source_;
  mechanism::TrainingMethod method_;
  sampling::StructuredSampler sampler_;
  Plan plan_;
  StepEngine engine_;
  std::unique_ptr<ReplayedStep> replayed_;  // null: every step is launched anew
  SecretKey key_;
  std::string key_print_;  // of key_, or of the last key if it is gone
  bool key_is_gone_ = false;  // with the end of the run
  std::uint64_t step_ = 0;
  std::uint64_t given_up_ = 0;  // of those steps: charged and not taken, or taken and lost
  double best_loss_;  // of the validation part, or of training
  PlateauSchedule schedule_;
  at::Tensor loss_sum_;  // of all windows since the last look, and their number; double precision
  Ranks alone_;  // this process, where no ranks are given
  Ranks& ranks_;
  std::unique_ptr<StepShare> share_;  // of every step, where the series lie in several files; else null
};

Trainer::Run::Run(mechanism::Settled run, const data::PreparedData& data, at::Device device, RunFolder folder,
                  std::unique_ptr<models::Forecaster> forecaster, Ranks* ranks)
    : config_(checked(run, data)),
      start_(std::move(run.start)),
      networks_(std::move(run.networks)),
      data_(data),
      device_(device),
      store_(std::move(folder)),
      model_(forecaster ? std::move(forecaster) : model_of(config_, at::TensorOptions(device).dtype(at::kFloat))),
      windows_(data.dataset, model_->past_length(), config_.dataset.prediction_length),
      validation_(data::windows_of(data.split.validation)),
      source_(windows_, features_of(*model_, data.dataset), at::TensorOptions(device).dtype(at::kFloat)),
      method_(std::move(run.method)),
      sampler_(method_.scheme()),
      plan_(make_plan(method_, {config_.privacy.target_epsilon, config_.privacy.delta},
                      config_.training.max_epochs.value())),
      engine_(*model_, method_, step_options(config_, data.shards && method_.privacy())),
      best_loss_(std::numeric_limits<double>::infinity()),
      loss_sum_(at::zeros({2}, at::TensorOptions(device).dtype(at::kDouble))),
      ranks_(ranks != nullptr ? *ranks : alone_) {
  if (data.shards && method_.privacy()) {
    if (!device.is_cpu())
      throw UsageError(cat("--device: found ", device.str(), " with dataset.path ", config_.dataset.path,
                           ", whose files are summed on CPUs; expected cpu"));
    share_ = std::make_unique<StepShare>(*model_, engine_, source_, sampler_, *data.shards, ranks_, validation_);
  }
  initialise(*model_, config_.training.seed, start_);
  model_->network().keep_networks(networks_of(config_, networks_));
  if (!method_.scheme().has_noise_on_data() && !share_) replayed_ = ReplayedStep::of(engine_, *model_, source_);
  environment_ = environment_of(device, repeats());
  if (share_) environment_ = environment_of_ranks(environment_, *data.shards);
  // The accounting covers what a window reads.
  if (model_->past_length() > method_.scheme().parameters().context_length)
    throw PrivacyError(cat("model ", model_->name(), " reads ", model_->past_length(), " past steps; only ",
                           method_.scheme().parameters().context_length, " are accounted for"));
  if (model_->variables() != 1 && model_->variables() != method_.scheme().variables())
    throw PrivacyError(cat("model ", model_->name(), " forecasts ", model_->variables(),
                           " windows together; records have ", method_.scheme().variables(), " of each step"));
}

void Trainer::Run::start_fresh() {
  key_ = config_.training.reproducible ? SecretKey::from_seed(static_cast<std::uint64_t>(config_.training.seed))
                                       : SecretKey::from_system();
  key_print_ = key_print(key_);
}

void Trainer::Run::require_what_budgets_cover() const {
  if (!method_.privacy())
    throw PrivacyError("--budget: found a run without privacy, which no budget covers; expected privacy.enabled: true");
  if (config_.training.reproducible)
    throw PrivacyError(
        "--budget: found training.reproducible, whose noise follows from the seed and may be another run's, too; no "
        "budget covers that: set training.reproducible to false");
}

template <class Charge>
auto Trainer::Run::charged_to(const Charge& charge, const std::filesystem::path& budget, const std::string& run) const {
  const auto& known = config_.dataset;
  const auto uses = method_.privacy()->theorem().uses_of_steps(plan_.steps);
  const bool tells_of_covariates = uses > 0 && !known.protects_covariates;  // a run without steps tells nothing
  return charge(budget, run, *method_.privacy(), mechanism::start_of(config_, start_, networks_), uses,
                tells_of_covariates ? known.covariate_columns : std::vector<std::string>{});
}

double Trainer::Run::spent_after(const std::filesystem::path& budget) const {
  require_what_budgets_cover();
  return charged_to(mechanism::budget_after, budget, "").spent();
}

void Trainer::Run::begin(const std::optional<std::filesystem::path>& budget) {
  if (budget) static_cast<void>(spent_after(*budget));  // refused before anything of the run is there
  store_.claim();
  start_fresh();
  // The run keeps the coefficients it is charged for.
  if (config_.privacy.noise_recursion)
    config_.privacy.noise_coefficients = store_.keep_coefficients(*config_.privacy.noise_recursion);
  if (start_ && start_->content.model.at("sizes").value("/mixture/trained"_json_pointer, false))
    log::warning(cat("model.start: ", start_->file.string(),
                     ": its mixture was trained, too; a run begins with the network alone, and mixes anew"));
  if (start_) config_.model.start = store_.keep_weights("start", start_->bytes);
  for (auto& candidate : config_.model.candidates)
    for (const auto& network : networks_)
      if (const auto name = network_name(candidate); name && *name == network.file.stem().string())
        candidate = store_.keep_weights(*name, network.bytes);
  // Charges the whole plan before any of the run exists: if the process dies in between, the plan is spent.
  if (budget) charged_to(mechanism::charge_budget, *budget, store_.run());
  store_.begin(config_, data_, key_, checkpoint(WithKey::yes), plan_.steps);
  write_ledger(mechanism::RunState::running);
}

void Trainer::Run::resume() {
  const auto found = store_.take_up(config_, data_, plan_.steps);
  // The step count that a budget was charged for and the ledger states: another program may plan a step more.
  if (const auto planned = store_.planned()) plan_ = ended_after(*planned, plan_, method_, config_.privacy.delta);
  const auto start = mechanism::start_of(config_, start_, networks_);
  bool as_before = false;
  if (!found) {
    // Neither weights nor key are left. The charged steps may have been released, so they stay charged.
    start_fresh();
    store_.ask_the_ledger(config_, plan_.steps, key_print_, start);
    const auto why = cat(store_.folder().last().string(), ": no checkpoint");
    if (method_.privacy()) give_up_charged_steps(why);
    log::warning(cat(why, "; starting over from the weights that it began with"));
  } else {
    restore(*found);
    const bool known_to_the_ledger = store_.ask_the_ledger(config_, plan_.steps, key_print_, start);
    if (key_is_gone_) {
      if (step_ != plan_.steps)
        throw DataError(cat(store_.folder().last().string(), ": has no key after ", step_, " of ", plan_.steps,
                            " steps; expected one of every run that is not finished"));
      return;  // nothing is left to do or to draw
    }
    as_before = found->environment == environment_ && store_.charged_key() == key_print_ && known_to_the_ledger;
    // Rounding may differ here, so replayed steps would be new releases with old noise; under another key than theirs
    // they would be new releases, too. They are given up for good: the checkpoint written below keeps the first
    // environment from replaying what this one is about to take. As another copy of this folder may go on there, steps
    // from here on have noise of their own. Without privacy nothing is at stake.
    if (method_.privacy() && !as_before) {
      give_up_charged_steps(
          found->environment != environment_
              ? cat("the run was made by (", found->environment, "), this is (", environment_, ")")
              : cat(store_.folder().last().string(), ": is of another time than ",
                    (known_to_the_ledger ? store_.folder().charged() : store_.folder().ledger()).string()));
      if (!config_.training.reproducible) key_ = SecretKey::from_system();
      key_print_ = key_print(key_);
    }
  }
  if (!as_before) {
    store_.change_key(key_);  // first: a crash in between gives up what is charged, and replays nothing
    store_.write_last(checkpoint(WithKey::yes));
  }
  write_ledger(mechanism::RunState::running);
}

void Trainer::Run::restore(const Checkpoint& checkpoint) {
  if (checkpoint.values.numel() != model_->parameters().count())
    throw DataError(cat(store_.folder().last().string(), ": found ", checkpoint.values.numel(),
                        " parameters; expected ", model_->parameters().count(), " for this configuration"));
  key_is_gone_ = !checkpoint.key;
  if (checkpoint.key) key_ = *checkpoint.key;
  key_print_ = checkpoint.key ? key_print(key_) : store_.charged_key();
  step_ = checkpoint.step;
  given_up_ = checkpoint.given_up;
  best_loss_ = checkpoint.best_loss;
  loss_sum_.copy_(checkpoint.loss_sum);
  schedule_ = checkpoint.schedule;
  model_->parameters().values().copy_(checkpoint.values);
  const auto state = engine_.optimizer().state();
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (checkpoint.optimizer.at(i).numel() != state[i].numel())
      throw DataError(
          cat(store_.folder().last().string(),
              ": the optimizer's state has another size than the model's; expected a checkpoint of this run"));
    state[i].copy_(checkpoint.optimizer[i].view_as(state[i]));
  }
  const auto noise = engine_.noise_state();
  if (checkpoint.noise.size() != noise.size())
    throw DataError(
        cat(store_.folder().last().string(),
            ": the noise's state has another size than the mechanism's; expected a checkpoint of this run"));
  for (std::size_t i = 0; i < noise.size(); ++i) {
    if (checkpoint.noise[i].sizes() != noise[i].sizes() || checkpoint.noise[i].scalar_type() != noise[i].scalar_type())
      throw DataError(
          cat(store_.folder().last().string(),
              ": the noise's state has another shape than the mechanism's; expected a checkpoint of this run"));
    noise[i].copy_(checkpoint.noise[i]);
  }
}

void Trainer::Run::give_up_charged_steps(const std::string& why) {
  auto charged = std::max(store_.charged(), step_);
  switch (method_.new_key()) {
    case privacy::NewKey::at_any_step: break;
    case privacy::NewKey::at_next_epoch: {
      const auto per_epoch = plan_.steps_per_epoch;
      charged = std::min(plan_.steps, (charged + per_epoch - 1) / per_epoch * per_epoch);
      break;
    }
    case privacy::NewKey::never:
      if (charged > 0)
        throw PrivacyError(cat(why,
                               method_.scheme().new_key() == privacy::NewKey::never
                                   ? cat(": with sampling.top_level ", name(method_.scheme().parameters().top_level),
                                         " the batches of all epochs are drawn once")
                                   : std::string(": correlated noise takes back what earlier steps added"),
                               ", so the run goes on only where its steps can be replayed identically; resume it where "
                               "it began, or begin a new one"));
  }
  if (charged <= step_) return;
  if (charged == plan_.steps && step_ == given_up_)
    throw PrivacyError(cat(why, ": all ", charged,
                           " steps of the plan are charged and none of them could be taken again, so nothing would be "
                           "trained; resume the run where it began, or begin a new one"));
  store_.charge_to(charged);
  log::warning(cat(why, ": steps ", step_ + 1, " to ", charged, " cannot be replayed identically and stay charged; ",
                   plan_.steps - charged, " of ", plan_.steps, " are left"));
  given_up_ += charged - step_;
  step_ = charged;
}

Checkpoint Trainer::Run::checkpoint(WithKey with_key) const {
  return {store_.run(),
          step_,
          given_up_,
          with_key == WithKey::yes ? std::optional(key_) : std::nullopt,
          environment_,
          at::get_num_threads(),
          best_loss_,
          loss_sum_,
          schedule_,
          model_->parameters().values(),
          engine_.optimizer().state(),
          engine_.noise_state(),
          device_.str()};
}

mechanism::Ledger Trainer::Run::current_ledger(mechanism::RunState state) const {
  mechanism::Ledger out(method_);
  out.program = cat("tsdp ", version());
  out.state = state;
  out.run = {store_.run(), key_print_, sha256(config_text(config_))};
  out.reproducible = config_.training.reproducible;
  out.start = mechanism::start_of(config_, start_, networks_);
  out.synthetic = mechanism::synthetic_data_of(config_);
  out.covariates = config_.dataset.covariate_columns;
  out.protects_covariates = out.is_private() && config_.dataset.protects_covariates;
  if (share_) out.files = config_.dataset.files;
  out.steps_planned = plan_.steps;
  out.steps_taken = step_ - given_up_;
  // Before a crash, charged steps may have been taken: what is charged is stated.
  out.steps_charged = std::max(store_.charged(), step_);
  if (!out.is_private()) return out;
  auto& cost = out.cost.emplace();
  cost = {config_.privacy.delta, config_.privacy.target_epsilon, plan_.epsilon, plan_.attack};
  if (const auto charged = out.accounted_steps(); charged != plan_.steps) {
    const auto found = method_.privacy()->cost_after(charged, cost.delta);
    cost.epsilon = found.epsilon;
    cost.attack = found.attack;
    if (charged < plan_.steps)
      cost.epsilon.upper = std::min(cost.epsilon.upper, plan_.epsilon.upper);  // fewer steps cost no more
  }
  return out;
}

void Trainer::Run::write_ledger(mechanism::RunState state) { store_.write_ledger(current_ledger(state)); }

void Trainer::Run::charge_to(std::uint64_t steps) {
  store_.charge_to(steps);
  write_ledger(mechanism::RunState::running);  // the witness, in case charge and checkpoint are put back together
}

std::int64_t Trainer::Run::memory() const {
  const auto rows = std::min<std::int64_t>(engine_.chunk(), method_.scheme().expected_windows());
  return 4 * 4 * model_->parameters().count() + rows * model_->bytes_per_window();
}

bool Trainer::Run::best_by_training_loss() const {
  return config_.training.checkpoint == ExportedWeights::best && !method_.privacy() && data_.split.validation.empty();
}

bool Trainer::Run::watches_training_loss() const {
  return best_by_training_loss() || config_.optimizer.plateau_looks.has_value();
}

Metrics Trainer::Run::metrics_at_step() const {
  Metrics out;
  out.step = step_;
  out.epoch = static_cast<double>(step_) / static_cast<double>(plan_.steps_per_epoch);
  return out;
}

void Trainer::Run::look(MetricsLog& metrics) {
  const auto found = [&](std::optional<double> Metrics::* what, double loss, bool decides) {
    Metrics line = metrics_at_step();
    line.*what = loss;
    metrics.add(line);
    if (decides && config_.training.checkpoint == ExportedWeights::best && loss < best_loss_) {
      best_loss_ = loss;
      store_.write_best(checkpoint(WithKey::no));
    }
  };
  if (watches_training_loss()) {
    const double mean = (loss_sum_[0] / loss_sum_[1]).item<double>();
    loss_sum_.zero_();
    if (!std::isnan(mean)) found(&Metrics::training_loss, mean, best_by_training_loss());
    if (config_.optimizer.plateau_looks) schedule_.look(mean, *config_.optimizer.plateau_looks);
  }
  if (best_by_training_loss()) return;
  if (const double validation = validation_loss(); !std::isnan(validation))
    found(&Metrics::validation_loss, validation, true);
}

double Trainer::Run::validation_loss() {
  return share_ ? share_->validation_loss(step_).mean() : source_.losses(*model_, validation_).mean();
}

struct Trainer::Run::Session {
  explicit Session(Run& run)
      : metrics(run.store_.folder(), run.step_),
        every(std::max<std::uint64_t>(1, run.plan_.steps / logged_lines)),
        epsilon(run.method_, run.plan_, run.config_.privacy.delta,
                std::max<std::uint64_t>(1, run.plan_.steps / every / logged_epsilons) * every),
        first_step(run.step_) {}

  /// Steps per second.
  [[nodiscard]] double rate(std::uint64_t step) const {
    return static_cast<double>(step - first_step) / std::max(seconds_since(begin), 1e-6);
  }

  MetricsLog metrics;
  /// Lines for the log whose numbers (loss; if private also the median of the norms and the share of clipped ones) may
  /// still lie on the device: asking for them makes the host wait.
  std::vector<std::pair<Metrics, at::Tensor>> lines;
  std::uint64_t every;  ///< steps between two lines of the log
  EpsilonAhead epsilon;
  std::uint64_t first_step;
  Clock::time_point begin = Clock::now();
  Clock::time_point last_checkpoint = begin, last_progress = begin;
  double checkpoint_cost = 0.0;  ///< seconds
  double loss = std::numeric_limits<double>::quiet_NaN();
};

bool Trainer::Run::train(const TrainOptions& options) {
  if (method_.scheme().has_noise_on_data() && method_.privacy() && !windows_.has_exact())
    throw Error(ExitCode::failure, "noise on the data needs series that were read in double precision");
  Session session(*this);
  const auto asked_to_stop = [&] {
    return (options.stop != nullptr && options.stop->load()) || step_ - session.first_step >= options.most_steps;
  };
  if (share_) share_->begin(key_print_, store_.run());
  while (step_ < plan_.steps && !asked_to_stop()) {
    charge_ahead(session);
    const auto result = take();
    ++step_;
    if (options.after_step) options.after_step(step_);
    observe(result, session);
    save(session);
    report(options, session);
  }
  if (share_) share_->end(step_ >= plan_.steps, step_);
  settle_lines(session);
  session.metrics.flush();
  return close();
}

void Trainer::Run::charge_ahead(const Session& session) {
  if (step_ < store_.charged()) return;
  const auto block = std::max(first_block, std::min(plan_.steps / most_blocks,
                                                    static_cast<std::uint64_t>(session.rate(step_) * charge_seconds)));
  charge_to(std::min(plan_.steps, step_ + block));
}

double Trainer::Run::learning_rate() const {
  const double rate = *config_.optimizer.learning_rate * schedule_.factor;
  if (config_.training.trainable != Trainable::mixture) return rate;
  return rate * std::min(1.0, 2.0 * static_cast<double>(plan_.steps - step_) / static_cast<double>(plan_.steps));
}

StepEngine::Result Trainer::Run::take() {
  engine_.optimizer().set_learning_rate(learning_rate());
  if (share_) {
    const auto shared = shared_sampling_key(config_, ranks_).value_or(key_);
    return share_->step(sampling_key_of(shared, key_print_), key_, step_);
  }
  const auto drawn = sampler_.draw(key_, step_);
  if (replayed_) return replayed_->step(drawn, key_, step_);
  WindowSource::Augment augment;
  const auto count = static_cast<std::int64_t>(drawn.windows.size());
  const double v = (method_.privacy() ? method_.privacy()->unit().v : config_.privacy.v).value_or(1.0);
  if (method_.scheme().has_noise_on_data())
    augment = [&](const double* exact, float* values, const float* observed) {
      const RandomStream noise(key_, sampling::augmentation_purpose, step_);
      if (exact != nullptr)
        sampling::augment(method_.scheme(), v, noise, count, windows_.past_length(), exact, values, observed);
      else sampling::augment(method_.scheme(), v, noise, count, windows_.past_length(), values, observed);
    };
  return engine_.step(source_.gather(drawn.windows, augment), drawn.places, key_, step_);
}

bool Trainer::Run::repeats() {
  if (replayed_) return replayed_->repeats();
  if (device_.is_cpu()) return true;
  constexpr std::uint64_t tries = 100;  // coins may draw no window
  const auto key = SecretKey::from_seed(0);
  auto drawn = sampler_.draw(key, 0);
  for (std::uint64_t step = 1; drawn.windows.empty() && step < tries; ++step) drawn = sampler_.draw(key, step);
  const auto batch = source_.gather(drawn.windows);
  const auto sum = [&] { return engine_.sum(batch, drawn.places); };
  return give_the_same(*model_, {sum, sum, sum});
}

void Trainer::Run::observe(const StepEngine::Result& result, Session& session) {
  const auto windows = result.losses.numel();
  if (watches_training_loss() && windows > 0) {
    loss_sum_[0].add_(result.losses.sum());
    loss_sum_[1].add_(static_cast<double>(windows));
  }
  session.epsilon.cover(step_);
  if (step_ % session.every == 0 || step_ == plan_.steps) {
    auto line = metrics_at_step();
    at::Tensor numbers;
    if (windows > 0) {
      numbers = result.losses.mean().to(at::kDouble);
      // Of other clipping the norm of the whole gradient does not say what was cut.
      if (result.norms.defined() && config_.privacy.clipping == privacy::ClippingKind::flat)
        numbers = at::stack(
            {numbers, result.norms.median(), result.norms.gt(config_.privacy.clip_norm).to(at::kDouble).mean()});
      else if (result.norms.defined()) numbers = at::stack({numbers, result.norms.median()});
    }
    if (method_.privacy() && step_ == session.epsilon.step()) line.epsilon_upper = session.epsilon.value();
    session.lines.emplace_back(line, numbers);
    if (device_.is_cpu() || session.lines.size() >= most_lines_waiting) settle_lines(session);
  }
  const auto validation_steps = static_cast<std::uint64_t>(config_.training.validate_every) * plan_.steps_per_epoch;
  if (step_ % validation_steps != 0 && step_ != plan_.steps) return;
  settle_lines(session);
  look(session.metrics);
}

void Trainer::Run::settle_lines(Session& session) {
  for (auto& [line, numbers] : session.lines) {
    if (numbers.defined()) {
      const auto here = numbers.cpu().view({-1});
      const auto* number = here.const_data_ptr<double>();
      line.loss = session.loss = number[0];
      if (here.numel() > 1) line.gradient_norm_median = number[1];
      if (here.numel() > 2) line.clipped_share = number[2];
    }
    session.metrics.add(line);
  }
  session.lines.clear();
}

void Trainer::Run::save(Session& session) {
  const double wanted = config_.training.checkpoint_seconds;
  if (seconds_since(session.last_checkpoint) <=
      (wanted < 1.0 ? wanted : std::max(wanted, session.checkpoint_cost / checkpoint_share)))
    return;
  const auto begin = Clock::now();
  settle_lines(session);
  session.metrics.flush();
  store_.write_last(checkpoint(WithKey::yes));
  session.checkpoint_cost = seconds_since(begin);
  session.last_checkpoint = Clock::now();
}

void Trainer::Run::report(const TrainOptions& options, Session& session) const {
  if (!options.progress || seconds_since(session.last_progress) <= 0.25) return;
  session.last_progress = Clock::now();
  const double rate = session.rate(step_);
  options.progress({step_, plan_.steps, metrics_at_step().epoch, session.loss, rate,
                    static_cast<double>(plan_.steps - step_) / rate, session.epsilon.value()});
}

bool Trainer::Run::close() {
  if (key_is_gone_) return true;  // the run was finished before
  const bool done = step_ >= plan_.steps;
  store_.write_last(checkpoint(WithKey::yes));
  if (!model_->parameters().values().isfinite().all().item<bool>()) {
    write_ledger(mechanism::RunState::running);  // with the steps that were taken
    throw Error(ExitCode::failure,
                cat("after ", step_,
                    " steps the weights are not finite, so there is no model; begin a new run with a smaller "
                    "optimizer.learning_rate or more noise: what this one has charged stays spent"));
  }
  store_.settle(step_);
  write_ledger(done ? mechanism::RunState::finished : mechanism::RunState::interrupted);
  if (!done) return false;
  // Nothing is left to replay, so nothing needs the key: with it, noise could be taken off every release.
  store_.write_last(checkpoint(WithKey::no));
  key_is_gone_ = true;
  store_.tidy();
  return true;
}

Trainer::Trainer(mechanism::Settled run, const data::PreparedData& data, at::Device device, RunFolder folder,
                 std::unique_ptr<models::Forecaster> forecaster, Ranks* ranks)
    : run_((dp::settle_device(device),
            std::make_unique<Run>(std::move(run), data, device, std::move(folder), std::move(forecaster), ranks))) {}
Trainer::~Trainer() = default;

const Plan& Trainer::plan() const noexcept { return run_->plan_; }
const Config& Trainer::config() const noexcept { return run_->config_; }
const mechanism::TrainingMethod& Trainer::method() const noexcept { return run_->method_; }
models::Forecaster& Trainer::model() noexcept { return *run_->model_; }
std::int64_t Trainer::memory() const { return run_->memory(); }
void Trainer::begin(const std::optional<std::filesystem::path>& budget) { run_->begin(budget); }
double Trainer::spent_after(const std::filesystem::path& budget) const { return run_->spent_after(budget); }
void Trainer::resume() { run_->resume(); }
bool Trainer::run(const TrainOptions& options) { return run_->train(options); }
std::uint64_t Trainer::step() const noexcept { return run_->step_; }
mechanism::Ledger Trainer::current_ledger(mechanism::RunState state) const { return run_->current_ledger(state); }

}  // namespace tsdp::training
