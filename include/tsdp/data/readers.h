// Readers of files with time series. All throw DataError with `file:line:column: found …; expected …`; the column
// counts fields from 1. In JSON Lines it is `file:line: found …`, and `file: found …` where no line is at fault. A
// start that is needed and not given is a UsageError.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tsdp/base/names.h"
#include "tsdp/data/dataset.h"

namespace tsdp::data {

enum class Format {
  lstnet,
  tsf,
  csv,
  csv_long,
  jsonl
};

/// Whether this build reads Parquet files, as tables of the formats csv and csv_long (CMake's option TSDP_PARQUET).
[[nodiscard]] bool reads_parquet();

/// "lstnet", "tsf", "csv", "csv_long", "jsonl".
[[nodiscard]] const char* name(Format format);
/// The names of all formats.
[[nodiscard]] std::vector<std::string> format_names();
/// The format of that name. Throws UsageError.
[[nodiscard]] Format format_named(std::string_view text);
/// The format that the ending of a name stands for, whether or not .gz follows: .txt lstnet, .tsf tsf, .csv csv, .jsonl
/// and .json jsonl; .parquet csv, if it is read.
[[nodiscard]] std::optional<Format> format_by_ending(const std::filesystem::path& path);
/// The same for an existing file: a .csv file whose header has columns for names, times and values is csv_long. Throws
/// DataError if the header of a .csv file cannot be read, and if a file without such an ending is of a known kind that
/// is not read (Parquet, workbooks).
[[nodiscard]] std::optional<Format> format_of_file(const std::filesystem::path& path);

/// How several values of one series at one time are resolved: an error, the last of them in the file, or their mean.
enum class Duplicates {
  error,
  last,
  mean
};
constexpr Names<Duplicates, 3> names_of(Duplicates) {
  return {{{Duplicates::error, "error"}, {Duplicates::last, "last"}, {Duplicates::mean, "mean"}}};
}
/// How steps of a series without a row, between others that have one, are treated: as an error, or as missing values.
enum class Gaps {
  error,
  missing
};
constexpr Names<Gaps, 2> names_of(Gaps) { return {{{Gaps::error, "error"}, {Gaps::missing, "missing"}}}; }

/// Most variables that a series may have.
inline constexpr std::size_t most_variables = 100;

/// Names of columns of csv and csv_long files; empty: by their usual names (docs/data.md).
struct ColumnNames {
  std::string item, time;
  std::vector<std::string> values = {};  ///< several, all different: the variables of each series
  std::string owner = {};  ///< of csv_long, and read by read_owners alone
};

/// The names that error messages use for the ways to state a form: options, or `config.yaml: dataset.format` and so on.
struct FormNames {
  std::string format = "--format", frequency = "--frequency", start = "--start", columns = "--columns",
              duplicates = "--duplicates", gaps = "--gaps";

  /// The name for a column: "--columns time=NAME", or `config.yaml: dataset.columns.time`.
  [[nodiscard]] std::string column(std::string_view role) const;
};

/// What a file itself does not say.
struct ReadOptions {
  Format format = Format::lstnet;
  Frequency frequency;  ///< of the series; a tsf file's own `@frequency` must agree
  std::optional<Moment> start;  ///< of the first row; required for lstnet, ignored where the file has time stamps
  bool exact = false;  ///< fill Series::exact, too
  ColumnNames columns = {};  ///< of csv (time alone) and csv_long
  Duplicates duplicates = Duplicates::error;  ///< of csv and csv_long
  std::optional<Gaps> gaps = std::nullopt;  ///< of csv and csv_long; none: an error in csv, missing in csv_long
  bool covariates =
      false;  ///< of csv: for read_covariates, where times have no zone and every step has a row of its own
  bool inferred = false;  ///< the frequency is that of frequency_of_file
  FormNames names = {};  ///< for error messages
};

/// Reads `path` (plain or gzip, recognised by content, not by name).
///
/// lstnet: no header, one row per time step, comma-separated columns, one series per column. csv: a header, time stamps
/// in the first column at the stated frequency, one series per further column, named by the header. csv_long: a header
/// with one column each for names, time stamps and values in any order, one row per value; series come in the order in
/// which they first appear, other columns are ignored with a warning; without a column of names there is one series.
/// Where several columns of values are named, each series has as many variables (Dataset::variables), and each entry
/// the name NAME/COLUMN.
/// The rows of both may be in any order. A frequency that is too fine for the times (coarser_than) is refused; with
/// gaps: missing, it only causes a warning. Warns of values that single precision cannot tell apart. tsf: the Monash
/// form (papers and GluonTS): header keys, `?` for missing, per-series starts and lengths. jsonl: one JSON object per
/// line with "start", "target" (numbers, null or "NaN") and, if it has a name, "item_id"; other keys are ignored.
/// Missing values: empty, `nan`, `NA`, `?`. Leading and trailing missing values of a series are cut off. Anything else
/// that is not a finite number is an error, as are rows with a different number of columns.
[[nodiscard]] Dataset read_dataset(const std::filesystem::path& path, const ReadOptions& options);

/// The frequency that the file states, if any: the `@frequency` of a tsf file's header; for csv and csv_long, what
/// infer_frequency finds in the time stamps of all series (the first ten thousand of each, the first two million of
/// all). options.frequency is not used.
/// Throws DataError.
[[nodiscard]] std::optional<Frequency> frequency_of_file(const std::filesystem::path& path, const ReadOptions& options);

}  // namespace tsdp::data
