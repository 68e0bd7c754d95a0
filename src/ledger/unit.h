// What two neighbouring data sets differ in, as ledgers and budgets say it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ledger/fields.h"
#include "tsdp/mechanism/training_method.h"

namespace tsdp::mechanism {

/// Whether data sets that are neighbours under `inner` are neighbours under `outer`, too: then a guarantee for `outer`
/// is one for `inner`. An event of w places is w places; w places lie in w′ consecutive ones only if w = 1 and w′ ≥ 1
/// or both are events; a change by at most v is one by at most v′ ≥ v, and every change is one without bound (no v). A
/// series, or all series of an owner, present or absent contain only themselves: a change of some of these values takes
/// all away and adds others, which costs twice.
[[nodiscard]] bool contains(const privacy::PrivacyUnit& outer, const privacy::PrivacyUnit& inner);

/// "event with w = 24, any change of a value": a unit as text for people.
[[nodiscard]] std::string unit_text(const privacy::PrivacyUnit& unit);

/// The unit that a mechanism's guarantee is about: without noise on the data, its theorem needs no v.
[[nodiscard]] privacy::PrivacyUnit guaranteed_unit(const PrivateMechanism& mechanism);

/// The section `relation` of a ledger or a budget, without its text; and read again. Throws DataError.
[[nodiscard]] nlohmann::ordered_json unit_json(const privacy::PrivacyUnit& unit);
[[nodiscard]] privacy::PrivacyUnit read_unit(const Fields& fields);

}  // namespace tsdp::mechanism
