#include "tsdp/training/trainer.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "tsdp/core/digest.h"
#include "tsdp/core/error.h"
#include "tsdp/core/file.h"
#include "tsdp/core/json.h"
#include "tsdp/core/log.h"
#include "tsdp/core/text.h"
#include "tsdp/core/version.h"
#include "tsdp/privacy/accountant.h"
#include "tsdp/training/charged_for.h"
#include "tsdp/training/environment.h"
#include "tsdp/training/metrics_log.h"

namespace tsdp::training {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr std::uint64_t logged_lines = 2000;       // metrics lines of a run, at most about
constexpr std::uint64_t logged_epsilons = 25;      // of them with epsilon, at most about
constexpr double epsilon_precision = 5e-3;         // of those
constexpr double epsilon_share = 0.01;             // of the time, at most, and a second
constexpr double charge_seconds = 5.0;             // training that one block of charged steps covers
constexpr std::uint64_t first_block = 16;          // before the rate is known
constexpr std::size_t validation_rows = 256;       // windows whose loss is taken at a time
constexpr double checkpoint_share = 0.005;         // of the time, at most

StepEngine::Options step_options(const Config& config, const sampling::Sampler& sampler, const Plan& plan) {
  StepEngine::Options o;
  o.is_private = config.privacy.enabled;
  o.places = sampler.places();
  const auto& scheme = sampler.scheme();
  o.expected_windows = scheme.sequences_per_batch() * scheme.parameters().subsequences_per_sequence;
  o.fixed_windows = scheme.parameters().bottom_level == sampling::BottomLevel::with_replacement;
  o.clipping = {config.privacy.clip_norm,
                config.privacy.clipping == "automatic" ? dp::ClipFactor::automatic : dp::ClipFactor::exact,
                config.privacy.clipping == "per_layer"};
  o.noise_multiplier = plan.noise_multiplier;
  o.batch_size = static_cast<double>(config.sampling.batch_size);
  o.adam = {config.optimizer.learning_rate, config.optimizer.weight_decay};
  o.gradient_norm_bound = config.optimizer.gradient_norm_bound.value_or(0.0);
  o.memory_budget = config.training.memory_mb.value_or(0) << 20;
  return o;
}

/// Upper epsilons of a run that is going on, at every so many steps: always one step count ahead, which covers the
/// steps before it. Where accounting takes long, the later ones are left out and the end of the plan covers them.
class EpsilonAhead {
 public:
  EpsilonAhead(const Plan& plan, double delta, std::uint64_t every) : plan_(plan), delta_(delta), every_(every) {
    if (plan_.mechanism) accountant_.emplace(plan_.mechanism->pair);
  }

  /// Looks ahead to `step` or beyond.
  void cover(std::uint64_t step) {
    if (!accountant_ || step <= step_) return;
    const auto start = Clock::now();
    const bool takes_long = spent_ > 1.0 + epsilon_share * seconds_since(begin_);
    step_ = takes_long ? plan_.steps : std::min(plan_.steps, (step + every_ - 1) / every_ * every_);
    value_ = plan_.epsilon.upper;
    if (step_ == plan_.steps) return;
    const auto uses = plan_.mechanism->uses_of_steps(step_);
    value_ = std::min(value_, accountant_->epsilon(delta_, uses, epsilon_precision).upper);
    spent_ += seconds_since(start);
  }
  [[nodiscard]] std::uint64_t step() const { return step_; }  ///< the step count that `value` belongs to
  [[nodiscard]] double value() const { return value_; }       ///< 0 if not private

 private:
  const Plan& plan_;
  double delta_;
  std::uint64_t every_;
  std::optional<privacy::Accountant> accountant_;
  std::uint64_t step_ = 0;
  double value_ = 0.0;
  double spent_ = 0.0;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

Trainer::Trainer(Config config, const sampling::PreparedData& data, at::Device device, RunFolder folder,
                 std::unique_ptr<models::Forecaster> forecaster)
    : config_(std::move(config)),
      data_(data),
      device_(device),
      environment_(environment_of(device)),
      folder_(std::move(folder)),
      model_(forecaster ? std::move(forecaster) : model_of(config_, at::TensorOptions(device).dtype(at::kFloat))),
      store_(data.dataset, model_->past_length(), config_.dataset.prediction_length),
      source_(store_, features_of(*model_, data.dataset), at::TensorOptions(device).dtype(at::kFloat)),
      sampler_(sampling::scheme_of(config_, data.split.training_length)),
      plan_(make_plan(config_, sampler_.scheme())),
      engine_(*model_, step_options(config_, sampler_, plan_)),
      best_loss_(std::numeric_limits<double>::infinity()),
      loss_sum_(at::zeros({2}, at::TensorOptions(device).dtype(at::kDouble))) {
  if (config_.privacy.enabled && config_.training.checkpoint == "best")
    throw PrivacyError("training.checkpoint: found best with privacy.enabled; weights chosen by losses without noise are covered by no "
                       "theorem: set training.checkpoint to last");
  // What a window reads is what is accounted.
  if (model_->past_length() > sampler_.scheme().parameters().context_length)
    throw PrivacyError(cat("model ", model_->name(), " reads ", model_->past_length(), " past steps; only ",
                           sampler_.scheme().parameters().context_length, " are accounted for"));
}

void Trainer::start_fresh() {
  key_ = config_.training.reproducible ? SecretKey::from_seed(static_cast<std::uint64_t>(config_.training.seed))
                                       : SecretKey::from_system();
  key_print_ = key_print(key_);
  // The initial weights are no secret: they hang on the seed alone.
  RandomStream weights(SecretKey::from_seed(static_cast<std::uint64_t>(config_.training.seed)), "initial weights", 0);
  model_->initialise(weights);
}

void Trainer::begin() {
  const auto refuse_if = [&](bool taken) {
    if (taken)
      throw UsageError(cat(folder_.root.string(), ": holds a run already; expected a new folder, or --resume"));
  };
  refuse_if(is_there(folder_.checkpoints()) || is_there(folder_.ledger()));
  for (const auto& file : {folder_.config(), folder_.model()})
    if (is_there(file))
      throw UsageError(cat(file.string(), ": is there already and would be overwritten; expected a new folder"));
  folder_.create();
  lock_.emplace(folder_.priv());
  refuse_if(is_there(folder_.checkpoints()));  // another process may have been faster
  start_fresh();
  run_ = SecretKey::from_system().hex().substr(0, 32);
  // A calibrated noise multiplier is kept as the number it is: another program might calibrate differently.
  if (plan_.mechanism) config_.privacy.noise_multiplier = plan_.noise_multiplier;
  // All that a run cannot do without is made beside and gets its name at once.
  const auto made = folder_.staging();
  std::error_code error;
  std::filesystem::remove_all(made.root, error);
  std::filesystem::create_directories(made.checkpoints(), error);
  if (error) throw Error(ExitCode::failure, cat(made.root.string(), ": cannot be made: ", error.message()));
  write_file_atomically(made.charged_config(), charged_for(config_, data_, run_), FileAccess::owner);
  Charge::create(made.charged(), key_, run_);
  write_checkpoint(made.last(), WithKey::yes);
  std::filesystem::rename(made.checkpoints(), folder_.checkpoints(), error);
  if (error) throw Error(ExitCode::failure, cat(folder_.checkpoints().string(), ": cannot be made: ", error.message()));
  std::filesystem::remove_all(made.root, error);
  sync_folder(folder_.priv());
  folder_.protect();
  charge_.emplace(folder_.charged());
  write_file_atomically(folder_.config(), config_text(config_));
  write_file_atomically(folder_.priv() / "README.txt",
                        "Nothing in this folder is covered by epsilon: it shows data, losses or the secret key of the "
                        "randomness. Do not release it.\n",
                        FileAccess::owner);
  write_ledger(sampling::RunState::running);
}

void Trainer::require_run(const std::filesystem::path& file, const std::string& found) const {
  if (found != run_)
    throw DataError(cat(file.string(), ": belongs to run ", found, "; the run in this folder is ", run_,
                        ": put its own file back"));
}

bool Trainer::ask_the_ledger() {
  if (!is_there(folder_.ledger())) {
    // A crash right after the beginning leaves none, when no step is charged.
    if (charge_->steps() > 0)
      throw PrivacyError(cat(folder_.ledger().string(), ": is gone, and with it the record of what this run has spent; put it back, "
                             "or begin a new run in another folder"));
    return true;
  }
  const auto where = folder_.ledger().string();
  const auto ledger = sampling::read_ledger(parse_json(read_file(folder_.ledger()), where), where);
  require_run(folder_.ledger(), ledger.run.id);
  if (ledger.run.configuration != sha256(config_text(config_)))
    throw DataError(cat(where, ": names another configuration than the run's; put the run's own file back"));
  sampling::require_terms_of(config_, ledger, where);
  charge_->at_least(std::min(ledger.steps_charged, plan_.steps));
  return ledger.run.key_print == key_print_;
}

void Trainer::resume() {
  if (!is_there(folder_.checkpoints())) {
    if (is_there(folder_.ledger()))
      throw PrivacyError(cat(folder_.checkpoints().string(), ": is gone, and with it the count of charged steps, so the budget of "
                             "this run counts as spent; put it back, or begin a new run in another folder"));
    throw UsageError(cat(folder_.root.string(), ": holds no run; expected the folder of an earlier tsdp-train"));
  }
  for (const auto& [file, what] : {std::pair{folder_.charged(), "the count of charged steps"},
                                   std::pair{folder_.charged_config(), "the configuration that steps were charged for"}})
    if (!is_there(file))
      throw PrivacyError(cat(file.string(), ": ", what, " is gone, so the budget of this run counts as spent; begin a new "
                             "run in another folder"));
  lock_.emplace(folder_.priv());
  folder_.protect();  // a copy or an archive may have lost the modes
  folder_.remove_leftovers();
  run_ = run_charged_for(folder_);
  const auto checkpoint = load_checkpoint(folder_.last());
  if (checkpoint) require_run(folder_.last(), checkpoint->run);
  refuse_what_was_not_charged_for(folder_, config_, data_);
  charge_.emplace(folder_.charged());
  require_run(folder_.charged(), charge_->run());
  if (checkpoint && checkpoint->step > plan_.steps)
    throw DataError(cat(folder_.last().string(), ": found ", checkpoint->step, " steps; the plan has ", plan_.steps));
  if (charge_->steps() > plan_.steps)
    throw PrivacyError(cat(folder_.charged().string(), ": found ", charge_->steps(), " steps charged; the plan has ",
                           plan_.steps, ", so the budget of this run is spent"));
  bool as_before = false;
  if (!checkpoint) {
    // Neither weights nor key are left. The steps charged may have been released, so they stay charged.
    start_fresh();
    ask_the_ledger();
    const auto why = cat(folder_.last().string(), ": no checkpoint");
    if (plan_.mechanism) give_up_charged_steps(why);
    log::warning(cat(why, "; starting over from fresh weights"));
  } else {
    restore(*checkpoint);
    const bool known_to_the_ledger = ask_the_ledger();
    if (key_is_gone_) {
      if (step_ != plan_.steps)
        throw DataError(cat(folder_.last().string(), ": has no key after ", step_, " of ", plan_.steps, " steps; expected one of every "
                            "run that is not finished"));
      return;  // nothing is left to be done, or to be drawn
    }
    as_before = checkpoint->environment == environment_ && charge_->print() == key_print_ && known_to_the_ledger;
    // Rounding may differ here, so replayed steps would be new releases with old noise; and under another key than theirs
    // they would be new releases, too. They are given up, for good: the checkpoint written below keeps the first environment
    // from replaying what this one is about to take. And as another copy of this folder may go on there, steps from here on
    // have noise of their own. Without privacy nothing is at stake.
    if (plan_.mechanism && !as_before) {
      give_up_charged_steps(checkpoint->environment != environment_
                                ? cat("the run was made by (", checkpoint->environment, "), this is (", environment_, ")")
                                : cat(folder_.last().string(), ": is of another time than ",
                                      (known_to_the_ledger ? folder_.charged() : folder_.ledger()).string()));
      if (!config_.training.reproducible) key_ = SecretKey::from_system();
      key_print_ = key_print(key_);
    }
  }
  if (!as_before) {
    charge_->change_key(key_);  // first: a crash in between gives up what is charged, and replays nothing
    write_checkpoint(folder_.last(), WithKey::yes);
  }
  write_ledger(sampling::RunState::running);
}

void Trainer::restore(const Checkpoint& checkpoint) {
  if (checkpoint.values.numel() != model_->parameters().count())
    throw DataError(cat(folder_.last().string(), ": found ", checkpoint.values.numel(), " parameters; expected ",
                        model_->parameters().count(), " for this configuration"));
  key_is_gone_ = !checkpoint.key;
  if (checkpoint.key) key_ = *checkpoint.key;
  key_print_ = checkpoint.key ? key_print(key_) : charge_->print();
  step_ = checkpoint.step;
  given_up_ = checkpoint.given_up;
  best_loss_ = checkpoint.best_loss;
  loss_sum_.copy_(checkpoint.loss_sum);
  schedule_ = checkpoint.schedule;
  engine_.optimizer().set_learning_rate(config_.optimizer.learning_rate * schedule_.factor);
  model_->parameters().values().copy_(checkpoint.values);
  const auto state = engine_.optimizer().state();
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (checkpoint.optimizer.at(i).numel() != state[i].numel())
      throw DataError(cat(folder_.last().string(), ": the optimizer's state has another size than the model's; expected a checkpoint "
                          "of this run"));
    state[i].copy_(checkpoint.optimizer[i].view_as(state[i]));
  }
}

void Trainer::give_up_charged_steps(const std::string& why) {
  const auto charged = charge_->steps();
  if (charged <= step_) return;
  if (charged == plan_.steps && step_ == given_up_)
    throw PrivacyError(cat(why, ": all ", charged, " steps of the plan are charged and none of them could be taken again, so "
                           "nothing would be trained; resume the run where it began, or begin a new one"));
  log::warning(cat(why, ": steps ", step_ + 1, " to ", charged, " cannot be replayed identically and stay charged; ",
                   plan_.steps - charged, " of ", plan_.steps, " are left"));
  given_up_ += charged - step_;
  step_ = charged;
}

void Trainer::write_checkpoint(const std::filesystem::path& file, WithKey with_key) {
  save_checkpoint(file, {run_, step_, given_up_, with_key == WithKey::yes ? std::optional(key_) : std::nullopt, environment_,
                         at::get_num_threads(), best_loss_, loss_sum_, schedule_, model_->parameters().values(),
                         engine_.optimizer().state()});
}

sampling::Ledger Trainer::current_ledger(sampling::RunState state) const {
  const auto& scheme = sampler_.scheme();
  const auto& p = scheme.parameters();
  const auto [shortest, longest] = std::minmax_element(p.lengths.begin(), p.lengths.end());
  sampling::Ledger out;
  out.program = cat("tsdp ", version());
  out.state = state;
  out.run = {run_, key_print_, sha256(config_text(config_))};
  out.reproducible = config_.training.reproducible;
  out.sequences = scheme.sequences();
  out.shortest = *shortest;
  out.longest = *longest;
  out.context_length = p.context_length;
  out.forecast_length = p.forecast_length;
  out.batch_size = p.batch_size;
  out.subsequences_per_sequence = p.subsequences_per_sequence;
  out.top_level = p.top_level;
  out.bottom_level = p.bottom_level;
  out.context_noise = p.context_noise;
  out.forecast_noise = p.forecast_noise;
  out.steps_planned = plan_.steps;
  out.steps_taken = step_ - given_up_;
  // A crash before may have taken steps that are charged: what is charged is stated.
  out.steps_charged = std::max(charge_ ? charge_->steps() : 0, step_);
  if (!plan_.mechanism) return out;
  const auto& m = *plan_.mechanism;
  auto& privacy = out.privacy.emplace();
  privacy.theorem = m.theorem;
  privacy.unit = sampling::unit_of(config_);
  privacy.noise_multiplier = m.noise_multiplier;
  privacy.clip_norm = config_.privacy.clip_norm;
  privacy.clipping = config_.privacy.clipping;
  privacy.delta = config_.privacy.delta;
  privacy.target_epsilon = config_.privacy.target_epsilon;
  privacy.epsilon = plan_.epsilon;
  privacy.attack = plan_.attack;
  if (const auto charged = out.accounted_steps(); charged != plan_.steps) {
    privacy::Accountant accountant(m.pair);
    const auto uses = m.uses_of_steps(charged);
    privacy.epsilon = accountant.epsilon(privacy.delta, uses);
    privacy.attack = privacy::attack_bound(accountant, uses);
    if (charged < plan_.steps) privacy.epsilon.upper = std::min(privacy.epsilon.upper, plan_.epsilon.upper);  // fewer cost no more
  }
  return out;
}

void Trainer::write_ledger(sampling::RunState state) {
  write_file_atomically(folder_.ledger(), json_text(sampling::document(current_ledger(state)), 2) + "\n");
}

void Trainer::charge_to(std::uint64_t steps) {
  charge_->raise_to(steps);
  write_ledger(sampling::RunState::running);  // the witness, should charge and checkpoint be put back together
}

std::int64_t Trainer::memory() const {
  const auto rows = std::min<std::int64_t>(engine_.chunk(), config_.sampling.batch_size);
  return 4 * 4 * model_->parameters().count() + rows * model_->bytes_per_window();
}

bool Trainer::best_by_training_loss() const {
  return config_.training.checkpoint == "best" && !config_.privacy.enabled && data_.split.validation.empty();
}

bool Trainer::watches_training_loss() const {
  return best_by_training_loss() || config_.optimizer.plateau_looks.has_value();
}

void Trainer::look(MetricsLog& metrics) {
  const auto found = [&](const char* what, double loss, bool decides) {
    metrics.add(step_, {{"epoch", static_cast<double>(step_) / static_cast<double>(plan_.steps_per_epoch)}, {what, loss}});
    if (decides && config_.training.checkpoint == "best" && loss < best_loss_) {
      best_loss_ = loss;
      write_checkpoint(folder_.best(), WithKey::no);
    }
  };
  if (watches_training_loss()) {
    const double mean = (loss_sum_[0] / loss_sum_[1]).item<double>();
    loss_sum_.zero_();
    if (!std::isnan(mean)) found("training_loss", mean, best_by_training_loss());
    if (config_.optimizer.plateau_looks) {
      schedule_.look(mean, *config_.optimizer.plateau_looks);
      engine_.optimizer().set_learning_rate(config_.optimizer.learning_rate * schedule_.factor);
    }
  }
  if (best_by_training_loss()) return;
  if (const double validation = validation_loss(); !std::isnan(validation)) found("validation_loss", validation, true);
}

double Trainer::validation_loss() {
  const c10::NoGradGuard no_autograd;
  const auto& ranges = data_.split.validation;
  if (ranges.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0.0;
  std::vector<data::WindowIndex> indices;
  for (std::size_t begin = 0; begin < ranges.size(); begin += validation_rows) {
    indices.clear();
    for (std::size_t i = begin; i < std::min(ranges.size(), begin + validation_rows); ++i)
      indices.push_back({ranges[i].series, ranges[i].forecast_start});
    sum += model_->losses(source_.gather(indices)).sum().item<double>();
  }
  return sum / static_cast<double>(ranges.size());
}

bool Trainer::run(const TrainOptions& options) {
  MetricsLog metrics(folder_, step_);
  const auto every = std::max<std::uint64_t>(1, plan_.steps / logged_lines);
  const auto logged = std::max<std::uint64_t>(1, plan_.steps / every / logged_epsilons) * every;
  EpsilonAhead epsilon(plan_, config_.privacy.delta, logged);
  const auto validation_steps = static_cast<std::uint64_t>(config_.training.validate_every) * plan_.steps_per_epoch;
  const auto& parameters = sampler_.scheme().parameters();
  const double v = config_.privacy.v.value_or(1.0);
  const bool augmented = parameters.context_noise > 0.0 || parameters.forecast_noise > 0.0;
  if (augmented && plan_.mechanism && !store_.has_exact())
    throw Error(ExitCode::failure, "noise on the data needs series that were read in double precision");
  const auto start = Clock::now();
  const auto first_step = step_;
  auto last_checkpoint = Clock::now();
  auto last_progress = Clock::now();
  double checkpoint_cost = 0.0;
  double loss = std::numeric_limits<double>::quiet_NaN();
  bool stopped = false;
  while (step_ < plan_.steps) {
    if ((options.stop != nullptr && options.stop->load()) || step_ - first_step >= options.most_steps) {
      stopped = true;
      break;
    }
    if (step_ >= charge_->steps()) {
      // Charge ahead, as many steps as a few seconds hold, never past the plan.
      const double rate = static_cast<double>(step_ - first_step) / std::max(seconds_since(start), 1e-6);
      const auto block = std::max(first_block, static_cast<std::uint64_t>(rate * charge_seconds));
      charge_to(std::min(plan_.steps, step_ + block));
    }
    RandomStream draws(key_, sampling::sampling_purpose, step_);
    const auto [windows, places] = sampler_.draw_places(
        step_, draws, [&](std::uint64_t epoch) { return RandomStream(key_, sampling::order_purpose, epoch); });
    WindowSource::Augment augment;
    const auto count = static_cast<std::int64_t>(windows.size());
    if (augmented)
      augment = [&](const double* exact, float* values, const float* observed) {
        const RandomStream noise(key_, sampling::augmentation_purpose, step_);
        if (exact != nullptr)
          sampling::augment(sampler_.scheme(), v, noise, count, store_.past_length(), exact, values, observed);
        else
          sampling::augment(sampler_.scheme(), v, noise, count, store_.past_length(), values, observed);
      };
    const auto result =
        engine_.step(source_.gather(windows, augment), RandomStream(key_, dp::noise_purpose, step_), places);
    ++step_;
    if (watches_training_loss() && !windows.empty()) {
      loss_sum_[0].add_(result.losses.sum());
      loss_sum_[1].add_(static_cast<double>(windows.size()));
    }
    if (options.after_step) options.after_step(step_);

    const double epoch = static_cast<double>(step_) / static_cast<double>(plan_.steps_per_epoch);
    epsilon.cover(step_);
    if (step_ % every == 0 || step_ == plan_.steps) {
      nlohmann::ordered_json line = {{"epoch", epoch}};
      if (!windows.empty()) {
        loss = result.losses.mean().item<double>();
        line["loss"] = loss;
        if (result.norms.defined()) {
          line["gradient_norm_median"] = result.norms.median().item<double>();
          line["clipped_share"] = result.norms.gt(config_.privacy.clip_norm).to(at::kDouble).mean().item<double>();
        }
      }
      if (plan_.mechanism && step_ == epsilon.step()) line["epsilon_upper"] = epsilon.value();
      metrics.add(step_, line);
    }
    if (step_ % validation_steps == 0 || step_ == plan_.steps) look(metrics);
    const double wanted_gap = config_.training.checkpoint_seconds;
    if (seconds_since(last_checkpoint) >
        (wanted_gap < 1.0 ? wanted_gap : std::max(wanted_gap, checkpoint_cost / checkpoint_share))) {
      const auto begin = Clock::now();
      metrics.flush();
      write_checkpoint(folder_.last(), WithKey::yes);
      checkpoint_cost = seconds_since(begin);
      last_checkpoint = Clock::now();
    }
    if (options.progress && seconds_since(last_progress) > 0.25) {
      last_progress = Clock::now();
      const double rate = static_cast<double>(step_ - first_step) / seconds_since(start);
      options.progress({step_, plan_.steps, epoch, loss, rate, static_cast<double>(plan_.steps - step_) / rate,
                        epsilon.value()});
    }
  }
  metrics.flush();
  if (key_is_gone_) return true;  // the run was finished before
  write_checkpoint(folder_.last(), WithKey::yes);
  if (!model_->parameters().values().isfinite().all().item<bool>())
    throw Error(ExitCode::failure, cat("after ", step_, " steps the weights are not finite, so there is no model; a smaller "
                                       "optimizer.learning_rate or more noise is expected, in a new run: what this one has "
                                       "charged stays spent"));
  charge_->settle(step_);
  write_ledger(stopped ? sampling::RunState::interrupted : sampling::RunState::finished);
  if (stopped) return false;
  // Nothing is left to replay, so nothing needs the key: with it, noise could be taken off every release.
  write_checkpoint(folder_.last(), WithKey::no);
  key_is_gone_ = true;
  folder_.remove_leftovers();
  return true;
}

}  // namespace tsdp::training
