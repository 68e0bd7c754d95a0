#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/base/text.h"
#include "values.h"

namespace tsdp::data::detail {
namespace {

using Json = nlohmann::json;

constexpr const char* what_a_line_is = "one JSON object a line, with \"start\" and \"target\"";
constexpr const char* what_a_value_is = "a number, or null or \"NaN\" for missing";

/// Takes what is needed from the events of one line; all else is skipped without being stored. Throws DataError.
class EntryReader final : public nlohmann::json_sax<Json> {
 public:
  EntryReader(const TextFile& file, bool exact, Series& series) : file_(file), exact_(exact), series_(series) {}

  std::optional<TimeStamp> start;
  bool has_id = false;
  bool has_target = false;

  bool null() override { return in_target() ? take(std::numeric_limits<double>::quiet_NaN()) : other("null"); }
  bool boolean(bool value) override { return other(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value), std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& text) override { return number(value, text); }
  bool string(string_t& text) override {
    if (in_target() && is_nan(text)) return take(std::numeric_limits<double>::quiet_NaN());
    if (depth_ != 1) return other(cat("the text ", in_quotes(text)));
    if (key_ == "start") {
      start = parse_time_stamp(text);
      if (!start) fail(cat("found the start ", in_quotes(text), "; expected a moment such as \"2015-01-31 13:00:00\""));
    } else if (key_ == "item_id") {
      set_id(text);
    } else {
      return other(cat("the text ", in_quotes(text)));
    }
    return true;
  }
  bool binary(binary_t&) override { return other("binary data"); }

  bool start_object(std::size_t) override {
    if (depth_ > 0) other("an object");
    ++depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    if ((name == "start" && start) || (name == "item_id" && has_id) || (name == "target" && has_target))
      fail(cat("found the key ", in_quotes(name), " again; expected it once"));
    key_ = name;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 1 && key_ == "target") {
      has_target = in_array_ = true;
    } else {
      other("a list");
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    if (depth_ == 1) in_array_ = false;
    return true;
  }
  bool parse_error(std::size_t, const std::string& token, const nlohmann::detail::exception& error) override {
    constexpr int out_of_range = 406;
    if (error.id == out_of_range) return number(std::numeric_limits<double>::infinity(), token);
    fail(cat("found broken JSON", token.empty() ? std::string() : cat(" near ", in_quotes(token)), "; expected ",
             what_a_line_is));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { file_.fail_line(file_.line(), what); }
  [[nodiscard]] bool in_target() const { return in_array_ && depth_ == 2; }
  bool take(double value) {
    append(series_, value, exact_);
    return true;
  }
  void set_id(const std::string& id) {
    series_.id = id;
    has_id = true;
  }
  bool number(double value, const std::string& text) {
    if (depth_ == 1 && key_ == "item_id") {
      set_id(text);
      return true;
    }
    if (!in_target()) return other(cat("the number ", in_quotes(text)));
    if (std::abs(value) >= beyond_single)
      fail(cat("found ", in_quotes(text), " as value ", series_.values.size() + 1,
               " of \"target\"; expected a number of magnitude at most 3.4e38, or null or \"NaN\" for missing"));
    return take(value);
  }
  /// Refuses this in places that are read, and skips it anywhere else.
  bool other(const std::string& found) const {
    if (depth_ == 0) fail(cat("found ", found, "; expected ", what_a_line_is));
    if (in_target())
      fail(cat("found ", found, " as value ", series_.values.size() + 1, " of \"target\"; expected ", what_a_value_is));
    if (depth_ != 1) return true;
    if (key_ == "target") fail(cat("found ", found, " as \"target\"; expected a list of numbers"));
    if (key_ == "start") fail(cat("found ", found, " as \"start\"; expected a moment such as \"2015-01-31 13:00:00\""));
    if (key_ == "item_id") fail(cat("found ", found, " as \"item_id\"; expected text or a number"));
    return true;
  }
  const TextFile& file_;
  bool exact_;
  Series& series_;
  std::string key_;
  int depth_ = 0;
  bool in_array_ = false;
};

/// Python writes missing values as a bare NaN, which is not JSON. Puts null in its place, except in texts.
std::string_view without_bare_nan(std::string_view line, std::string& buffer) {
  constexpr std::string_view nan = "NaN";
  if (line.find(nan) == std::string_view::npos) return line;
  buffer.clear();
  bool in_text = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!in_text && line.substr(i, nan.size()) == nan) {
      buffer += "null";
      i += nan.size() - 1;
      continue;
    }
    buffer += line[i];
    if (line[i] == '"') in_text = !in_text;
    if (in_text && line[i] == '\\' && i + 1 < line.size()) buffer += line[++i];
  }
  return buffer;
}

}  // namespace

Dataset read_jsonl(TextFile& file, const ReadOptions& options) {
  Dataset dataset;
  dataset.frequency = options.frequency;
  std::string_view line;
  std::string buffer;
  std::optional<bool> zoned;
  while (file.next(line)) {
    if (trimmed(line).empty()) continue;
    auto& series = dataset.series.emplace_back();
    EntryReader entry(file, options.exact, series);
    const auto text = without_bare_nan(line, buffer);
    static_cast<void>(Json::sax_parse(text.begin(), text.end(), &entry));
    if (!entry.has_id) series.id = std::to_string(dataset.series.size() - 1);
    if (!entry.has_target)
      file.fail_line(file.line(), cat("found no \"target\" in ", in_quotes(text), "; expected ", what_a_line_is));
    if (!entry.start && !options.start)
      file.fail_line(file.line(), cat("found no \"start\" in ", in_quotes(text), "; expected ", what_a_line_is));
    if (entry.start)
      if (const auto why = why_no_start(*entry.start, zoned, options.frequency); !why.empty())
        file.fail_line(file.line(), why);
    series.start = entry.start ? entry.start->at(options.frequency) : *options.start;
    if (!cut_missing_ends(series, options.frequency))
      file.fail_line(file.line(), cat("found no value in series ", in_quotes(series.id),
                                      "; expected at least one that is not missing"));
  }
  if (dataset.series.empty()) file.fail(cat("found an empty file; expected ", what_a_line_is));
  return dataset;
}

}  // namespace tsdp::data::detail
