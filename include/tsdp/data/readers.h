// Readers of files with time series. All throw DataError with `file:line:column: found …; expected …`; the column
// counts fields from 1. (`file: found …` where no line is at fault; UsageError if a start is needed and not given.)
#pragma once

#include <filesystem>
#include <optional>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

enum class Format { lstnet, tsf, csv };

/// What a file itself does not say.
struct ReadOptions {
  Format format = Format::lstnet;
  Frequency frequency;          ///< of the series; a tsf file's own @frequency must agree
  std::optional<Moment> start;  ///< of the first row; required for lstnet, ignored where the file has time stamps
};

/// Reads `path` (plain or gzip, told by content, not by name).
///
/// lstnet: no header, one row a time step, comma-separated columns, one series a column. csv: a header, time stamps in
/// the first column at the stated frequency without gaps, one series a further column, named by the header. tsf: the
/// Monash form (papers and GluonTS): header keys, `?` for missing, per-series starts and lengths.
/// Missing values: empty, `nan`, `NA`, `?`. Leading and trailing missing values of a series are cut off.
/// Anything else that is not a finite number is an error, as are rows with another number of columns.
[[nodiscard]] Dataset read_dataset(const std::filesystem::path& path, const ReadOptions& options);

}  // namespace tsdp::data
