// Readers of files with time series. All throw DataError with `file:line:column: found …; expected …`; the column
// counts fields from 1. (`file:line: found …` in JSON Lines and `file: found …` where no line is at fault; UsageError
// if a start is needed and not given.)
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

enum class Format { lstnet, tsf, csv, csv_long, jsonl };

/// "lstnet", "tsf", "csv", "csv_long", "jsonl".
[[nodiscard]] const char* name(Format format);
/// All of them.
[[nodiscard]] std::vector<std::string> format_names();
/// The format of that name. Throws UsageError.
[[nodiscard]] Format format_named(std::string_view text);
/// The format that the ending of a name stands for, whether or not .gz follows: .txt lstnet, .tsf tsf, .csv csv,
/// .jsonl and .json jsonl.
[[nodiscard]] std::optional<Format> format_by_ending(const std::filesystem::path& path);
/// The same for a file that is there: a .csv file whose header has the columns unique_id, ds and y is csv_long. Throws
/// DataError if the header of a .csv file cannot be read.
[[nodiscard]] std::optional<Format> format_of_file(const std::filesystem::path& path);

/// What a file itself does not say.
struct ReadOptions {
  Format format = Format::lstnet;
  Frequency frequency;          ///< of the series; a tsf file's own @frequency must agree
  std::optional<Moment> start;  ///< of the first row; required for lstnet, ignored where the file has time stamps
  bool exact = false;           ///< fill Series::exact, too
};

/// Reads `path` (plain or gzip, told by content, not by name).
///
/// lstnet: no header, one row a time step, comma-separated columns, one series a column. csv: a header, time stamps in
/// the first column at the stated frequency without gaps, one series a further column, named by the header. csv_long:
/// a header with the columns unique_id, ds (time stamp) and y in any order, one row a value; rows may stand in any
/// order, steps without a row are missing values, series come in the order in which they first appear, other columns
/// are ignored with a warning. tsf: the Monash form (papers and GluonTS): header keys, `?` for missing, per-series
/// starts and lengths. jsonl: one JSON object a line with "start", "target" (numbers, null or "NaN") and, if it has a
/// name, "item_id"; other keys are ignored. Missing values: empty, `nan`, `NA`, `?`. Leading and trailing missing
/// values of a series are cut off. Anything else that is not a finite number is an error, as are rows with another
/// number of columns.
[[nodiscard]] Dataset read_dataset(const std::filesystem::path& path, const ReadOptions& options);

/// The @frequency of a tsf file, if its header has one. Throws DataError.
[[nodiscard]] std::optional<Frequency> tsf_frequency(const std::filesystem::path& path);

}  // namespace tsdp::data
