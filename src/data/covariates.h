// Covariates: a table of what is known about every step besides the series. Reads it and matches it to the series.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// At most this many columns are given to a model.
inline constexpr std::size_t most_covariates = 100;

/// Reads a csv file with one row per step of `frequency`: time stamps without a zone in its first column, then one
/// column per covariate. `columns` names those that are wanted, in that order; if empty, all of them in the order of
/// the file. Throws DataError for a missing value and for what read_dataset refuses; UsageError, beginning with `key`,
/// for a column that is missing, and for more than most_covariates.
[[nodiscard]] Covariates read_covariates(const std::filesystem::path& file, const Frequency& frequency,
                                         const std::vector<std::string>& columns, const std::string& key);

/// The row of `covariates` that belongs to the first value of a series. It may lie before the first row or after the
/// last. None if the steps of the two do not meet.
[[nodiscard]] std::optional<std::int64_t> first_row_of(const Series& series, const Dataset& dataset);

/// A covariate that has a series' own values at all its steps, with that series' name: it would give away as public
/// what is protected. Series that do not change are not looked at.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> covariate_that_is_a_series(const Dataset& dataset);

/// Every step of every series and `beyond` steps after its end must have a row. Throws DataError that names the first
/// one that has none.
void require_covariates(const Dataset& dataset, std::int64_t beyond);

}  // namespace tsdp::data
