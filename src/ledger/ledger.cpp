#include "tsdp/ledger/ledger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/version.h"
#include "fields.h"
#include "mechanism/private_choice.h"
#include "privacy/theorems/series_law.h"
#include "tsdp/base/error.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::mechanism {
namespace {

using Json = nlohmann::ordered_json;

/// The format that a ledger was written in. Older ones stay readable, and are held to the wording they were written
/// with.
enum class Edition {
  second,  ///< up to 0.5: `start.weights`, "consecutive values", and `bound` of a single use
  third
};
constexpr Names<Edition, 2> names_of(Edition) {
  return {{{Edition::second, "tsdp-privacy-2"}, {Edition::third, "tsdp-privacy-3"}}};
}

constexpr const char* no_privacy = "No privacy: trained without clipping and noise.";
constexpr const char* no_data = "Nobody's data: trained without clipping and noise, on synthetic series alone.";
constexpr const char* no_data_of_its_own =
    "No data of its own: trained without clipping and noise, on synthetic series.";
constexpr double attack_precisions[] = {1e-2, 1e-3, 1e-4, 1e-5};  // that of ledgers, and finer
constexpr double bracket_tolerance = 5e-3;  // relative; ends of brackets of other versions may differ by this much

/// The sentence that says what neighbours are. An event is accounted for by steps: where values are missing, two
/// consecutive ones may lie any number of steps apart.
std::string relation_text(const privacy::PrivacyUnit& unit, Edition edition) {
  if (unit.relation == privacy::Relation::series)
    return "two data sets are neighbours if they differ in whether one whole series is in the data";
  std::string text = "two data sets are neighbours if they differ in one series, in ";
  text += unit.w == 1                                ? std::string("one value")
          : unit.relation == privacy::Relation::user ? cat("at most ", unit.w, " values anywhere")
          : edition == Edition::second               ? cat("at most ", unit.w, " consecutive values")
                                                     : cat("values within ", unit.w, " consecutive steps");
  if (unit.v) text += cat(", each by at most ", *unit.v, " (values as they stand in the file)");
  return text;
}

/// Whether delta would allow publishing one of the N series whole.
bool delta_is_large(const Ledger& ledger) {
  return ledger.cost && ledger.cost->delta * static_cast<double>(ledger.method.scheme().sequences()) >= 1.0;
}

/// not_counted_of_start, as an addition to the sentence that it limits.
std::string but_for_the_start(const Ledger& ledger) {
  const auto what = not_counted_of_start(ledger.start.origin);
  return what.empty() ? what : cat("; not counted: ", what);
}

Json not_covered(const Ledger& ledger) {
  Json out = {
      "everything under private/: losses, norms, validation scores, plots, checkpoints and the key of the randomness",
      "what the programs print or write besides model.pt, this ledger and config.yaml: scores, losses, forecasts",
      "other models and other runs on the same data, those of a sweep included: their privacy costs compose with this "
      "one's",
      "one person or household with several series or columns, beyond what `groups` states",
      ledger.method.choice_epsilon() > 0.0
          ? "validation and test values beyond the private choice, and any other choice made by looking at them "
            "(settings, model, number of epochs)"
          : "validation and test values, and any choice made by looking at them (settings, model, number of epochs)",
      "the time that training took, and stopping it, or not releasing a model, because of what its logs or scores "
      "showed",
      "the number and lengths of the series, their calendar, and which values are missing: treated as public",
      "whether training begins at all: values that are no numbers, too large, or not to be told apart in single "
      "precision, are refused, as are data of which half of the series or more are copies of others",
      "forecasts from a series' own recent values: the guarantee is about training data, not about a model's inputs",
      ("floating-point side channels: noise is made of finitely many random bits in double precision, cut at 12.07 "
       "standard deviations, and added to single-precision sums on a grid of 2^-24 of its deviation; a window's "
       "gradient is computed beside others, on whose number its own rounding may hang"),
  };
  if (!ledger.covariates.empty())
    out.push_back(cat("the covariates (", join(ledger.covariates, ", "),
                      "): treated as public, whoever they are about; a column that equals a series is refused"));
  if (const auto what = not_counted_of_start(ledger.start.origin); !what.empty()) out.push_back(what);
  if (ledger.state != RunState::finished)
    out.push_back("a second run from a copy of this run's folder: copies that go on differently compose");
  return out;
}

}  // namespace

StartOrigin origin_of_weights(const Ledger& ledger) {
  const auto before = rests_on_data(ledger.start.origin) ? ledger.start.origin : StartOrigin::synthetic;
  if (ledger.synthetic || before == StartOrigin::trained_without_privacy) return before;
  return ledger.protects() ? StartOrigin::trained : StartOrigin::trained_without_privacy;
}

std::string not_counted_of_start(StartOrigin origin) {
  switch (origin) {
    case StartOrigin::fresh:
    case StartOrigin::synthetic: return "";
    case StartOrigin::trained:
      return "the training of the weights that it started from (start.trained): it has a statement of its own, and for "
             "whoever is in both the two compose (tsdp-account total)";
    case StartOrigin::trained_without_privacy:
      return "the training of the weights that it started from (start.trained): it had no privacy, so nothing protects "
             "whoever is in its data";
  }
  throw Error(ExitCode::failure, "a start from nowhere");
}

std::string start_cited(StartOrigin origin) {
  switch (origin) {
    case StartOrigin::fresh:
    case StartOrigin::synthetic: return "epsilon 0: before any of your data";
    case StartOrigin::trained: return "trained on data before, at a cost of its own";
    case StartOrigin::trained_without_privacy: return "trained on data before, without privacy";
  }
  throw Error(ExitCode::failure, "a start from nowhere");
}

std::vector<Ledger> earlier_runs(const Start& of, const std::string& where) {
  std::vector<Ledger> out;
  for (auto start = of; rests_on_data(start.origin);) {
    auto earlier = read_ledger(start.trained, cat(where, ": start: trained"));
    start = earlier.start;
    if (!earlier.synthetic) out.push_back(std::move(earlier));
  }
  return out;
}

std::uint64_t Ledger::accounted_steps() const {
  return state == RunState::running ? std::max(steps_planned, steps_charged) : steps_charged;
}

namespace {

/// C itself, as its recursion, without which a noise multiplier means nothing.
Json correlated_terms(const privacy::Strategy& strategy) {
  const auto& r = strategy.recursion();
  Json out = {{"mechanism", name(strategy.kind())}, {"steps", strategy.steps()}};
  switch (r.form) {
    case privacy::NoiseRecursion::Form::banded: out["matrix_first_column"] = r.coefficients; break;
    case privacy::NoiseRecursion::Form::banded_inverse: out["inverse_first_column"] = r.coefficients; break;
    case privacy::NoiseRecursion::Form::buffered:
      out["decays"] = r.decays;
      out["weights"] = r.weights;
      break;
  }
  out["meaning"] =
      "noise C^-1 Z, Z independent with the noise multiplier as deviation; C lower triangular and Toeplitz, not "
      "normalised";
  return out;
}

privacy::Strategy read_strategy(const Fields& noise, const std::string& where) {
  const auto list = [&](const char* key) {
    const auto& values = noise.at(key);
    std::vector<double> out;
    if (!values.is_array() || values.empty() || values.size() > 10'000'000)
      throw DataError(cat(where, ": noise: ", key, ": expected a list of numbers"));
    for (const auto& value : values) {
      if (!value.is_number())
        throw DataError(cat(where, ": noise: ", key, ": found ", json_text(value), "; expected a number"));
      out.push_back(value.get<double>());
    }
    return out;
  };
  privacy::NoiseRecursion r;
  if (noise.has("matrix_first_column")) {
    r = {privacy::NoiseRecursion::Form::banded, list("matrix_first_column"), {}, {}};
  } else if (noise.has("inverse_first_column")) {
    r = {privacy::NoiseRecursion::Form::banded_inverse, list("inverse_first_column"), {}, {}};
  } else {
    r = {privacy::NoiseRecursion::Form::buffered, {}, list("decays"), list("weights")};
  }
  try {
    return {noise.one_of<privacy::StrategyKind>("mechanism"), std::move(r), noise.length("steps")};
  } catch (const UsageError& error) { throw DataError(cat(where, ": noise: ", error.what())); }
}

}  // namespace

namespace {

/// `second` said of bins, and of batches with an order of their own, that they are shuffled anew in every epoch.
Json terms_as(const TrainingMethod& method, Edition edition) {
  const auto& p = method.scheme().parameters();
  Json out = {
      {"top_level", name(p.top_level)},
      {"bottom_level", name(p.bottom_level)},
      {"num_sequences", method.scheme().sequences()},
      {"shortest_sequence", p.lengths.shortest()},
      {"longest_sequence", p.lengths.longest()},
      {"context_length", p.context_length},
      {"forecast_length", p.forecast_length},
      {"batch_size", p.batch_size},
      {"subsequences_per_sequence", p.subsequences_per_sequence},
      {"steps_per_epoch", method.scheme().steps_per_epoch()},
      {"context_noise", p.context_noise},
      {"forecast_noise", p.forecast_noise},
  };
  // For batches of windows there is nothing more to say, as before.
  if (p.record == privacy::Record::series || p.reshuffle != privacy::Reshuffle::every_epoch) {
    out["record"] = name(p.record);
    if (p.top_level == privacy::TopLevel::shuffled || edition == Edition::second) out["reshuffle"] = name(p.reshuffle);
    out["batches"] = p.batches ? Json(*p.batches) : Json(nullptr);
    out["rate"] = p.rate ? Json(*p.rate) : Json(nullptr);
  }
  if (!method.privacy()) return out;
  const auto& m = *method.privacy();
  out["relation"] = name(m.unit().relation);
  out["w"] = m.unit().w;
  out["v"] = m.unit().v ? Json(*m.unit().v) : Json(nullptr);
  out["noise_multiplier"] = m.noise().multiplier;
  if (m.noise().kind == privacy::NoiseKind::correlated) out["noise"] = correlated_terms(*m.noise().strategy);
  out["clip_norm"] = m.clipping().norm;
  out["clipping"] = name(m.clipping().kind);
  if (m.choice_epsilon() > 0.0) out["choice_epsilon"] = m.choice_epsilon();
  if (m.composition() != privacy::StepComposition::symmetrised) out["composition"] = name(m.composition());
  return out;
}

/// Where the weights came from. The second edition wrote it only where there was something to say.
Json start_json(const Start& start, Edition edition) {
  Json out = {{"prior", name(start.prior.kind)}, {"season", start.prior.season}};
  const bool fresh = start.origin == StartOrigin::fresh;
  if (edition == Edition::second) {
    if (fresh && start.prior.kind == PriorKind::none) return nullptr;
    if (!fresh) out["weights"] = name(rests_on_data(start.origin) ? StartOrigin::trained : start.origin);
  } else {
    out["origin"] = name(start.origin);
  }
  if (!fresh) out["weights_sha256"] = start.sha256;
  if (rests_on_data(start.origin)) out["trained"] = start.trained;
  return out;
}

/// The kind of mechanism, in words.
std::string kind_text(const TrainingMethod& method, Edition edition) {
  if (!method.privacy())
    return "none: ordinary training on structured subsamples, without clipping per window and noise";
  const bool series = method.scheme().parameters().record == privacy::Record::series;
  const bool correlated =
      edition != Edition::second && method.privacy()->noise().kind == privacy::NoiseKind::correlated;
  return cat(series ? "DP-SGD on whole series, " : "DP-SGD on structured subsamples, ",
             correlated ? "correlated Gaussian noise (matrix mechanism)" : "Gaussian noise", " on the sum of clipped ",
             series ? "per-series" : "per-window", " gradients");
}

std::string statement_as(const Ledger& ledger, Edition edition);

}  // namespace

Json terms(const TrainingMethod& method) { return terms_as(method, Edition::third); }

Json certificate_json(const privacy::Certificate& why) {
  return {{"upper", why.upper},
          {"lower", why.lower.empty() ? Json(nullptr) : Json(why.lower)},
          {"assumptions", why.assumptions}};
}

namespace {

Json document_as(const Ledger& ledger, Edition edition) {
  Json out;
  out["format"] = name(edition);
  out["program"] = ledger.program;
  out["state"] = name(ledger.state);
  out["run"] = {
      {"id", ledger.run.id}, {"key_print", ledger.run.key_print}, {"configuration_sha256", ledger.run.configuration}};
  out["private"] = ledger.is_private();
  out["reproducible"] = ledger.reproducible;
  out["mechanism"] = {{"kind", kind_text(ledger.method, edition)}};
  // Of these terms, the scheme goes under `mechanism`; what is released and to whom goes next to it.
  const auto all = terms_as(ledger.method, edition);
  for (const auto& [term, value] : all.items()) {
    if (term == "relation") break;
    out["mechanism"][term] = value;
  }
  if (auto start = start_json(ledger.start, edition); !start.is_null()) out["start"] = std::move(start);
  if (const auto& data = ledger.synthetic)
    out["synthetic_data"] = {
        {"family", data->family}, {"series", data->series}, {"length", data->length}, {"seed", data->seed}};
  if (!ledger.covariates.empty())
    out["covariates"] = {{"names", ledger.covariates}, {"meaning", "public: no guarantee is given for them"}};
  out["steps_planned"] = ledger.steps_planned;
  out["steps_taken"] = ledger.steps_taken;
  out["steps_charged"] = ledger.steps_charged;
  out["randomness"] = ledger.reproducible
                          ? "reproducible, not for release: the key follows from the seed, so whoever knows the seed "
                            "can remove the noise"
                          : "secret 256-bit key of the operating system; ChaCha20 streams per purpose and step";
  if (!ledger.is_private()) {
    out["epsilon"] = nullptr;
    out["statement"] = statement_as(ledger, edition);
    return out;
  }
  const auto& p = *ledger.cost;
  const auto& unit = ledger.method.privacy()->unit();
  const auto& theorem = ledger.method.privacy()->theorem();
  out["theorem"] = theorem.theorem;
  const auto& row = privacy::theorem_row(theorem.theorem);
  out["source"] = row.ours             ? "a theorem of this project, proven in its docs/proofs"
                  : row.source.empty() ? "Schuchardt et al., Privacy Amplification by Structured Subsampling for Deep "
                                         "Differentially Private Time Series Forecasting, ICML 2025"
                                       : row.source;
  if (theorem.composition == privacy::StepComposition::adaptive && !row.ours)
    out["source"] =
        cat(out["source"].get<std::string>(), "; tsdp.6: a theorem of this project, proven in its docs/proofs");
  // For the whole: a tight profile of a step, composed by an upper bound, gives an upper bound.
  const bool adaptive = theorem.composition == privacy::StepComposition::adaptive;
  out["bound"] =
      name(adaptive && edition != Edition::second ? std::max(theorem.bound, privacy::Bound::upper) : theorem.bound);
  if (theorem.composition != privacy::StepComposition::symmetrised) out["composition"] = name(theorem.composition);
  out["composition_unit"] = name(theorem.unit);
  out["compositions"] = ledger.accounted_uses();
  out["relation"] = {
      {"kind", all["relation"]}, {"w", all["w"]}, {"v", all["v"]}, {"text", relation_text(unit, edition)}};
  for (const char* term : {"noise_multiplier", "noise", "clip_norm", "clipping"})
    if (all.contains(term)) out[term] = all[term];
  out["delta"] = p.delta;
  out["target_epsilon"] = p.target_epsilon;
  if (const double epsilon = ledger.method.choice_epsilon(); epsilon > 0.0)
    out["choice"] = {{"epsilon", epsilon},
                     {"meaning", cat(ledger.state == RunState::finished
                                         ? "after training the trained model or its start was kept"
                                         : "when training has ended the trained model or its start will be kept",
                                     ", by an epsilon-differentially private choice from the likelihood of the "
                                     "validation windows under both (tsdp.7); what epsilon states includes it")}};
  out["epsilon"] = {{"lower", p.epsilon.lower}, {"upper", p.epsilon.upper}};
  out["epsilon_covers"] = {"model"};
  if (unit.relation == privacy::Relation::series || adaptive)
    out["certificate"] = certificate_json(privacy::asked_certificate(theorem, p.delta, ledger.accounted_uses()));
  const auto but = edition == Edition::second ? std::string() : but_for_the_start(ledger);
  if (unit.relation == privacy::Relation::series) {
    auto replaced =
        privacy::substitution_of(privacy::series_law_of(ledger.method.scheme()), ledger.method.privacy()->noise(),
                                 ledger.accounted_uses(), p.epsilon.upper, p.delta);
    // The second edition used two neighbours in a row wherever nothing better is known for replaced series.
    const auto& scheme = ledger.method.scheme().parameters();
    const bool in_turn = scheme.top_level == privacy::TopLevel::deterministic &&
                         ledger.method.privacy()->noise().kind == privacy::NoiseKind::independent;
    if (edition == Edition::second && !in_turn && scheme.top_level != privacy::TopLevel::without_replacement)
      replaced = {2.0 * p.epsilon.upper,
                  std::min(1.0, std::nextafter(p.delta * (1.0 + std::exp(p.epsilon.upper)) * (1.0 + 1e-15),
                                               std::numeric_limits<double>::infinity()))};
    out["substitution"] = {
        {"meaning", cat("the guarantee for data sets that differ in one series, replaced by another", but)},
        {"epsilon", replaced.epsilon},
        {"delta", replaced.delta}};
  }
  Json groups = Json::array();
  for (const std::int64_t series : {2, 3, 5, 10}) {
    const auto group = group_privacy(series, p.epsilon.upper, p.delta);
    if (group.delta < 1.0) groups.push_back({{"series", series}, {"epsilon", group.epsilon}, {"delta", group.delta}});
  }
  out["groups"] = {
      {"meaning",
       cat("the guarantee for data sets that differ so in several series, as of one person who owns them", but)},
      {"of", std::move(groups)}};
  if (p.attack)
    out["attack"] = {
        {"advantage", p.attack->advantage},
        {"false_positive_rate", p.attack->false_positive_rate},
        {"true_positive_rate", p.attack->true_positive_rate},
        {"meaning", cat("at most, for whoever sees all releases ", edition == Edition::second ? "" : "of this run ",
                        "and guesses which of two neighbouring data sets was used: true- less false-positive rate of "
                        "the best test, and the true-positive rate of the best test with that false-positive rate",
                        but)}};
  out["warnings"] = Json::array();
  if (ledger.reproducible && edition != Edition::second)
    out["warnings"].push_back(
        "not for release: the randomness is reproducible from the seed, so whoever knows the seed can remove the "
        "noise");
  if (delta_is_large(ledger))
    out["warnings"].push_back(cat("delta ", exact(p.delta), " is not below 1 / ", ledger.method.scheme().sequences(),
                                  ": a mechanism that publishes one series whole, at random, would satisfy it"));
  if (const auto what = not_counted_of_start(ledger.start.origin); !what.empty())
    out["warnings"].push_back(cat("not counted in epsilon: ", what));
  out["not_covered"] = not_covered(ledger);
  out["statement"] = statement_as(ledger, edition);
  return out;
}

}  // namespace

Json document(const Ledger& ledger) { return document_as(ledger, Edition::third); }

namespace {

/// The sampling scheme of a ledger's section `mechanism`.
privacy::SubsamplingScheme read_scheme(const Fields& m, const std::string& where) {
  const auto sequences = m.length("num_sequences");
  const auto shortest = m.length("shortest_sequence");
  const auto longest = m.length("longest_sequence");
  if (shortest > longest || (sequences == 1 && shortest != longest))
    throw DataError(cat(where, ": mechanism: found a shortest_sequence of ", shortest, " and a longest_sequence of ",
                        longest, " of ", sequences, " sequences; expected the shortest and the longest of them"));
  privacy::SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::between(sequences, shortest, longest);
  p.context_length = m.length("context_length");
  p.forecast_length = m.length("forecast_length");
  p.batch_size = m.length("batch_size");
  p.subsequences_per_sequence = m.length("subsequences_per_sequence");
  p.top_level = m.one_of<privacy::TopLevel>("top_level");
  p.bottom_level = m.one_of<privacy::BottomLevel>("bottom_level");
  p.context_noise = m.number("context_noise", 0.0, 1e300);
  p.forecast_noise = m.number("forecast_noise", 0.0, 1e300);
  if (m.has("record")) {
    p.record = m.one_of<privacy::Record>("record");
    if (m.has("reshuffle")) p.reshuffle = m.one_of<privacy::Reshuffle>("reshuffle");
    if (!m.at("batches").is_null()) p.batches = m.length("batches");
    if (!m.at("rate").is_null()) p.rate = m.number("rate", 0.0, 1.0);
  }
  try {
    return privacy::SubsamplingScheme(std::move(p));
  } catch (const Error& error) { throw DataError(cat(where, ": mechanism: ", error.what())); }
}

/// The method, with the privacy of the top-level fields if there is any.
TrainingMethod read_method(const Fields& top, const std::string& where) {
  auto scheme = read_scheme(top.section("mechanism"), where);
  if (!top.flag("private")) return TrainingMethod(std::move(scheme));
  const auto relation = top.section("relation");
  privacy::PrivacyUnit unit;
  unit.relation = relation.one_of<privacy::Relation>("kind");
  unit.w = relation.length("w");
  if (!relation.at("v").is_null()) unit.v = relation.number("v", std::numeric_limits<double>::denorm_min(), 1e300);
  std::shared_ptr<const privacy::Strategy> strategy;
  const double multiplier = top.number("noise_multiplier", 0.01, 1e6);
  if (top.has("noise"))
    strategy = std::make_shared<const privacy::Strategy>(read_strategy(top.section("noise"), where));
  const auto noise = privacy::noise_by(std::move(strategy), multiplier);
  const privacy::Clipping clipping{top.one_of<privacy::ClippingKind>("clipping"), top.number("clip_norm", 1e-12, 1e12)};
  const auto theorem = top.text("theorem");
  const auto& lengths = scheme.parameters().lengths;
  try {
    if (privacy::theorem_row(theorem).needs_every_length && lengths.shortest() != lengths.longest())
      throw PrivacyError(cat("theorem: found ", theorem, " with series of ", lengths.shortest(), " to ",
                             lengths.longest(),
                             " values; it needs the length of each of them, which a ledger does not hold"));
    const double choice = top.has("choice") ? top.section("choice").number("epsilon", least_choice_epsilon, 1e6) : 0.0;
    const auto composition = top.has("composition") ? top.one_of<privacy::StepComposition>("composition")
                                                    : privacy::StepComposition::symmetrised;
    return PrivateMechanism(unit, std::move(scheme), clipping, noise, theorem, choice, composition);
  } catch (const UsageError& error) {
    throw DataError(cat(where, ": ", error.what()));
  } catch (const PrivacyError& error) { throw PrivacyError(cat(where, ": ", error.what())); }
}

}  // namespace

namespace {

constexpr int most_starts = 20;  // runs of which each started from the one before

Edition edition_of(const Fields& top, const std::string& where) {
  const auto found = top.text("format");
  Edition edition{};
  if (!parse_name(found, edition))
    throw DataError(cat(where, ": format: found '", found, "', a ledger of another version of tsdp; expected ",
                        name(Edition::third), " or ", name(Edition::second)));
  return edition;
}

Ledger read_terms(const Json& document, const std::string& where, int depth) {
  const Fields top(document, where, "a ledger that tsdp-train wrote");
  const auto edition = edition_of(top, where);
  Ledger out(read_method(top, where));
  out.program = top.text("program");
  out.state = top.one_of<RunState>("state");
  const auto run = top.section("run");
  out.run = {run.text("id"), run.text("key_print"), run.text("configuration_sha256")};
  out.reproducible = top.flag("reproducible");
  if (top.has("start")) {
    const auto start = top.section("start");
    out.start.prior = {start.one_of<PriorKind>("prior"), start.length("season")};
    const char* key = edition == Edition::second ? "weights" : "origin";
    if (edition != Edition::second || start.has(key)) out.start.origin = start.one_of<StartOrigin>(key);
    if (out.start.origin != StartOrigin::fresh) out.start.sha256 = start.text("weights_sha256");
    if (rests_on_data(out.start.origin)) {
      if (depth == most_starts)
        throw DataError(
            cat(where, ": start: found more than ", most_starts, " runs one after the other; expected fewer"));
      out.start.trained = start.at("trained");
      const auto origin = origin_of_weights(read_terms(out.start.trained, cat(where, ": start: trained"), depth + 1));
      // The second edition knew of data, not of privacy.
      if (edition == Edition::second) out.start.origin = origin;
      if (origin != out.start.origin)
        throw DataError(cat(where, ": start: origin: found ", name(out.start.origin), "; ", name(origin),
                            " follows from start.trained"));
    }
  }
  if (top.has("synthetic_data")) {
    const auto data = top.section("synthetic_data");
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    out.synthetic = {data.text("family"), data.length("series"), data.length("length"),
                     static_cast<std::int64_t>(data.count("seed", 0, most))};
  }
  if (top.has("covariates")) out.covariates = top.section("covariates").texts("names");
  constexpr auto most_steps = std::numeric_limits<std::uint64_t>::max() / 2;
  out.steps_planned = top.count("steps_planned", 0, most_steps);
  out.steps_charged = top.count("steps_charged", 0, out.steps_planned);
  out.steps_taken = top.count("steps_taken", 0, out.steps_charged);
  if (!out.is_private()) return out;
  auto& cost = out.cost.emplace();
  cost.delta = top.number("delta", 1e-25, 1.0);
  cost.target_epsilon = top.number("target_epsilon", 0.0, 1e6);
  const auto epsilon = top.section("epsilon");
  cost.epsilon = {epsilon.number("lower", 0.0, 1e300), epsilon.number("upper", 0.0, 1e300)};
  if (document.contains("attack")) {
    const auto attack = top.section("attack");
    cost.attack =
        privacy::AttackBound{attack.number("advantage", 0.0, 1.0), attack.number("false_positive_rate", 1e-12, 0.5),
                             attack.number("true_positive_rate", 0.0, 1.0)};
  }
  return out;
}

}  // namespace

Ledger read_ledger(const Json& document, const std::string& where) { return read_terms(document, where, 0); }

StartOrigin start_origin_of(const Json& document, const std::string& where) {
  const Fields top(document, where, "a ledger that tsdp-train wrote");
  if (!top.has("start")) return StartOrigin::fresh;
  const auto start = top.section("start");
  if (start.has("origin")) return start.one_of<StartOrigin>("origin");
  if (!start.has("weights")) return StartOrigin::fresh;
  const auto origin = start.one_of<StartOrigin>("weights");
  return rests_on_data(origin) ? origin_of_weights(read_ledger(start.at("trained"), cat(where, ": start: trained")))
                               : origin;
}

std::string statement(const Ledger& ledger) { return statement_as(ledger, Edition::third); }

namespace {

std::string statement_as(const Ledger& ledger, Edition edition) {
  const auto of_start = [&]() -> std::string {
    switch (ledger.start.origin) {
      case StartOrigin::fresh:
      case StartOrigin::synthetic: return "";
      case StartOrigin::trained:
        return " NOT INCLUDED: the weights it started from were trained on data, too, under a statement of their own "
               "(start.trained). For whoever is in both, the two compose: tsdp-account total.";
      case StartOrigin::trained_without_privacy:
        return " NOT COVERED: the weights it started from were trained on data without privacy (start.trained).";
    }
    throw Error(ExitCode::failure, "a start from nowhere");
  };
  if (!ledger.is_private()) {
    const bool started_from_data = rests_on_data(ledger.start.origin) && edition != Edition::second;
    return cat(!ledger.synthetic ? no_privacy : started_from_data ? no_data_of_its_own : no_data, of_start());
  }
  const auto& p = *ledger.cost;
  std::string text = cat(
      "(", rounded_up(p.epsilon.upper, 4), ", ", exact(p.delta), ")-differential privacy, where ",
      relation_text(ledger.method.privacy()->unit(), edition), " (Theorem ", ledger.method.privacy()->theorem().theorem,
      privacy::composition_cited(ledger.method.privacy()->composition()),
      ledger.method.choice_epsilon() > 0.0 ? " and, for the choice between the trained model and its start, tsdp.7"
                                           : "",
      ").");
  if (!ledger.covariates.empty()) text += cat(" The covariates (", join(ledger.covariates, ", "), ") count as public.");
  if (ledger.reproducible) text += " NOT FOR RELEASE: the randomness is reproducible from the seed.";
  return text + of_start();
}

}  // namespace

GroupPrivacy group_privacy(std::int64_t series, double epsilon, double delta) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < series && sum < 1e300; ++i) sum += std::exp(static_cast<double>(i) * epsilon);
  const auto up = [](double x) { return std::nextafter(x, std::numeric_limits<double>::infinity()); };
  // exp is good to an ulp, each sum and product to half of one: 2^-40 covers thousands of them.
  return {series, up(static_cast<double>(series) * epsilon), std::min(1.0, delta * sum * (1.0 + 0x1p-40))};
}

Verification verify(const Json& document, const std::string& where) {
  Verification out;
  const auto differs = [&](const auto&... what) { out.differences.push_back(cat(what...)); };
  try {
    out.terms = read_ledger(document, where);
  } catch (const PrivacyError& error) {
    differs(error.what());
    return out;
  }
  const auto& ledger = *out.terms;
  if (ledger.state == RunState::finished && ledger.steps_charged != ledger.steps_planned)
    differs("steps_charged: found ", ledger.steps_charged, " of a finished run; ", ledger.steps_planned,
            " were planned");
  if (ledger.cost) {
    const auto& p = *ledger.cost;
    out.stated = p.epsilon;
    const auto uses = ledger.accounted_uses();
    if (uses > privacy::max_uses_ever) {
      differs("steps_planned: found ", uses, " uses; at most ", privacy::max_uses_ever, " can be accounted for");
      return out;
    }
    const auto curve = ledger.method.privacy()->curve();
    auto& accountant = *curve;
    try {
      out.epsilon =
          privacy::epsilon_after(ledger.method.privacy()->theorem(), accountant, p.delta, ledger.accounted_steps());
      // The stated upper end must be certified, not only close; it may have come from another grid, or be the target,
      // which was certified by a curve that had not been asked before.
      if (p.epsilon.upper < out.epsilon.upper && !accountant.certifies(p.epsilon.upper, p.delta, uses) &&
          !ledger.method.privacy()->curve()->certifies(p.epsilon.upper, p.delta, uses))
        differs("epsilon: found an upper end of ", p.epsilon.upper, "; ", rounded_up(out.epsilon.upper, 7),
                " follows from its terms");
      else out.epsilon.upper = std::min(out.epsilon.upper, p.epsilon.upper);
    } catch (const PrivacyError& error) {
      differs("epsilon: ", error.what());
      return out;
    }
    if (p.epsilon.upper > out.epsilon.upper * (1.0 + bracket_tolerance) || p.epsilon.lower > out.epsilon.upper ||
        p.epsilon.lower < out.epsilon.lower * (1.0 - bracket_tolerance) || p.epsilon.lower > p.epsilon.upper ||
        out.epsilon.lower > out.epsilon.upper)
      differs("epsilon: found [", p.epsilon.lower, ", ", p.epsilon.upper, "]; [", rounded_down(out.epsilon.lower, 7),
              ", ", rounded_up(out.epsilon.upper, 7), "] follows from its terms");
    if (p.attack) {
      // "At most": not below what one of the precisions certifies. A finer precision need not give less.
      double advantage = 1.0;
      double true_positives = 1.0;
      for (const double precision : attack_precisions) {
        const auto derived = privacy::attack_bound(accountant, uses, p.attack->false_positive_rate, precision);
        advantage = std::min(advantage, derived.advantage);
        true_positives = std::min(true_positives, derived.true_positive_rate);
        if (p.attack->advantage >= advantage && p.attack->true_positive_rate >= true_positives) break;
      }
      if (p.attack->advantage < advantage || p.attack->true_positive_rate < true_positives)
        differs("attack: found less than follows from its terms");
    }
  }
  if (rests_on_data(ledger.start.origin))
    for (const auto& difference : verify(ledger.start.trained, cat(where, ": start: trained")).differences)
      differs("start: trained: ", difference);
  // Everything other than the terms must be what follows from them.
  const auto edition = edition_of(Fields(document, where, "a ledger that tsdp-train wrote"), where);
  const auto again = document_as(ledger, edition);
  const bool own = out.texts_checked = edition == Edition::third && ledger.program == cat("tsdp ", version());
  for (const auto& [key, value] : again.items()) {
    if (!own && (key == "not_covered" || key == "source" || key == "randomness" || key == "warnings")) continue;
    if (edition == Edition::second && key == "certificate" && document.contains(key))
      continue;  // later versions say which method it was
    if (!document.contains(key) || document[key] != value) differs(key, ": is not what follows from its terms");
  }
  for (const auto& [key, value] : document.items())
    if (!again.contains(key)) differs(key, ": no ledger of these terms has it");
  return out;
}

}  // namespace tsdp::mechanism
