#include "tsdp/sampling/ledger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "tsdp/core/error.h"
#include "tsdp/core/json.h"
#include "tsdp/core/text.h"
#include "tsdp/core/version.h"
#include "tsdp/privacy/accountant.h"

namespace tsdp::sampling {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "tsdp-privacy-2";
constexpr const char* no_privacy = "No privacy: trained without clipping and noise.";
constexpr std::uint64_t most_sequences = 100'000'000;  // of a ledger that is read: a length each in memory
constexpr double attack_precision = 1e-3;   // finer than ledgers are written with
constexpr double bracket_tolerance = 5e-3;  // by which ends of brackets of other versions may differ, relative

template <class Enum, std::size_t n>
using Names = std::array<std::pair<Enum, const char*>, n>;

constexpr Names<RunState, 3> states = {
    {{RunState::running, "running"}, {RunState::interrupted, "interrupted"}, {RunState::finished, "finished"}}};

const char* name(RunState state) {
  for (const auto& [value, text] : states)
    if (value == state) return text;
  throw Error(ExitCode::failure, "a state of a run without a name");
}

std::string relation_text(const PrivacyUnit& unit) {
  std::string text = "two data sets are neighbours if they differ in one series, in ";
  text += unit.w == 1                        ? std::string("one value")
          : unit.relation == Relation::event ? cat("at most ", unit.w, " consecutive values")
                                             : cat("at most ", unit.w, " values anywhere");
  if (unit.v) text += cat(", each by at most ", *unit.v, " (values as they stand in the file)");
  return text;
}

/// Fields of a ledger, read with their types and ranges.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) throw DataError(cat(where_, ": found no fields; expected a ledger that tsdp-train wrote"));
  }

  [[nodiscard]] Fields section(const char* key) const { return {at(key), cat(where_, ": ", key)}; }
  [[nodiscard]] const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw DataError(cat(where_, ": no field '", key, "'; expected a ledger that tsdp-train wrote"));
    return *found;
  }
  [[nodiscard]] bool flag(const char* key) const {
    if (!at(key).is_boolean()) refuse(key, "true or false");
    return at(key).get<bool>();
  }
  [[nodiscard]] std::string text(const char* key) const {
    if (!at(key).is_string()) refuse(key, "a text");
    return at(key).get<std::string>();
  }
  [[nodiscard]] std::uint64_t count(const char* key, std::uint64_t least, std::uint64_t most) const {
    const auto& value = at(key);
    const bool is_count = value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
    if (!is_count || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > most)
      refuse(key, cat("an integer from ", least, " to ", most));
    return value.get<std::uint64_t>();
  }
  [[nodiscard]] std::int64_t length(const char* key) const {
    return static_cast<std::int64_t>(count(key, 1, static_cast<std::uint64_t>(largest_count)));
  }
  [[nodiscard]] double number(const char* key, double least, double most) const {
    const auto& value = at(key);
    const double found = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (!(found >= least) || !(found <= most)) refuse(key, cat("a number from ", least, " to ", most));
    return found;
  }
  template <class Enum, std::size_t n>
  [[nodiscard]] Enum one_of(const char* key, const Names<Enum, n>& names) const {
    const auto found = text(key);
    std::vector<std::string> known;
    for (const auto& [value, known_name] : names) {
      if (found == known_name) return value;
      known.emplace_back(known_name);
    }
    refuse(key, cat("one of ", join(known, ", ")));
  }

 private:
  [[noreturn]] void refuse(const char* key, const std::string& expected) const {
    auto found = json_text(at(key));
    if (found.size() > 60) found = cat(found.substr(0, 60), "…");
    throw DataError(cat(where_, ": ", key, ": found ", found, "; expected ", expected));
  }

  const Json& object_;
  std::string where_;
};

SubsamplingScheme scheme_of(const Ledger& ledger) {
  SubsamplingScheme::Parameters p;
  p.lengths.assign(static_cast<std::size_t>(ledger.sequences), ledger.shortest);
  p.lengths.back() = ledger.longest;
  p.context_length = ledger.context_length;
  p.forecast_length = ledger.forecast_length;
  p.batch_size = ledger.batch_size;
  p.subsequences_per_sequence = ledger.subsequences_per_sequence;
  p.top_level = ledger.top_level;
  p.bottom_level = ledger.bottom_level;
  p.context_noise = ledger.context_noise;
  p.forecast_noise = ledger.forecast_noise;
  return SubsamplingScheme(std::move(p));
}

/// Whether delta would allow publishing one of the N series whole.
bool delta_is_large(const Ledger& ledger) {
  return ledger.privacy && ledger.privacy->delta * static_cast<double>(ledger.sequences) >= 1.0;
}

Json not_covered(const Ledger& ledger) {
  Json out = {
      "everything under private/: losses, norms, validation scores, plots, checkpoints and the key of the randomness",
      "what the programs print or write besides model.pt, this ledger and config.yaml: scores, losses, forecasts",
      "other models and other runs on the same data, those of a sweep included: their privacy costs compose with this one's",
      "one person or household with several series or columns, beyond what `groups` states",
      "validation and test values, and any choice made by looking at them (settings, model, number of epochs)",
      "the time that training took, and stopping it, or not releasing a model, because of what its logs or scores showed",
      "the number and lengths of the series, their calendar, and which values are missing: treated as public",
      "forecasts from a series' own recent values: the guarantee is about training data, not about a model's inputs",
      "floating-point side channels: noise is made of finitely many random bits in double precision, cut at 12.07 standard "
      "deviations, and added to single-precision sums on a grid of 2^-24 of its deviation; a window's gradient is "
      "computed beside others, on whose number its own rounding may hang",
  };
  if (ledger.state != RunState::finished)
    out.push_back("a second run from a copy of this run's folder: copies that go on differently compose");
  return out;
}

}  // namespace

std::uint64_t Ledger::accounted_steps() const {
  return state == RunState::running ? std::max(steps_planned, steps_charged) : steps_charged;
}

Mechanism Ledger::mechanism() const {
  if (!privacy) throw Error(ExitCode::failure, "the mechanism of a run without privacy");
  if (theorem_row(privacy->theorem).ours && shortest != longest)
    throw PrivacyError(cat("theorem: found ", privacy->theorem, " with series of ", shortest, " to ", longest, " values; it needs the length "
                           "of each of them, which a ledger does not hold"));
  auto found = mechanism_of(scheme_of(*this), privacy->unit, privacy->noise_multiplier, privacy->theorem);
  if (found.bound == Bound::optimistic_lower)
    throw PrivacyError(cat("theorem: found ", privacy->theorem, ", a lower bound; expected one that bounds the loss from above"));
  return found;
}

Json document(const Ledger& ledger) {
  Json out;
  out["format"] = format_name;
  out["program"] = ledger.program;
  out["state"] = name(ledger.state);
  out["run"] = {{"id", ledger.run.id}, {"key_print", ledger.run.key_print}, {"configuration_sha256", ledger.run.configuration}};
  out["private"] = ledger.privacy.has_value();
  out["reproducible"] = ledger.reproducible;
  out["mechanism"] = {
      {"kind", ledger.privacy
                   ? "DP-SGD on structured subsamples, Gaussian noise on the sum of clipped per-window gradients"
                   : "none: ordinary training on structured subsamples, without clipping per window and noise"},
      {"top_level", sampling::name(ledger.top_level)},
      {"bottom_level", sampling::name(ledger.bottom_level)},
      {"num_sequences", ledger.sequences},
      {"shortest_sequence", ledger.shortest},
      {"longest_sequence", ledger.longest},
      {"context_length", ledger.context_length},
      {"forecast_length", ledger.forecast_length},
      {"batch_size", ledger.batch_size},
      {"subsequences_per_sequence", ledger.subsequences_per_sequence},
      {"steps_per_epoch", scheme_of(ledger).steps_per_epoch()},
      {"context_noise", ledger.context_noise},
      {"forecast_noise", ledger.forecast_noise},
  };
  out["steps_planned"] = ledger.steps_planned;
  out["steps_taken"] = ledger.steps_taken;
  out["steps_charged"] = ledger.steps_charged;
  out["randomness"] = ledger.reproducible
                          ? "reproducible, not for release: the key follows from the seed, so whoever knows the seed can "
                            "remove the noise"
                          : "secret 256-bit key of the operating system; ChaCha20 streams per purpose and step";
  if (!ledger.privacy) {
    out["epsilon"] = nullptr;
    out["statement"] = no_privacy;
    return out;
  }
  const auto& p = *ledger.privacy;
  const auto mechanism = ledger.mechanism();
  out["theorem"] = p.theorem;
  out["source"] =
      theorem_row(p.theorem).ours
          ? "a theorem of this project, proven in its docs/proofs"
          : "Schuchardt et al., Privacy Amplification by Structured Subsampling for Deep Differentially Private Time Series "
            "Forecasting, ICML 2025";
  out["bound"] = sampling::name(mechanism.bound);
  out["composition_unit"] = sampling::name(mechanism.unit);
  out["compositions"] = mechanism.uses_of_steps(ledger.accounted_steps());
  out["relation"] = {
      {"kind", sampling::name(p.unit.relation)}, {"w", p.unit.w}, {"v", nullptr}, {"text", relation_text(p.unit)}};
  if (p.unit.v) out["relation"]["v"] = *p.unit.v;
  out["noise_multiplier"] = p.noise_multiplier;
  out["clip_norm"] = p.clip_norm;
  out["clipping"] = p.clipping;
  out["delta"] = p.delta;
  out["target_epsilon"] = p.target_epsilon;
  out["epsilon"] = {{"lower", p.epsilon.lower}, {"upper", p.epsilon.upper}};
  out["epsilon_covers"] = {"model"};
  Json groups = Json::array();
  for (const std::int64_t series : {2, 3, 5, 10}) {
    const auto group = group_privacy(series, p.epsilon.upper, p.delta);
    if (group.delta < 1.0) groups.push_back({{"series", series}, {"epsilon", group.epsilon}, {"delta", group.delta}});
  }
  out["groups"] = {{"meaning", "the guarantee for data sets that differ so in several series, as of one person who owns them"},
                   {"of", std::move(groups)}};
  if (p.attack)
    out["attack"] = {{"advantage", p.attack->advantage},
                     {"false_positive_rate", p.attack->false_positive_rate},
                     {"true_positive_rate", p.attack->true_positive_rate},
                     {"meaning",
                      "at most, for whoever sees all releases and guesses which of two neighbouring data sets was used: "
                      "true- less false-positive rate of the best test, and the true-positive rate of the best test with "
                      "that false-positive rate"}};
  out["warnings"] = Json::array();
  if (delta_is_large(ledger))
    out["warnings"].push_back(cat("delta ", exact(p.delta), " is not below 1 / ", ledger.sequences,
                                  ": a mechanism that publishes one series whole, at random, would satisfy it"));
  out["not_covered"] = not_covered(ledger);
  out["statement"] = statement(ledger);
  return out;
}

Ledger read_ledger(const Json& document, const std::string& where) {
  const Fields top(document, where);
  if (const auto found = top.text("format"); found != format_name)
    throw DataError(cat(where, ": format: found '", found, "', a ledger of another version of tsdp; expected ", format_name));
  Ledger out;
  out.program = top.text("program");
  out.state = top.one_of("state", states);
  const auto run = top.section("run");
  out.run = {run.text("id"), run.text("key_print"), run.text("configuration_sha256")};
  out.reproducible = top.flag("reproducible");
  const auto m = top.section("mechanism");
  out.sequences = static_cast<std::int64_t>(m.count("num_sequences", 1, most_sequences));
  out.shortest = m.length("shortest_sequence");
  out.longest = m.length("longest_sequence");
  if (out.shortest > out.longest || (out.sequences == 1 && out.shortest != out.longest))
    throw DataError(cat(where, ": mechanism: found a shortest_sequence of ", out.shortest, " and a longest_sequence of ",
                        out.longest, " of ", out.sequences, " sequences; expected the shortest and the longest of them"));
  out.context_length = m.length("context_length");
  out.forecast_length = m.length("forecast_length");
  out.batch_size = m.length("batch_size");
  out.subsequences_per_sequence = m.length("subsequences_per_sequence");
  out.top_level = m.one_of("top_level", Names<TopLevel, 3>{{{TopLevel::deterministic, sampling::name(TopLevel::deterministic)},
                                                           {TopLevel::without_replacement, sampling::name(TopLevel::without_replacement)},
                                                           {TopLevel::shuffled, sampling::name(TopLevel::shuffled)}}});
  out.bottom_level = m.one_of(
      "bottom_level", Names<BottomLevel, 2>{{{BottomLevel::with_replacement, sampling::name(BottomLevel::with_replacement)},
                                             {BottomLevel::poisson, sampling::name(BottomLevel::poisson)}}});
  out.context_noise = m.number("context_noise", 0.0, 1e300);
  out.forecast_noise = m.number("forecast_noise", 0.0, 1e300);
  constexpr auto most_steps = std::numeric_limits<std::uint64_t>::max() / 2;
  out.steps_planned = top.count("steps_planned", 0, most_steps);
  out.steps_charged = top.count("steps_charged", 0, out.steps_planned);
  out.steps_taken = top.count("steps_taken", 0, out.steps_charged);
  if (!top.flag("private")) return out;
  auto& p = out.privacy.emplace();
  p.theorem = top.text("theorem");
  const auto relation = top.section("relation");
  p.unit.relation = relation.one_of("kind", Names<Relation, 2>{{{Relation::event, sampling::name(Relation::event)},
                                                               {Relation::user, sampling::name(Relation::user)}}});
  p.unit.w = relation.length("w");
  if (!relation.at("v").is_null()) p.unit.v = relation.number("v", std::numeric_limits<double>::denorm_min(), 1e300);
  p.noise_multiplier = top.number("noise_multiplier", 0.01, 1e6);
  p.clip_norm = top.number("clip_norm", 1e-12, 1e12);
  p.clipping = top.text("clipping");
  if (p.clipping != "flat" && p.clipping != "per_layer" && p.clipping != "automatic")
    throw DataError(cat(where, ": clipping: found '", p.clipping, "'; expected one of flat, per_layer, automatic"));
  p.delta = top.number("delta", 1e-25, 1.0);
  p.target_epsilon = top.number("target_epsilon", 0.0, 1e6);
  const auto epsilon = top.section("epsilon");
  p.epsilon = {epsilon.number("lower", 0.0, 1e300), epsilon.number("upper", 0.0, 1e300)};
  if (document.contains("attack")) {
    const auto attack = top.section("attack");
    p.attack = privacy::AttackBound{attack.number("advantage", 0.0, 1.0), attack.number("false_positive_rate", 1e-12, 0.5),
                                    attack.number("true_positive_rate", 0.0, 1.0)};
  }
  return out;
}

std::string statement(const Ledger& ledger) {
  if (!ledger.privacy) return no_privacy;
  const auto& p = *ledger.privacy;
  std::string text = cat("(", rounded_up(p.epsilon.upper, 4), ", ", exact(p.delta), ")-differential privacy, where ",
                         relation_text(p.unit), " (Theorem ", p.theorem, ").");
  if (ledger.reproducible) text += " NOT FOR RELEASE: the randomness is reproducible from the seed.";
  return text;
}

GroupPrivacy group_privacy(std::int64_t series, double epsilon, double delta) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < series && sum < 1e300; ++i) sum += std::exp(static_cast<double>(i) * epsilon);
  const auto up = [](double x) { return std::nextafter(x, std::numeric_limits<double>::infinity()); };
  // exp is good to an ulp, each sum and product to half of one: 2^-40 covers thousands of them.
  return {series, up(static_cast<double>(series) * epsilon), std::min(1.0, delta * sum * (1.0 + 0x1p-40))};
}

Verification verify(const Json& document, const std::string& where) {
  const auto ledger = read_ledger(document, where);
  Verification out;
  const auto differs = [&](const auto&... what) { out.differences.push_back(cat(what...)); };
  if (ledger.state == RunState::finished && ledger.steps_charged != ledger.steps_planned)
    differs("steps_charged: found ", ledger.steps_charged, " of a finished run; ", ledger.steps_planned, " were planned");
  if (ledger.privacy) {
    const auto& p = *ledger.privacy;
    out.stated = p.epsilon;
    std::optional<Mechanism> mechanism;
    try {
      mechanism = ledger.mechanism();
    } catch (const Error& error) {
      differs("theorem: ", error.what());
      return out;
    }
    const auto uses = mechanism->uses_of_steps(ledger.accounted_steps());
    if (uses > privacy::Accountant::max_uses_ever) {
      differs("steps_planned: found ", uses, " uses; at most ", privacy::Accountant::max_uses_ever, " can be accounted for");
      return out;
    }
    privacy::Accountant accountant(mechanism->pair);
    try {
      out.epsilon = accountant.epsilon(p.delta, uses);
      // The stated upper end must be certified, not only near; it may have come from another grid, or be the target.
      if (p.epsilon.upper < out.epsilon.upper && !accountant.certifies(p.epsilon.upper, p.delta, uses))
        differs("epsilon: found an upper end of ", p.epsilon.upper, "; ", rounded_up(out.epsilon.upper, 7), " follows from its terms");
    } catch (const PrivacyError& error) {
      differs("epsilon: ", error.what());
      return out;
    }
    if (p.epsilon.upper > out.epsilon.upper * (1.0 + bracket_tolerance) || p.epsilon.lower > out.epsilon.upper ||
        p.epsilon.lower < out.epsilon.lower * (1.0 - bracket_tolerance) || p.epsilon.lower > p.epsilon.upper)
      differs("epsilon: found [", p.epsilon.lower, ", ", p.epsilon.upper, "]; [", rounded_down(out.epsilon.lower, 7), ", ",
              rounded_up(out.epsilon.upper, 7), "] follows from its terms");
    if (p.attack) {
      // "At most": not below what is certified more finely than it was stated.
      const auto derived = privacy::attack_bound(accountant, uses, p.attack->false_positive_rate, attack_precision);
      if (p.attack->advantage < derived.advantage || p.attack->true_positive_rate < derived.true_positive_rate)
        differs("attack: found less than follows from its terms");
    }
  }
  // Everything that the terms do not hold must be what follows from them.
  const auto again = sampling::document(ledger);
  const bool own = out.texts_checked = ledger.program == cat("tsdp ", version());
  for (const auto& [key, value] : again.items()) {
    if (!own && (key == "not_covered" || key == "source" || key == "randomness" || key == "warnings"))
      continue;
    if (!document.contains(key) || document[key] != value) differs(key, ": is not what follows from its terms");
  }
  for (const auto& [key, value] : document.items())
    if (!again.contains(key)) differs(key, ": no ledger of these terms has it");
  return out;
}

}  // namespace tsdp::sampling
