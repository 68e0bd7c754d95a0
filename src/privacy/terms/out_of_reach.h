// Where numbers cannot be computed as finely as they are asked for.
#pragma once

#include "tsdp/base/error.h"

namespace tsdp::privacy {

/// A grid or a transform that would be too large, or losses that no double holds. It steers the search for grids; a
/// caller who sees it has asked for what cannot be certified, which is a PrivacyError.
class OutOfReach : public PrivacyError {
 public:
  using PrivacyError::PrivacyError;
};

}  // namespace tsdp::privacy
