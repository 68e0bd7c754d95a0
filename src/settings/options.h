// The option table: one row per option.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "tsdp/settings/config.h"

namespace YAML {
class Node;
}

namespace tsdp::detail {

/// A legal range; `open_low` excludes the lower end.
struct RealRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false;
  bool open_high = false;
};
struct IntRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

struct Text {
  std::function<std::string&(Config&)> at;
};
struct OptionalText {
  std::function<std::optional<std::string>&(Config&)> at;
};
struct Choice {
  std::function<std::string(const Config&)> get;
  std::function<void(Config&, const std::string&)> set;  // with one of the choices
  std::vector<std::string> choices;
};
struct Integer {
  std::function<std::int64_t&(Config&)> at;
  IntRange range;
};
/// An integer, or `null` or `auto` for "none"; `when_none` says what that means.
struct OptionalInteger {
  std::function<std::optional<std::int64_t>&(Config&)> at;
  IntRange range;
  std::string when_none;
  std::string none = "null";
};
/// An integer, `null` for "none", or `auto`, which is kept apart from both.
struct IntegerNullOrAuto {
  std::function<std::optional<std::int64_t>&(Config&)> at;
  std::function<bool&(Config&)> is_auto;
  IntRange range;
  std::string when_none;
};
/// A list of integers, or `auto`, which is kept apart.
struct IntegerList {
  std::function<std::vector<std::int64_t>&(Config&)> at;
  std::function<bool&(Config&)> is_auto;
  IntRange range;
  std::size_t most;
};
/// A list of names; or `auto`, which is kept apart, where there is an `is_auto`. `or_one`: one name may stand without
/// brackets, and an empty list is `null`.
struct TextList {
  std::function<std::vector<std::string>&(Config&)> at;
  std::size_t most;
  std::function<bool&(Config&)> is_auto = {};
  bool or_one = false;
};
struct Real {
  std::function<double&(Config&)> at;
  RealRange range;
};
/// A number or one word that stands for "none" (`null`, `auto`).
struct OptionalReal {
  std::function<std::optional<double>&(Config&)> at;
  RealRange range;
  std::string none;
};
struct Flag {
  std::function<bool&(Config&)> at;
};

using Value = std::variant<Text, OptionalText, Choice, Integer, OptionalInteger, IntegerNullOrAuto, IntegerList,
                           TextList, Real, OptionalReal, Flag>;

struct Option {
  std::string key;  // "section.name"
  bool required;
  Value value;
  std::string doc;
};

/// All options, section by section, in the order of the reference page.
[[nodiscard]] const std::vector<Option>& option_table();

/// What values an option accepts, in words.
[[nodiscard]] std::string accepts(const Value& value);

/// What an option is where nobody gives it, in words.
[[nodiscard]] std::string default_text(const Option& option);

/// The YAML text of an option's value in `config`.
[[nodiscard]] std::string value_text(const Value& value, const Config& config);

/// What stands in `node`, for messages.
[[nodiscard]] std::string shown(const YAML::Node& node);

/// Stores `node` as the option's value in `config`. Throws UsageError, begun with `where`, for another type or range.
void assign(const std::string& where, const Option& option, const YAML::Node& node, Config& config);

/// Throws UsageError or PrivacyError, begun with `where`, for settings that contradict each other.
void check_together(const std::string& where, const Config& config);

/// Throws UsageError, begun with `where`, where the mixture's numbers cannot be what is trained.
void check_trained_mixture(const std::string& where, const Config& config);

/// The longest season that the model sees as a whole. A context that is not settled yet will hold any.
[[nodiscard]] std::int64_t longest_season(const Config& config);

}  // namespace tsdp::detail
