#include "tsdp/ledger/ledger.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "editions.h"
#include "ledger/unit.h"
#include "mechanism/known_batches.h"
#include "privacy/terms/numbers.h"
#include "privacy/theorems/bound_of_run.h"
#include "privacy/theorems/series_law.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/terms/strategy.h"

namespace tsdp::mechanism {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* no_privacy = "No privacy: trained without clipping and noise.";
constexpr const char* no_data = "Nobody's data: trained without clipping and noise, on synthetic series alone.";
constexpr const char* no_data_of_its_own =
    "No data of its own: trained without clipping and noise, on synthetic series.";

/// The sentence that says what neighbours are. An event is accounted for by steps: where values are missing, two
/// consecutive ones may lie any number of steps apart.
std::string relation_text(const privacy::PrivacyUnit& unit, Edition edition) {
  if (!unit.owners.empty())
    return "two data sets are neighbours if they differ in whether all series of one owner are in the data";
  const auto all_variables = unit.variables > 1 ? cat("all ", unit.variables, " variables") : std::string();
  if (unit.relation == privacy::Relation::series)
    return cat("two data sets are neighbours if they differ in whether one whole series",
               all_variables.empty() ? std::string() : cat(", with ", all_variables, ","), " is in the data");
  std::string text = "two data sets are neighbours if they differ in one series, in ";
  if (!all_variables.empty())
    return cat(text, "the values of ", all_variables, " ",
               unit.w == 1                                ? std::string("at one step")
               : unit.relation == privacy::Relation::user ? cat("in at most ", unit.w, " steps anywhere")
                                                          : cat("within ", unit.w, " consecutive steps"));
  text += unit.w == 1                                ? std::string("one value")
          : unit.relation == privacy::Relation::user ? cat("at most ", unit.w, " values anywhere")
          : edition == Edition::second               ? cat("at most ", unit.w, " consecutive values")
                                                     : cat("values within ", unit.w, " consecutive steps");
  if (unit.v) text += cat(", each by at most ", *unit.v, " (values as they stand in the file)");
  return text;
}

/// Whether all series of an owner are one record.
bool of_owners(const Ledger& ledger) {
  return ledger.method.privacy() && !ledger.method.privacy()->unit().owners.empty();
}

std::int64_t variables_of(const Ledger& ledger) { return ledger.method.scheme().variables(); }

/// not_counted_of_start, as an addition to the sentence that it limits.
std::string but_for_the_start(const Ledger& ledger) {
  const auto what = not_counted_of_start(ledger.start.origin);
  return what.empty() ? what : cat("; not counted: ", what);
}

constexpr const char* covariates_of_the_record = "part of the record: protected as the values of their series are";

Json not_covered(const Ledger& ledger) {
  Json out = {
      "everything under private/: losses, norms, validation scores, plots, checkpoints and the key of the randomness",
      "what the programs print or write besides model.pt, this ledger and config.yaml: scores, losses, forecasts",
      ("other models and other runs on the same data, those of a sweep included: their privacy costs compose with this "
       "one's"),
      of_owners(ledger) ? "one person or household with the series of several owners, beyond what `groups` states"
      : variables_of(ledger) > 1
          ? "one person or household with several series, beyond what `groups` states"
          : "one person or household with several series or columns, beyond what `groups` states",
      ledger.method.choice_epsilon() > 0.0
          ? "validation and test values beyond the private choice, and any other choice made by looking at them "
            "(settings, model, number of epochs)"
          : "validation and test values, and any choice made by looking at them (settings, model, number of epochs)",
      ("the time that training took, and stopping it, or not releasing a model, because of what its logs or scores "
       "showed"),
      cat("the number and lengths of the series, ", of_owners(ledger) ? "which of them have the same owner, " : "",
          "their calendar, and which values are missing: treated as public"),
      cat("whether training begins at all: values ", ledger.protects_covariates ? "or covariates " : "",
          "that are no numbers, too large, or not to be told apart in single precision, are refused, as are data of "
          "which half of the series or more are copies of others",
          ledger.protects_covariates ? ", and covariates that repeat a series" : ""),
      "forecasts from a series' own recent values: the guarantee is about training data, not about a model's inputs",
      ("floating-point side channels: noise is made of finitely many random bits in double precision, cut at 12.07 "
       "standard deviations, and added to single-precision sums on a grid of 2^-24 of its deviation; a window's "
       "gradient is computed beside others, on whose number its own rounding may hang"),
  };
  if (ledger.files)
    out.push_back(
        "whoever operates a rank of this run, or reads what ranks send, which is not encrypted: they know more than is "
        "released; `ranks` states what holds against operators. Copies among the series of different ranks are not "
        "looked for");
  if (!ledger.covariates.empty() && !ledger.protects_covariates)
    out.push_back(cat("the covariates (", join(ledger.covariates, ", "),
                      "): treated as public, whoever they are about; a column that equals a series is refused"));
  if (ledger.protects_covariates)
    out.push_back(cat("covariates (", join(ledger.covariates, ", "), ") that were computed from values of ",
                      ledger.method.privacy()->unit().relation == privacy::Relation::series
                          ? "other series, as means over them are: where those change, these do, too, and each series "
                            "counts"
                          : "other steps or series, as means and earlier values are, or that repeat one fact at every "
                            "step: where the value or the fact changes, they change at several places, and each "
                            "counts"));
  if (const auto what = not_counted_of_start(ledger.start.origin); !what.empty()) out.push_back(what);
  if (ledger.state != RunState::finished)
    out.push_back("a second run from a copy of this run's folder: copies that go on differently compose");
  return out;
}

}  // namespace

std::string covariates_text(const std::vector<std::string>& names, bool are_protected, privacy::Relation relation) {
  if (names.empty()) return "";
  return cat(" The covariates (", join(names, ", "), ")",
             !are_protected ? " count as public."
             : relation == privacy::Relation::series
                 ? " of a series belong to it, and are protected with it."
                 : " of a step belong to its value: neighbours may differ in them where they differ in the value.");
}

StartOrigin origin_of_weights(const Ledger& ledger) {
  const auto before = rests_on_data(ledger.start.origin) ? ledger.start.origin : StartOrigin::synthetic;
  if (ledger.is_private() && ledger.accounted_steps() == 0) return before;  // nothing of its data reached the weights
  if (ledger.synthetic || before == StartOrigin::trained_without_privacy) return before;
  return ledger.protects() ? StartOrigin::trained : StartOrigin::trained_without_privacy;
}

std::uint64_t Ledger::accounted_steps() const {
  return state == RunState::running ? std::max(steps_planned, steps_charged) : steps_charged;
}

namespace {

/// C itself, as its recursion, without which a noise multiplier means nothing.
Json correlated_terms(const privacy::Noise& noise) {
  const auto& strategy = *noise.strategy;
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
  if (const auto& claim = noise.sampled)
    out["sampled"] = {
        {"epsilon", claim->epsilon},
        {"delta", claim->delta},
        {"key", claim->key.hex()},
        {"meaning",
         "the noise multiplier was found by sampling: it passed a test, for all planned steps, whose draws follow from "
         "this key (tsdp docs/proofs/sampled-noise.md); whoever verifies repeats the test"}};
  return out;
}

/// `second` said of bins, and of batches with an order of their own, that they are shuffled anew in every epoch.
Json terms_as(const TrainingMethod& method, Edition edition) {
  const auto& p = method.scheme().parameters();
  Json out = {
      {"top_level", name(p.top_level)},
      {"bottom_level", name(p.bottom_level)},
      {"num_sequences", method.scheme().sequences()},  // owners, where series have some
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
  if (p.lengths.has_owners()) out["num_series"] = p.lengths.count();
  if (p.lengths.variables() > 1) out["variables"] = p.lengths.variables();
  // For batches of windows there is nothing more to say, as before.
  if (p.record == privacy::Record::series || p.reshuffle != privacy::Reshuffle::every_epoch) {
    out["record"] = name(p.record);
    if (p.top_level == privacy::TopLevel::shuffled || edition == Edition::second) out["reshuffle"] = name(p.reshuffle);
    if (p.redraw != privacy::Redraw::once) out["redraw"] = name(p.redraw);  // versions before 0.6 knew nothing else
    if (p.top_level == privacy::TopLevel::cyclic_poisson) out["groups"] = p.groups;
    out["batches"] = p.batches ? Json(*p.batches) : Json(nullptr);
    out["rate"] = p.rate ? Json(*p.rate) : Json(nullptr);
    if (p.largest_batch) out["largest_batch"] = *p.largest_batch;
  }
  if (!method.privacy()) return out;
  const auto& m = *method.privacy();
  out["relation"] = unit_json(m.unit())["kind"];
  out["w"] = m.unit().w;
  out["v"] = m.unit().v ? Json(*m.unit().v) : Json(nullptr);
  if (!m.unit().owners.empty()) out["owners_sha256"] = m.unit().owners;
  out["noise_multiplier"] = m.noise().multiplier;
  if (m.noise().kind == privacy::NoiseKind::correlated) out["noise"] = correlated_terms(m.noise());
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
  if (!start.networks.empty()) out["networks"] = start.networks;
  return out;
}

/// The kind of mechanism, in words.
std::string kind_text(const TrainingMethod& method, Edition edition) {
  if (!method.privacy())
    return "none: ordinary training on structured subsamples, without clipping per window and noise";
  const bool series = method.scheme().parameters().record == privacy::Record::series;
  const bool owners = !method.privacy()->unit().owners.empty();
  const bool correlated =
      edition != Edition::second && method.privacy()->noise().kind == privacy::NoiseKind::correlated;
  return cat(owners   ? "DP-SGD on all series of an owner, "
             : series ? "DP-SGD on whole series, "
                      : "DP-SGD on structured subsamples, ",
             correlated ? "correlated Gaussian noise (matrix mechanism)" : "Gaussian noise", " on the sum of clipped ",
             owners   ? "per-owner"
             : series ? "per-series"
                      : "per-window",
             " gradients");
}

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
  text += covariates_text(ledger.covariates, ledger.protects_covariates, ledger.method.privacy()->unit().relation);
  if (ledger.reproducible) text += " NOT FOR RELEASE: the randomness is reproducible from the seed.";
  return text + of_start();
}

}  // namespace

Json terms(const TrainingMethod& method) { return terms_as(method, Edition::third); }

Json certificate_json(const privacy::Certificate& why) {
  return {{"upper", why.upper},
          {"lower", why.lower.empty() ? Json(nullptr) : Json(why.lower)},
          {"assumptions", why.assumptions}};
}

namespace {

/// What was done: the fields of every ledger, private or not, that stand before its cost. `all` are its terms.
Json fields_of_run(const Ledger& ledger, Edition edition, const Json& all) {
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
  for (const auto& [term, value] : all.items()) {
    if (term == "relation") break;
    out["mechanism"][term] = value;
  }
  if (auto start = start_json(ledger.start, edition); !start.is_null()) out["start"] = std::move(start);
  if (const auto& data = ledger.synthetic)
    out["synthetic_data"] = {
        {"family", data->family}, {"series", data->series}, {"length", data->length}, {"seed", data->seed}};
  if (!ledger.covariates.empty())
    out["covariates"] = {
        {"names", ledger.covariates},
        {"meaning", ledger.protects_covariates ? covariates_of_the_record : "public: no guarantee is given for them"}};
  if (ledger.protects_covariates) out["covariates"]["protected"] = true;
  out["steps_planned"] = ledger.steps_planned;
  out["steps_taken"] = ledger.steps_taken;
  out["steps_charged"] = ledger.steps_charged;
  out["randomness"] = ledger.reproducible
                          ? "reproducible, not for release: the key follows from the seed, so whoever knows the seed "
                            "can remove the noise"
                          : "secret 256-bit key of the operating system; ChaCha20 streams per purpose and step";
  return out;
}

/// Where the theorem is proven, and that of its composition.
std::string source_of(const privacy::AppliedTheorem& theorem) {
  const auto& row = privacy::theorem_row(theorem.theorem);
  if (row.ours) return "a theorem of this project, proven in its docs/proofs";
  std::string out = row.source.empty() ? "Schuchardt et al., Privacy Amplification by Structured Subsampling for Deep "
                                         "Differentially Private Time Series Forecasting, ICML 2025"
                                       : row.source;
  if (theorem.composition == privacy::StepComposition::adaptive)
    out += "; tsdp.6: a theorem of this project, proven in its docs/proofs";
  return out;
}

/// The private choice after training.
Json choice_json(const Ledger& ledger) {
  return {{"epsilon", ledger.method.choice_epsilon()},
          {"meaning", cat(ledger.state == RunState::finished
                              ? "after training the trained model or its start was kept"
                              : "when training has ended the trained model or its start will be kept",
                          ", by an epsilon-differentially private choice from the likelihood of the "
                          "validation windows under both (tsdp.7); what epsilon states includes it")}};
}

/// The guarantee for a replaced series. `but`: what it does not count.
Json substitution_json(const Ledger& ledger, Edition edition, const std::string& but) {
  const auto& p = *ledger.cost;
  auto replaced = ledger.method.privacy()->substitution(ledger.accounted_uses(), p.epsilon.upper, p.delta);
  // The second edition used two neighbours in a row wherever nothing better is known for replaced series.
  const auto& scheme = ledger.method.scheme().parameters();
  const bool in_turn = scheme.top_level == privacy::TopLevel::deterministic &&
                       ledger.method.privacy()->noise().kind == privacy::NoiseKind::independent;
  if (edition == Edition::second && !in_turn && scheme.top_level != privacy::TopLevel::without_replacement)
    replaced = {2.0 * p.epsilon.upper,
                std::min(1.0, privacy::up(p.delta * (1.0 + std::exp(p.epsilon.upper)) * (1.0 + 1e-15)))};
  return {
      {"meaning",
       cat("the guarantee for data sets that differ in ",
           of_owners(ledger) ? "the series of one owner, replaced by others" : "one series, replaced by another", but)},
      {"epsilon", replaced.epsilon},
      {"delta", replaced.delta}};
}

/// The guarantee for several series. `but`: what it does not count.
Json groups_json(const Ledger& ledger, const std::string& but) {
  const auto& p = *ledger.cost;
  const auto* const of = of_owners(ledger) ? "owners" : "series";
  Json groups = Json::array();
  for (const std::int64_t series : {2, 3, 5, 10}) {
    const auto group = group_privacy(series, p.epsilon.upper, p.delta);
    if (group.delta < 1.0) groups.push_back({{of, series}, {"epsilon", group.epsilon}, {"delta", group.delta}});
  }
  return {{"meaning",
           cat("the guarantee for data sets that differ so in several ",
               of_owners(ledger) ? "owners, as of one household" : "series, as of one person who owns them", but)},
          {"of", std::move(groups)}};
}

/// The guarantee against those who operate ranks. `but`: what it does not count.
Json ranks_json(const Ledger& ledger, const std::string& but) {
  std::optional<double> epsilon;
  if (!ledger.reproducible)
    epsilon = epsilon_of_known_batches(*ledger.method.privacy(), ledger.accounted_steps(), ledger.cost->delta);
  return {
      {"files", *ledger.files},
      {"epsilon", epsilon ? Json(*epsilon) : Json(nullptr)},
      {"delta", ledger.cost->delta},
      {"meaning",
       ledger.reproducible
           ? std::string("nothing protects series of other ranks against whoever operates a rank: every rank knows the "
                         "seed that the noise follows from")
           : cat("the guarantee for series of other ranks against whoever operates a rank other than 0 as it is meant "
                 "to be, and so knows which windows every step uses and sees the weights after it (tsdp "
                 "docs/proofs/known-batches.md); null: no bound is known. Nothing protects them against the operator "
                 "of rank 0, who sees sums without noise and draws the noise, nor against a rank that sends other sums",
                 but)}};
}

/// The best attacker. `but`: what is not counted.
Json attack_json(const privacy::AttackBound& attack, Edition edition, const std::string& but) {
  return {{"advantage", attack.advantage},
          {"false_positive_rate", attack.false_positive_rate},
          {"true_positive_rate", attack.true_positive_rate},
          {"meaning", cat("at most, for whoever sees all releases ", edition == Edition::second ? "" : "of this run ",
                          "and guesses which of two neighbouring data sets was used: true- less false-positive rate of "
                          "the best test, and the true-positive rate of the best test with that false-positive rate",
                          but)}};
}

/// μ of Gaussian differential privacy. `but`: what is not counted.
Json gaussian_json(const privacy::GaussianBound& gaussian, const std::string& but) {
  return {{"mu", gaussian.mu},
          {"delta", gaussian.remainder},
          {"regret", gaussian.regret},
          {"meaning", cat("Gaussian differential privacy with a remainder: no test that sees all releases of this run "
                          "tells two neighbouring data sets apart better than the best test tells one draw of a normal "
                          "law from one of the same law moved by mu standard deviations, but for delta; regret, from 0 "
                          "to 1, is how much less mu says than the whole curve",
                          but)}};
}

Json warnings(const Ledger& ledger, Edition edition) {
  Json out = Json::array();
  if (ledger.reproducible && edition != Edition::second)
    out.push_back(
        "not for release: the randomness is reproducible from the seed, so whoever knows the seed can remove the "
        "noise");
  if (ledger.cost)
    if (auto what = warning_of_delta(ledger.cost->delta, ledger.method); !what.empty()) out.push_back(std::move(what));
  if (const auto what = not_counted_of_start(ledger.start.origin); !what.empty())
    out.push_back(cat("not counted in epsilon: ", what));
  return out;
}

}  // namespace

std::string warning_of_delta(double delta, const TrainingMethod& method) {
  const auto sequences = method.scheme().sequences();
  if (delta * static_cast<double>(sequences) < 1.0) return {};
  return cat("delta ", exact(delta), " is not below 1 / ", sequences, ": a mechanism that publishes ",
             method.privacy()->unit().owners.empty() ? "one series" : "the series of one owner",
             " whole, at random, would satisfy it");
}

Json document_as(const Ledger& ledger, Edition edition) {
  const auto all = terms_as(ledger.method, edition);
  auto out = fields_of_run(ledger, edition, all);
  if (!ledger.is_private()) {
    out["epsilon"] = nullptr;
    out["statement"] = statement_as(ledger, edition);
    return out;
  }
  const auto& p = *ledger.cost;
  const auto& unit = ledger.method.privacy()->unit();
  const auto& theorem = ledger.method.privacy()->theorem();
  out["theorem"] = theorem.theorem;
  out["source"] = source_of(theorem);
  out["bound"] = name(edition == Edition::second ? theorem.bound : privacy::bound_of_run(theorem));
  if (theorem.composition != privacy::StepComposition::symmetrised) out["composition"] = name(theorem.composition);
  out["composition_unit"] = name(theorem.unit);
  out["compositions"] = ledger.accounted_uses();
  out["relation"] = unit_json(unit);
  out["relation"]["text"] = relation_text(unit, edition);
  for (const char* term : {"noise_multiplier", "noise", "clip_norm", "clipping"})
    if (all.contains(term)) out[term] = all[term];
  out["delta"] = p.delta;
  out["target_epsilon"] = p.target_epsilon;
  if (ledger.method.choice_epsilon() > 0.0) out["choice"] = choice_json(ledger);
  out["epsilon"] = {{"lower", p.epsilon.lower}, {"upper", p.epsilon.upper}};
  out["epsilon_covers"] = {"model"};
  const bool adaptive = theorem.composition == privacy::StepComposition::adaptive;
  if (unit.relation == privacy::Relation::series || adaptive)
    out["certificate"] = certificate_json(ledger.method.privacy()->certificate(p.delta, ledger.accounted_uses()));
  const auto but = edition == Edition::second ? std::string() : but_for_the_start(ledger);
  if (unit.relation == privacy::Relation::series) out["substitution"] = substitution_json(ledger, edition, but);
  out["groups"] = groups_json(ledger, but);
  if (ledger.files) out["ranks"] = ranks_json(ledger, but);
  if (p.attack) out["attack"] = attack_json(*p.attack, edition, but);
  if (p.attack && p.attack->gaussian) out["gaussian"] = gaussian_json(*p.attack->gaussian, but);
  out["warnings"] = warnings(ledger, edition);
  out["not_covered"] = not_covered(ledger);
  out["statement"] = statement_as(ledger, edition);
  return out;
}

Json document(const Ledger& ledger) { return document_as(ledger, Edition::third); }

std::string statement(const Ledger& ledger) { return statement_as(ledger, Edition::third); }

GroupPrivacy group_privacy(std::int64_t series, double epsilon, double delta) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < series && sum < 1e300; ++i) sum += std::exp(static_cast<double>(i) * epsilon);
  // exp is good to an ulp, each sum and product to half of one: 2^-40 covers thousands of them.
  return {series, epsilon > 0.0 ? privacy::up(static_cast<double>(series) * epsilon) : 0.0,
          std::min(1.0, delta * sum * (1.0 + 0x1p-40))};
}

}  // namespace tsdp::mechanism
