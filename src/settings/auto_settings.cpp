#include "tsdp/settings/auto_settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "options.h"
#include "privacy/theorems/noise_choice.h"
#include "privacy/whole_series/bounded_batches.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::mechanism {
namespace {

// How the constants were found: docs/choosing.md, "What auto means".
constexpr std::int64_t most_series = 4096;  // in a step
constexpr double steps_of_a_run = 10'000.0;
constexpr double windows_of_a_run = 2e6;    // minutes on two cores
constexpr double fewest_steps = 1'000.0;
constexpr double recurrent_share = 0.25;    // of both, for a model whose steps cost many times as much
constexpr double rate_without_prior = 1e-3;
// To train a mixture, which judges twenty windows of the past for each that it learns from.
constexpr std::int64_t most_series_of_mixture = 128;
constexpr double steps_of_mixture = 100.0;
constexpr std::int64_t enough_series_of_mixture = 200;
constexpr double enough_records_of_mixture = 400.0;  // at epsilon 1

/// How far noise alone may carry a weight over a run, as learning rate times the root of the steps: `most` where the
/// run's signal to noise g = √T n/σ, with n the windows (or series) of a step, is `enough`, and below that less in
/// proportion to g², as the little that is then learnt is mostly noise.
struct Reach {
  double most, enough;
};
constexpr Reach reach_of_head{0.03, 100.0};
constexpr Reach reach_of_mixture{0.6, 85.0};
/// The signal carries weights g times as far as the noise does; biases and the head no further than this.
double furthest_of_head(const std::string& model) { return model == "deepar" ? 0.5 : 2.0; }

Reach reach_of_all(const std::string& model, bool with_start) {
  if (!with_start) return {0.1, 400.0};
  // Models that read a window more deeply are led astray sooner.
  if (model == "itransformer") return {0.0078, 6000.0};
  if (model == "deepar") return {0.0015, 6000.0};
  return {0.018, 2500.0};
}

/// The number of windows that tell as much as all series together: their windows side by side, N of each time, over
/// Kish's design effect 1 + (N − 1)ρ, as series on the same days share the surprises of those days (Kish, Survey
/// Sampling, 1965). Ten series tell most of what a thousand do.
double effective_windows(const Config& c, const privacy::SeriesLengths& lengths) {
  constexpr double correlation = 0.1;
  double values = 0.0;
  for (std::int64_t i = 0; i < lengths.count(); ++i) values += static_cast<double>(lengths[i]);
  const double windows = values / static_cast<double>(*c.model.context_length + c.dataset.prediction_length);
  return windows / (1.0 + correlation * static_cast<double>(lengths.count() - 1));
}

/// The share of its reach that a run gets. Below `enough` effective windows it falls with their square, as what the run
/// would learn holds for those days alone. A walk hides what it repeats: where the last value is the best forecast
/// known, ten times as many are needed.
double share_of_reach(const Config& c, const privacy::SeriesLengths& lengths) {
  const double enough = prior_of(c).kind == PriorKind::last_value ? 4000.0 : 400.0;
  return std::pow(std::min(1.0, effective_windows(c, lengths) / enough), 2.0);
}

/// The least multiple of the season that holds the horizon, if a prior needs to see a season; else the horizon. Never
/// more than the series hold.
std::int64_t context_of(const Config& c, const privacy::SeriesLengths& lengths) {
  const auto horizon = c.dataset.prediction_length;
  const auto season = c.dataset.season_length;
  const bool by_season =
      c.model.lags.empty() && c.model.prior != PriorKind::none && c.model.prior != PriorKind::last_value && season >= 2;
  const auto wanted = by_season ? (horizon + season - 1) / season * season : horizon;
  const auto held = std::max<std::int64_t>(1, lengths.shortest() - horizon);
  return std::max(std::min(wanted, held), by_season && season <= held ? season : 1);
}

/// What training.trainable: mixture leaves as it is and reads must be known: weights that are no draw, candidates, and
/// other networks that read no more of the past than is accounted for. The `longest` series must have a window whose
/// loss counts: one with a window one stride earlier that has the longest season, or the horizon, before it.
void require_mixture_to_train(const Config& c, const SettledScheme& out, std::int64_t longest) {
  if (c.training.trainable != Trainable::mixture) return;
  const auto refuse = [](const auto&... parts) {
    throw UsageError(cat("training.trainable: found mixture with ", parts...));
  };
  if (!out.start && prior_of(c).kind == PriorKind::none)
    refuse("random weights, which would stay as they are; expected another model.start or a model.prior");
  const auto mixture = mixture_of(c);
  if (mixture.empty()) refuse("no candidates that a series' own past gives; expected some in model.candidates");
  const auto horizon = c.dataset.prediction_length;
  if (const auto least = mixture.stride + std::max(mixture.longest_season(), horizon) + 1 + horizon; longest < least)
    refuse("series of at most ", longest,
           " values to train on, too short for a single past forecast to be judged; expected ", least,
           " values, or candidates of shorter seasons");
  const auto known = accounted_context(c) - mixture.windows * mixture.stride;
  for (const auto& network : out.networks)
    if (const auto read = values_read_by(c, network); read > known)
      refuse(network.file.string(), " among the candidates, which reads ", read, " values where the others read ",
             known, "; expected a longer model.context_length, or model.candidates without it");
}

/// The candidates that `auto` stands for with a prior.
void name_candidates(Config& c) {
  c.model.auto_candidates = false;
  c.model.candidates = built_in_candidates(c);
  c.model.candidates.emplace_back(other_starts);
}

/// A start that was trained on data is no public forecast. As a candidate its weights would lie in the exported model
/// as they are, and with a target of 0 they would be the model: the run's epsilon covers neither.
void settle_trained_start(Config& c, StartOrigin origin) {
  if (!rests_on_data(origin)) return;
  const auto refuse = [&](const std::string& key, const auto& found) {
    throw PrivacyError(
        cat(key, ": found ", found, " with ", c.model.start,
            ", which was trained on data: the model would hold those weights as they are, and no epsilon "
            "of this run covers them; expected a model.start of auto or fresh, or another ",
            key));
  };
  if (!c.privacy.enabled) return;
  if (!takes_steps(c)) refuse("privacy.target_epsilon", "0");
  if (c.training.trainable && *c.training.trainable != Trainable::all)
    refuse("training.trainable", name(*c.training.trainable));
  const std::string start(name(Candidate::start));
  if (std::count(c.model.candidates.begin(), c.model.candidates.end(), start) > 0) refuse("model.candidates", start);
  if (!c.model.auto_candidates || c.model.prior == PriorKind::none) return;
  name_candidates(c);
  std::erase(c.model.candidates, start);
}

/// The head, where weights that rest on no data forecast alone and training all of them needs more than `signal`: a
/// mixture widens and narrows forecasts by itself, which is most of what the head can learn, and weights that were
/// trained on data are not left as they are.
void choose_trainable(Settled& out, double signal, double enough) {
  auto& c = out.config;
  const char* all_because = !mixture_of(c).empty()                  ? "the mixture does what training the head would"
                            : rests_on_data(out.start_origin())     ? "the start was trained on data"
                            : c.optimizer.learning_rate.has_value() ? "optimizer.learning_rate is given"
                            : signal >= enough                      ? "noise is small enough for all weights"
                                                                    : nullptr;
  c.training.trainable = out.start && all_because == nullptr ? Trainable::head : Trainable::all;
  if (!out.start) return;
  out.choose("training.trainable", name(*c.training.trainable),
             all_because != nullptr ? std::string(all_because)
                                    : cat("the run's signal to noise, ", rounded(signal, 3), ", is below the ", enough,
                                          " that training all weights needs"));
}

/// sampling.largest_batch `auto` for batches that coins or bins draw, of all planned steps.
std::int64_t largest_batch_of(const Config& c, const privacy::SubsamplingScheme& scheme) {
  const double steps = static_cast<double>(*c.training.max_epochs) * static_cast<double>(scheme.steps_per_epoch());
  return privacy::least_largest_batch(scheme.sequences(), scheme.drawn_share(), steps, c.privacy.target_epsilon,
                                      c.privacy.delta);
}

void choose_largest_batch(SettledScheme& out, Config& c, const privacy::SubsamplingScheme& scheme) {
  c.sampling.auto_largest_batch = false;
  c.sampling.largest_batch = largest_batch_of(c, scheme);
  out.choose("sampling.largest_batch", *c.sampling.largest_batch,
             cat("so that cuts add at most a hundredth to delta, where ", rounded(scheme.expected_sequences(), 5),
                 " are expected"));
}

/// sampling.top_level `auto`: of whole series the batches and the noise of least total error at the target, among
/// coins, cyclic coins with banded noise, and bins of either kind. Fixed and shuffled batches cost no less than bins,
/// and samples without replacement no less than coins.
void choose_batches(SettledScheme& out, const privacy::SeriesLengths& lengths) {
  auto& c = out.config;
  if (!c.sampling.auto_top_level) return;
  c.sampling.auto_top_level = false;
  c.sampling.top_level = privacy::TopLevel::without_replacement;
  if (!c.privacy.enabled || !takes_steps(c) || c.privacy.relation != privacy::Relation::series) {
    if (c.sampling.largest_batch || c.sampling.auto_largest_batch)
      out.choose("sampling.largest_batch", "null", "these batches have one size");
    c.sampling.largest_batch.reset();
    c.sampling.auto_largest_batch = false;
    out.choose("sampling.top_level", name(c.sampling.top_level),
               c.privacy.enabled && takes_steps(c) ? "what costs least in long runs" : "no epsilon is spent");
    return;
  }
  const bool independent = c.privacy.noise_mechanism.has_value();
  using privacy::Redraw;
  using privacy::TopLevel;
  std::vector<privacy::SeriesLaw> laws;
  const auto add = [&](privacy::TopLevel sampler, privacy::Redraw redraw) {
    auto with = c;
    with.sampling.top_level = sampler;
    with.sampling.redraw = redraw;
    if (c.sampling.auto_largest_batch) with.sampling.largest_batch = largest_batch_of(c, scheme_of(with, lengths));
    laws.push_back(privacy::series_law_of(scheme_of(with, lengths)));
  };
  add(TopLevel::cyclic_poisson, Redraw::once);
  try {
    add(TopLevel::balls_in_bins, Redraw::every_epoch);
    if (!independent) add(TopLevel::balls_in_bins, Redraw::once);
  } catch (const UsageError&) {
    if (!c.sampling.largest_batch) throw;  // bins hold a little more than coins draw, so it may be too small for them
  }
  const auto best =
      privacy::least_total_error(laws, {{}, *c.training.max_epochs, c.privacy.target_epsilon, c.privacy.delta},
                                 c.privacy.wanted_strategy(privacy::StrategyKind::identity), independent);
  const bool cyclic = best.law.sampler == TopLevel::cyclic_poisson;
  c.sampling.top_level = cyclic && best.law.groups == 1 ? TopLevel::poisson : best.law.sampler;
  c.sampling.redraw = best.law.redraw;
  if (c.sampling.auto_largest_batch) choose_largest_batch(out, c, scheme_of(c, lengths));
  c.privacy.noise_mechanism = best.strategy->kind();
  if (cyclic && best.law.groups > 1) c.privacy.noise_bands = best.law.groups;
  c.privacy.noise_multiplier = best.noise_multiplier;
  const auto why = cat("the least total error of the noise at epsilon ", c.privacy.target_epsilon, ": ",
                       rounded(best.total_error, 4));
  out.choose("sampling.top_level", name(c.sampling.top_level), why);
  if (c.sampling.top_level == TopLevel::balls_in_bins) out.choose("sampling.redraw", name(c.sampling.redraw), why);
  if (independent) return;
  out.choose("privacy.noise.mechanism", name(best.strategy->kind()), why);
  if (cyclic && best.law.groups > 1) out.choose("privacy.noise.bands", best.law.groups, why);
}

/// By how much less noise training feels than its multiplier says, as later steps take back what earlier ones added:
/// the root of the mean squared error of independent noise's prefix sums over that of the run's (strategy.h).
double taken_back(const TrainingMethod& method) {
  if (!method.privacy() || !method.privacy()->noise().strategy) return 1.0;
  const auto& strategy = *method.privacy()->noise().strategy;
  return std::sqrt(0.5 * static_cast<double>(strategy.steps() + 1) / strategy.mean_error());
}

/// training.trainable `auto`: so many series may say how to mix forecasts, and training weights beside candidates adds
/// next to nothing (docs/results.md). Not where steps or rate were chosen for weights, nor where a network reads
/// several variables together, which no candidate does.
bool prefers_mixture(const Config& c, const privacy::SeriesLengths& lengths) {
  return c.privacy.enabled && takes_steps(c) && !c.training.trainable && !c.training.max_epochs &&
         !c.optimizer.learning_rate && joined_variables(c) == 1 && lengths.owners() >= enough_series_of_mixture;
}

/// Whether noise leaves enough to be learnt of the mixture: by epsilon, and by how many records no two of which hold
/// the same value, where the shortest series sets the noise. (The noise itself is not known yet.)
bool says_enough(const Config& c, const privacy::SeriesLengths& lengths) {
  const auto reach = accounted_context(c) + c.dataset.prediction_length;
  const double apart = c.privacy.relation == privacy::Relation::series
                           ? 1.0
                           : std::max(1.0, static_cast<double>(lengths.shortest()) / static_cast<double>(reach));
  return static_cast<double>(lengths.owners()) * apart * c.privacy.target_epsilon >= enough_records_of_mixture;
}

/// The run that trains its mixture; none where that says too little, or is refused, as with a start trained on data:
/// what is wrong with every run, the one that trains weights says.
std::optional<SettledScheme> settle_mixture(Config config, const privacy::SeriesLengths& lengths,
                                            const std::filesystem::path& config_file, SettleLimits limits) {
  config.training.trainable = Trainable::mixture;
  try {
    detail::check_trained_mixture(config_file.string(), config);
    auto out = settle_scheme(std::move(config), lengths, config_file, limits);
    if (!says_enough(out.config, lengths)) return std::nullopt;
    out.choose("training.trainable", name(Trainable::mixture),
               cat("a mixture of ", lengths.owners(), lengths.has_owners() ? " owners' series" : " series",
                   " is improved by few numbers; training its network would add next to nothing"));
    return out;
  } catch (const UsageError&) {  // said of a mixture that nobody asked for
  } catch (const PrivacyError&) {  // likewise
  }
  return std::nullopt;
}

}  // namespace

bool SettledScheme::begins_at_random() const { return !start && prior_of(config).kind == PriorKind::none; }

SettledScheme settle_scheme(Config config, const privacy::SeriesLengths& lengths,
                            const std::filesystem::path& config_file, SettleLimits limits) {
  if (limits.trains_mixtures && prefers_mixture(config, lengths))
    if (auto of_mixture = settle_mixture(config, lengths, config_file, limits)) return *std::move(of_mixture);
  SettledScheme out;
  auto& c = config;

  // Until batches are chosen the plan is made for coins, which take any number of them.
  if (c.sampling.auto_top_level && c.privacy.relation == privacy::Relation::series)
    c.sampling.top_level = privacy::TopLevel::poisson;
  const auto asked = c.model.start;
  out.start = find_start(c, config_file, lengths.shortest() - c.dataset.prediction_length);
  if (asked == "auto" || asked == "pretrained") {
    c.model.start = out.start ? out.start->file.string() : "fresh";
    out.choose("model.start", out.start ? out.start->file.stem().string() : "fresh",
               out.start ? "shipped weights, trained on synthetic series alone"
               : prior_of(c).kind == PriorKind::none
                   ? "no shipped weights are offered for this shape"
                   : "no shipped weights are offered for this shape, so the prior is the start");
  }
  settle_trained_start(c, out.start_origin());
  if (c.model.chosen_lags) {
    std::vector<std::string> lags;
    for (const auto lag : c.model.lags) lags.push_back(cat(lag));
    out.choose("model.lags", cat("[", join(lags, ", "), "]"), "the last steps, and those of the season before");
  }
  if (!c.model.context_length) {
    c.model.context_length = out.start ? context_length_of(*out.start) : context_of(c, lengths);
    out.choose("model.context_length", *c.model.context_length,
               out.start ? "that of the weights it starts from"
                         : "the forecast length, in whole seasons where the prior needs one");
  }
  if (c.model.auto_candidates && c.model.prior != PriorKind::none) name_candidates(c);
  const bool finds_networks = std::count(c.model.candidates.begin(), c.model.candidates.end(), other_starts) > 0;
  auto most_context = lengths.shortest() - c.dataset.prediction_length;
  if (c.training.trainable == Trainable::mixture) {  // no more than is accounted for
    const auto mixture = mixture_of(c);
    most_context = std::min(most_context, accounted_context(c) - mixture.windows * mixture.stride);
  }
  out.networks = find_networks(c, config_file, most_context);
  if (finds_networks) {
    std::vector<std::string> names;
    for (const auto& network : out.networks) names.push_back(network.file.stem().string());
    out.choose("model.candidates: other_starts", names.empty() ? std::string("none") : join(names, ", "),
               "networks of other kinds, trained on synthetic series alone");
  }
  require_mixture_to_train(c, out, lengths.longest());
  const bool of_mixture = c.training.trainable == Trainable::mixture;
  const auto lambda = c.sampling.subsequences_per_sequence;
  if (c.sampling.auto_batch_size) {
    c.sampling.auto_batch_size = false;
    const auto most = of_mixture ? most_series_of_mixture : most_series;
    c.sampling.batch_size = lambda * std::min(lengths.owners(), most);
    out.choose("sampling.batch_size", *c.sampling.batch_size,
               lengths.owners() <= most
                   ? cat("every ", lengths.has_owners() ? "owner" : "series",
                         " in every step: the fewest steps for the same signal")
                   : cat(most, lengths.has_owners() ? " owners" : " series", " a step, so that a step stays short"));
  }
  const auto scheme = scheme_of(c, lengths);
  const auto windows = static_cast<double>(scheme.expected_windows());
  if (!c.training.max_epochs) {
    const double share = c.model.lags.empty() ? 1.0 : recurrent_share;  // for a model that reads lags
    const double by_rule = of_mixture
                               ? steps_of_mixture
                               : std::clamp(share * windows_of_a_run / windows, fewest_steps, share * steps_of_a_run);
    const double steps = std::min(by_rule, limits.most_steps);
    c.training.max_epochs =
        std::max<std::int64_t>(1, std::llround(steps / static_cast<double>(scheme.steps_per_epoch())));
    out.choose("training.max_epochs", *c.training.max_epochs,
               cat(rounded(steps, 5), steps < by_rule ? " steps, as many as the time allows"
                                                      : " steps: more of them with more noise help little"));
  }
  if (c.sampling.auto_largest_batch && !c.sampling.auto_top_level) choose_largest_batch(out, c, scheme);
  out.config = std::move(config);
  return out;
}

Settled settle(Config config, const privacy::SeriesLengths& lengths, const std::filesystem::path& config_file,
               SettleLimits limits) {
  return settle_noise(settle_scheme(std::move(config), lengths, config_file, limits), lengths);
}

Settled settle_noise(SettledScheme settled, const privacy::SeriesLengths& lengths) {
  const bool noise = !settled.config.privacy.noise_multiplier;
  choose_batches(settled, lengths);
  auto of_run = method_of(settled.config, lengths);
  Settled out{std::move(settled), std::move(of_run)};
  const auto& method = out.method;
  auto& c = out.config;
  const auto& scheme = method.scheme();
  const bool composition = !c.privacy.composition;
  if (method.privacy()) {
    keep_choices(c, *method.privacy());
    if (composition && privacy::covers_adaptive_composition(method.privacy()->theorem())) {
      const bool adaptive = c.privacy.composition == privacy::StepComposition::adaptive;
      out.choose("privacy.composition", std::string(name(*c.privacy.composition)),
                 adaptive ? "the same steps for less epsilon; seconds of work when a noise is new"
                          : "with this noise adaptive composition saves little, or takes minutes");
    }
    if (noise && takes_steps(c))
      out.choose("privacy.noise_multiplier", exact(*c.privacy.noise_multiplier),
                 cat(c.privacy.noise_sampled ? "found by sampling for epsilon " : "the least that spends epsilon ",
                     c.privacy.target_epsilon, " over ", *c.training.max_epochs, " epochs"));
  }
  double steps = static_cast<double>(*c.training.max_epochs) * static_cast<double>(scheme.steps_per_epoch());
  if (const auto& privacy = method.privacy(); privacy && !noise && takes_steps(c)) {
    // With a noise of the user's own epsilon may end the run earlier.
    const auto& theorem = privacy->theorem();
    const auto uses =
        privacy->most_uses(c.privacy.target_epsilon, c.privacy.delta, uses_of_epochs(theorem, *c.training.max_epochs));
    steps = std::clamp(static_cast<double>(theorem.steps_of_uses(uses)), 1.0, steps);
  }
  const bool of_mixture = c.training.trainable == Trainable::mixture;
  const double by_lengths = of_mixture ? 1.0 : share_of_reach(c, lengths);
  const bool trained = takes_steps(c) && !out.begins_at_random();
  const double less = trained ? taken_back(method) : 1.0;
  // A step cannot have more windows than there are, whatever it is divided by.
  const double records =
      scheme.parameters().record == privacy::Record::window ? scheme.mean_windows() : scheme.divisor();
  const double signal = trained && c.privacy.enabled ? less * std::sqrt(steps) * records / *c.privacy.noise_multiplier
                                                     : std::numeric_limits<double>::infinity();
  const auto of_all = reach_of_all(c.model.name, out.start.has_value());
  if (!c.training.trainable) choose_trainable(out, signal, of_all.enough);
  const auto reach = c.training.trainable == Trainable::head ? reach_of_head : of_mixture ? reach_of_mixture : of_all;
  if (trained) out.expected = {signal, reach.enough, by_lengths * std::min(1.0, std::pow(signal / reach.enough, 2.0))};
  if (!c.optimizer.learning_rate) {
    double rate = rate_without_prior;
    std::string why =
        out.begins_at_random() ? "GluonTS's, as the model starts from random weights" : "no step is taken";
    if (out.expected) {
      double carried = reach.most * out.expected->share;
      if (c.training.trainable == Trainable::head && c.privacy.enabled)
        carried = std::min(carried, by_lengths * furthest_of_head(c.model.name) / signal);
      rate = less * carried / std::sqrt(steps);  // Adam divides by the noise of single steps
      why = c.privacy.enabled ? cat("by the signal to noise of the run, root of the steps times batch over noise: ",
                                    rounded(out.expected->signal, 3), "; the less, the nearer to the start")
                              : std::string("so small that the weights stay near those they start from");
      if (by_lengths < 1.0)
        why += cat("; ", rounded(100.0 * by_lengths, 2), " % of it, as series this short say little about later days");
    }
    c.optimizer.learning_rate = rate;
    out.choose("optimizer.learning_rate", rounded(rate, 4), why);
  }
  return out;
}

std::vector<Alternative> alternatives(const Config& as_written, const privacy::SeriesLengths& lengths,
                                      const std::filesystem::path& config_file, const Settled& settled,
                                      SettleLimits limits) {
  std::vector<Alternative> out;
  // Adaptive composition would take minutes for every one of them.
  auto written = as_written;
  written.privacy.noise_sampled.reset();  // likewise
  if (!written.privacy.composition) written.privacy.composition = privacy::StepComposition::symmetrised;
  // With a series less `auto` may train something else, whose expectation says another thing.
  if (settled.config.training.trainable == Trainable::mixture) written.training.trainable = Trainable::mixture;
  const auto& p = settled.config.privacy;
  if (!settled.expected || !settled.method.privacy() || written.privacy.noise_multiplier) return out;
  const auto add = [&](const std::string& what, const Config& config, const privacy::SeriesLengths& of) {
    try {
      const auto other = settle(config, of, config_file, limits);
      if (!other.expected) return;
      out.push_back({what, *other.config.privacy.noise_multiplier, other.expected->signal, other.expected->share});
    } catch (const Error&) {}  // another setting may rule it out
  };
  const auto share_as_written = [&]() -> std::optional<double> {
    if (as_written.privacy.composition || settled.config.privacy.composition == written.privacy.composition)
      return settled.expected->share;
    try {
      const auto symmetrised = settle(written, lengths, config_file, limits);
      if (symmetrised.expected) return symmetrised.expected->share;
    } catch (const Error&) {}  // which may rule it out
    return std::nullopt;
  };
  const auto drop_unless_it_helps = [&] {
    if (out.empty()) return;
    if (const auto before = share_as_written(); !before || out.back().share <= *before) out.pop_back();
  };
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < lengths.count(); ++i) kept.push_back(lengths[i]);
  std::sort(kept.begin(), kept.end());
  const auto most_left_out = std::max<std::int64_t>(1, lengths.count() / 20);
  // What an owner's series cost does not depend on their lengths.
  if (const auto place = kept.begin() + std::min(most_left_out, lengths.count() - 1);
      !lengths.has_owners() && *place > lengths.shortest()) {
    const auto least = *place;
    const auto left_out = std::lower_bound(kept.begin(), kept.end(), least) - kept.begin();
    kept.erase(kept.begin(), kept.begin() + left_out);
    add(cat("without the ", left_out, " series of fewer than ", least, " training values"), written,
        privacy::SeriesLengths(kept).of_variables(lengths.variables()));
    drop_unless_it_helps();
  }
  auto other = written;
  other.privacy.target_epsilon *= 2.0;
  add(cat("privacy.target_epsilon=", other.privacy.target_epsilon), other, lengths);
  const auto season = settled.config.dataset.season_length;
  if (p.relation == privacy::Relation::event && season > p.w) {
    other = written;
    other.privacy.w = season;
    add(cat("privacy.w=", season, ", which protects a whole season of values"), other, lengths);
  }
  if (p.relation == privacy::Relation::series && !written.sampling.auto_top_level) {
    other = written;
    other.sampling.auto_top_level = true;
    other.sampling.reshuffle = privacy::Reshuffle::every_epoch;
    other.sampling.redraw = privacy::Redraw::once;
    other.privacy.noise_mechanism = privacy::StrategyKind::identity;
    add("sampling.top_level=auto, with privacy.noise.mechanism=identity", other, lengths);
    drop_unless_it_helps();
  }
  return out;
}

void require_settled(const Settled& run, const privacy::SeriesLengths& lengths) {
  const auto& config = run.config;
  const auto& scheme = run.method.scheme();
  const auto require = [](bool same, const char* what) {
    if (!same)
      throw PrivacyError(cat(what,
                             ": found another than the run was settled with, which is what is accounted; settle the "
                             "configuration again after changing it"));
  };
  const auto& known = scheme.parameters().lengths;
  bool same = known.count() == lengths.count() && known.variables() == lengths.variables() &&
              known.grouped().of == lengths.grouped().of && known.grouped().grouping == lengths.grouped().grouping;
  for (std::int64_t i = 0; same && i < lengths.count(); ++i) same = known[i] == lengths[i];
  require(same, "lengths of the series, their variables, or their owners");
  require(terms(TrainingMethod(scheme)) == terms(TrainingMethod(scheme_of(config, lengths))),
          "sampling, model.context_length, dataset.prediction_length or augmentation");
  require(run.method.privacy().has_value() == config.privacy.enabled, "privacy.enabled");
  if (!run.method.privacy()) return;
  const auto& mechanism = *run.method.privacy();
  const auto& noise = mechanism.noise();
  require(mechanism.unit() == unit_of(config, lengths),
          "privacy.relation, privacy.w, privacy.v, dataset.owner or dataset.columns.value");
  require(mechanism.clipping() == privacy::Clipping{config.privacy.clipping, config.privacy.clip_norm},
          "privacy.clipping or privacy.clip_norm");
  require(
      config.privacy.noise_multiplier == noise.multiplier &&
          config.privacy.noise_mechanism == (noise.strategy ? noise.strategy->kind() : privacy::StrategyKind::identity),
      "privacy.noise_multiplier or privacy.noise.mechanism");
  require(sampled_claim_of(config) == noise.sampled, "privacy.noise.sampled");
  require(config.privacy.composition == mechanism.composition(), "privacy.composition");
  require(mechanism.choice_epsilon() == 0.0, "a private choice, which no run of this version ends with,");
}

}  // namespace tsdp::mechanism
