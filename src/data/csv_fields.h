// What the two forms of CSV share: fields in quotes, time stamps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text_file.h"
#include "tsdp/data/dataset.h"

namespace tsdp::data::detail {

/// The fields of a line. A field may stand in quotes, a quote within them is doubled, and commas are then part of the
/// field; a line break is not. `expected` says in an error what a field is.
[[nodiscard]] std::vector<std::string> csv_fields(const TextFile& file, std::string_view line, const char* expected);

/// The moment in field `column`.
[[nodiscard]] Moment time_stamp(const TextFile& file, std::int64_t column, std::string_view text);

/// Whether these are the names of columns of the long form: unique_id, ds and y are among them.
[[nodiscard]] bool is_long_header(const std::vector<std::string>& names);

}  // namespace tsdp::data::detail
