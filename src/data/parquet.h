// Tables of Parquet files as text, read by Arrow's own library. Only in builds that have it (TSDP_PARQUET).
#pragma once

#include <filesystem>
#include <string>

namespace tsdp::data::detail {

/// The rows of a Parquet file as CSV: a header, then one line per row. Missing values are empty, floating-point numbers
/// are the shortest decimals that read back, times are ISO (those with a zone in UTC). A column of times comes first,
/// as pandas writes an index last. Throws DataError for a file that cannot be read or whose checksums do not match. A
/// value that is not a number, text or time is written as its type, so that readers refuse it where they read it.
[[nodiscard]] std::string parquet_as_csv(const std::filesystem::path& file);

}  // namespace tsdp::data::detail
