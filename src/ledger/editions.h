// The formats of ledgers, and the document that each of them makes of the same terms.
#pragma once

#include <nlohmann/json.hpp>

#include "tsdp/base/names.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::mechanism {

/// The format that a ledger was written in. Older ones stay readable, and are held to the wording they were written
/// with.
enum class Edition {
  second,  ///< up to 0.5: `start.weights`, "consecutive values", and `bound` of a single use
  third
};
constexpr Names<Edition, 2> names_of(Edition) {
  return {{{Edition::second, "tsdp-privacy-2"}, {Edition::third, "tsdp-privacy-3"}}};
}

/// The contents of `privacy.json` as this edition wrote them.
[[nodiscard]] nlohmann::ordered_json document_as(const Ledger& ledger, Edition edition);

}  // namespace tsdp::mechanism
