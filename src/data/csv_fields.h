// What the two forms of CSV share: the header, rows of fields, time stamps, values.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text_file.h"
#include "tsdp/data/dataset.h"
#include "tsdp/data/readers.h"

namespace tsdp::data::detail {

/// The roles of columns, and the names that tell them without being stated.
enum class Role {
  item,
  time,
  value
};
/// The first name of each is Nixtla's.
[[nodiscard]] const std::vector<std::string>& known_names(Role role);

/// Whether the header of this file has a column for each role, as the long form does. Throws DataError where it cannot be read.
[[nodiscard]] bool has_long_header(const std::filesystem::path& path);

/// The rows of a file of separated values under a header. The separator (comma, semicolon or tab) is the one that the header
/// has most of, or that a line `sep=;` before it names. Fields may stand in quotes, within which a quote is doubled and
/// separators are part of the field; a line break is not. Where the separator is no comma, numbers may have a decimal comma.
/// Throws DataError.
class CsvRows {
 public:
  /// Reads the header. `columns` and `row` say in errors what it and a row should hold.
  CsvRows(TextFile& file, const std::string& columns, std::string row);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// Place of the first column that is not pandas' index: 1 where the first name is empty or `Unnamed: 0` and another column
  /// is named as time stamps are, else 0.
  [[nodiscard]] std::size_t first() const { return first_; }
  /// Of the header.
  [[nodiscard]] std::int64_t header_line() const { return header_line_; }
  [[nodiscard]] bool has_commas() const { return separator_ == ','; }
  /// The place of the column `name`, if there is one. A name that is there twice is refused.
  [[nodiscard]] std::optional<std::size_t> place_of(std::string_view name) const;
  /// Throws DataError about the header.
  [[noreturn]] void fail_header(const std::string& expected) const;

  /// Goes to the next row; false at the end. Lines that are empty or hold separators alone may stand at the end only.
  bool next();
  [[nodiscard]] std::string_view line() const { return line_; }
  /// The fields of this row, as many as there are names; valid until the next call.
  const std::vector<std::string_view>& fields();
  [[noreturn]] void fail_count(std::size_t found) const;

  /// What stands in the column at this place.
  [[nodiscard]] TimeStamp time_stamp(std::size_t place, std::string_view field);
  /// The same for series of this frequency; refuses a time in UTC that would have to be in the local time of another place.
  [[nodiscard]] Moment moment(std::size_t place, std::string_view field, const Frequency& frequency);
  /// How the times so far were read, if they have a zone, for complaints about steps: " (…)".
  [[nodiscard]] std::string zone_hint(const Frequency& frequency) const;
  [[nodiscard]] double value(std::size_t place, std::string_view field) const;

 private:
  TextFile& file_;
  std::string row_is_;
  std::string header_;
  std::int64_t header_line_;
  std::vector<std::string> names_;
  char separator_ = ',';
  std::size_t first_ = 0;
  std::string_view line_;
  std::vector<std::string> decoded_;
  std::vector<std::string_view> fields_;
  std::optional<bool> zoned_;  // whether the times so far have a zone
};

/// Collects time stamps, at most ten thousand of them, to infer their frequency.
class FewTimeStamps {
 public:
  void add(const TimeStamp& stamp) { stamps_.push_back(stamp); }
  [[nodiscard]] bool full() const { return stamps_.size() >= 10'000; }
  [[nodiscard]] std::optional<Frequency> frequency() const;

 private:
  std::vector<TimeStamp> stamps_;
};

}  // namespace tsdp::data::detail
