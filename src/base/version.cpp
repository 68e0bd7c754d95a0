#include "base/version.h"

#include "version_generated.h"

namespace tsdp {

const char* version() { return TSDP_VERSION_TEXT; }

}  // namespace tsdp
