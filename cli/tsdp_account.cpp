// tsdp-account: privacy numbers from a configuration or from options, without training anything.
#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "program.h"
#include "tsdp/core/config.h"
#include "tsdp/core/error.h"
#include "tsdp/core/text.h"
#include "tsdp/privacy/accountant.h"
#include "tsdp/sampling/mechanism.h"
#include "tsdp/sampling/setup.h"

namespace {

using Json = nlohmann::ordered_json;
using tsdp::cat;
using tsdp::UsageError;

/// The mechanism options of the command line.
struct MechanismOptions {
  std::optional<std::string> config;
  std::vector<std::string> set;
  std::optional<std::int64_t> num_sequences, sequence_length, context_length, forecast_length, batch_size;
  std::int64_t lags_length = 0;
  std::int64_t subsequences = 1;
  std::string top_level = "wor";
  std::string bottom_level = "wr";
  std::optional<double> noise_multiplier;
  double context_noise = 0.0;
  double forecast_noise = 0.0;
  std::string relation = "event";
  std::int64_t w = 1;
  std::optional<double> v;
  std::optional<std::string> theorem;
};

struct QueryOptions {
  std::optional<double> epsilon, delta;
  std::optional<std::string> steps, epochs;  // read as numbers when they are used
  double precision = tsdp::privacy::Accountant::default_precision;
};

void add_mechanism_options(CLI::App& app, MechanismOptions& o) {
  app.add_option("--config", o.config, "Training configuration that names the mechanism");
  app.add_option("--set", o.set, "key.path=value over the configuration")->allow_extra_args(false);
  app.add_option("--num-sequences", o.num_sequences, "N, number of training series");
  app.add_option("--sequence-length", o.sequence_length, "L, length of every training series");
  app.add_option("--context-length", o.context_length, "Past steps that a window reads, without lags");
  app.add_option("--lags-length", o.lags_length, "By how much lags reach beyond the context")->capture_default_str();
  app.add_option("--forecast-length", o.forecast_length, "L_F");
  app.add_option("--batch-size", o.batch_size, "Lambda, expected windows a step");
  app.add_option("--subsequences-per-sequence", o.subsequences, "lambda")->capture_default_str();
  app.add_option("--top-level", o.top_level, "deterministic or wor")
      ->check(CLI::IsMember({"deterministic", "wor"}))
      ->capture_default_str();
  app.add_option("--bottom-level", o.bottom_level, "wr or poisson")
      ->check(CLI::IsMember({"wr", "poisson"}))
      ->capture_default_str();
  app.add_option("--noise-multiplier", o.noise_multiplier, "sigma, in multiples of the clip norm");
  app.add_option("--context-noise", o.context_noise, "in multiples of v")->capture_default_str();
  app.add_option("--forecast-noise", o.forecast_noise, "in multiples of v")->capture_default_str();
  app.add_option("--relation", o.relation, "event or user")
      ->check(CLI::IsMember({"event", "user"}))
      ->capture_default_str();
  app.add_option("--w", o.w, "Places in which neighbours differ")->capture_default_str();
  app.add_option("--v", o.v, "Most by which a value changes");
  app.add_option("--theorem", o.theorem, "Row of the theorem table, such as 4.4");
}

/// What is asked about: scheme and unit, with the noise multiplier where one is given.
struct Subject {
  tsdp::sampling::SubsamplingScheme scheme;
  tsdp::sampling::PrivacyUnit unit;
  std::optional<double> noise_multiplier;
  std::optional<tsdp::Config> config;
};

Subject subject_of(const CLI::App& app, const MechanismOptions& o) {
  namespace sampling = tsdp::sampling;
  if (o.config) {
    const auto file = tsdp::find_config_file(*o.config);
    for (const auto* option : {"--num-sequences", "--sequence-length", "--context-length", "--lags-length",
                               "--forecast-length", "--batch-size", "--subsequences-per-sequence", "--top-level",
                               "--bottom-level", "--context-noise", "--forecast-noise", "--relation", "--w", "--v"})
      if (app.count(option) > 0)
        throw UsageError(cat(option, ": given beside --config, which names the mechanism; expected --set to change the "
                             "configuration, or no --config"));
    auto config = tsdp::read_config(file, o.set);
    const auto data = sampling::prepare_data(config, file);
    auto sigma = o.noise_multiplier ? o.noise_multiplier : config.privacy.noise_multiplier;
    return {sampling::scheme_of(config, data.split.training_length), sampling::unit_of(config), sigma, std::move(config)};
  }
  if (!o.set.empty()) throw UsageError("--set: works on a configuration; give --config as well");
  const auto needed = [](const char* option, const auto& value) {
    if (!value) throw UsageError(cat(option, ": not given; expected with it a number, or --config FILE"));
    return *value;
  };
  sampling::SubsamplingScheme::Parameters p;
  // One epoch of deterministic iteration costs the same whatever N and Lambda are.
  const bool by_epoch = o.top_level == "deterministic";
  const auto count = by_epoch ? o.num_sequences.value_or(1) : needed("--num-sequences", o.num_sequences);
  const auto length = needed("--sequence-length", o.sequence_length);
  if (count < 1 || count > 100'000'000)
    throw UsageError(cat("--num-sequences: found ", count, "; an integer from 1 to 100000000 is expected"));
  p.lengths.assign(static_cast<std::size_t>(count), length);
  p.context_length = needed("--context-length", o.context_length);
  for (const auto value : {p.context_length, o.lags_length})
    if (value < 0 || value > sampling::largest_count)
      throw UsageError(cat("--context-length, --lags-length: found ", value, "; an integer from 0 to ",
                           sampling::largest_count, " is expected"));
  p.context_length += o.lags_length;
  p.forecast_length = needed("--forecast-length", o.forecast_length);
  p.batch_size = by_epoch ? o.batch_size.value_or(o.subsequences) : needed("--batch-size", o.batch_size);
  p.subsequences_per_sequence = o.subsequences;
  p.top_level = by_epoch ? sampling::TopLevel::deterministic : sampling::TopLevel::without_replacement;
  p.bottom_level = o.bottom_level == "wr" ? sampling::BottomLevel::with_replacement : sampling::BottomLevel::poisson;
  p.context_noise = o.context_noise;
  p.forecast_noise = o.forecast_noise;
  return {sampling::SubsamplingScheme(std::move(p)),
          {o.relation == "event" ? sampling::Relation::event : sampling::Relation::user, o.w, o.v},
          o.noise_multiplier,
          std::nullopt};
}

double needed_delta(const QueryOptions& q, const Subject& s) {
  const auto delta = q.delta ? q.delta : s.config ? std::optional(s.config->privacy.delta) : std::nullopt;
  if (!delta) throw UsageError("--delta: not given; a number in (0, 1) is expected");
  if (!(*delta >= 1e-25 && *delta < 1.0))
    throw UsageError(cat("--delta: found ", *delta, "; a number from 1e-25 to below 1 is expected"));
  return *delta;
}

double needed_epsilon(const QueryOptions& q, const Subject& s) {
  const auto epsilon = q.epsilon ? q.epsilon : s.config ? std::optional(s.config->privacy.target_epsilon) : std::nullopt;
  if (!epsilon) throw UsageError("--epsilon: not given; a number of at least 0 is expected");
  if (!(*epsilon >= 0.0) || *epsilon > 1e6)
    throw UsageError(cat("--epsilon: found ", *epsilon, "; a number from 0 to 1e6 is expected"));
  return *epsilon;
}

tsdp::sampling::Mechanism mechanism_of(const Subject& s, const MechanismOptions& o) {
  if (!s.noise_multiplier)
    throw UsageError("--noise-multiplier: not given; a positive number is expected, or a configuration with one");
  return tsdp::sampling::mechanism_of(s.scheme, s.unit, *s.noise_multiplier, o.theorem);
}

/// Steps asked about, from --steps or --epochs.
std::uint64_t steps_of(const QueryOptions& q, const tsdp::sampling::Mechanism& m) {
  if (q.steps && q.epochs) throw UsageError("--steps and --epochs: found both; one of them is expected");
  if (!q.steps && !q.epochs) throw UsageError("--steps or --epochs: neither given; one of them is expected");
  const auto per_epoch = static_cast<std::uint64_t>(m.steps_per_epoch);
  const auto count = [](const char* option, const std::string& text, std::uint64_t most) {
    long long value = 0;
    if (!tsdp::parse_int(text, value) || value < 0 || static_cast<std::uint64_t>(value) > most)
      throw UsageError(cat(option, ": found '", text, "'; an integer from 0 to ", most, " is expected"));
    return static_cast<std::uint64_t>(value);
  };
  const auto most = tsdp::privacy::Accountant::max_uses_ever;
  return q.steps ? count("--steps", *q.steps, most) : per_epoch * count("--epochs", *q.epochs, most / per_epoch);
}

void put_mechanism(Json& out, const tsdp::sampling::Mechanism& m, std::uint64_t steps) {
  out["noise_multiplier"] = m.noise_multiplier;
  out["steps"] = steps;
  out["epochs"] = steps / static_cast<std::uint64_t>(m.steps_per_epoch);
  out["theorem"] = m.theorem;
  out["bound"] = tsdp::sampling::name(m.bound);
  out["composition_unit"] = tsdp::sampling::name(m.unit);
  out["compositions"] = m.uses_of_steps(steps);
}

Json interval(const tsdp::privacy::Interval& i) { return {{"lower", i.lower}, {"upper", i.upper}}; }

std::string shown(const tsdp::privacy::Interval& i) {
  return cat("[", tsdp::rounded_down(i.lower, 7), ", ", tsdp::rounded_up(i.upper, 7), "]");
}

std::string of_mechanism(const Json& j) {
  return cat(j["steps"].get<std::uint64_t>(), " steps (", j["epochs"].get<std::uint64_t>(), " epochs), noise multiplier ",
             tsdp::rounded(j["noise_multiplier"].get<double>(), 6), ", Theorem ", j["theorem"].get<std::string>());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Privacy numbers of structured subsampling: proven brackets, without training anything.", "tsdp-account");
  tsdp::cli::CommonOptions common;
  MechanismOptions mechanism;
  QueryOptions query;
  tsdp::cli::add_common_options(app, common);
  app.require_subcommand(1);
  app.fallthrough();
  add_mechanism_options(app, mechanism);
  app.add_option("--precision", query.precision, "Relative width of the brackets")->capture_default_str();
  app.add_option("--epsilon", query.epsilon, "epsilon");
  app.add_option("--delta", query.delta, "delta");
  app.add_option("--steps", query.steps, "Training steps");
  app.add_option("--epochs", query.epochs, "Epochs, instead of --steps");
  auto* epsilon = app.add_subcommand("epsilon", "epsilon at --delta after --steps or --epochs");
  auto* delta = app.add_subcommand("delta", "delta at --epsilon after --steps or --epochs");
  auto* steps = app.add_subcommand("steps", "the most steps that stay within --epsilon at --delta");
  auto* sigma = app.add_subcommand("sigma", "the least noise multiplier for --epsilon, --delta and --steps or --epochs");

  return tsdp::cli::run(app, argc, argv, common, [&] {
    const auto subject = subject_of(app, mechanism);
    Json out;
    std::string line;
    if (!(query.precision >= 1e-7 && query.precision <= 0.5))
      throw UsageError(cat("--precision: found ", query.precision, "; a relative width from 1e-7 to 0.5 is expected"));
    if (*sigma) {
      const double target = needed_epsilon(query, subject);
      const double at = needed_delta(query, subject);
      const auto trial = tsdp::sampling::mechanism_of(subject.scheme, subject.unit, 1.0, mechanism.theorem);
      const auto uses = trial.uses_of_steps(steps_of(query, trial));
      const double least = tsdp::privacy::calibrate_noise([&](double s) {
        tsdp::privacy::Accountant accountant(
            tsdp::sampling::mechanism_of(subject.scheme, subject.unit, s, mechanism.theorem).pair);
        return accountant.delta(target, uses, query.precision).upper <= at;
      });
      const auto m = tsdp::sampling::mechanism_of(subject.scheme, subject.unit, least, mechanism.theorem);
      auto spent = tsdp::privacy::Accountant(m.pair).epsilon(at, uses, query.precision);
      spent.upper = std::min(spent.upper, target);  // certified by the calibration
      out["epsilon"] = interval(spent);
      out["delta"] = at;
      put_mechanism(out, m, steps_of(query, m));
      line = cat("noise multiplier ", tsdp::rounded(least, 7), " spends epsilon in ", shown(spent), " of ", target,
                 " at delta ", at, ": ", of_mechanism(out));
    } else {
      const auto m = mechanism_of(subject, mechanism);
      tsdp::privacy::Accountant accountant(m.pair);
      if (*epsilon) {
        const double at = needed_delta(query, subject);
        const auto count = steps_of(query, m);
        const auto answer = accountant.epsilon(at, m.uses_of_steps(count), query.precision);
        out["epsilon"] = interval(answer);
        out["delta"] = at;
        put_mechanism(out, m, count);
        line = cat("epsilon in ", shown(answer), " at delta ", at, ": ", of_mechanism(out));
      } else if (*delta) {
        const double at = needed_epsilon(query, subject);
        const auto count = steps_of(query, m);
        const auto answer = accountant.delta(at, m.uses_of_steps(count), query.precision);
        out["epsilon"] = at;
        out["delta"] = interval(answer);
        put_mechanism(out, m, count);
        line = cat("delta in ", shown(answer), " at epsilon ", at, ": ", of_mechanism(out));
      } else if (*steps) {
        const double target = needed_epsilon(query, subject);
        const double at = needed_delta(query, subject);
        const auto uses = accountant.max_uses(target, at);
        const auto count = m.steps_of_uses(uses);
        if (uses == 0)
          throw tsdp::PrivacyError(cat("epsilon ", target, " at delta ", at, ": not even one ",
                                       tsdp::sampling::name(m.unit), " stays within it; it costs epsilon ",
                                       tsdp::rounded_up(accountant.epsilon(at, 1).upper, 6)));
        auto spent = accountant.epsilon(at, uses, query.precision);
        spent.upper = std::min(spent.upper, target);
        out["epsilon"] = interval(spent);
        out["delta"] = at;
        put_mechanism(out, m, count);
        line = cat("at most ", of_mechanism(out), " within epsilon ", target, " at delta ", at, ": spends ", shown(spent));
      }
    }
    std::cout << (common.json ? out.dump(2) : line) << "\n";
    return 0;
  });
}
