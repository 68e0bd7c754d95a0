// Ledgers read back, and derived again from their own terms.
#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "base/version.h"
#include "editions.h"
#include "fields.h"
#include "ledger/unit.h"
#include "privacy/theorems/series_law.h"
#include "tsdp/base/error.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/privacy/terms/strategy.h"
#include "tsdp/privacy/theorems/attack.h"

namespace tsdp::mechanism {
namespace {

using Json = nlohmann::ordered_json;

privacy::SampledClaim read_claim(const Fields& claim, const std::string& where) {
  privacy::SampledClaim out{claim.number("epsilon", 0.0, 1e6), claim.number("delta", 2e-9, 1.0), {}};
  try {
    out.key = SecretKey::from_hex(claim.text("key"));
  } catch (const DataError&) { throw DataError(cat(where, ": noise: sampled: key: expected 64 hexadecimal digits")); }
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

/// The sampling scheme of a ledger's section `mechanism`; `grouping` as privacy::Owners has it.
privacy::SubsamplingScheme read_scheme(const Fields& m, const std::string& grouping, const std::string& where) {
  const auto sequences = m.length("num_sequences");
  const auto shortest = m.length("shortest_sequence");
  const auto longest = m.length("longest_sequence");
  const auto series = m.has("num_series") ? m.length("num_series") : sequences;
  if (shortest > longest || (series == 1 && shortest != longest))
    throw DataError(cat(where, ": mechanism: found a shortest_sequence of ", shortest, " and a longest_sequence of ",
                        longest, " of ", series, " sequences; expected the shortest and the longest of them"));
  privacy::SubsamplingScheme::Parameters p;
  const std::optional<std::int64_t> owners = m.has("num_series") ? std::optional(sequences) : std::nullopt;
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
    if (m.has("redraw")) p.redraw = m.one_of<privacy::Redraw>("redraw");
    if (p.top_level == privacy::TopLevel::cyclic_poisson) p.groups = m.length("groups");
    if (!m.at("batches").is_null()) p.batches = m.length("batches");
    if (!m.at("rate").is_null()) p.rate = m.number("rate", 0.0, 1.0);
    if (m.has("largest_batch")) p.largest_batch = m.length("largest_batch");
  }
  try {
    p.lengths = privacy::SeriesLengths::between(series, shortest, longest, owners, grouping)
                    .of_variables(m.has("variables") ? m.length("variables") : 1);
    return privacy::SubsamplingScheme(std::move(p));
  } catch (const Error& error) { throw DataError(cat(where, ": mechanism: ", error.what())); }
}

/// The method, with the privacy of the top-level fields if there is any.
TrainingMethod read_method(const Fields& top, const std::string& where) {
  if (!top.flag("private")) return TrainingMethod(read_scheme(top.section("mechanism"), {}, where));
  auto unit = read_unit(top.section("relation"));
  auto scheme = read_scheme(top.section("mechanism"), unit.owners, where);
  if (unit.owners.empty() == scheme.parameters().lengths.has_owners())
    throw DataError(cat(where, ": relation: found ", unit.owners.empty() ? "no owners" : "owners", " beside ",
                        scheme.parameters().lengths.has_owners() ? "a" : "no",
                        " mechanism.num_series; expected both or neither"));
  std::shared_ptr<const privacy::Strategy> strategy;
  std::optional<privacy::SampledClaim> sampled;
  const double multiplier = top.number("noise_multiplier", 0.01, 1e6);
  if (top.has("noise")) {
    const auto noise = top.section("noise");
    strategy = std::make_shared<const privacy::Strategy>(read_strategy(noise, where));
    if (noise.has("sampled")) sampled = read_claim(noise.section("sampled"), where);
  }
  const auto noise = privacy::noise_by(std::move(strategy), multiplier, std::move(sampled));
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
    return PrivateMechanism(std::move(unit), std::move(scheme), clipping, noise, theorem, choice, composition);
  } catch (const UsageError& error) {
    throw DataError(cat(where, ": ", error.what()));
  } catch (const PrivacyError& error) { throw PrivacyError(cat(where, ": ", error.what())); }
}

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
    if (out.start.origin != StartOrigin::fresh) out.start.sha256 = start.sha256("weights_sha256");
    if (start.has("networks")) {
      const auto networks = start.section("networks");
      for (const auto& [name, unused] : start.at("networks").items())
        out.start.networks[name] = networks.sha256(name.c_str());
    }
    if (rests_on_data(out.start.origin)) {
      if (depth == most_starts)
        throw DataError(cat(where, ": start: found more than ", most_starts,
                            " runs one after the other; expected at most as many"));
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
  if (top.has("covariates")) {
    const auto covariates = top.section("covariates");
    out.covariates = covariates.texts("names");
    out.protects_covariates = out.is_private() && covariates.has("protected") && covariates.flag("protected");
  }
  if (top.has("ranks")) out.files = top.section("ranks").length("files");
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
    // Ledgers of earlier programs have none.
    if (top.has("gaussian")) {
      const auto gaussian = top.section("gaussian");
      cost.attack->gaussian = {gaussian.number("mu", 0.0, 1e6), gaussian.number("delta", 0.0, 1.0),
                               gaussian.number("regret", 0.0, 1.0)};
    }
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

void require_room_for_start(const Ledger& ledger, const std::string& where) {
  int runs = 1;
  for (auto start = ledger.start; rests_on_data(start.origin); ++runs)
    start = read_ledger(start.trained, cat(where, ": start: trained")).start;
  if (runs > most_starts)
    throw DataError(cat(where, ": start: found ", runs, " runs one after the other; expected at most ", most_starts,
                        " behind the weights that a run starts from"));
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

namespace {

constexpr double precisions[] = {1e-2, 1e-3, 1e-4, 1e-5, 1e-6};  // that of ledgers, and finer
constexpr double bracket_tolerance = 5e-3;  // relative; ends of brackets of other versions may differ by this much

template <class... Parts>
void differs(Verification& found, const Parts&... what) {
  found.differences.push_back(cat(what...));
}

/// "At most": not below what one of the precisions certifies. A finer precision need not give less.
bool follows(const privacy::AttackBound& stated, privacy::PrivacyCurve& accountant, std::uint64_t uses) {
  double advantage = 1.0;
  double true_positives = 1.0;
  for (const double precision : precisions) {
    const auto derived = privacy::attack_bound(accountant, uses, stated.false_positive_rate, precision);
    advantage = std::min(advantage, derived.advantage);
    true_positives = std::min(true_positives, derived.true_positive_rate);
    if (stated.advantage >= advantage && stated.true_positive_rate >= true_positives) return true;
  }
  return false;
}

/// μ is "at most", too; nothing is spent on steps that were not taken, and δ on all others. The regret is about what a
/// program certifies: `own` tells whether it was this one.
bool follows(const privacy::GaussianBound& stated, privacy::PrivacyCurve& accountant, std::uint64_t uses,
             const Cost& cost, bool own) {
  constexpr double regret_tolerance = 0.003;  // thrice that of its grid
  constexpr double infinity = std::numeric_limits<double>::infinity();
  auto mu = infinity;
  auto regret = own ? infinity : 0.0;
  for (const double precision : precisions) {
    const auto derived = privacy::gaussian_bound(accountant, uses, cost.epsilon.upper, cost.delta, precision);
    if (!derived || stated.remainder < derived->remainder) return false;
    mu = std::min(mu, derived->mu);
    regret = std::min(regret, derived->regret - regret_tolerance);
    if (stated.mu >= mu && stated.regret >= regret) return true;
  }
  return false;
}

/// Derives the cost of a private run and compares it with what is stated; false if none can be derived.
bool check_cost(Verification& out) {
  const auto& ledger = *out.terms;
  const auto& p = *ledger.cost;
  out.stated = p.epsilon;
  const auto uses = ledger.accounted_uses();
  if (uses > privacy::max_uses_ever) {
    differs(out, "steps_planned: found ", uses, " uses; at most ", privacy::max_uses_ever, " can be accounted for");
    return false;
  }
  const auto curve = ledger.method.privacy()->curve();
  auto& accountant = *curve;
  try {
    out.epsilon =
        privacy::epsilon_after(ledger.method.privacy()->theorem(), accountant, p.delta, ledger.accounted_steps());
    // The stated upper end must be certified, not only close; it may have come from another grid, or be the target,
    // which was certified by a curve that had not been asked before. A finer precision certifies what lies a rounding
    // below its answer at this one.
    const auto certified = [&](privacy::PrivacyCurve& by) {
      return by.certifies(p.epsilon.upper, p.delta, uses) ||
             by.certifies(p.epsilon.upper, p.delta, uses, privacy::finest_precision);
    };
    if (p.epsilon.upper < out.epsilon.upper && !certified(accountant) && !certified(*ledger.method.privacy()->curve()))
      differs(out, "epsilon: found an upper end of ", p.epsilon.upper, "; ", rounded_up(out.epsilon.upper, 7),
              " follows from its terms");
    else out.epsilon.upper = std::min(out.epsilon.upper, p.epsilon.upper);
  } catch (const PrivacyError& error) {
    differs(out, "epsilon: ", error.what());
    return false;
  }
  if (p.epsilon.upper > out.epsilon.upper * (1.0 + bracket_tolerance) || p.epsilon.lower > out.epsilon.upper ||
      p.epsilon.lower < out.epsilon.lower * (1.0 - bracket_tolerance) || p.epsilon.lower > p.epsilon.upper ||
      out.epsilon.lower > out.epsilon.upper)
    differs(out, "epsilon: found [", p.epsilon.lower, ", ", p.epsilon.upper, "]; [", rounded_down(out.epsilon.lower, 7),
            ", ", rounded_up(out.epsilon.upper, 7), "] follows from its terms");
  if (p.epsilon.upper > p.target_epsilon)
    differs(out, "epsilon: found an upper end of ", p.epsilon.upper, " beyond target_epsilon, ", p.target_epsilon,
            ", which no run passes");
  if (!p.attack) differs(out, "attack: is missing");
  else if (!follows(*p.attack, accountant, uses)) differs(out, "attack: found less than follows from its terms");
  if (p.attack && p.attack->gaussian) {
    if (ledger.method.privacy()->noise().sampled)
      differs(out, "gaussian: found with noise that passed a test by sampling, from which none follows");
    else if (!follows(*p.attack->gaussian, accountant, uses, p, ledger.program == cat("tsdp ", version())))
      differs(out, "gaussian: found less than follows from its terms");
  }
  return true;
}

/// Whether the substitution is the derived one but for its ε, which is "at most", too.
bool follows(const Json& stated, const Json& derived, const Ledger& ledger) {
  if (!stated.is_object() || !stated.contains("epsilon") || !stated["epsilon"].is_number()) return false;
  auto others = derived;
  others["epsilon"] = stated["epsilon"];
  if (stated != others) return false;
  const auto epsilon = stated["epsilon"].get<double>();
  if (epsilon >= derived["epsilon"].get<double>()) return true;
  const auto& cost = *ledger.cost;
  return std::any_of(std::begin(precisions), std::end(precisions), [&](double precision) {
    const auto finer =
        ledger.method.privacy()->substitution(ledger.accounted_uses(), cost.epsilon.upper, cost.delta, precision);
    return finer.delta <= stated["delta"].get<double>() && finer.epsilon <= epsilon;
  });
}

/// Everything other than the terms must be what follows from them.
void check_fields(const Json& document, const std::string& where, Verification& out) {
  const auto& ledger = *out.terms;
  const auto edition = edition_of(Fields(document, where, "a ledger that tsdp-train wrote"), where);
  const auto again = document_as(ledger, edition);
  const bool own = out.texts_checked = edition == Edition::third && ledger.program == cat("tsdp ", version());
  for (const auto& [key, value] : again.items()) {
    if (!own && (key == "not_covered" || key == "source" || key == "randomness" || key == "warnings")) continue;
    if (edition == Edition::second && key == "certificate" && document.contains(key))
      continue;  // later versions say which method it was
    if (!document.contains(key) ||
        !(document[key] == value || (key == "substitution" && follows(document[key], value, ledger))))
      differs(out, key, ": is not what follows from its terms");
  }
  for (const auto& [key, value] : document.items())
    if (!again.contains(key)) differs(out, key, ": no ledger of these terms has it");
}

}  // namespace

Verification verify(const Json& document, const std::string& where) {
  Verification out;
  try {
    out.terms = read_ledger(document, where);
  } catch (const PrivacyError& error) {
    differs(out, error.what());
    return out;
  }
  const auto& ledger = *out.terms;
  if (ledger.state == RunState::finished && ledger.steps_charged != ledger.steps_planned)
    differs(out, "steps_charged: found ", ledger.steps_charged, " of a finished run; ", ledger.steps_planned,
            " were planned");
  if (ledger.cost && !check_cost(out)) return out;
  for (const auto& earlier : earlier_runs(ledger.start, where))
    if (earlier.run.id == ledger.run.id) differs(out, "start: found the run itself among those it started from");
  if (rests_on_data(ledger.start.origin))
    for (const auto& difference : verify(ledger.start.trained, cat(where, ": start: trained")).differences)
      differs(out, "start: trained: ", difference);
  check_fields(document, where, out);
  return out;
}

}  // namespace tsdp::mechanism
