// Text as Markdown holds it.
#pragma once

#include <string>
#include <string_view>

namespace tsdp {

/// `text` as one cell of a table: on one line, without an end of the cell.
[[nodiscard]] std::string markdown_cell(std::string_view text);

}  // namespace tsdp
