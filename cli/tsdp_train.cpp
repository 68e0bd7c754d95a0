// tsdp-train: trains a forecaster under differential privacy until the target epsilon would be passed.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <utility>

#include "base/log.h"
#include "device.h"
#include "export/candidates.h"
#include "program.h"
#include "progress_line.h"
#include "rank_scores.h"
#include "report/model_card.h"
#include "report/report_content.h"
#include "run/charged_for.h"
#include "run_model.h"
#include "settings/setup.h"
#include "train_plan.h"
#include "training/shared_facts.h"
#include "training/step_share.h"
#include "training/step_time.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/settings/auto_settings.h"
#include "tsdp/training/trainer.h"

namespace {

using Json = nlohmann::ordered_json;
using tsdp::cat;

std::filesystem::path default_output(const std::filesystem::path& config) {
  const std::time_t now = std::time(nullptr);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", std::localtime(&now));
  const auto first = std::filesystem::path("runs") / (config.stem().string() + "-" + stamp);
  auto folder = first;
  for (int number = 2; tsdp::is_there(folder); ++number) folder = cat(first.string(), "-", number);
  return folder;
}

/// The path by which the run's own configuration must name the data, so that --resume finds it from anywhere.
std::string path_for_run(const std::string& given, const std::filesystem::path& found,
                         const std::filesystem::path& run) {
  const std::filesystem::path path(given);
  if (path.is_absolute()) return given;
  if (const auto root = tsdp::project_root(); !root.empty()) {
    std::error_code ignored;
    if (std::filesystem::equivalent(root / path, found, ignored)) return given;
  }
  return std::filesystem::relative(std::filesystem::absolute(found), std::filesystem::absolute(run)).string();
}

/// The same of a path with {rank}, of which file number `file` is here, if any is.
std::string pattern_for_run(const tsdp::Config::Dataset& dataset, std::int64_t file,
                            const std::filesystem::path& config_file, const std::filesystem::path& run) {
  namespace fs = std::filesystem;
  const auto one = dataset.path_of(file);
  if (!tsdp::is_data_file(one, config_file)) return dataset.path;
  const auto found = tsdp::find_data_file(one, config_file);
  if (path_for_run(one, found, run) == one) return dataset.path;
  for (const auto& folder : {fs::current_path(), fs::absolute(config_file).parent_path()}) {
    std::error_code ignored;
    if (fs::equivalent(folder / one, found, ignored))
      return (folder / dataset.path)
          .lexically_normal()
          .lexically_relative(fs::absolute(run).lexically_normal())
          .string();
  }
  return fs::absolute(dataset.path).string();
}

/// Names the run's files so in `config`. `first_file`: of those that {rank} stands for.
void name_files_for_run(tsdp::Config& config, std::int64_t first_file, const std::filesystem::path& config_file,
                        const std::filesystem::path& run) {
  if (auto& path = config.dataset.path; config.dataset.has_ranks())
    path = pattern_for_run(config.dataset, first_file, config_file, run);
  else if (!config.dataset.is_synthetic()) path = path_for_run(path, tsdp::find_data_file(path, config_file), run);
  for (const auto& setting : tsdp::file_settings(config))
    if (!setting.copied) *setting.value = path_for_run(*setting.value, setting.find(config_file), run);
}

/// Warns if the series are fewer or shorter than the settings assume.
void warn_of_sizes(const tsdp::Config& config, const tsdp::privacy::SubsamplingScheme& scheme) {
  if (const auto windows = scheme.expected_windows() / scheme.variables();
      config.privacy.relation != tsdp::privacy::Relation::series && windows < *config.sampling.batch_size)
    tsdp::log::warning(cat("sampling.batch_size: found ", *config.sampling.batch_size,
                           ", by which every step is divided; the ", scheme.sequences(), " series give ", windows,
                           " windows a step: set it to ", windows));
  // Runs of earlier versions may have it, so their configurations are read.
  if (const auto held = config.dataset.validation_length; held && *held > 0 && *held < config.dataset.prediction_length)
    tsdp::log::warning(cat("dataset.validation_length: found ", *held, ", which holds no window of ",
                           config.dataset.prediction_length,
                           " steps: so many values of each series are left out of training, and there is no "
                           "validation loss; expected 0, or at least ",
                           config.dataset.prediction_length));
  const auto reach = scheme.parameters().context_length;
  if (config.training.trainable == tsdp::Trainable::mixture) return;  // candidates do with what there is
  if (const auto longest = scheme.parameters().lengths.longest(); reach > longest)
    tsdp::log::warning(cat(config.model.lags.empty() ? "model.context_length: every window reads "
                                                     : "model.context_length and model.lags: every window reads ",
                           reach, " past values; the longest series has ", longest,
                           " to train on, so that part of what every window reads is padding: ",
                           config.model.lags.empty()
                               ? "expected a shorter context"
                               : "expected a shorter context, or shorter lags (auto follows dataset.season_length)"));
}

/// What the program is asked for.
struct Options {
  tsdp::cli::CommonOptions common;
  std::string config_name, output, resume, budget, help_options;
  std::vector<std::string> set;
  std::optional<std::string> device_name;
  std::optional<int> threads;  ///< none: as 0, or those of the run that is resumed
  std::optional<std::string> sampling_key, mask_key, relay;
  int rank_timeout = 300;
  bool public_network = false;
  bool dry_run = false;
  bool advise = false;
  std::optional<double> minutes;
};

void add_options(CLI::App& app, Options& o) {
  tsdp::cli::add_common_options(app, o.common);
  app.add_option("--config", o.config_name, "Configuration file; a bare name is also looked up in configs/");
  app.add_option("--set", o.set, "section.name=value over the configuration; may be repeated")->allow_extra_args(false);
  app.add_option("--output", o.output, "New folder for the run (default: runs/<configuration>-<time>)");
  app.add_option("--resume", o.resume, "Folder of a run to take up again");
  app.add_option("--device", o.device_name,
                 "auto (as without it: a GPU if there is one), cpu, cuda or cuda:i. A resumed run keeps its device, "
                 "unless it is given");
  app.add_option("--budget", o.budget,
                 "File of tsdp-account budget, which the whole plan is charged to before the run begins; a run that "
                 "would pass it is refused");
  app.add_option("--threads", o.threads,
                 "CPU threads; 0, as without it: all cores, or as many as OMP_NUM_THREADS says. A resumed run keeps "
                 "its number, unless it is given")
      ->check(CLI::Range(0, tsdp::cli::most_threads));
  app.add_option(
      "--sampling-key", o.sampling_key,
      "File, for its owner alone, with 64 hexadecimal digits that several ranks share (docs/distributed.md)");
  app.add_option("--mask-key", o.mask_key, "Likewise a file that all ranks but rank 0 share, with training.mask_sums");
  app.add_option("--relay", o.relay,
                 "Unix socket, new, by which another program (tsdp.federated in Python) carries what this rank and the "
                 "others send");
  app.add_option("--rank-timeout", o.rank_timeout, "Seconds that a rank waits for the others")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  app.add_flag("--public-network", o.public_network,
               "Let ranks meet at a public address, though what they send is neither encrypted nor authenticated");
  app.add_flag("--dry-run", o.dry_run, "Print the whole plan and train nothing");
  app.add_flag("--advise", o.advise,
               "Print what `auto` settings mean for this configuration and these series' number and lengths, why, and "
               "how long training takes");
  app.add_option("--minutes", o.minutes, "With --advise: the time that training may take")->check(CLI::PositiveNumber);
  app.add_option("--help-options", o.help_options, "Print the configuration options: text or markdown")
      ->check(CLI::IsMember({"text", "markdown"}));
}

void check_together(const Options& o) {
  if (o.config_name.empty() == o.resume.empty())
    throw tsdp::UsageError(cat("--config and --resume: found ", o.config_name.empty() ? "neither" : "both",
                               "; expected exactly one of them"));
  if (o.advise && !o.budget.empty())
    throw tsdp::UsageError(
        "--budget: found with --advise, which charges nothing; expected --dry-run, which tells what would be left of "
        "it");
  if (o.minutes && !o.advise) throw tsdp::UsageError("--minutes: given without --advise; expected with it alone");
  if (o.resume.empty()) return;
  if (!o.set.empty() || !o.output.empty())
    throw tsdp::UsageError(
        "--resume: takes its configuration and folder from the run; expected without --set, --output");
  if (o.advise) throw tsdp::UsageError("--advise: found with --resume, whose settings are kept; expected --config");
  if (!o.budget.empty())
    throw tsdp::UsageError("--budget: found with --resume; a run is charged whole when it begins, so expected without");
}

/// The folder of the run, the configuration file, how many threads it has and on what device.
struct Place {
  tsdp::training::RunFolder folder;
  std::filesystem::path config_file;
  int threads;
  std::string device;
};

Place place_of(const Options& o) {
  if (o.resume.empty()) {
    auto config_file = tsdp::find_config_file(o.config_name);
    auto root = o.output.empty() ? default_output(config_file) : std::filesystem::path(o.output);
    return {{std::move(root)}, std::move(config_file), o.threads.value_or(0), o.device_name.value_or("auto")};
  }
  Place out{{o.resume}, {}, o.threads.value_or(0), o.device_name.value_or("auto")};
  out.config_file = out.folder.config();
  // A crash right after the start leaves only the configuration next to the checkpoint.
  if (!tsdp::is_there(out.config_file) && tsdp::is_there(out.folder.charged_config()))
    tsdp::training::put_config_back(out.folder);
  if (!tsdp::is_there(out.config_file))
    throw tsdp::UsageError(cat("--resume: no ", out.config_file.string(), "; expected the folder of an earlier run"));
  if (o.threads && o.device_name) return out;
  if (const auto checkpoint = tsdp::training::load_checkpoint(out.folder.last())) {
    if (!o.threads) out.threads = checkpoint->threads;
    if (!o.device_name) out.device = checkpoint->device;
  }
  return out;
}

void advise(const Options& o, tsdp::mechanism::Settled settled, const tsdp::data::PreparedData& data,
            const std::filesystem::path& config_file, const at::Device& device, tsdp::mechanism::SettleLimits limits) {
  const double seconds = tsdp::training::seconds_per_step(settled, device);
  if (o.minutes) {
    limits.most_steps = std::max(1.0, 60.0 * *o.minutes / seconds);
    settled = tsdp::mechanism::settle(data.config, data.training_lengths(), config_file, limits);
  }
  const auto& p = settled.config.privacy;
  const auto plan = tsdp::training::make_plan(settled.method, {p.target_epsilon, p.delta},
                                              settled.config.training.max_epochs.value());
  tsdp::cli::print_advice(
      settled, plan, seconds,
      tsdp::mechanism::alternatives(data.config, data.training_lengths(), config_file, settled, limits), o.common.json);
}

/// The ranks that this process is one of, as torchrun or the environment says; itself where neither says anything.
tsdp::training::Ranks ranks_of(const Options& o) {
  tsdp::training::Ranks::Options options;
  options.timeout = std::chrono::seconds(o.rank_timeout);
  options.public_network = o.public_network;
  if (o.sampling_key) options.sampling_key = tsdp::training::read_shared_key("--sampling-key", *o.sampling_key);
  if (o.mask_key) options.mask_key = tsdp::training::read_shared_key("--mask-key", *o.mask_key);
  if (o.relay) {
    options.relay = *o.relay;
    options.stop = &tsdp::cli::stop_on_signals();
  }
  return tsdp::training::Ranks::from_environment(std::move(options));
}

/// Takes all steps, or throws when it is interrupted.
void take_steps(tsdp::training::Trainer& trainer, const tsdp::training::RunFolder& folder, bool quiet) {
  tsdp::cli::ProgressLine line(trainer.config().privacy.target_epsilon);
  tsdp::training::TrainOptions options;
  if (!quiet) options.progress = [&](const tsdp::training::Progress& p) { line.show(p); };
  options.stop = &tsdp::cli::stop_on_signals();
  bool done = false;
  try {
    done = trainer.run(options);
  } catch (...) {
    line.end();  // the reason must be on a line of its own
    throw;
  }
  line.end();
  if (!done)
    throw tsdp::Error(tsdp::ExitCode::interrupted,
                      cat("interrupted after step ", trainer.step(), " of ", trainer.plan().steps,
                          "; go on with: tsdp-train --resume ", folder.root.string()));
  // Scoring looks at no flag. What it leaves is made again by --resume.
  tsdp::cli::end_on_signals(
      cat("tsdp-train: interrupted after the last step; what is left (the model, its scores, the report) is made by: "
          "tsdp-train --resume ",
          folder.root.string()));
}

/// Logs scores of test windows, which `where` says.
void log_scores(const tsdp::evaluation::BacktestResult& scores, const std::string& where) {
  if (scores.model.windows() > 0)
    tsdp::log::info(
        cat(where, ": ", tsdp::cli::what_data_added(scores), " (of true values: epsilon does not cover scores)"));
  for (const auto& remark : scores.remarks) tsdp::log::info(cat("remark: ", remark));
}

/// Puts scores, and what epsilon covers of the answer and what not. `ledger`: of the model in it; null without one.
void put_scores(Json& out, const tsdp::evaluation::BacktestResult& scores, const Json& ledger) {
  out["scored_series"] = scores.series;
  out["metrics"] = scores.model.json();
  tsdp::cli::put_beside(out, scores);
  out["remarks"] = scores.remarks;
  out["epsilon_covers"] = tsdp::cli::epsilon_covers(ledger);
  out["epsilon_does_not_cover"] = tsdp::cli::epsilon_does_not_cover(ledger, {"metrics", "baselines", "best_free"});
}

/// Exports the trained model, scores the exported file, with other ranks on their series, too, and writes the report.
void release(const tsdp::training::Trainer& trainer, const tsdp::data::PreparedData& data,
             const tsdp::training::RunFolder& folder, const Json& plan, bool json, tsdp::training::Ranks& ranks) {
  const auto& config = trainer.config();
  std::unique_ptr<tsdp::models::Forecaster> start;
  bool others_score = !ranks.alone();
  const auto with_others = [&](const auto& work) {
    if (!others_score) return;
    try {
      work();
    } catch (const std::exception& error) {
      others_score = false;  // the run is done all the same
      tsdp::log::warning(cat("scores are of rank 0's own series: ", error.what()));
    }
  };
  {
    const auto trained = tsdp::cli::model_of_run(folder, config, config.training.checkpoint);
    tsdp::exporting::save_model(*trained.model, trained.sampled_forecasts, trained.metadata, folder.model());
    start = tsdp::cli::start_of_run(folder, config, trained.metadata.privacy);
    with_others([&] { tsdp::cli::send_weights(*trained.model, *start, ranks); });
  }
  // Scores what is released: the exported file, whose ledger model_of_run has just checked.
  auto exported = tsdp::exporting::load_model(folder.model(), at::kCPU, tsdp::exporting::ArchiveCode::never,
                                              tsdp::mechanism::LedgerCheck::unverified);
  const auto ledger = exported.metadata.privacy;
  auto scores = [&] {
    try {
      return tsdp::evaluation::backtest(exported.module, data.dataset, data.split.test, config.dataset.season_length,
                                        at::kCPU);
    } catch (const tsdp::Error& error) {
      throw tsdp::Error(error.code(), cat(folder.model().string(), " cannot be scored: ", error.what(),
                                          "; what the run has charged stays spent, and a new one with a smaller "
                                          "optimizer.learning_rate may do better"));
    }
  }();
  tsdp::log::info(cat("the model: ", ledger["statement"].get<std::string>()));
  if (const auto unused = tsdp::cli::unused_text(plan, "would have used"); !unused.empty())
    tsdp::log::info(
        cat("training.max_epochs ended the run, which ", unused, " (a further run on these data adds its own cost)"));
  if (ledger.contains("warnings"))
    for (const auto& warning : ledger["warnings"]) tsdp::log::warning(warning.get<std::string>());
  tsdp::cli::add_scores_of_start(scores, *start, config, data, data.split.test, ledger);
  tsdp::cli::add_remarks_on_trained_windows(scores, ledger, data.split.test);
  with_others([&] { tsdp::cli::add_scores_of_others(scores, ranks); });
  ranks.end();
  log_scores(scores, ranks.alone() ? std::string("on the test windows")
                                   : cat("on the test windows of ", scores.series, " of ",
                                         data.training_lengths().count(), " series"));
  tsdp::write_file_atomically(folder.card(), tsdp::exporting::model_card(exported.metadata));
  tsdp::log::info(cat("model: ", folder.model().string(), ", its card: ", folder.card().string()));
  try {
    tsdp::exporting::write_report({config, folder, data, exported.module, exported.metadata, scores});
    tsdp::log::info(cat("report, not for release: ", folder.report().string()));
  } catch (const tsdp::Error& error) {
    // The run is still done and its model released.
    tsdp::log::warning(
        cat("no report: ", error.what(), "; write it with: tsdp-evaluate --run ", folder.root.string(), " --report"));
  }
  if (!json) return;
  Json out;
  out["output"] = folder.root.string();
  out["plan"] = plan;
  out["privacy"] = ledger;
  put_scores(out, scores, ledger);
  out["reproducible"] = ledger.value("reproducible", false);
  tsdp::cli::print_json(out);
}

/// Tells the agent of torchrun that has started this process, while it lives; empty without one.
std::string agent() {
  if (std::getenv("TORCHELASTIC_RESTART_COUNT") == nullptr) return "";
  const auto stat = std::filesystem::path("/proc") / std::to_string(::getppid()) / "stat";
  if (!tsdp::is_there(stat)) return "";
  const auto text = tsdp::read_file(stat);
  const auto fields = tsdp::split(text.substr(text.rfind(')') + 1), ' ');  // the name before may hold anything
  constexpr std::size_t start_time = 20;
  return fields.size() > start_time ? cat(::getppid(), " ", fields[start_time], "\n") : "";
}

std::filesystem::path agent_file(const tsdp::training::RunFolder& folder) { return folder.priv() / "agent"; }

/// What is asked for where torchrun has started the ranks again: rank 0 goes on with the run that it had begun then. A
/// run that something else had begun stays one that is there already.
Options after_restart(Options o, const tsdp::training::Ranks& ranks) {
  if (ranks.restarts() == 0 || !ranks.is_first() || o.output.empty()) return o;
  const auto file = agent_file({o.output});
  if (!tsdp::is_there(file) || agent().empty() || tsdp::read_file(file) != agent()) return o;
  o.resume = std::exchange(o.output, "");
  o.config_name.clear();
  o.budget.clear();
  o.set.clear();
  return o;
}

/// Tells the other ranks, while it lives, that no run was begun.
class NotBegun {
 public:
  explicit NotBegun(tsdp::training::Ranks& ranks) : ranks_(&ranks) {}
  ~NotBegun() {
    if (ranks_ == nullptr) return;
    try {
      tsdp::training::StepShare::give_up(*ranks_);
    } catch (const std::exception&) {  // they have ended, too
    }
  }
  NotBegun(const NotBegun&) = delete;
  NotBegun& operator=(const NotBegun&) = delete;
  void begun() { ranks_ = nullptr; }

 private:
  tsdp::training::Ranks* ranks_;
};

/// Trains as the one of `ranks` that this process is.
int train_as(tsdp::training::Ranks& ranks, const Options& asked_for) {
  const auto o = after_restart(asked_for, ranks);
  const auto [folder, config_file, threads, device_name] = place_of(o);
  tsdp::cli::set_threads(threads);
  auto asked = tsdp::read_config(config_file, o.set);
  // Budgets compose pairs: noise that suffices only for adaptive composition would be charged above the target.
  if (!o.budget.empty() && asked.privacy.noise_sampled)
    throw tsdp::UsageError(cat(config_file.string(), ": privacy.noise.sampled: found ", *asked.privacy.noise_sampled,
                               " with --budget, which charges what is certified without sampling; expected null"));
  if (!o.budget.empty() && !asked.privacy.composition)
    asked.privacy.composition = tsdp::privacy::StepComposition::symmetrised;
  auto data = tsdp::training::shared_data(
      [&](tsdp::data::Rank rank) {
        if (!ranks.alone() && ranks.is_first() && o.output.empty() && o.resume.empty() && !o.dry_run && !o.advise)
          throw tsdp::UsageError(cat("--output: not given, with ", rank.of,
                                     " ranks, which would begin another run if they are started again; expected a new "
                                     "folder"));
        return tsdp::data::prepare_data(asked, config_file, false, rank);
      },
      ranks);
  tsdp::mechanism::SettleLimits limits;
  limits.trains_mixtures = device_name == "auto" || device_name == "cpu";
  auto settled = tsdp::mechanism::settle(data.config, data.training_lengths(), config_file, limits);
  const bool of_mixture = settled.config.training.trainable == tsdp::Trainable::mixture;
  const auto device = tsdp::cli::device_of(of_mixture && device_name == "auto" ? "cpu" : device_name);
  tsdp::training::require_one_run(settled, o.dry_run ? "a plan" : o.advise ? "advice" : "training", ranks);
  if (!ranks.is_first()) {
    // Rank 0 ends all ranks after a step; torchrun passes on what asks for that.
    static_cast<void>(tsdp::cli::stop_on_signals());
    if (o.dry_run || o.advise) return 0;
    tsdp::training::take_part(settled, data, ranks);
    if (const auto scores = tsdp::cli::score_own(settled, data, ranks)) {
      log_scores(*scores, "on the test windows of this rank");
      Json out;
      put_scores(out, *scores, nullptr);
      if (o.common.json) tsdp::cli::print_json(out);
    }
    return 0;
  }
  if (o.advise) {
    warn_of_sizes(settled.config, settled.method.scheme());
    advise(o, std::move(settled), data, config_file, device, limits);
    return 0;
  }
  std::optional<NotBegun> not_begun;
  if (!o.dry_run) not_begun.emplace(ranks);
  auto& config = settled.config;
  if (o.resume.empty()) name_files_for_run(config, data.shards ? data.shards->first : 0, config_file, folder.root);
  // Before a plan is made for something the run was not charged for.
  if (!o.resume.empty() && tsdp::is_there(folder.charged_config()))
    tsdp::training::refuse_what_was_not_charged_for(folder, config, data);
  warn_of_sizes(config, settled.method.scheme());
  if (settled.method.privacy() && tsdp::mechanism::takes_steps(config))
    if (const auto what = tsdp::mechanism::warning_of_delta(config.privacy.delta, settled.method); !what.empty())
      tsdp::log::warning(what);
  tsdp::training::Trainer trainer(settled, data, device, folder, nullptr, &ranks);
  // Before any step, so that a candidate that does not fit costs nothing.
  const auto is_model = [](const auto& external) { return external->is_model(); };
  if (std::any_of(data.dataset.external.begin(), data.dataset.external.end(), is_model))
    tsdp::exporting::add_forecasts_of_models(data.dataset, tsdp::data::windows_of(data.split.test),
                                             tsdp::exporting::make_module(trainer.model()), at::kCPU);
  std::optional<std::vector<tsdp::mechanism::Alternative>> alternatives;
  if (o.dry_run && o.common.json)
    alternatives = tsdp::mechanism::alternatives(data.config, data.training_lengths(), config_file, settled, limits);
  auto plan = tsdp::cli::plan_json(config, trainer, trainer.model(), tsdp::cli::expectation_json(settled, alternatives),
                                   settled.start_origin());
  if (o.dry_run) {
    if (!o.budget.empty()) plan["budget"] = {{"file", o.budget}, {"share_spent", trainer.spent_after(o.budget)}};
    std::cout << (o.common.json ? tsdp::json_text(plan, 2) : tsdp::cli::plan_text(plan)) << "\n";
    return 0;
  }
  tsdp::log::info(tsdp::cli::plan_text(plan));
  if (trainer.method().privacy() && config.privacy.relation == tsdp::privacy::Relation::series &&
      config.sampling.top_level == tsdp::privacy::TopLevel::shuffled)
    tsdp::cli::warn_of_shuffling("epsilon", trainer.plan().epsilon);
  if (o.resume.empty()) {
    trainer.begin(o.budget.empty() ? std::nullopt : std::optional<std::filesystem::path>(o.budget));
    if (const auto started_by = agent(); !started_by.empty())
      tsdp::write_file_atomically(agent_file(folder), started_by, tsdp::FileAccess::owner);
  } else {
    trainer.resume();
  }
  not_begun->begun();
  tsdp::log::info(cat("training in ", folder.root.string(), " on ", device.str(), " from step ", trainer.step()));
  take_steps(trainer, folder, o.common.quiet);
  release(trainer, data, folder, plan, o.common.json, ranks);
  return 0;
}

int train(const Options& asked_for) {
  if (!asked_for.help_options.empty()) {
    std::cout << (asked_for.help_options == "markdown" ? tsdp::options_reference() : tsdp::options_help());
    return 0;
  }
  check_together(asked_for);
  // The mistakes of one of several ranks are told at once, not when all have met.
  if (asked_for.resume.empty() && std::getenv("WORLD_SIZE") != nullptr)
    static_cast<void>(tsdp::read_config(tsdp::find_config_file(asked_for.config_name), asked_for.set));
  auto ranks = ranks_of(asked_for);
  const int code = train_as(ranks, asked_for);
  ranks.end();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  tsdp::cli::spin_briefly(argv);
  CLI::App app(
      "Trains a neural forecaster on many time series under differential privacy, never beyond the target epsilon, "
      "scores it by CRPS and exports TorchScript.",
      "tsdp-train");
  Options options;
  add_options(app, options);
  return tsdp::cli::run(app, argc, argv, options.common, [&] { return train(options); });
}
