// Whose series are: a table of names and owners.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// The owner of each series of `dataset`, numbered from 0 in the order of their first series, from a csv file (a
/// csv_long file of series, too) with a row or more for each of them. Their names are in its column `item`, or, if that
/// is empty, in the one of a usual name or, in a file of two columns, in the other one; their owners in `column`. Rows
/// of other names are not used. Throws DataError for a series without an owner or with two, and where the column of
/// names is not known; UsageError, beginning with `key`, if there is no such column of owners.
[[nodiscard]] std::vector<std::int64_t> read_owners(const std::filesystem::path& file, const Dataset& dataset,
                                                    const std::string& item, const std::string& column,
                                                    const std::string& key);

}  // namespace tsdp::data
