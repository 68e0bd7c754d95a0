// How a user states the form of a file with series: by options of a program or by keys of a configuration.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tsdp/data/readers.h"

namespace tsdp::data {

/// The form as written; an empty text states nothing, nor does `auto` as format or frequency.
struct StatedForm {
  std::string format, frequency, start;
  ColumnNames columns = {};
  std::string duplicates, gaps;
};

/// Reads `item=NAME,time=NAME,value=NAME`, of which any part may be left out and value may be there several times.
/// Throws UsageError that begins with `name`.
[[nodiscard]] ColumnNames parse_columns(const std::string& text, const std::string& name = "--columns");

/// The format that `stated` names, or else `by_name`, the one that the name of `file` indicates (format_by_ending,
/// format_of_file). Throws UsageError, which begins with `name` or with the file.
[[nodiscard]] Format stated_format(const std::filesystem::path& file, const std::string& stated,
                                   const std::optional<Format>& by_name, const std::string& name);

/// How to read `file`. A frequency that is not stated is `usual`, if given, or else taken from the file
/// (frequency_of_file).
/// Throws UsageError if something is not understood or is missing (lstnet files need a start), DataError if the head of
/// the file has to be read and cannot be.
[[nodiscard]] ReadOptions read_options_of(const std::filesystem::path& file, const StatedForm& stated,
                                          const FormNames& names = {},
                                          const std::optional<Frequency>& usual = std::nullopt);

}  // namespace tsdp::data
