// The naive forecast that a model may begin as.
#pragma once

#include <cstdint>

#include "tsdp/base/names.h"

namespace tsdp {

/// A naive forecast to which a model learns the difference; none: the model alone, as in GluonTS.
enum class PriorKind {
  none,
  seasonal_naive,
  last_value
};
constexpr Names<PriorKind, 3> names_of(PriorKind) {
  return {{{PriorKind::none, "none"},
           {PriorKind::seasonal_naive, "seasonal_naive"},
           {PriorKind::last_value, "last_value"}}};
}
struct Prior {
  PriorKind kind = PriorKind::none;
  std::int64_t season = 1;  ///< of seasonal_naive, in steps

  bool operator==(const Prior&) const = default;
};

}  // namespace tsdp
