#include "tsdp/settings/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "options.h"
#include "privacy/matrix/correlated_noise.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp {
namespace {

using namespace detail;

std::string section_of(const std::string& key) { return key.substr(0, key.find('.')); }
std::string name_of(const std::string& key) { return key.substr(key.find('.') + 1); }

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

/// What model.lags `auto` means: the last steps, and the same step of the season before with those next to it; for
/// hours the same on each day of a week, as in the shipped weights.
std::vector<std::int64_t> usual_lags(std::int64_t season) {
  std::set<std::int64_t> lags{1, 2, 3, 4, 5, 6, 7};
  for (std::int64_t k = 1; season >= 2 && k <= (season == 24 ? 7 : 1); ++k)
    lags.insert({k * season - 1, k * season, k * season + 1});
  return {lags.begin(), lags.end()};
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
        privacy::read_coefficients(find_copied_file("privacy.noise.coefficients", *coefficients, file));
  return std::move(config);
}

std::int64_t detail::longest_season(const Config& c) {
  if (!c.model.lags.empty()) return *std::max_element(c.model.lags.begin(), c.model.lags.end());
  return c.model.context_length.value_or(std::numeric_limits<std::int64_t>::max());
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

}  // namespace tsdp
