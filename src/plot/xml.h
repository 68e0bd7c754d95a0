// Text as XML holds it.
#pragma once

#include <string>
#include <string_view>

namespace tsdp {

/// `text` for use in XML content and attributes; what XML 1.0 cannot hold (control characters, broken UTF-8) becomes �.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace tsdp
