// Covariates: a table of what is known of every step beside the series, read and held against them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// Columns that a model is told of, at most.
inline constexpr std::size_t most_covariates = 100;

/// Reads a csv file with time stamps in its first column and one column a covariate, without a zone, one row a step of `frequency`. `columns` are those that are
/// wanted, in that order; empty: all of them, as they stand. Throws DataError for a value that is missing and for what read_dataset refuses;
/// UsageError, beginning with `key`, for a column that is not there, and for more than most_covariates.
[[nodiscard]] Covariates read_covariates(const std::filesystem::path& file, const Frequency& frequency, const std::vector<std::string>& columns,
                                         const std::string& key);

/// The row of `covariates` that belongs to the first value of a series, which may lie before the first row or after the last; none where the steps
/// of the two do not meet.
[[nodiscard]] std::optional<std::int64_t> first_row_of(const Series& series, const Dataset& dataset);

/// A covariate that has a series' own values at all its steps, with that series' name: then what is protected would be given away as public. (Of series
/// that do not change nothing is said.)
[[nodiscard]] std::optional<std::pair<std::string, std::string>> covariate_that_is_a_series(const Dataset& dataset);

/// Every step of every series and `beyond` steps after its end must have a row. Throws DataError that names the first one that has none.
void require_covariates(const Dataset& dataset, std::int64_t beyond);

}  // namespace tsdp::data
