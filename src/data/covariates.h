// Covariates: tables of what is known about every step besides the series. Reads them and matches them to the series.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tsdp/data/dataset.h"
#include "tsdp/data/readers.h"

namespace tsdp::data {

/// At most this many columns are given to a model.
inline constexpr std::size_t most_covariates = 100;

/// Reads a csv file of one of three forms, by its header:
///   time stamps in the first column: the same for all series;
///   a column of series' names and one of time stamps: rows of each series;
///   a column of series' names alone: one row a series, which holds for all of its steps.
/// Names are in the column `stated.item` or in one of a usual name. All further columns are covariates, with a row for
/// every step of the data set's frequency and no missing value. A column of text, which a file with series' names may
/// have, is read as one covariate `column=category` for each category: 1 where the row has it, else 0. `columns` names
/// those that are wanted, in that order (a column of text, or one of its categories); if empty, all of them in the
/// order of the file. Rows of series that `dataset` has not are not read. Throws DataError for a missing value, for a
/// series without a row and for what read_dataset refuses; UsageError, beginning with `key`, for a column that is
/// missing, and for more than most_covariates.
[[nodiscard]] Covariates read_covariates(const std::filesystem::path& file, const Dataset& dataset,
                                         const std::vector<std::string>& columns, const ColumnNames& stated,
                                         const std::string& key);

/// Whether the header of such a file has a column of series' names. Throws DataError where it cannot be read.
[[nodiscard]] bool are_of_each_series(const std::filesystem::path& file, const ColumnNames& stated);

/// The covariates of the steps of one series.
class KnownSteps {
 public:
  /// Requires a data set with covariates.
  KnownSteps(const Dataset& dataset, std::size_t series);

  /// Whether rows and steps are at the same times.
  [[nodiscard]] bool meets() const noexcept { return first_.has_value(); }
  /// The row of the series' first step, which may lie before the first row or after the last; requires meets().
  [[nodiscard]] std::int64_t first() const { return first_.value(); }
  /// The K covariates of a step, counted from the first one; none where the file has no row. Requires meets().
  [[nodiscard]] std::span<const float> at(std::int64_t place) const;

 private:
  const Covariates::Table& table_;
  std::size_t width_;
  std::optional<std::int64_t> first_;
};

/// A covariate, of whichever series, that has a series' values wherever it has rows for them, with that series' name:
/// public, it would give away what is protected, and in any case what is to be forecast. Rows for less than half of the
/// values, and values that do not change there, tell nothing and are skipped.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> covariate_that_is_a_series(const Dataset& dataset);

/// Every step of every series and `beyond` steps after its end must have a row. Throws DataError that names the first
/// one that has none.
void require_covariates(const Dataset& dataset, std::int64_t beyond);

}  // namespace tsdp::data
