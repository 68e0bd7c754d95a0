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

/// The roles of columns; their usual names tell them if nothing is stated.
enum class Role {
  item,
  time,
  value
};
/// The first name of each is Nixtla's.
[[nodiscard]] const std::vector<std::string>& known_names(Role role);

/// Whether a field of text says that nothing is known, as tables write it: empty, NA, nan, null, …
[[nodiscard]] bool says_nothing(std::string_view field);
/// What a time of covariates is expected to be. Series may be in UTC or not; covariates in UTC would be shifted against
/// those that are not.
inline constexpr const char* clock_of_covariates =
    "expected times without one, in the clock of the series (where theirs have a zone: UTC, and local time for steps "
    "of "
    "a day or longer)";

/// Whether the header of this file has a column for each role, as the long form does. Throws DataError where it cannot
/// be read.
[[nodiscard]] bool has_long_header(const std::filesystem::path& path);

/// The rows of a file of separated values under a header. The separator (comma, semicolon or tab) is the one that
/// occurs most often in the header, or the character (not a quote) that a line `sep=;` before it names. Fields may be
/// in quotes; a quote within them is doubled, and separators are part of the field, but line breaks are not. If the
/// separator is not a comma, numbers may have a decimal comma: all of them in the file, or none. Empty lines above the
/// header are skipped. Throws DataError.
class CsvRows {
 public:
  /// Reads the header. `columns` and `row` say in errors what it and a row should hold; `stated` says what the ways to
  /// state the form are called, and `wide` whether columns are series.
  CsvRows(TextFile& file, const std::string& columns, std::string row, const FormNames& stated = {}, bool wide = false);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// Place of the first column that is not pandas' index: 1 if the first name is empty or `Unnamed: 0` and another
  /// column has a usual name of time stamps, else 0.
  [[nodiscard]] std::size_t first() const { return first_; }
  /// The line of the header.
  [[nodiscard]] std::int64_t header_line() const { return header_line_; }
  [[nodiscard]] bool has_commas() const { return separator_ == ','; }
  /// Whether the header holds times (or, if `numbered`, names with a number that goes up by one), so that each row is a
  /// series.
  [[nodiscard]] bool lies_on_its_side(bool numbered) const;
  /// The place of the column `name`, if there is one. A name that occurs twice is refused.
  [[nodiscard]] std::optional<std::size_t> place_of(std::string_view name) const;
  /// Throws DataError about the header.
  [[noreturn]] void fail_header(const std::string& expected) const;

  /// Goes to the next row; false at the end. Lines that are empty or hold only separators may stand at the end only.
  bool next();
  [[nodiscard]] std::string_view line() const { return line_; }
  /// The fields of this row, as many as there are names; valid until the next call.
  const std::vector<std::string_view>& fields();
  [[noreturn]] void fail_count(std::size_t found) const;
  /// Throws DataError about the value in the column at this place; for a column of names, it says how to read them.
  [[noreturn]] void fail_value(std::size_t place, std::string_view field, const char* accepted) const;
  /// To be called after the last row: refuses numbers if the whole file does not tell whether their point or comma is
  /// decimal.
  void check_numbers() const;

  /// The time stamp in the column at this place.
  [[nodiscard]] TimeStamp time_stamp(std::size_t place, std::string_view field);
  /// The same for series of this frequency; refuses a time in UTC that would have to be in the local time of another
  /// place.
  [[nodiscard]] Moment moment(std::size_t place, std::string_view field, const Frequency& frequency);
  /// How the times so far were read, if they have a zone, for errors about steps: " (…)".
  [[nodiscard]] std::string zone_hint(const Frequency& frequency) const;
  /// As parse_field, but a number may have a decimal comma where the file's separator is none.
  [[nodiscard]] const char* parse(std::string_view field, double& value) const;
  [[nodiscard]] double value(std::size_t place, std::string_view field);
  /// To be called for each number that was parsed without value(): notes its point or comma, for check_numbers().
  void note_mark(std::size_t place, std::string_view field, double value);

 private:
  /// Where a number with a point or a comma was first seen.
  struct Seen {
    std::string text;
    std::int64_t line = 0;
    std::size_t place = 0;
  };
  /// What may be wrong with the form as a whole, if a row has no time: "; …".
  [[nodiscard]] std::string hint_of_first_row(std::size_t place, std::string_view field) const;

  TextFile& file_;
  FormNames stated_;
  bool wide_;
  std::int64_t rows_ = 0;  // so far
  std::optional<Seen> marked_;
  char mark_ = 0;  // its mark: a point or a comma
  bool may_be_thousands_ = true;  // whether all marked numbers look like 1.234, and all others are below 1000
  bool has_unmarked_ = false;  // whether there are numbers without a mark
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

/// Collects time stamps of series, at most ten thousand of each and two million in all, to infer their frequency.
class FewTimeStamps {
 public:
  void add(std::size_t series, const TimeStamp& stamp);
  [[nodiscard]] bool full() const { return count_ >= 2'000'000; }
  [[nodiscard]] std::optional<Frequency> frequency() const;

 private:
  std::vector<std::vector<TimeStamp>> stamps_;
  std::size_t count_ = 0;
};

/// Refuses a stated frequency that is too fine for these moments, which increase in each series; with gaps: missing,
/// warns.
void check_stated_step(const TextFile& file, const ReadOptions& options,
                       const std::vector<std::vector<Moment>>& series);
/// For errors about a time on no step: says that the step was inferred, if it was, and what states another: " (…)".
[[nodiscard]] std::string inferred_hint(const ReadOptions& options);

}  // namespace tsdp::data::detail
