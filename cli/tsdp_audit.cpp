// tsdp-audit: attacks the trainer on worst-case neighbours and says how much of the certified epsilon is reached.
#include <iostream>

#include "audit/membership.h"
#include "audit/trainer_audit.h"
#include "base/log.h"
#include "data/oddities.h"
#include "device.h"
#include "program.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/settings/auto_settings.h"
#include "tsdp/settings/configured.h"

namespace {

using tsdp::cat;
using tsdp::rounded;
using tsdp::rounded_down;
using tsdp::rounded_up;

std::string text_of(const tsdp::audit::Claim& claim, const tsdp::audit::Measurement& measurement,
                    const tsdp::audit::Verdict& verdict, const tsdp::audit::AuditOptions& options) {
  std::string out =
      cat("certified: epsilon ", rounded_up(verdict.epsilon.upper), " at delta ", claim.delta, " after ", claim.uses,
          " uses (Theorem ", claim.theorem, ", noise multiplier ", rounded(claim.noise_multiplier), ")\n",
          "measured:  at least epsilon ", rounded_down(verdict.epsilon.lower), ", from noise multiplier ",
          rounded_down(verdict.noise_multiplier.lower), " to ", rounded_up(verdict.noise_multiplier.upper), "; ",
          options.trials, " uses on each of two neighbouring data sets, confidence ", options.confidence, ", mode ",
          name(options.mode), " (", measurement.model, ")\n", "one use:   at least epsilon ",
          rounded_down(verdict.direct_epsilon), " without further assumptions; certified ",
          rounded_up(verdict.direct_upper), "\n");
  if (verdict.touched)
    out +=
        cat("drawn:     changed windows in a share from ", rounded_down(verdict.touched->lower), " to ",
            rounded_up(verdict.touched->upper), " of the uses; the scheme has ", rounded(*claim.touched_share), "\n");
  for (const auto& line : verdict.remarks) out += cat("remark:    ", line, "\n");
  for (const auto& line : verdict.contradictions) out += cat("CONTRADICTED: ", line, "\n");
  if (!verdict.contradicted()) out += "nothing measured contradicts what is certified\n";
  return out;
}

/// What the program is asked for.
struct Options {
  tsdp::cli::CommonOptions common;
  std::string config_name, theorem;
  std::vector<std::string> set;
  std::string mode = "canary";
  tsdp::audit::AuditOptions audit;
  tsdp::audit::MembershipOptions membership;
  int threads = 1;
};

void add_options(CLI::App& app, Options& o) {
  tsdp::cli::add_common_options(app, o.common);
  app.add_option("--config", o.config_name, "Configuration file; a bare name is also looked up in configs/")
      ->required();
  app.add_option("--set", o.set, "section.name=value over the configuration; may be repeated")->allow_extra_args(false);
  app.add_option("--mode", o.mode,
                 "canary: a forecaster of the audit's own; data: the configured one on extreme data; membership: "
                 "whether a trained model tells that one series was in the configured data, which is computed from "
                 "true values")
      ->check(CLI::IsMember({"canary", "data", "membership"}))
      ->capture_default_str();
  app.add_option("--trials", o.audit.trials, "Uses of the mechanism on each of the two data sets")
      ->check(tsdp::cli::whole_number)
      ->check(CLI::Range(std::uint64_t{2}, std::uint64_t{10'000'000}))
      ->capture_default_str();
  app.add_option("--models", o.membership.models, "For membership: models that are trained, half of them without it")
      ->check(tsdp::cli::whole_number)
      ->check(CLI::Range(std::uint64_t{8}, std::uint64_t{1'000'000}))
      ->capture_default_str();
  app.add_option("--target", o.membership.target,
                 "For membership: name of a series (default: the one that is forecast worst before training)");
  app.add_option("--confidence", o.audit.confidence, "Chance that everything found is true, above 0 and below 1")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option(
      "--theorem", o.theorem,
      "Row of the theorem table to hold against it, for instance tsdp.1 (default: the one that training rests on)");
  tsdp::cli::add_threads_option(app, o.threads);
}

tsdp::audit::AuditOptions audit_options_of(const Options& o) {
  auto out = o.audit;
  out.mode = o.mode == "data" ? tsdp::audit::Mode::data : tsdp::audit::Mode::canary;
  if (!o.theorem.empty()) out.theorem = o.theorem;
  return out;
}

/// The configuration without its start, of which nothing is left as it is: the audit does not depend on the weights.
tsdp::Config audited_part_of(tsdp::Config config) {
  config.model.start = "fresh";
  if (config.training.trainable == tsdp::Trainable::head) config.training.trainable = tsdp::Trainable::all;
  return config;
}

/// Throws UsageError for a run that trains its mixture, which this mode does not attack. `given` is what was written.
void require_weights(const tsdp::Config& config, const tsdp::Config& given, const std::string& mode,
                     const std::filesystem::path& config_file) {
  if (config.training.trainable == tsdp::Trainable::mixture)
    throw tsdp::UsageError(cat(config_file.string(), ": training.trainable: found ",
                               given.training.trainable ? "mixture" : "auto, which takes the mixture here,",
                               " with --mode ", mode,
                               ", which is not implemented for it; expected --mode canary, or all or head"));
}

std::string text_of(const tsdp::audit::MembershipVerdict& v, const tsdp::audit::MembershipOptions& options) {
  const auto who = v.series == 1 ? cat(tsdp::visible(v.target), " was")
                                 : cat("the ", v.series, " series of the owner of ", tsdp::visible(v.target), " were");
  return cat("attacked:  whether ", who, " among the data of a released model; ", options.models, " models trained, ",
             v.models, " of them tried\n", "found:     ", rounded(100.0 * v.true_positives, 3),
             " % of the models with it, and ", rounded(100.0 * v.false_positives, 3),
             " % of those without: an advantage of ", rounded(v.true_positives - v.false_positives, 3), " (from ",
             rounded_down(v.advantage.lower, 3), " to ", rounded_up(v.advantage.upper, 3), ", confidence ",
             options.confidence, ")\n", "bound:     ",
             v.bound < 1.0 ? cat("at most ", rounded_up(v.bound, 3), " for any attack, by the run's epsilon",
                                 v.reproducible ? ", of whoever does not know the seed" : "",
                                 v.not_counted.empty() ? std::string() : cat("; not counted: ", v.not_counted))
                           : std::string("none: nothing protects whether a series was there"),
             "\n", v.contradicted() ? "CONTRADICTED\n" : "", "computed from true values: no epsilon covers this\n");
}

/// Tells of every tenth of the work.
std::function<void(double share)> told() {
  return [shown = 0](double share) mutable {
    if (const int percent = static_cast<int>(100.0 * share); percent / 10 > shown / 10)
      tsdp::log::info(cat("audit: ", shown = percent, " %"));
  };
}

int attack_membership(const Options& o, const std::filesystem::path& config_file,
                      const tsdp::data::PreparedData& data) {
  auto options = o.membership;
  options.confidence = o.audit.confidence;
  options.progress = told();
  options.stop = &tsdp::cli::stop_on_signals();
  const auto settled = tsdp::mechanism::settle(data.config, data.training_lengths(), config_file);
  require_weights(settled.config, data.config, o.mode, config_file);
  const auto verdict = tsdp::audit::attack_membership(settled, data, options);
  if (o.common.json) std::cout << tsdp::audit::to_json(verdict, options).dump(2) << "\n";
  else std::cout << text_of(verdict, options);
  if (verdict.contradicted())
    throw tsdp::Error(tsdp::ExitCode::failure,
                      cat(config_file.string(), ": the attack tells more than epsilon allows"));
  return 0;
}

int attack_trainer(const Options& o, const std::filesystem::path& config_file, const tsdp::data::PreparedData& data) {
  auto options = audit_options_of(o);
  options.stop = &tsdp::cli::stop_on_signals();
  options.progress = told();
  // Uses only what is public about the data: how many series, how long, and whose.
  const auto lengths = data.training_lengths();
  const auto config = audited_part_of(tsdp::mechanism::settle(data.config, lengths, config_file).config);
  if (options.mode != tsdp::audit::Mode::canary) require_weights(config, data.config, o.mode, config_file);
  const auto measurement = tsdp::audit::measure(config, lengths, options);
  const auto claim = tsdp::audit::claim_of(config, lengths, options, measurement);
  const auto verdict = tsdp::audit::judge(claim, measurement.uses, options.confidence);
  if (o.common.json) std::cout << tsdp::audit::to_json(claim, measurement, verdict, options).dump(2) << "\n";
  else std::cout << text_of(claim, measurement, verdict, options);
  if (verdict.contradicted())
    throw tsdp::Error(tsdp::ExitCode::failure,
                      cat(config_file.string(),
                          ": what was measured contradicts what is certified: ", verdict.contradictions.front()));
  return 0;
}

int audit(const CLI::App& app, const Options& o) {
  if (!(o.audit.confidence > 0.0) || !(o.audit.confidence < 1.0))
    throw tsdp::UsageError(cat("--confidence: found ", o.audit.confidence, "; expected a number above 0 and below 1"));
  const bool of_model = o.mode == "membership";
  if (of_model && !o.theorem.empty())
    throw tsdp::UsageError("--theorem: given with --mode membership, which holds the run's own bound against it");
  for (const char* option : {"--target", "--models"})
    if (!of_model && app.count(option) > 0)
      throw tsdp::UsageError(cat(option, ": given with --mode ", o.mode, "; expected --mode membership"));
  if (of_model && app.count("--trials") > 0)
    throw tsdp::UsageError("--trials: given with --mode membership; expected --models");
  const auto config_file = tsdp::find_config_file(o.config_name);
  tsdp::cli::set_threads(o.threads);
  const auto config = tsdp::read_config(config_file, o.set);
  if (o.mode != "canary") require_weights(config, config, o.mode, config_file);
  const auto data = tsdp::data::prepare_data(config, config_file);
  tsdp::data::require_one_variable(data.dataset, "tsdp-audit");
  try {
    return of_model ? attack_membership(o, config_file, data) : attack_trainer(o, config_file, data);
  } catch (const tsdp::audit::Stopped&) {
    throw tsdp::Error(tsdp::ExitCode::interrupted, "interrupted; nothing was found out, and nothing is left behind");
  }
}

}  // namespace

int main(int argc, char** argv) {
  tsdp::cli::spin_briefly(argv);
  CLI::App app(
      "Attacks the trainer of a configuration on worst-case neighbouring data sets, made for the purpose, and says how "
      "much of the certified epsilon is reached. Exit code 1 where what is measured contradicts what is certified.",
      "tsdp-audit");
  Options options;
  add_options(app, options);
  return tsdp::cli::run(app, argc, argv, options.common, [&] { return audit(app, options); });
}
