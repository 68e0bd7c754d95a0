#pragma once

namespace tsdp {

/// Version of the library and programs, such as "0.1.0".
[[nodiscard]] const char* version();

}  // namespace tsdp
