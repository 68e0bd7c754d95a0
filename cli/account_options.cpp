#include "account_options.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "privacy/adaptive/adaptive_curve.h"
#include "privacy/matrix/correlated_noise.h"
#include "privacy/theorems/noise_choice.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/matrix/strategy_search.h"
#include "tsdp/settings/auto_settings.h"
#include "tsdp/settings/configured.h"

namespace tsdp::cli {
namespace {

constexpr const char* scheme_options[] = {"--num-sequences",
                                          "--sequence-length",
                                          "--context-length",
                                          "--lags-length",
                                          "--forecast-length",
                                          "--subsequences-per-sequence",
                                          "--top-level",
                                          "--bottom-level",
                                          "--context-noise",
                                          "--forecast-noise",
                                          "--relation",
                                          "--w",
                                          "--v"};
/// The --method for an exact profile, which only independent noise and fixed batches have.
constexpr const char* exact_method = "exact";

std::vector<std::string> method_names() {
  auto out = tsdp::all_names<privacy::CorrelatedMethod>();
  out.insert(out.end(), {exact_method, monte_carlo_method, published_method});
  return out;
}

constexpr const char* flat_options[] = {"--num-records", "--window-length"};
constexpr const char* series_options[] = {
    "--batches",      "--sampling-rate", "--reshuffle", "--redraw",  "--largest-batch", "--direction", "--mechanism",
    "--coefficients", "--method",        "--bands",     "--buffers", "--samples",       "--seed"};
/// Options that say nothing about whole series: there it costs nothing which windows of a series are drawn and what a
/// window reads.
constexpr const char* window_options[] = {"--sequence-length",
                                          "--context-length",
                                          "--lags-length",
                                          "--forecast-length",
                                          "--batch-size",
                                          "--subsequences-per-sequence",
                                          "--bottom-level",
                                          "--context-noise",
                                          "--forecast-noise",
                                          "--w",
                                          "--v",
                                          "--theorem",
                                          "--config",
                                          "--set"};

template <class T>
T needed(const char* option, const std::optional<T>& value, const char* instead = ", or --config FILE") {
  if (!value) throw UsageError(cat(option, ": not given; expected with it a number", instead));
  return *value;
}

/// Whether `command` has the option and it was given.
bool is_given(const CLI::App& command, const std::string& option) {
  const auto* found = command.get_option_no_throw(option);
  return found != nullptr && found->count() > 0;
}

template <std::size_t n>
void refuse(const CLI::App& command, const char* const (&options)[n], const std::string& why) {
  for (const auto* option : options)
    if (is_given(command, option)) throw UsageError(cat(option, ": ", why));
}

void at_most_largest(const char* option, std::int64_t value) {
  if (value < 0 || value > privacy::largest_count)
    throw UsageError(cat(option, ": found ", value, "; expected an integer from 0 to ", privacy::largest_count));
}

/// Theorems C.1 and C.2.
Subject flat_subject(const CLI::App& app, const MechanismOptions& o, const std::string& theorem) {
  refuse(app, scheme_options,
         cat("not used by Theorem ", theorem, ", which takes --num-records, --batch-size and --window-length"));
  refuse(app, {"--config", "--set"}, cat("not used by Theorem ", theorem, ", which takes --num-records"));
  const auto instead = cat(", as Theorem ", theorem, " is about one flat data set");
  privacy::FlatSampling s;
  s.records = needed("--num-records", o.num_records, instead.c_str());
  s.batch_size = needed("--batch-size", o.batch_size, instead.c_str());
  s.window_length =
      theorem == "C.2" ? needed("--window-length", o.window_length, instead.c_str()) : o.window_length.value_or(1);
  return {[s, theorem](double sigma) { return privacy::flat_baseline(theorem, s, sigma); }, o.noise_multiplier, {}};
}

Subject configured_subject(const CLI::App& app, const MechanismOptions& o) {
  const auto file = find_config_file(*o.config);
  const auto* const why =
      "given beside --config, which names the mechanism; expected --set to change the configuration, or no --config";
  refuse(app, scheme_options, why);
  refuse(app, {"--batch-size"}, why);
  const auto data = data::prepare_data(read_config(file, o.set), file);
  if (data.config.sampling.auto_top_level && data.config.privacy.relation == privacy::Relation::series)
    throw UsageError(cat(file.string(),
                         ": sampling.top_level: found auto, which is chosen with its noise when a run begins; expected "
                         "--set sampling.top_level=NAME (tsdp-train --dry-run says which it is, the command strategy "
                         "shows them side by side)"));
  auto settled = mechanism::settle_scheme(data.config, data.training_lengths(), file);
  if (const auto what = mechanism::not_counted_of_start(settled.start_origin()); !what.empty())
    log::warning(cat(file.string(), ": model.start: not counted in epsilon: ", what));
  auto config = std::move(settled.config);
  auto sigma = o.noise_multiplier ? o.noise_multiplier : config.privacy.noise_multiplier;
  const auto scheme = mechanism::scheme_of(config, data.training_lengths());
  const auto unit = mechanism::unit_of(config, scheme.parameters().lengths);
  const auto theorem = o.theorem;
  const auto& p = config.privacy;
  const bool whole_series = p.relation == privacy::Relation::series;
  if (!p.noise_mechanism && whole_series && privacy::searches_correlated_noise(privacy::series_law_of(scheme)))
    throw UsageError(cat(file.string(),
                         ": privacy.noise.mechanism: found auto, which is chosen with its noise when a run begins; "
                         "expected --set privacy.noise.mechanism=NAME (the command strategy shows them side by side)"));
  if (p.noise_sampled == "auto")
    throw UsageError(cat(file.string(),
                         ": privacy.noise.sampled: found auto, whose noise is found when a run begins; expected --set "
                         "privacy.noise.sampled=null (tsdp-train --dry-run says which noise it is, the command sigma "
                         "with --sampled finds it for a mechanism)"));
  const auto strategy = mechanism::planned_strategy_of(config, scheme);
  const auto with_noise = [=, claim = mechanism::sampled_claim_of(config), of = p.noise_multiplier](double multiplier) {
    // A claim is about the noise that passed its test.
    return mechanism::covering_theorem(
        unit, scheme, privacy::noise_by(strategy, multiplier, of == multiplier ? claim : std::nullopt), theorem);
  };
  if (!whole_series) return {with_noise, sigma, std::move(config)};
  return {with_noise, sigma, std::move(config), privacy::series_law_of(scheme), "both", strategy};
}

}  // namespace

void add_options(CLI::App& command, MechanismOptions& mechanism, QueryOptions& query, bool about_a_mechanism,
                 const std::vector<std::string>& names) {
  constexpr const char* of_question = "Question";
  const char* group = nullptr;
  const auto add = [&]<class Value>(const char* name, Value& value, const std::string& text,
                                    const CLI::Validator& check = CLI::Validator()) {
    if (!(about_a_mechanism && group != of_question) && std::find(names.begin(), names.end(), name) == names.end())
      return;
    auto* option = command.add_option(name, value, text)->group(group)->check(check);
    if constexpr (requires { value.has_value(); }) return;  // without a default
    option->capture_default_str()->allow_extra_args(false);
  };
  group = "Mechanism of a configuration";
  add("--config", mechanism.config, "Training configuration that names the mechanism");
  add("--set", mechanism.set, "key.path=value over the configuration");
  group = "Mechanism";
  add("--relation", mechanism.relation, "event, user or series (one whole series, present or absent)",
      CLI::IsMember(tsdp::all_names<privacy::Relation>()));
  add("--w", mechanism.w, "Places in which neighbours differ");
  add("--v", mechanism.v, "Most by which a value changes");
  add("--top-level", mechanism.top_level,
      cat("How series are drawn: ", join(tsdp::all_names<privacy::TopLevel>(), ", "), "; that of --theorem, else wor"),
      CLI::IsMember(tsdp::all_names<privacy::TopLevel>()));
  add("--noise-multiplier", mechanism.noise_multiplier, "sigma, in multiples of the clip norm");
  group = "Windows as records";
  add("--num-sequences", mechanism.num_sequences, "N, number of training series");
  add("--sequence-length", mechanism.sequence_length, "L, length of every training series");
  add("--context-length", mechanism.context_length, "Past steps that a window reads, without lags");
  add("--lags-length", mechanism.lags_length, "By how much lags reach beyond the context");
  add("--forecast-length", mechanism.forecast_length, "L_F");
  add("--batch-size", mechanism.batch_size, "Lambda, expected windows a step");
  add("--subsequences-per-sequence", mechanism.subsequences, "lambda");
  add("--bottom-level", mechanism.bottom_level, "wr or poisson; that of --theorem, else wr",
      CLI::IsMember({"wr", "poisson"}));
  add("--context-noise", mechanism.context_noise, "in multiples of v");
  add("--forecast-noise", mechanism.forecast_noise, "in multiples of v");
  add("--theorem", mechanism.theorem,
      "Row of the table (tsdp-account theorems), such as 4.4; without it the tightest upper bound");
  add("--composition", mechanism.composition,
      "How the steps of windows are composed: symmetrised, which lets a step leak in both directions at once, or "
      "adaptive, which is what an adaptive adversary can make of them: less, after seconds of work (tsdp.6); without "
      "it symmetrised, or what --config says",
      CLI::IsMember(tsdp::all_names<privacy::StepComposition>()));
  group = "Whole series as records (--relation series)";
  add("--batches", mechanism.batches, "series: T, steps of an epoch; of balls_in_bins, bins");
  add("--sampling-rate", mechanism.sampling_rate,
      "series, poisson: the chance that a series is in a batch; without it 1/T");
  add("--reshuffle", mechanism.reshuffle, "series, shuffled: every_epoch (default) or once",
      CLI::IsMember(tsdp::all_names<privacy::Reshuffle>()));
  add("--redraw", mechanism.redraw, "series, balls_in_bins: once (default) or every_epoch",
      CLI::IsMember(tsdp::all_names<privacy::Redraw>()));
  add("--largest-batch", mechanism.largest_batch,
      "series, poisson, cyclic_poisson, balls_in_bins: the most series in a batch, of --num-sequences; one with "
      "more is cut");
  add("--direction", mechanism.direction, "series: both (default), remove or add",
      CLI::IsMember({"both", "remove", "add"}));
  group = "Correlated noise (--relation series)";
  add("--mechanism", mechanism.mechanism,
      cat("series: noise of different steps: ", join(tsdp::all_names<privacy::StrategyKind>(), ", "),
          " (default identity)"),
      CLI::IsMember(tsdp::all_names<privacy::StrategyKind>()));
  add("--bands", mechanism.bands, "p of bsr, bisr, band_mf, band_inv_mf (default 4)", CLI::Range(1, 10'000'000));
  add("--buffers", mechanism.buffers, "d of blt (default 2)", CLI::Range(1, 8));
  add("--coefficients", mechanism.coefficients,
      "Of mechanism file: JSON, the first column of C as a list, or {\"inverse\": […]}");
  add("--method", mechanism.method,
      cat("series: how upper ends are found: ", join(method_names(), ", "),
          ". The last two are estimates and no bounds: drawn losses, and the published rule for later epochs"),
      CLI::IsMember(method_names()));
  add("--samples", mechanism.samples, "Of monte_carlo: losses drawn in each direction (default 100000)");
  add("--seed", mechanism.seed, "Of monte_carlo (default 1)");
  group = "One flat data set (Theorems C.1 and C.2)";
  add("--num-records", mechanism.num_records, "C.1, C.2: windows of all series, one flat data set");
  add("--window-length", mechanism.window_length, "C.2: L_C + L_F, windows that one value lies in");
  group = of_question;
  add("--precision", query.precision, "Relative width of the brackets");
  add("--epsilon", query.epsilon, "epsilon");
  add("--delta", query.delta, "delta");
  add("--steps", query.steps, "Training steps");
  add("--epochs", query.epochs, "Epochs, instead of --steps");
  add("--epsilons", query.epsilons, "profile: the grid, such as -1,0,0.5");
  add("--csv", query.csv, "profile, figure: file of the curves; figure writes them to stdout without it");
  add("--plot", query.plot, "profile, figure: file of a plot, NAME.svg");
}

privacy::AppliedTheorem Subject::mechanism() const {
  if (!noise_multiplier)
    throw UsageError("--noise-multiplier: not given; expected a positive number, or a configuration with one");
  return mechanism_at(*noise_multiplier);
}

void put_names(const MechanismOptions& o, privacy::SeriesLaw& into) {
  if (o.top_level) into.sampler = tsdp::named<privacy::TopLevel>(*o.top_level, "--top-level");
  if (o.reshuffle) into.reshuffle = tsdp::named<privacy::Reshuffle>(*o.reshuffle, "--reshuffle");
  if (o.redraw) into.redraw = tsdp::named<privacy::Redraw>(*o.redraw, "--redraw");
}

privacy::SeriesLaw series_law_of(const CLI::App& app, const MechanismOptions& o) {
  refuse(app, window_options,
         "not used with --relation series, which takes --top-level, --batches, --sampling-rate, --reshuffle, --redraw "
         "and --direction");
  refuse(app, flat_options, "used by Theorems C.1 and C.2 alone");
  if (!o.largest_batch)
    refuse(app, {"--num-sequences"},
           "used with --relation series for --largest-batch alone, as nothing else depends on it");
  privacy::SeriesLaw law;
  if (!o.top_level)
    throw UsageError(cat("--top-level: not given; expected with --relation series one of ",
                         join(tsdp::all_names<privacy::TopLevel>(), ", ")));
  put_names(o, law);
  law.rate = o.sampling_rate;
  if (law.rate && law.sampler == privacy::TopLevel::cyclic_poisson)
    throw UsageError(
        "--sampling-rate: found with --top-level cyclic_poisson, whose coins follow from --batches and --bands");
  if (o.method && law.sampler == privacy::TopLevel::cyclic_poisson && *o.method != exact_method)
    throw UsageError(cat("--method: found ", *o.method,
                         " with --top-level cyclic_poisson, whose exact pair is composed; expected none"));
  // An epoch of fixed batches costs the same whatever T is, and a rate takes the place of T.
  const bool free =
      law.sampler == privacy::TopLevel::deterministic || (law.sampler == privacy::TopLevel::poisson && law.rate);
  if (is_given(app, "--epochs") && law.sampler == privacy::TopLevel::poisson && !o.batches)
    throw UsageError("--epochs: given without --batches; expected --steps, or --batches for the steps of an epoch");
  law.batches = free ? o.batches.value_or(1) : needed("--batches", o.batches, ": the steps of an epoch");
  if (o.largest_batch)
    law.bounded = {needed("--num-sequences", o.num_sequences, ": how many series there are"), *o.largest_batch};
  return law;
}

std::string shown_law(const privacy::SeriesLaw& law) {
  if (law.sampler == privacy::TopLevel::shuffled) return cat("shuffled, ", name(law.reshuffle));
  if (law.sampler == privacy::TopLevel::balls_in_bins) return cat("balls_in_bins, ", name(law.redraw));
  if (law.sampler == privacy::TopLevel::cyclic_poisson) return cat("cyclic_poisson, ", law.groups);
  return name(law.sampler);
}

void put_largest_batch(nlohmann::ordered_json& into, const privacy::SeriesLaw& law) {
  if (!law.bounded) return;
  into["largest_batch"] = law.bounded->largest;
  into["num_sequences"] = law.bounded->series;
}

void put_law(nlohmann::ordered_json& into, const privacy::SeriesLaw& law) {
  into["top_level"] = name(law.sampler);
  if (law.sampler == privacy::TopLevel::shuffled) into["reshuffle"] = name(law.reshuffle);
  if (law.sampler == privacy::TopLevel::balls_in_bins) into["redraw"] = name(law.redraw);
  if (law.sampler == privacy::TopLevel::poisson)
    into["sampling_rate"] = law.rate.value_or(1.0 / static_cast<double>(law.batches));
  if (law.sampler == privacy::TopLevel::cyclic_poisson) into["groups"] = law.groups;
  put_largest_batch(into, law);
}

std::shared_ptr<const privacy::Strategy> strategy_of(const MechanismOptions& o, std::int64_t bins,
                                                     std::int64_t epochs) {
  privacy::WantedStrategy wanted;
  if (o.mechanism) wanted.kind = tsdp::named<privacy::StrategyKind>(*o.mechanism, "--mechanism");
  using Kind = privacy::StrategyKind;
  const bool banded = wanted.kind == Kind::bsr || wanted.kind == Kind::bisr || wanted.kind == Kind::band_mf ||
                      wanted.kind == Kind::band_inv_mf;
  if (o.bands && !banded)
    throw UsageError(
        cat("--bands: not used by mechanism ", name(wanted.kind), "; bsr, bisr, band_mf and band_inv_mf have bands"));
  if (o.buffers && wanted.kind != Kind::blt)
    throw UsageError(cat("--buffers: not used by mechanism ", name(wanted.kind), "; blt has buffers"));
  if (o.coefficients.has_value() != (wanted.kind == Kind::file))
    throw UsageError(o.coefficients ? "--coefficients: given without --mechanism file"
                                    : "--coefficients: not given; mechanism file expects a JSON file");
  if (wanted.kind == Kind::identity && !o.method) return nullptr;
  wanted.bands = o.bands.value_or(wanted.bands);
  wanted.buffers = o.buffers.value_or(wanted.buffers);
  if (o.coefficients) {
    wanted.coefficients = privacy::read_coefficients(*o.coefficients);
    wanted.coefficients_file = *o.coefficients;
  }
  return std::make_shared<const privacy::Strategy>(privacy::planned_strategy(wanted, bins, epochs));
}

/// With correlated noise, all epochs are planned, so their number must be known.
std::int64_t planned_epochs(const CLI::App& app) {
  if (app.get_option_no_throw("--epochs") == nullptr)
    throw UsageError(cat("--mechanism: correlated noise is planned for a number of epochs, which ", app.get_name(),
                         " does not ask for; expected the command sigma or epsilon, with --epochs"));
  if (!is_given(app, "--epochs"))
    throw UsageError("--epochs: not given; expected a number of epochs, for which correlated noise is planned");
  long long value = 0;
  const auto text = app["--epochs"]->as<std::string>();
  if (!parse_int(text, value) || value < 1 || value > privacy::Strategy::most_steps)
    throw UsageError(cat("--epochs: found '", text, "'; expected an integer from 1 to ", privacy::Strategy::most_steps,
                         " with correlated noise"));
  return value;
}

/// The value of --direction; none: both.
std::optional<privacy::Direction> direction_of(const MechanismOptions& o) {
  if (!o.direction || *o.direction == "both") return std::nullopt;
  return tsdp::named<privacy::Direction>(*o.direction, "--direction");
}

bool asks_for_estimate(const MechanismOptions& o) {
  return o.method && (*o.method == monte_carlo_method || *o.method == published_method);
}

PlannedSeries planned_series_of(const CLI::App& app, const MechanismOptions& o) {
  PlannedSeries out{series_law_of(app, o), direction_of(o), nullptr, 1};
  out.law.batches = needed("--batches", o.batches, ": the steps of an epoch");
  out.epochs = planned_epochs(app);
  out.strategy = strategy_of(o, out.law.batches, out.epochs);
  if (out.law.sampler == privacy::TopLevel::cyclic_poisson)
    out.law.groups = std::min(out.strategy->bands(), out.law.batches);
  return out;
}

Subject series_subject(const CLI::App& app, const MechanismOptions& o) {
  if (o.sampled && (o.mechanism.value_or("identity") == "identity" || o.method || o.direction))
    throw UsageError(
        "--sampled: expected with --top-level balls_in_bins and a --mechanism other than identity, without --method "
        "and "
        "--direction");
  for (const auto& [option, given] :
       {std::pair{"--samples", o.samples.has_value()}, std::pair{"--seed", o.seed.has_value()}})
    if (given) throw UsageError(cat(option, ": used by --method ", monte_carlo_method, " alone"));
  const bool exact = o.method == exact_method;
  if (o.mechanism.value_or("identity") == "identity" && (!o.method || exact)) {
    auto law = series_law_of(app, o);
    const auto direction = direction_of(o);
    auto without_method = o;
    without_method.method.reset();
    static_cast<void>(strategy_of(without_method, 1, 1));  // refuses what identity does not use
    return {[=](double sigma) {
              auto theorem = privacy::series_theorem(law, sigma, direction);
              if (exact && theorem.bound != privacy::Bound::tight)
                throw PrivacyError(cat("--method exact: no exact profile of top level ", name(law.sampler),
                                       " is known; without --method there is an upper end"));
              return theorem;
            },
            o.noise_multiplier,
            {},
            law,
            o.direction.value_or("both")};
  }
  const auto planned = planned_series_of(app, o);
  if (exact && (planned.law.sampler != privacy::TopLevel::deterministic || !planned.strategy->non_negative()))
    throw PrivacyError(cat("--method exact: no exact profile of mechanism ", name(planned.strategy->kind()),
                           " with top level ", name(planned.law.sampler),
                           planned.strategy->non_negative() ? "" : " and negative entries",
                           " is known; --method auto has an upper end, and --mechanism identity an exact one"));
  const auto method = exact      ? privacy::CorrelatedMethod::deterministic
                      : o.method ? tsdp::named<privacy::CorrelatedMethod>(*o.method, "--method")
                                 : privacy::CorrelatedMethod::automatic;
  return {[=](double sigma) {
            return privacy::series_theorem(planned.law, privacy::noise_by(planned.strategy, sigma), planned.direction,
                                           method);
          },
          o.noise_multiplier,
          {},
          planned.law,
          o.direction.value_or("both"),
          planned.strategy,
          o.sampled};
}

/// For windows as records.
Subject window_subject(const CLI::App& app, const MechanismOptions& o) {
  refuse(app, series_options, "used with --relation series alone");
  std::optional<privacy::TheoremSummary> row;
  if (o.theorem) row = privacy::theorem_row(*o.theorem);
  if (row && row->flat()) return flat_subject(app, o, row->id);
  refuse(app, flat_options, "used by Theorems C.1 and C.2 alone; expected with it --theorem C.1 or --theorem C.2");
  if (o.config) return configured_subject(app, o);
  if (!o.set.empty()) throw UsageError("--set: works on a configuration; give --config as well");

  privacy::SubsamplingScheme::Parameters p;
  p.top_level = o.top_level ? tsdp::named<privacy::TopLevel>(*o.top_level, "--top-level")
                : row       ? *row->top_level
                            : privacy::TopLevel::without_replacement;
  p.bottom_level = o.bottom_level ? (*o.bottom_level == "wr" ? privacy::BottomLevel::with_replacement
                                                             : privacy::BottomLevel::poisson)
                   : row          ? row->bottom_level.value_or(privacy::BottomLevel::with_replacement)
                                  : privacy::BottomLevel::with_replacement;
  // One epoch of deterministic iteration costs the same whatever N and Lambda are. Unless both are given, a step counts
  // as an epoch, which is never too little.
  const bool by_epoch = p.top_level == privacy::TopLevel::deterministic;
  auto count = by_epoch ? o.num_sequences.value_or(1) : needed("--num-sequences", o.num_sequences);
  if (count < 1 || count > 100'000'000)
    throw UsageError(cat("--num-sequences: found ", count, "; expected an integer from 1 to 100000000"));
  const auto length = needed("--sequence-length", o.sequence_length);
  p.context_length = needed("--context-length", o.context_length);
  at_most_largest("--context-length", p.context_length);
  at_most_largest("--lags-length", o.lags_length);
  p.context_length += o.lags_length;
  p.forecast_length = needed("--forecast-length", o.forecast_length);
  p.batch_size = by_epoch ? o.batch_size.value_or(o.subsequences) : needed("--batch-size", o.batch_size);
  if (!o.batch_size) count = 1;
  p.lengths = privacy::SeriesLengths::equal(count, length);
  p.subsequences_per_sequence = o.subsequences;
  // Theorem 4.5 has equal noises, so giving one sets both.
  const bool equal = row && row->id == "4.5";
  p.context_noise = o.context_noise.value_or(equal ? o.forecast_noise.value_or(0.0) : 0.0);
  p.forecast_noise = o.forecast_noise.value_or(equal ? o.context_noise.value_or(0.0) : 0.0);
  const privacy::SubsamplingScheme scheme(std::move(p));
  const privacy::PrivacyUnit unit{o.relation == "event" ? privacy::Relation::event : privacy::Relation::user, o.w, o.v};
  const auto theorem = o.theorem;
  return {[=](double sigma) { return privacy::apply_theorem(scheme, unit, sigma, theorem); }, o.noise_multiplier, {}};
}

Subject subject_of(const CLI::App& app, const MechanismOptions& o) {
  if (o.sampled && o.relation != "series") throw UsageError("--sampled: expected with --relation series");
  // A configuration may say series, too.
  auto out = o.relation == "series" ? series_subject(app, o) : window_subject(app, o);
  if (o.composition) out.composition = tsdp::named<privacy::StepComposition>(*o.composition, "--composition");
  else if (out.config) out.composition = out.config->privacy.composition;
  if (out.series && o.composition && out.composition == privacy::StepComposition::adaptive)
    throw UsageError(
        "--composition: found adaptive with --relation series, whose steps leak in one direction each; expected "
        "symmetrised");
  const auto composed = [](privacy::AppliedTheorem theorem, privacy::StepComposition composition) {
    if (composition == privacy::StepComposition::symmetrised) return theorem;
    return privacy::composed_adaptively(std::move(theorem), privacy::AdaptiveCurve::longest_block);
  };
  out.composed_at = [composed, inner = out.mechanism_at](double sigma, privacy::StepComposition composition) {
    return composed(inner(sigma), composition);
  };
  out.mechanism_at = [composed, inner = out.mechanism_at, composition = out.composition](double sigma) {
    auto theorem = inner(sigma);
    const auto chosen = composition ? *composition : privacy::chosen_composition(theorem);
    return composed(std::move(theorem), chosen);
  };
  return out;
}

double needed_delta(const QueryOptions& q, const Subject& s) {
  const auto delta = q.delta ? q.delta : s.config ? std::optional(s.config->privacy.delta) : std::nullopt;
  if (!delta) throw UsageError("--delta: not given; expected a number in (0, 1)");
  if (!(*delta >= 1e-25 && *delta < 1.0))
    throw UsageError(cat("--delta: found ", *delta, "; expected a number from 1e-25 to below 1"));
  return *delta;
}

double needed_epsilon(const QueryOptions& q, const Subject& s) {
  const auto epsilon = q.epsilon  ? q.epsilon
                       : s.config ? std::optional(s.config->privacy.target_epsilon)
                                  : std::nullopt;
  if (!epsilon) throw UsageError("--epsilon: not given; expected a number of at least 0");
  if (!(*epsilon >= 0.0) || *epsilon > 1e6)
    throw UsageError(cat("--epsilon: found ", *epsilon, "; expected a number from 0 to 1e6"));
  return *epsilon;
}

std::optional<std::uint64_t> steps_of(const QueryOptions& q, const privacy::AppliedTheorem& m) {
  if (q.steps && q.epochs) throw UsageError("--steps and --epochs: found both; expected one of them");
  const auto per_epoch = static_cast<std::uint64_t>(m.steps_per_epoch);
  const auto count = [](const char* option, const std::string& text, std::uint64_t most) {
    long long value = 0;
    if (!parse_int(text, value) || value < 0 || static_cast<std::uint64_t>(value) > most)
      throw UsageError(cat(option, ": found '", text, "'; expected an integer from 0 to ", most));
    return static_cast<std::uint64_t>(value);
  };
  const auto most = privacy::max_uses_ever;
  if (q.steps) return count("--steps", *q.steps, most);
  if (q.epochs) return per_epoch * count("--epochs", *q.epochs, most / per_epoch);
  return std::nullopt;
}

std::uint64_t needed_steps(const QueryOptions& q, const privacy::AppliedTheorem& m) {
  const auto steps = steps_of(q, m);
  if (!steps) throw UsageError("--steps or --epochs: neither given; expected one of them");
  return *steps;
}

std::vector<double> epsilons_of(const QueryOptions& q) {
  std::vector<double> out;
  if (!q.epsilons) return out;
  for (const auto& text : split(*q.epsilons, ',')) {
    double value = 0.0;
    if (!parse_double(text, value) || !(std::abs(value) <= 1e6))
      throw UsageError(cat("--epsilons: found '", text, "' in '", *q.epsilons,
                           "'; expected numbers from -1e6 to 1e6 with commas between them"));
    out.push_back(value);
  }
  return out;
}

double precision_of(const QueryOptions& q) {
  if (!(q.precision >= 1e-7 && q.precision <= 0.5))
    throw UsageError(cat("--precision: found ", q.precision, "; expected a relative width from 1e-7 to 0.5"));
  return q.precision;
}

}  // namespace tsdp::cli
