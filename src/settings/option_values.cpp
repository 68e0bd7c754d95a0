// The values of options: read from YAML, written as YAML, and described.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>

#include "options.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::detail {
namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

std::string range_text(const IntRange& r) {
  return r.high == std::numeric_limits<std::int64_t>::max() ? cat("an integer of at least ", r.low)
                                                            : cat("an integer from ", r.low, " to ", r.high);
}

std::string range_text(const RealRange& r) {
  const std::string low = r.open_low ? cat("greater than ", r.low) : cat("of at least ", r.low);
  if (r.high >= 1e300) return cat("a number ", low);
  return cat("a number ", low, " and ", r.open_high ? "below " : "at most ", r.high);
}

}  // namespace

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

namespace {

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

}  // namespace

std::string shown(const YAML::Node& node) {
  if (node.IsNull()) return "null";
  if (node.IsScalar()) return cat(node.Tag() == "!" ? "the quoted text '" : "'", node.Scalar(), "'");
  if (!node.IsSequence()) return "a section";
  std::vector<std::string> items;
  for (const auto& item : node) items.push_back(item.IsScalar() ? item.Scalar() : "…");
  return items.size() > 8 ? cat("a list of ", items.size()) : cat("a list, [", join(items, ", "), "]");
}

void assign(const std::string& where, const Option& option, const YAML::Node& node, Config& config) {
  // config.yaml would name something else, as other bytes become a replacement character in it.
  if (node.IsScalar() && !is_utf8(node.Scalar()))
    throw UsageError(
        cat(where, option.key, ": found ", shown(node), ", which is not UTF-8; expected ", accepts(option.value)));
  if (!std::visit([&](const auto& value) { return store(value, node, config); }, option.value))
    throw UsageError(cat(where, option.key, ": found ", shown(node), "; expected ", accepts(option.value)));
}

std::string default_text(const Option& option) {
  if (option.required) return "required";
  if (const auto* o = std::get_if<OptionalInteger>(&option.value)) return o->when_none;
  if (const auto* o = std::get_if<IntegerNullOrAuto>(&option.value)) return o->when_none;
  if (std::holds_alternative<OptionalText>(option.value)) return "null";
  return value_text(option.value, Config{});
}

}  // namespace tsdp::detail
