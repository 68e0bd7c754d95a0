#include "tsdp/settings/config.h"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <system_error>

#include "options.h"
#include "privacy/matrix/correlated_noise.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/data/dataset.h"

namespace tsdp {
namespace {

using namespace detail;

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

std::string section_of(const std::string& key) { return key.substr(0, key.find('.')); }
std::string name_of(const std::string& key) { return key.substr(key.find('.') + 1); }

std::string range_text(const IntRange& r) {
  return r.high == std::numeric_limits<std::int64_t>::max() ? cat("an integer of at least ", r.low)
                                                            : cat("an integer from ", r.low, " to ", r.high);
}

std::string range_text(const RealRange& r) {
  const std::string low = r.open_low ? cat("greater than ", r.low) : cat("of at least ", r.low);
  if (r.high >= 1e300) return cat("a number ", low);
  return cat("a number ", low, " and ", r.open_high ? "below " : "at most ", r.high);
}

/// What values an option accepts, in words.
std::string accepts(const Value& value) {
  return std::visit(Overloaded{[](const Text&) -> std::string { return "text"; },
                               [](const OptionalText&) -> std::string { return "text, or null"; },
                               [](const Choice& o) { return cat("one of ", join(o.choices, ", ")); },
                               [](const Integer& o) { return range_text(o.range); },
                               [](const OptionalInteger& o) { return cat(range_text(o.range), ", or ", o.none); },
                               [](const IntegerNullOrAuto& o) { return cat(range_text(o.range), ", auto or null"); },
                               [](const IntegerList& o) {
                                 return cat("a list of at most ", o.most, ", each ", range_text(o.range), ", or auto");
                               },
                               [](const TextList& o) {
                                 return cat(o.or_one ? "text, or null, or " : "", "a list of at most ", o.most,
                                            " different names", o.is_auto ? ", or auto" : "");
                               },
                               [](const Real& o) { return range_text(o.range); },
                               [](const OptionalReal& o) { return cat(range_text(o.range), ", or ", o.none); },
                               [](const Flag&) -> std::string { return "true or false"; }},
                    value);
}

/// The YAML text of an option's value in `config`.
std::string value_text(const Value& value, const Config& config) {
  auto& c = const_cast<Config&>(config);  // rows give references for reading and writing alike
  const auto quoted = [](const std::string& text) {
    YAML::Emitter out;
    out << YAML::DoubleQuoted << text;
    return std::string(out.c_str());
  };
  return std::visit(
      Overloaded{[&](const Text& o) { return quoted(o.at(c)); },
                 [&](const OptionalText& o) { return o.at(c) ? quoted(*o.at(c)) : std::string("null"); },
                 [&](const Choice& o) { return o.get(c); }, [&](const Integer& o) { return cat(o.at(c)); },
                 [&](const OptionalInteger& o) { return o.at(c) ? cat(*o.at(c)) : o.none; },
                 [&](const IntegerNullOrAuto& o) {
                   return o.is_auto(c) ? std::string("auto") : o.at(c) ? cat(*o.at(c)) : std::string("null");
                 },
                 [&](const IntegerList& o) {
                   if (o.is_auto(c)) return std::string("auto");
                   std::vector<std::string> parts;
                   for (const auto item : o.at(c)) parts.push_back(cat(item));
                   return cat("[", join(parts, ", "), "]");
                 },
                 [&](const TextList& o) {
                   if (o.is_auto && o.is_auto(c)) return std::string("auto");
                   std::vector<std::string> parts;
                   for (const auto& item : o.at(c)) parts.push_back(quoted(item));
                   if (o.or_one && parts.size() < 2) return parts.empty() ? std::string("null") : parts.front();
                   return cat("[", join(parts, ", "), "]");
                 },
                 [&](const Real& o) { return exact(o.at(c)); },
                 [&](const OptionalReal& o) { return o.at(c) ? exact(*o.at(c)) : o.none; },
                 [&](const Flag& o) { return std::string(o.at(c) ? "true" : "false"); }},
      value);
}

bool within(const IntRange& r, long long v) { return v >= r.low && v <= r.high; }
bool within(const RealRange& r, double v) {
  return std::isfinite(v) && (r.open_low ? v > r.low : v >= r.low) && (r.open_high ? v < r.high : v <= r.high);
}

bool is_quoted(const YAML::Node& scalar) { return scalar.Tag() == "!"; }  // yaml-cpp marks quoted scalars this way
bool is_word(const YAML::Node& node, const std::string& word) { return node.IsScalar() && node.Scalar() == word; }

/// Takes the number in `node`; false if it is none, or out of range.
bool take_number(const YAML::Node& node, const IntRange& range, std::int64_t& out) {
  long long parsed = 0;
  if (!node.IsScalar() || is_quoted(node) || !parse_int(node.Scalar(), parsed) || !within(range, parsed)) return false;
  out = parsed;
  return true;
}
bool take_number(const YAML::Node& node, const RealRange& range, double& out) {
  double parsed = 0.0;
  if (!node.IsScalar() || is_quoted(node) || !parse_double(node.Scalar(), parsed) || !within(range, parsed))
    return false;
  out = parsed;
  return true;
}

// Each stores the scalar or sequence `node` in `config`; false if type or range is wrong.

bool store(const Text& o, const YAML::Node& node, Config& config) {
  if (!node.IsScalar() || node.Scalar().empty()) return false;
  o.at(config) = node.Scalar();
  return true;
}

bool store(const OptionalText& o, const YAML::Node& node, Config& config) {
  if (node.IsNull()) {
    o.at(config).reset();
    return true;
  }
  if (!node.IsScalar() || node.Scalar().empty()) return false;
  o.at(config) = node.Scalar();
  return true;
}

bool store(const Choice& o, const YAML::Node& node, Config& config) {
  if (!node.IsScalar() || std::find(o.choices.begin(), o.choices.end(), node.Scalar()) == o.choices.end()) return false;
  o.set(config, node.Scalar());
  return true;
}

bool store(const Integer& o, const YAML::Node& node, Config& config) {
  return take_number(node, o.range, o.at(config));
}

bool store(const OptionalInteger& o, const YAML::Node& node, Config& config) {
  if (is_word(node, o.none) || (o.none == "null" && node.IsNull())) {
    o.at(config).reset();
    return true;
  }
  std::int64_t value = 0;
  if (!take_number(node, o.range, value)) return false;
  o.at(config) = value;
  return true;
}

bool store(const IntegerNullOrAuto& o, const YAML::Node& node, Config& config) {
  o.at(config).reset();
  o.is_auto(config) = is_word(node, "auto");
  if (o.is_auto(config) || node.IsNull()) return true;
  std::int64_t value = 0;
  if (!take_number(node, o.range, value)) return false;
  o.at(config) = value;
  return true;
}

bool store(const IntegerList& o, const YAML::Node& node, Config& config) {
  o.is_auto(config) = is_word(node, "auto");
  if (o.is_auto(config)) {
    o.at(config).clear();
    return true;
  }
  if (!node.IsSequence() || node.size() > o.most) return false;
  std::vector<std::int64_t> items;
  for (const auto& item : node)
    if (!take_number(item, o.range, items.emplace_back())) return false;
  o.at(config) = std::move(items);
  return true;
}

bool store(const TextList& o, const YAML::Node& node, Config& config) {
  if (o.is_auto) {
    o.is_auto(config) = is_word(node, "auto");
    o.at(config).clear();
    if (o.is_auto(config)) return true;
  }
  if (o.or_one && node.IsNull()) {
    o.at(config).clear();
    return true;
  }
  if (o.or_one && node.IsScalar()) {
    if (node.Scalar().empty()) return false;
    o.at(config) = {node.Scalar()};
    return true;
  }
  if (!node.IsSequence() || node.size() > o.most) return false;
  std::vector<std::string> items;
  for (const auto& item : node) {
    if (!item.IsScalar() || item.Scalar().empty() ||
        std::find(items.begin(), items.end(), item.Scalar()) != items.end())
      return false;
    items.push_back(item.Scalar());
  }
  o.at(config) = std::move(items);
  return true;
}

bool store(const Real& o, const YAML::Node& node, Config& config) { return take_number(node, o.range, o.at(config)); }

bool store(const OptionalReal& o, const YAML::Node& node, Config& config) {
  if ((o.none == "null" && node.IsNull()) || is_word(node, o.none)) {
    o.at(config).reset();
    return true;
  }
  double value = 0.0;
  if (!take_number(node, o.range, value)) return false;
  o.at(config) = value;
  return true;
}

bool store(const Flag& o, const YAML::Node& node, Config& config) {
  if (!node.IsScalar() || is_quoted(node) || (node.Scalar() != "true" && node.Scalar() != "false")) return false;
  o.at(config) = node.Scalar() == "true";
  return true;
}

std::string shown(const YAML::Node& node) {
  if (node.IsNull()) return "null";
  if (node.IsScalar()) return cat(node.Tag() == "!" ? "the quoted text '" : "'", node.Scalar(), "'");
  if (!node.IsSequence()) return "a section";
  std::vector<std::string> items;
  for (const auto& item : node) items.push_back(item.IsScalar() ? item.Scalar() : "…");
  return items.size() > 8 ? cat("a list of ", items.size()) : cat("a list, [", join(items, ", "), "]");
}

const Option* find_option(const std::string& key) {
  for (const auto& option : option_table())
    if (option.key == key) return &option;
  return nullptr;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  for (const auto& option : option_table()) keys.push_back(option.key);
  return keys;
}

/// An option of earlier versions. config.yaml of their runs holds it with the value 0, which did nothing.
constexpr const char* retired_key = "privacy.choice_share";

void refuse_but_for_zero(const std::string& where, const YAML::Node& node) {
  if (node.IsScalar() && node.Scalar() == "0") return;
  throw UsageError(cat(where, retired_key, ": found ", shown(node),
                       "; there is no private choice any more, since the mixture weighs the start beside the trained "
                       "model for nothing (model.candidates); expected 0, or no such line"));
}

[[noreturn]] void unknown_key(const std::string& where, const std::string& key, const std::string& nearest) {
  throw UsageError(cat(where, "unknown key '", key, "'; the nearest known key is '", nearest, "'"));
}

/// What a word in a section's place most likely stands for: a key written outside its section, or another section.
std::string nearest_to_section(const std::string& section) {
  std::vector<std::string> sections;
  for (const auto& option : option_table()) {
    if (name_of(option.key) == section) return option.key;
    sections.push_back(section_of(option.key));
  }
  return nearest_name(section, sections);
}

/// The line, from 1, on which a second YAML document begins; 0 if there is none. Document markers stand only at the
/// beginning of a line, whatever is around them (YAML 1.2, 9.1.2).
int second_document(std::string_view text) {
  bool begun = false;  // by a mark or by content
  bool ended = false;
  int number = 0;
  for (auto line : split(text, '\n')) {
    ++number;
    const auto is_mark = [&](std::string_view mark) {
      return line.starts_with(mark) &&
             (line.size() == 3 || std::string_view(" \t\r").find(line[3]) != std::string_view::npos);
    };
    const auto content = trimmed(line);
    if (is_mark("...")) {
      ended = begun;
    } else if (is_mark("---")) {
      if (begun) return number;
      begun = true;
    } else if (!content.empty() && content.front() != '#' && (begun || content.front() != '%')) {
      if (ended) return number;
      begun = true;
    }
  }
  return 0;
}

void assign(const std::string& where, const Option& option, const YAML::Node& node, Config& config) {
  // config.yaml would name something else, as other bytes become a replacement character in it.
  if (node.IsScalar() && !is_utf8(node.Scalar()))
    throw UsageError(
        cat(where, option.key, ": found ", shown(node), ", which is not UTF-8; expected ", accepts(option.value)));
  if (!std::visit([&](const auto& value) { return store(value, node, config); }, option.value))
    throw UsageError(cat(where, option.key, ": found ", shown(node), "; expected ", accepts(option.value)));
}

/// Assigns YAML text. Error messages about the key begin with `where`, those about the value with `what`.
void assign_text(const std::string& where, const std::string& what, const std::string& key, const std::string& value,
                 Config& config) {
  const auto* option = find_option(key);
  if (option == nullptr && key != retired_key) unknown_key(where, key, nearest_name(key, known_keys()));
  if (second_document(value) > 0)
    throw UsageError(cat(what, key, ": found a second YAML document in the value; expected one"));
  try {
    if (option == nullptr) return refuse_but_for_zero(what, YAML::Load(value));
    assign(what, *option, YAML::Load(value), config);
  } catch (const YAML::Exception& error) { throw UsageError(cat(what, key, "=", value, ": not YAML: ", error.msg)); }
}

/// The batch size is stated only once.
void check_batch_size(const std::string& where, const Config& c) {
  const auto& s = c.sampling;
  const bool whole_series = c.privacy.relation == privacy::Relation::series;
  const auto in_place = [&](const char* key, const auto& value) {
    if (!value) return;
    if (!whole_series)
      throw UsageError(cat(where, key, ": found ", *value, " with privacy.relation ", name(c.privacy.relation),
                           "; expected sampling.batch_size, or privacy.relation series"));
    if (s.batch_size || s.auto_batch_size)
      throw UsageError(cat(where, key, ": found ", *value, " beside sampling.batch_size ",
                           s.batch_size ? cat(*s.batch_size) : std::string("auto"),
                           "; expected one of them (null for the other)"));
  };
  in_place("sampling.batches", s.batches);
  in_place("sampling.rate", s.rate);
  if (s.batches && s.rate)
    throw UsageError(cat(where, "sampling.rate: found ", *s.rate, " beside sampling.batches ", *s.batches,
                         "; expected one of them"));
  if (s.rate && s.top_level != privacy::TopLevel::poisson && s.top_level != privacy::TopLevel::cyclic_poisson)
    throw UsageError(cat(where, "sampling.rate: found ", *s.rate, " with sampling.top_level ",
                         s.auto_top_level ? "auto" : name(s.top_level),
                         "; expected poisson, cyclic_poisson, or sampling.batches"));
  if (!s.batch_size && !s.auto_batch_size && !s.batches && !s.rate)
    throw UsageError(cat(where, "sampling.batch_size: not given; expected an integer from 1 to 1000000000, or auto",
                         whole_series ? ", or sampling.batches" : ""));
  if (s.batch_size && s.subsequences_per_sequence > *s.batch_size)
    throw UsageError(cat(where, "sampling.subsequences_per_sequence: found ", s.subsequences_per_sequence,
                         "; expected at most sampling.batch_size (", *s.batch_size, ")"));
}

/// Noise found by sampling is correlated, in bins drawn once.
void check_sampled_noise(const std::string& where, const Config& c) {
  const auto& p = c.privacy;
  if (!p.noise_sampled) return;
  const auto found = cat(where, "privacy.noise.sampled: found ", *p.noise_sampled);
  if (*p.noise_sampled != "auto") {
    try {
      static_cast<void>(SecretKey::from_hex(*p.noise_sampled));
    } catch (const DataError&) {
      throw UsageError(cat(found, "; expected null, auto, or the key of a test, 64 hexadecimal digits"));
    }
  }
  if (p.noise_multiplier.has_value() == (*p.noise_sampled == "auto"))
    throw UsageError(p.noise_multiplier ? cat(found, " beside privacy.noise_multiplier ", *p.noise_multiplier,
                                              "; expected auto for both, or the key of the test that this noise passed")
                                        : cat(found, " without the noise that passed its test; expected auto"));
  if (!p.enabled || p.relation != privacy::Relation::series || c.sampling.auto_top_level ||
      c.sampling.top_level != privacy::TopLevel::balls_in_bins || c.sampling.redraw != privacy::Redraw::once ||
      !p.noise_mechanism || *p.noise_mechanism == privacy::StrategyKind::identity)
    throw UsageError(cat(found,
                         "; it is for privacy.relation series with sampling.top_level balls_in_bins, sampling.redraw "
                         "once and a privacy.noise.mechanism by name other than identity; expected null elsewhere"));
}

/// Batches of whole series have a largest size where coins or bins draw them.
void check_largest_batch(const std::string& where, const Config& c) {
  const auto& s = c.sampling;
  if (!s.largest_batch && !s.auto_largest_batch) return;
  const auto found =
      cat(where, "sampling.largest_batch: found ", s.largest_batch ? cat(*s.largest_batch) : std::string("auto"));
  if (c.privacy.relation != privacy::Relation::series)
    throw UsageError(
        cat(found, " with privacy.relation ", name(c.privacy.relation), "; expected null, or privacy.relation series"));
  if (!s.auto_top_level && s.top_level != privacy::TopLevel::poisson &&
      s.top_level != privacy::TopLevel::cyclic_poisson && s.top_level != privacy::TopLevel::balls_in_bins)
    throw UsageError(cat(found, " with sampling.top_level ", name(s.top_level),
                         ", whose batches have one size; expected null, or poisson, cyclic_poisson or balls_in_bins"));
  if (c.privacy.noise_sampled)
    throw UsageError(cat(found, " beside privacy.noise.sampled ", *c.privacy.noise_sampled,
                         ", whose test spends all of delta; expected null for one of them"));
}

/// A mechanism of correlated noise has its coefficients, and goes with the sampling.
void check_noise_mechanism(const std::string& where, const Config& c) {
  const auto& s = c.sampling;
  const bool whole_series = c.privacy.relation == privacy::Relation::series;
  const bool of_file = c.privacy.noise_mechanism == privacy::StrategyKind::file;
  if (of_file && !c.privacy.noise_coefficients)
    throw UsageError(
        cat(where, "privacy.noise.coefficients: not given; expected a file, with privacy.noise.mechanism file"));
  if (!of_file && c.privacy.noise_coefficients)
    throw UsageError(cat(where, "privacy.noise.coefficients: found ", *c.privacy.noise_coefficients,
                         " without privacy.noise.mechanism file; expected null"));
  if (s.auto_top_level && c.privacy.enabled && c.privacy.relation == privacy::Relation::series) {
    if (c.privacy.noise_multiplier)
      throw UsageError(cat(where, "sampling.top_level: found auto beside privacy.noise_multiplier ",
                           *c.privacy.noise_multiplier,
                           "; expected auto for both, as batches are chosen with their noise"));
    if (c.privacy.noise_mechanism && *c.privacy.noise_mechanism != privacy::StrategyKind::identity)
      throw UsageError(cat(where, "sampling.top_level: found auto beside privacy.noise.mechanism ",
                           name(*c.privacy.noise_mechanism), "; expected auto or identity, or a top level by name"));
    return;
  }
  if (c.privacy.enabled && !c.privacy.noise_mechanism && c.privacy.noise_multiplier && whole_series &&
      (s.top_level == privacy::TopLevel::cyclic_poisson || privacy::searches_correlated_noise(s.top_level, s.redraw)))
    throw UsageError(cat(where, "privacy.noise.mechanism: found auto beside privacy.noise_multiplier ",
                         *c.privacy.noise_multiplier,
                         "; expected auto for both, as the mechanism is chosen with its noise"));
  if (c.privacy.enabled && c.privacy.noise_mechanism && *c.privacy.noise_mechanism != privacy::StrategyKind::identity) {
    const auto mechanism = name(*c.privacy.noise_mechanism);
    if (!whole_series)
      throw PrivacyError(cat(where, "privacy.noise.mechanism: found ", mechanism, " with privacy.relation ",
                             name(c.privacy.relation),
                             ", which is not implemented; expected privacy.relation series with sampling.top_level "
                             "balls_in_bins, or identity"));
    using Kind = privacy::StrategyKind;
    const auto kind = *c.privacy.noise_mechanism;
    if (s.top_level == privacy::TopLevel::cyclic_poisson) {
      if (kind != Kind::bsr && kind != Kind::band_mf && kind != Kind::file)
        throw PrivacyError(
            cat(where, "privacy.noise.mechanism: found ", mechanism,
                " with sampling.top_level cyclic_poisson, whose matrix is not banded, so that no theorem "
                "covers it; expected bsr, band_mf, file or identity"));
    } else if (!privacy::covers_correlated_noise(s.top_level))
      throw PrivacyError(
          cat(where, "privacy.noise.mechanism: found ", mechanism, " with sampling.top_level ", name(s.top_level),
              s.top_level == privacy::TopLevel::poisson ? ", which is not implemented; expected cyclic_poisson, "
                                                        : ", for which no theorem is known; expected ",
              "balls_in_bins, deterministic or shuffled"));
  }
}

/// Options about values of a series do not go with whole series.
void check_no_values(const std::string& where, const Config& c) {
  const auto of_values = [&](const char* key, const std::string& found, const char* expected) {
    throw UsageError(cat(where, key, ": found ", found,
                         " with privacy.relation series, which is about whole series and not their values; expected ",
                         expected));
  };
  if (c.privacy.w != 1) of_values("privacy.w", cat(c.privacy.w), "1");
  if (c.privacy.v) of_values("privacy.v", cat(*c.privacy.v), "null");
  if (c.augmentation.context_noise > 0.0)
    of_values("augmentation.context_noise", cat(c.augmentation.context_noise), "0");
  if (c.augmentation.forecast_noise > 0.0)
    of_values("augmentation.forecast_noise", cat(c.augmentation.forecast_noise), "0");
}

/// Covariates as a part of the record: of every step those of its value. Theorems that bound the size of a change do
/// not know how far a covariate may change.
void check_private_covariates(const std::string& where, const Config& c) {
  if (!c.dataset.protects_covariates) return;
  const auto refuse_if = [&](bool found, const std::string& what) {
    if (found) throw UsageError(cat(where, "dataset.covariates.private: found true ", what));
  };
  refuse_if(!c.dataset.covariates.has_value(), "without dataset.covariates.file; expected the file, too");
  refuse_if(c.privacy.v.has_value(),
            "with privacy.v, a bound for the change of a value, which says nothing of covariates; expected privacy.v "
            "null");
  refuse_if(c.augmentation.context_noise > 0.0 || c.augmentation.forecast_noise > 0.0,
            "with noise on the data, of which the covariates have none; expected augmentation of 0");
}

void check_sampling(const std::string& where, const Config& c) {
  check_batch_size(where, c);
  check_noise_mechanism(where, c);
  check_sampled_noise(where, c);
  check_largest_batch(where, c);
  const auto& s = c.sampling;
  const bool whole_series = c.privacy.relation == privacy::Relation::series;
  if (s.reshuffle == privacy::Reshuffle::once && s.top_level != privacy::TopLevel::shuffled)
    throw UsageError(cat(where, "sampling.reshuffle: found once with sampling.top_level ", name(s.top_level),
                         "; expected shuffled"));
  if (s.redraw == privacy::Redraw::every_epoch && s.top_level != privacy::TopLevel::balls_in_bins)
    throw UsageError(cat(where, "sampling.redraw: found every_epoch with sampling.top_level ", name(s.top_level),
                         "; expected balls_in_bins"));
  if ((s.top_level == privacy::TopLevel::balls_in_bins || s.top_level == privacy::TopLevel::cyclic_poisson) &&
      !whole_series)
    throw PrivacyError(
        cat(where, "sampling.top_level: found ", name(s.top_level), " with privacy.relation ", name(c.privacy.relation),
            ", which no theorem covers; expected privacy.relation series, or shuffled, deterministic, wor or poisson"));
  if (whole_series) check_no_values(where, c);
}

/// The longest season that a model that starts as a naive forecast sees as a whole. A context that is not settled yet
/// will hold any.
std::int64_t longest_season(const Config& c) {
  if (!c.model.lags.empty()) return *std::max_element(c.model.lags.begin(), c.model.lags.end());
  return c.model.context_length.value_or(std::numeric_limits<std::int64_t>::max());
}

/// What model.lags `auto` means: the last steps, and the same step of the season before with those next to it; for
/// hours the same on each day of a week, as in the shipped weights.
std::vector<std::int64_t> usual_lags(std::int64_t season) {
  std::set<std::int64_t> lags{1, 2, 3, 4, 5, 6, 7};
  for (std::int64_t k = 1; season >= 2 && k <= (season == 24 ? 7 : 1); ++k)
    lags.insert({k * season - 1, k * season, k * season + 1});
  return {lags.begin(), lags.end()};
}

/// What series in several files, each of which one rank reads, cannot be combined with.
void check_ranks(const std::string& where, const Config& c) {
  const auto& path = c.dataset.path;
  if (!c.dataset.has_ranks()) return;
  const auto refuse_if = [&](bool found, const std::string& key, const std::string& what) {
    if (found) throw UsageError(cat(where, key, " with dataset.path ", path, ", whose files", what));
  };
  refuse_if(c.dataset.is_synthetic(), "dataset.format: found synthetic",
            " are none: expected the name of a family as the path");
  refuse_if(c.dataset.has_owners(), "dataset.owner: found a file or column",
            " different ranks read, so that nobody sees which series have one owner: expected null");
  refuse_if(c.dataset.value_columns.size() > 1, "dataset.columns.value: found several columns",
            " have one variable each: not implemented; expected one column");
  refuse_if(c.augmentation.context_noise > 0.0 || c.augmentation.forecast_noise > 0.0,
            "augmentation: found noise on the data", " are trained on as they are: expected 0");
  refuse_if(c.training.memory_mb.has_value(), "training.memory_mb: found a bound",
            " are worked on in pieces that depend on nothing but the batch: expected null");
  for (const auto& candidate : c.model.candidates)
    refuse_if(external_name(candidate).has_value(), cat("model.candidates: found ", candidate),
              " no single rank knows all series of: expected candidates that are no files");
}

/// What series of several variables cannot be combined with.
void check_variables(const std::string& where, const Config& c) {
  const auto& columns = c.dataset.value_columns;
  if (columns.size() < 2) return;
  const auto refuse_if = [&](bool found, const std::string& key, const std::string& expected) {
    if (found)
      throw UsageError(cat(where, key, " with the ", columns.size(), " variables of dataset.columns.value (",
                           join(columns, ", "), "), which is not implemented; expected ", expected));
  };
  refuse_if(c.dataset.is_synthetic(), "dataset.format: found synthetic, whose series have one variable,", "null");
  refuse_if(c.dataset.has_owners(), "dataset.owner: found a file or column", "null");
  refuse_if(c.privacy.v.has_value(), "privacy.v: found a bound", "null");
  refuse_if(c.augmentation.context_noise > 0.0 || c.augmentation.forecast_noise > 0.0,
            "augmentation: found noise on the data", "0");
}

void check_together(const std::string& where, const Config& c) {
  check_sampling(where, c);
  if (c.dataset.format == "lstnet" && !c.dataset.start)
    throw UsageError(cat(
        where, "dataset.start: not given; an lstnet file has no time stamps; expected the moment of its first row"));
  check_ranks(where, c);
  check_variables(where, c);
  if (c.dataset.lower_bound && c.dataset.upper_bound && !(*c.dataset.lower_bound < *c.dataset.upper_bound))
    throw UsageError(cat(where, "dataset.lower_bound: found ", *c.dataset.lower_bound, " with dataset.upper_bound ",
                         *c.dataset.upper_bound, "; expected a number below it"));
  const auto* model = find_model(c.model.name);
  if (c.dataset.covariates && (model == nullptr || !model->reads_covariates))
    throw UsageError(cat(where, "dataset.covariates.file: found ", *c.dataset.covariates, "; ", c.model.name,
                         " reads no covariates: expected null, or another model"));
  if (c.dataset.covariates && c.dataset.is_synthetic())
    throw UsageError(cat(where, "dataset.covariates.file: found ", *c.dataset.covariates,
                         " with dataset.format synthetic, whose series know of none; expected null"));
  if (c.dataset.has_owners() && c.privacy.relation != privacy::Relation::series)
    throw UsageError(cat(where, "dataset.owner: found a file or column with privacy.relation ",
                         name(c.privacy.relation),
                         "; expected privacy.relation series, where all series of an owner are one record"));
  if (c.dataset.has_owners() && c.dataset.is_synthetic())
    throw UsageError(cat(where, "dataset.owner: found a file or column; synthetic series are nobody's: expected null"));
  check_private_covariates(where, c);
  if (!c.dataset.covariates && !c.dataset.covariate_columns.empty())
    throw UsageError(cat(where, "dataset.covariates.columns: found ", join(c.dataset.covariate_columns, ", "),
                         " without dataset.covariates.file; expected the file, too"));
  const bool reads_lags = model != nullptr && model->reads_lags;
  if (reads_lags && c.model.lags.empty())
    throw UsageError(cat(where, "model.lags: not given; ", c.model.name,
                         " reads past values through lags alone; expected auto or a list, such as [1, 2, 3, 4, 5, 6, "
                         "7, 23, 24, 25] for hourly data"));
  if (!reads_lags && !c.model.lags.empty())
    throw UsageError(cat(where, "model.lags: found ", c.model.lags.size(), " lags; ", c.model.name,
                         " reads none; expected an empty list"));
  if (c.model.prior != PriorKind::none && (model == nullptr || !model->has_prior))
    throw UsageError(cat(where, "model.prior: found ", c.model.prior ? name(*c.model.prior) : "auto", "; ",
                         c.model.name, " has no prior; expected none"));
  if (c.model.missing_values == "zero" && c.model.prior != PriorKind::none)
    throw UsageError(cat(where, "model.missing_values: found zero with model.prior ",
                         c.model.prior ? name(*c.model.prior) : "auto", ", which knows no zeros; expected mean"));
  if (c.model.prior == PriorKind::seasonal_naive) {
    const auto seen = longest_season(c);
    if (c.dataset.season_length < 2)
      throw UsageError(cat(where, "model.prior: found seasonal_naive with dataset.season_length ",
                           c.dataset.season_length, "; expected a season of 2 or more, or last_value"));
    if (c.dataset.season_length > seen)
      throw UsageError(cat(where, "model.prior: found seasonal_naive with dataset.season_length ",
                           c.dataset.season_length, " and a model that sees ", seen,
                           reads_lags ? " steps by its lags" : " steps", "; expected ",
                           reads_lags ? "a lag" : "model.context_length", " of at least the season, or last_value"));
  }
  check_candidates(where, c.model.candidates);
  if (c.training.trainable == Trainable::mixture) {
    const auto refuse = [&](const auto&... parts) {
      throw UsageError(cat(where, "training.trainable: found mixture with ", parts...));
    };
    if (reads_lags || c.model.sampled_forecasts)
      refuse(reads_lags ? cat("model.name ", c.model.name) : std::string("model.sampled_forecasts"),
             ", whose forecasts are samples; expected a model whose distribution is known at each step");
    if (c.model.candidates.empty() && !c.model.auto_candidates) refuse("no model.candidates; expected some, or auto");
    if (std::any_of(c.model.candidates.begin(), c.model.candidates.end(),
                    [](const auto& candidate) { return external_name(candidate).has_value(); }))
      refuse(
          "forecasts of other programs in model.candidates, which are not known of every window of the past; "
          "expected others");
    if (c.dataset.covariates)
      refuse("dataset.covariates.file ", *c.dataset.covariates,
             ", which the windows of the past are not told; not implemented: expected null");
    if (c.dataset.path.find(rank_in_path) != std::string::npos)
      refuse("dataset.path ", c.dataset.path,
             ", whose files several ranks may read; not implemented: expected one file");
  }
  if (c.privacy.enabled && c.optimizer.gradient_norm_bound)
    throw UsageError(cat(where, "optimizer.gradient_norm_bound: found ", *c.optimizer.gradient_norm_bound,
                         " in a private run, where privacy.clip_norm bounds every window's gradient; expected null"));
  if (c.privacy.enabled && c.optimizer.plateau_looks)
    throw UsageError(cat(where, "optimizer.plateau_looks: found ", *c.optimizer.plateau_looks,
                         " in a private run, where no step may depend on the training loss; expected null"));
  if (c.privacy.enabled && c.training.checkpoint == ExportedWeights::best)
    throw PrivacyError(cat(where,
                           "training.checkpoint: found best with privacy.enabled; weights chosen by losses without "
                           "noise are covered by no theorem: set training.checkpoint to last"));
}

}  // namespace

std::string read_yaml_text(const std::filesystem::path& file) {
  constexpr std::uintmax_t most_bytes = 4 << 20;
  std::error_code ignored;
  if (const auto bytes = std::filesystem::file_size(file, ignored); !ignored && bytes > most_bytes)
    throw UsageError(cat(file.string(), ": found ", bytes, " bytes; expected a file of YAML of at most ", most_bytes));
  std::string text;
  try {
    text = read_file(file);
  } catch (const DataError& error) { throw UsageError(error.what()); }
  if (const auto line = second_document(text); line > 0)
    throw UsageError(
        cat(file.string(), ":", line, ": found a second YAML document; expected one, as others would be ignored"));
  return text;
}

namespace {

/// A configuration, and the keys that were given for it.
struct GivenConfig {
  Config config;
  std::set<std::string> keys;
};

std::string place_of(const std::filesystem::path& file, const YAML::Node& node) {
  return cat(file.string(), ":", node.Mark().line + 1, ": ");
}

void read_keys(const std::filesystem::path& file, const std::string& prefix, const YAML::Node& items,
               GivenConfig& out) {
  const auto& table = option_table();
  for (const auto& item : items) {
    const auto key = cat(prefix, ".", item.first.Scalar());
    const auto* option = find_option(key);
    const auto inside = key + ".";
    if (option == nullptr && item.second.IsMap() &&
        std::any_of(table.begin(), table.end(), [&](const Option& o) { return o.key.starts_with(inside); })) {
      if (!out.keys.insert(inside).second)
        throw UsageError(cat(place_of(file, item.first), "duplicate key '", key, "'"));
      read_keys(file, key, item.second, out);
      continue;
    }
    if (key == retired_key) {
      refuse_but_for_zero(place_of(file, item.first), item.second);
      continue;
    }
    if (option == nullptr) unknown_key(place_of(file, item.first), key, nearest_name(key, known_keys()));
    if (!out.keys.insert(key).second) throw UsageError(cat(place_of(file, item.first), "duplicate key '", key, "'"));
    // An empty value has no position of its own; the key's line is the one to look at.
    assign(place_of(file, item.first), *option, item.second, out.config);
  }
}

void read_sections(const std::filesystem::path& file, const YAML::Node& root, GivenConfig& out) {
  if (!root.IsMap()) throw UsageError(cat(file.string(), ": found ", shown(root), "; expected sections of keys"));
  std::set<std::string> sections;
  for (const auto& entry : root) {
    const auto section = entry.first.Scalar();
    if (!sections.insert(section).second)
      throw UsageError(cat(place_of(file, entry.first), "duplicate key '", section, "'"));
    const auto& table = option_table();
    if (std::none_of(table.begin(), table.end(), [&](const Option& o) { return section_of(o.key) == section; }))
      unknown_key(place_of(file, entry.first), section, nearest_to_section(section));
    if (entry.second.IsNull()) continue;
    if (!entry.second.IsMap())
      throw UsageError(
          cat(place_of(file, entry.second), section, ": found ", shown(entry.second), "; expected a section of keys"));
    read_keys(file, section, entry.second, out);
  }
}

/// Takes "key.path=value" of `--set`.
void read_assignment(const std::string& assignment, GivenConfig& out) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos) throw UsageError(cat("--set ", assignment, ": expected key.path=value"));
  const auto key = assignment.substr(0, equals);
  assign_text("--set: ", "--set ", key, assignment.substr(equals + 1), out.config);
  out.keys.insert(key);
}

void settle_lags(Config& config) {
  if (!config.model.auto_lags) return;
  config.model.auto_lags = false;
  const auto* model = find_model(config.model.name);
  if (model != nullptr && model->reads_lags) config.model.lags = usual_lags(config.dataset.season_length);
  config.model.chosen_lags = !config.model.lags.empty();
}

}  // namespace

Config read_config(const std::filesystem::path& file, const std::vector<std::string>& assignments) {
  const auto text = read_yaml_text(file);
  GivenConfig given;
  try {
    read_sections(file, YAML::Load(text), given);
  } catch (const YAML::Exception& error) {
    throw UsageError(
        cat(file.string(), ":", error.mark.line + 1, ":", error.mark.column + 1, ": not YAML: ", error.msg));
  }
  for (const auto& assignment : assignments) read_assignment(assignment, given);
  for (const auto& option : option_table())
    if (option.required && !given.keys.contains(option.key))
      throw UsageError(cat(file.string(), ": ", option.key, ": not given; expected ", accepts(option.value)));
  auto& config = given.config;
  settle_lags(config);
  check_together(cat(file.string(), ": "), config);
  if (const auto& coefficients = config.privacy.noise_coefficients)
    config.privacy.noise_recursion =
        privacy::read_coefficients(find_file("privacy.noise.coefficients", *coefficients, file));
  return std::move(config);
}

Prior prior_of(const Config& config) {
  const auto season = config.dataset.season_length;
  const auto by_season = season >= 2 && season <= longest_season(config);
  const auto kind = config.model.prior.value_or(by_season ? PriorKind::seasonal_naive : PriorKind::last_value);
  return {kind, kind == PriorKind::seasonal_naive ? season : 1};
}

std::int64_t width_of(const Config& config) {
  if (config.model.width) return *config.model.width;
  const auto* rules = find_model(config.model.name);
  return config.model.prior != PriorKind::none && config.model.width_factor == 1 && rules != nullptr
             ? rules->width_with_prior
             : 0;
}

void check_setting(const std::string& where, const std::string& key, const std::string& value) {
  Config unused;
  assign_text(where, where, key, value, unused);
}

std::string config_text(const Config& config) {
  std::string out;
  std::string section;
  for (const auto& option : option_table()) {
    if (section_of(option.key) != section) {
      section = section_of(option.key);
      out += section + ":\n";
    }
    out += cat("  ", name_of(option.key), ": ", value_text(option.value, config), "\n");
  }
  return out;
}

namespace {

std::string default_text(const Option& option) {
  if (option.required) return "required";
  if (const auto* o = std::get_if<OptionalInteger>(&option.value)) return o->when_none;
  if (const auto* o = std::get_if<IntegerNullOrAuto>(&option.value)) return o->when_none;
  if (std::holds_alternative<OptionalText>(option.value)) return "null";
  return value_text(option.value, Config{});
}

}  // namespace

std::string options_reference() {
  std::string out =
      "# Configuration options\n\n"
      "Made from the option table by `tsdp-train --help-options markdown`; a test keeps this page equal to the table.\n"
      "Set them in the file given by `--config`, or on the command line by `--set section.name=value`.\n";
  std::string section;
  for (const auto& option : option_table()) {
    if (section_of(option.key) != section) {
      section = section_of(option.key);
      out += cat("\n## ", section, "\n\n| option | default | accepts | meaning |\n| --- | --- | --- | --- |\n");
    }
    out +=
        cat("| `", option.key, "` | ", default_text(option), " | ", accepts(option.value), " | ", option.doc, " |\n");
  }
  return out;
}

std::string options_help() {
  std::string out;
  for (const auto& option : option_table())
    out += cat("  ", option.key, " (", default_text(option), "): ", option.doc, "\n      accepts ",
               accepts(option.value), "\n");
  return out;
}

std::filesystem::path project_root() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  for (auto folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    for (const auto& root : {folder, folder / "share" / "tsdp"})
      if (std::filesystem::exists(root / "configs", ignored) && std::filesystem::exists(root / "data", ignored))
        return root;
  return {};
}

namespace {
/// The reason why a searched place has no file, if there is more to say than that nothing is there.
std::string unless_absent(const std::string& reason) {
  return reason == std::strerror(ENOENT) || reason == std::strerror(ENOTDIR) ? std::string() : cat(" (", reason, ")");
}
}  // namespace

std::filesystem::path find_file(const std::string& key, const std::string& path,
                                const std::filesystem::path& config_file, const std::string& hint) {
  const std::filesystem::path given(path);
  std::vector<std::filesystem::path> places = {given};
  if (given.is_relative()) {
    std::error_code ignored;
    const auto folder = config_file.parent_path();
    places.push_back(folder / given);
    if (const auto root = project_root(); !root.empty()) places.push_back(root / given);
    // A run names its data from its own folder or the project's root; a file of that name in the working directory is a
    // different one.
    if (config_file.filename() == "config.yaml" &&
        (std::filesystem::exists(folder / "privacy.json", ignored) ||
         std::filesystem::exists(folder / "private" / "checkpoints", ignored)))
      std::rotate(places.begin(), places.begin() + 1, places.end());
  }
  std::vector<std::string> looked;
  for (const auto& place : places) {
    const auto reason = why_no_file(place);
    if (reason.empty()) return place;
    const auto text = place.lexically_normal().string() + unless_absent(reason);
    if (std::find(looked.begin(), looked.end(), text) == looked.end()) looked.push_back(text);
  }
  throw DataError(cat(key, ": no file '", path, "'; looked for ", join(looked, ", "), hint));
}

namespace {

/// A file that shipped configurations name and that is not shipped: too large, or made by a command.
struct FileToGet {
  const char* file;
  const char* fetched_as;  ///< by scripts/fetch_data.sh; null: made
  const char* origin;  ///< where it is published, or the command that makes it, up to its --output
};
constexpr FileToGet files_to_get[] = {
    {"traffic.txt.gz", "traffic", "traffic/traffic.txt.gz of github.com/laiguokun/multivariate-time-series-data"},
    {"electricity.txt.gz", "electricity",
     "electricity/electricity.txt.gz of github.com/laiguokun/multivariate-time-series-data"},
    {"solar_10_minutes_dataset.tsf", "solar_10_minutes",
     "the file of solar_10_minutes_dataset.zip, zenodo.org/records/4656144, unpacked,"},
    {"lookalike_traffic.txt.gz", nullptr, "tsdp-data generate traffic-like --series 862 --length 17544 --seed 11"},
    {"lookalike_10k.txt.gz", nullptr, "tsdp-data generate traffic-like --series 10000 --length 400 --seed 5"},
};

/// A set that the source tree has and no installation: its terms are unknown (data/README.md).
struct FileOfUnknownTerms {
  const char* file;
  const char* made_by;  ///< makes series of the same form and shape; the name of what it writes comes last
};
constexpr FileOfUnknownTerms files_of_unknown_terms[] = {
    {"exchange_rate.txt.gz", "tsdp-data generate daily --series 8 --length 7588 --seed 1 --output"},
    {"gefcom2012_load.txt.gz", "tsdp-data generate hourly --series 20 --length 39414 --seed 1 --output"},
    {"m4_hourly.tsf.gz",
     "tsdp-data generate hourly --series 414 --length 1008 --seed 2 --output made.txt.gz && tsdp-data convert "
     "--frequency 1h --start 1970-01-01 made.txt.gz"},
    {"metr_la_week_10min.txt.gz", "tsdp-data generate 10_minutes --series 207 --length 1008 --seed 1 --output"},
};

/// What to do about a missing data file, in words; `root`: where an installed copy or the checkout has its data, if
/// anywhere.
std::string how_to_get(const std::filesystem::path& path, const std::filesystem::path& root) {
  const auto folder = (root.empty() ? std::filesystem::path("data") : root / "data").lexically_normal();
  const std::string another = "--set dataset.path=FILE takes another file (a run that is resumed needs its own)";
  for (const auto& known : files_to_get) {
    if (path.filename() != known.file) continue;
    if (!known.fetched_as)
      return cat("; make it: ", known.origin, " --output ", (folder / known.file).string(), "; or ", another);
    std::error_code ignored;
    const auto script = root / "scripts" / "fetch_data.sh";
    const bool has_script = !root.empty() && std::filesystem::exists(script, ignored);
    return cat("; get it: ",
               has_script ? cat(script.lexically_normal().string(), " ", known.fetched_as, ", or ") : std::string(),
               "put ", known.origin, " into ", folder.string(),
               "; without it, --config lookalike_traffic.yaml trains on made data, and ", another);
  }
  for (const auto& known : files_of_unknown_terms)
    if (path.filename() == known.file)
      return cat("; its terms are unknown, so it is in tsdp's sources alone: put data/", known.file, " of them into ",
                 folder.string(), ", or made series in its place: ", known.made_by, " ", (folder / known.file).string(),
                 "; or ", another);
  return cat("; ", another);
}

}  // namespace

std::string Config::Dataset::path_of(std::int64_t file) const {
  auto out = path;
  for (auto at = out.find(rank_in_path); at != std::string::npos; at = out.find(rank_in_path, at))
    out.replace(at, rank_in_path.size(), std::to_string(file));
  return out;
}

std::filesystem::path find_data_file(const std::string& path, const std::filesystem::path& config_file) {
  return find_file("dataset.path", path, config_file, how_to_get(path, project_root()));
}

bool is_data_file(const std::string& path, const std::filesystem::path& config_file) {
  try {
    static_cast<void>(find_data_file(path, config_file));
    return true;
  } catch (const DataError&) { return false; }
}

std::filesystem::path find_config_file(const std::filesystem::path& name, const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> places = {name};
  if (const auto root = project_root(); name.is_relative() && !root.empty())
    for (const auto& folder : folders) places.push_back(root / folder / name);
  std::vector<std::string> looked;
  for (const auto& place : places) {
    const auto reason = why_no_file(place);
    if (reason.empty()) return place;
    looked.push_back(place.string() + unless_absent(reason));
  }
  throw UsageError(cat("--config: no file '", name.string(), "'; looked for ", join(looked, ", ")));
}

}  // namespace tsdp
